"""Arrival order of two streams whose event times rise, and places among what rises: by compiled loops."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Array, Ticks

from .arrival import Arrivals
from .loops import loops

#: Rows for which the call of a loop pays.
_FEW = 1 << 10


def places_among(values: Ticks, keys: Ticks, *, after: bool = False) -> Ticks:
    """The place of each of ``keys`` (n,) among the sorted ``values``, as `numpy.searchsorted` gives it: before equal
    values, or behind them if ``after``. If the keys are sorted too, this takes one pass.
    """
    places = np.empty(len(keys), np.int64)
    loops()["find_places"](aligned(values), aligned(keys), after, places)
    return places


def merged_slices(r: pa.Table, s: pa.Table, times_r: Ticks, times_s: Ticks) -> Arrivals:
    """The tuples of ``r`` and ``s`` in arrival order, whose event times rise; R's come first at equal times."""
    times_r, times_s = aligned(times_r), aligned(times_s)
    n = len(times_r) + len(times_s)
    stream, ts, s_before = np.empty(n, np.uint8), np.empty(n, np.int64), np.empty(len(times_r), np.int64)
    loops()["merge_times"](times_r, times_s, stream, ts, s_before)
    return Arrivals(stream, ts, r, s, (times_r, times_s), s_before)


def taken(values: Array, rows: Ticks) -> Array:
    """The ``values`` at ``rows`` (n,), which are from 0 on: unsigned numbers. Raises `IndexError` for rows beyond."""
    if len(rows) < _FEW:
        return values[rows]
    out = np.empty(len(rows), values.dtype)
    if not loops()[f"take_rows<{values.dtype}_t>"](values, rows, out):
        raise IndexError(f"rows must be from 0 to before {len(values):,}, not from {rows.min():,} to {rows.max():,}")
    return out


def aligned(numbers: Ticks) -> Ticks:
    """``numbers``, copied only if they do not lie as loops take them."""
    return np.require(numbers, np.int64, ["C", "A"])
