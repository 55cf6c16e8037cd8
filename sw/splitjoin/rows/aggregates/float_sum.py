"""Exact sums of floats, rounded once: what `math.fsum` gives, for many groups at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from splitjoin.engines.loops import loops
from splitjoin.lang.aggregate_functions import rounded_sum

__all__ = ["exact_float_sums", "rounded_sum"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def exact_float_sums(values: Floats, lengths: Ints) -> Floats:
    """The sum of each group of ``values``, which lie one after the other, of ``lengths`` (n,): float64 (n,).

    Exact, and rounded once to the nearest double, ties to even. NaN, or infinities of both signs, give NaN; other
    infinities themselves. A sum that is too large is infinite. An empty group gives 0.
    """
    sums, overflowed = np.empty(len(lengths)), np.empty(len(lengths), np.uint8)
    loops()["float_sums"](np.require(values, np.float64, ["C", "A"]), np.require(lengths, np.int64, ["C", "A"]), sums,
                         overflowed)
    for group in np.flatnonzero(overflowed).tolist():  # a partial sum was too large, though the whole one may not be
        start = int(lengths[:group].sum())
        sums[group] = rounded_sum(values[start:start + int(lengths[group])].tolist())
    return sums
