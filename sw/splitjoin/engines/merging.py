"""Arrival order of two streams whose event times rise."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .arrival import MergedSlices, R, S

__all__ = ["merged_slices"]

Ticks = npt.NDArray[np.int64]


def merged_slices(r: pa.Table, s: pa.Table, times_r: Ticks, times_s: Ticks, *, least: int = 256) -> MergedSlices:
    """The tuples of ``r`` and ``s`` in arrival order, whose event times rise; R's come first at equal times.

    By a compiled loop in a process that has others of sessions, which are compiled with it (`compile_query`), if there
    are ``least`` tuples or more, which pay for its call.
    """
    times_r, times_s = np.ascontiguousarray(times_r), np.ascontiguousarray(times_s)
    n = len(times_r) + len(times_s)
    stream, ts, s_before = np.empty(n, np.uint8), np.empty(n, np.int64), np.empty(len(times_r), np.int64)
    if n >= least and "splitjoin.engines.cpu.compiled_session" in sys.modules:
        from .cpu.handover import address_of  # which imports numba
        from .cpu.merge_loops import merge_times

        merge_times(address_of(times_r), len(times_r), address_of(times_s), len(times_s), stream, ts, s_before)
    else:
        stream[:len(times_r)], stream[len(times_r):] = R, S
        order = np.argsort(np.concatenate([times_r, times_s]), kind="stable")  # timsort: it merges; ties stay as given
        stream, ts = stream[order], np.concatenate([times_r, times_s])[order]
        s_before = np.flatnonzero(stream == R) - np.arange(len(times_r))
    return MergedSlices(stream, ts, r, s, times_r, times_s, s_before)
