"""Loops that merge what rises: two streams by event time, and keys among values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]  # documented, but not exported by name

from . import intrinsics
from .intrinsics import pointer_to
from .jit import compiled

__all__ = ["find_places", "merge_times", "take_rows"]

#: Digests of these are part of what machine code here depends on.
COMPILED_WITH = (intrinsics,)


@compiled
def merge_times(at_r: Any, n_r: Any, at_s: Any, n_s: Any, stream: Any, ts: Any, s_before: Any) -> None:
    """Write the arrival order of ``n_r`` and ``n_s`` tuples, whose times, int64 at addresses ``at_r`` and ``at_s``,
    rise, R's first at equal times: their ``stream`` (r + s,) and ``ts``, and the number of S ``s_before`` each R (r,).
    Without branches on the times.
    """
    times_r, times_s = carray(pointer_to(at_r), (n_r,), np.int64), carray(pointer_to(at_s), (n_s,), np.int64)
    r = s = at = 0
    while r < n_r and s < n_s:
        a, b = times_r[r], times_s[s]
        of_s = b < a
        stream[at] = of_s
        ts[at] = b if of_s else a
        s_before[r] = s
        s += of_s
        r += not of_s
        at += 1
    while r < n_r:
        stream[at], ts[at], s_before[r] = 0, times_r[r], s
        r += 1
        at += 1
    while s < n_s:
        stream[at], ts[at] = 1, times_s[s]
        s += 1
        at += 1


@compiled
def find_places(at_values: Any, n: Any, at_keys: Any, after: Any, places: Any) -> None:
    """Write the place of each key among the ``n`` values, which rise: before those that equal it, or behind them if
    ``after``. Both are int64 at these addresses, and there are as many keys as ``places`` (keys,).

    From one key to the next it looks at growing distances, so keys that rise as well take one pass.
    """
    values, keys = carray(pointer_to(at_values), (n,), np.int64), carray(pointer_to(at_keys), (len(places),), np.int64)
    place = np.int64(0)
    for k in range(len(places)):
        key = keys[k]
        low, high = place, n
        if place and not (values[place - 1] < key or (after and values[place - 1] == key)):
            low, high = np.int64(0), place - 1
        else:
            step = np.int64(1)
            while low < n and (values[min(low + step, n) - 1] < key or (
                    after and values[min(low + step, n) - 1] == key)):
                low = min(low + step, n)
                step *= 2
            high = min(low + step - 1, n)
        while low < high:
            middle = (low + high) >> 1
            if values[middle] < key or (after and values[middle] == key):
                low = middle + 1
            else:
                high = middle
        places[k] = place = low


@compiled
def take_rows(values: Any, rows: Any, out: Any) -> None:
    """Write the ``values`` at ``rows`` (n,), from 0 on, to ``out`` (n,)."""
    for i in range(len(rows)):
        out[i] = values[np.uint64(rows[i])]
