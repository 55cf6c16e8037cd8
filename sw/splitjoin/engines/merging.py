"""Arrival order of two streams whose event times rise, and places among what rises."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .arrival import MergedSlices, R, S

__all__ = ["has_loops", "merged_slices", "places_among", "taken"]

Ticks = npt.NDArray[np.int64]

#: Rows for which the call of a loop pays.
_FEW = 1 << 10


def places_among(values: Ticks, keys: Ticks, *, after: bool = False, least: int = 4096) -> Ticks:
    """The place of each of ``keys`` (n,) among the sorted ``values``, as `numpy.searchsorted` gives it: before equal
    values, or behind them if ``after``. If the keys are sorted too, this takes one pass.

    A compiled loop does it under the conditions that `merged_slices` has for its own.
    """
    if len(keys) < least or not has_loops():
        return np.searchsorted(values, keys, side="right" if after else "left")
    from .compiled.handover import address_of
    from .compiled.merge_loops import find_places

    values, keys, places = np.ascontiguousarray(values), np.ascontiguousarray(keys), np.empty(len(keys), np.int64)
    find_places(address_of(values), len(values), address_of(keys), after, places)
    return places


def has_loops(rows: int = _FEW) -> bool:
    """True in a process that has loops of sessions, with which those of a gate and of kinds of joins are compiled, if
    there are so many ``rows`` that their calls, of some microseconds, pay.
    """
    return rows >= _FEW and "splitjoin.engines.cpu.compiled_session" in sys.modules


def merged_slices(r: pa.Table, s: pa.Table, times_r: Ticks, times_s: Ticks, *, least: int = 256) -> MergedSlices:
    """The tuples of ``r`` and ``s`` in arrival order, whose event times rise; R's come first at equal times.

    By a compiled loop in a process that has others of sessions, which are compiled with it (`compile_query`), if there
    are ``least`` tuples or more, which pay for its call.
    """
    times_r, times_s = np.ascontiguousarray(times_r), np.ascontiguousarray(times_s)
    n = len(times_r) + len(times_s)
    stream, ts, s_before = np.empty(n, np.uint8), np.empty(n, np.int64), np.empty(len(times_r), np.int64)
    if n >= least and has_loops():
        from .compiled.handover import address_of  # which imports numba
        from .compiled.merge_loops import merge_times

        merge_times(address_of(times_r), len(times_r), address_of(times_s), len(times_s), stream, ts, s_before)
    else:
        stream[:len(times_r)], stream[len(times_r):] = R, S
        order = np.argsort(np.concatenate([times_r, times_s]), kind="stable")  # timsort: it merges; ties stay as given
        stream, ts = stream[order], np.concatenate([times_r, times_s])[order]
        s_before = np.flatnonzero(stream == R) - np.arange(len(times_r))
    return MergedSlices(stream, ts, r, s, times_r, times_s, s_before)


def taken(values: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The ``values`` at ``rows`` (n,), which are from 0 on, by a compiled loop (`has_loops`): unsigned numbers."""
    from .compiled.merge_loops import take_rows

    out = np.empty(len(rows), values.dtype)
    take_rows(values, rows, out)
    return out
