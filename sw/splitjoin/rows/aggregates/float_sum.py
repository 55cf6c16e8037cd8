"""Exact sums of floats, rounded once: what `math.fsum` gives, for many groups at once."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from splitjoin.engines.compiled.compiler import has_numba
from splitjoin.lang.aggregate_functions import rounded_sum

__all__ = ["exact_float_sums", "rounded_sum"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def exact_float_sums(values: Floats, lengths: Ints) -> Floats:
    """The sum of each group of ``values``, which lie one after the other, of ``lengths`` (n,): float64 (n,).

    Exact, and rounded once to the nearest double, ties to even. NaN, or infinities of both signs, give NaN; other
    infinities themselves. A sum that is too large is infinite. An empty group gives 0.
    """
    if not has_numba():
        return _sums(values, lengths)
    from .float_sum_kernel import group_sums  # here, as numba takes a third of a second to import

    sums = np.empty(len(lengths))
    overflowed = np.zeros(len(lengths), np.bool_)
    group_sums(np.ascontiguousarray(values, np.float64), lengths, sums, overflowed)
    for group in np.flatnonzero(overflowed).tolist():  # a partial sum was too large, though the whole one may not be
        start = int(lengths[:group].sum())
        sums[group] = rounded_sum(values[start:start + int(lengths[group])].tolist())
    return sums


def _sums(values: Floats, lengths: Ints) -> Floats:
    """`exact_float_sums` in plain Python."""
    sums, ends = np.empty(len(lengths)), np.cumsum(lengths)
    for group, end in enumerate(ends.tolist()):
        part = values[end - int(lengths[group]):end].tolist()
        try:
            sums[group] = math.fsum(part)
        except (OverflowError, ValueError):  # of a partial sum; infinities of both signs
            sums[group] = rounded_sum(part)
    return sums
