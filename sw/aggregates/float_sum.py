"""Exact sums of floats, rounded once: what `math.fsum` gives, for many groups at once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cpu.jit import compiled

__all__ = ["exact_float_sums", "rounded_sum"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: More partial sums than doubles that do not overlap: there are 2,098 bits from the smallest to the largest.
_PARTIALS = 2200


def exact_float_sums(values: Floats, lengths: Ints) -> Floats:
    """The sum of each group of ``values``, which lie one after the other, of ``lengths`` (n,): float64 (n,).

    Exact, and rounded once to the nearest double, ties to even. NaN, or infinities of both signs, give NaN; other
    infinities themselves. A sum that is too large is infinite. An empty group gives 0.
    """
    sums = np.empty(len(lengths))
    overflowed = np.zeros(len(lengths), np.bool_)
    _sums(np.ascontiguousarray(values, np.float64), lengths, sums, overflowed)
    for group in np.flatnonzero(overflowed).tolist():  # a partial sum was too large, though the whole one may not be
        start = int(lengths[:group].sum())
        sums[group] = rounded_sum(values[start:start + int(lengths[group])].tolist())
    return sums


def rounded_sum(values: list[Any]) -> float:
    """The exact sum of ``values``, rounded once, by rational numbers."""
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return float(sum(special))
    total = sum(map(Fraction, values), Fraction(0))
    try:
        return total.numerator / total.denominator
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@compiled
def _sums(values: Any, lengths: Any, sums: Any, overflowed: Any) -> None:
    """Shewchuk's algorithm: a sum is kept as doubles that do not overlap, by increasing magnitude ("Adaptive Precision
    Floating-Point Arithmetic", 1997, GROW-EXPANSION), and these are added from the greatest on.
    """
    partials = np.empty(_PARTIALS)
    at = 0
    for group in range(len(lengths)):
        n = 0
        special = 0.0
        is_special = False
        for i in range(at, at + lengths[group]):
            x = values[i]
            if not np.isfinite(x):
                special += x
                is_special = True
                continue
            kept = 0
            for j in range(n):
                y = partials[j]
                if abs(x) < abs(y):
                    x, y = y, x
                high = x + y
                low = y - (high - x)
                if low != 0.0:
                    partials[kept] = low
                    kept += 1
                x = high
            if not np.isfinite(x):
                overflowed[group] = True
                x = 0.0
            if x != 0.0:
                partials[kept] = x
                kept += 1
            n = kept
        at += lengths[group]
        if is_special:
            sums[group] = special
            overflowed[group] = False
            continue
        total = 0.0
        low = 0.0
        while n > 0:
            n -= 1
            x = total
            y = partials[n]
            total = x + y
            low = y - (total - x)
            if low != 0.0:
                break
        # Half-way cases round by the sign of what is left.
        if n > 0 and ((low < 0.0 and partials[n - 1] < 0.0) or (low > 0.0 and partials[n - 1] > 0.0)):
            y = low * 2.0
            x = total + y
            if y == x - total:
                total = x
        sums[group] = total
        if not np.isfinite(total):
            overflowed[group] = True
