"""The compiled kernel of `exact_float_sums`."""

from __future__ import annotations

from typing import Any

import numpy as np

from splitjoin.engines.compiled.jit import compiled

__all__ = ["group_sums"]

#: More partial sums than doubles that do not overlap: there are 2,098 bits from the smallest to the largest.
_PARTIALS = 2200


@compiled
def group_sums(values: Any, lengths: Any, sums: Any, overflowed: Any) -> None:
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
