"""Stretches of arrival order: cut, and put together again from what is retained of both streams."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..arrival import Arrivals, R, S

__all__ = ["head_and_tail", "interleave", "seen_by_r"]


def head_and_tail(arrivals: Arrivals, n: int) -> tuple[Arrivals, Arrivals | None]:
    """The first ``n`` arrivals, and the others, None if there are none."""
    if len(arrivals) <= n:
        return arrivals, None
    s = int(np.count_nonzero(arrivals.stream[:n]))
    ts = arrivals.ts
    return (Arrivals(arrivals.stream[:n], None if ts is None else ts[:n], arrivals.r.slice(0, n - s),
                     arrivals.s.slice(0, s)),
            Arrivals(arrivals.stream[n:], None if ts is None else ts[n:], arrivals.r.slice(n - s), arrivals.s.slice(s)))


def seen_by_r(stream: npt.NDArray[np.uint8], before: int) -> npt.NDArray[np.int64]:
    """For each R in ``stream``, how many S precede it, ``before`` of them before the stretch: int64 (r,)."""
    at = np.flatnonzero(stream == R)
    return at - np.arange(len(at)) + before


def interleave(r: pa.Table, s: pa.Table, ts: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None,
               seen: npt.NDArray[np.int64], first_s: int) -> Arrivals:
    """The rows of both streams in arrival order, by how many S precede each R (``seen``); ``s`` begins at row
    ``first_s``. ``ts``: R's and S's event times.
    """
    at_r = np.clip(seen - first_s, 0, len(s)) + np.arange(len(r))
    stream = np.full(len(r) + len(s), S, np.uint8)
    stream[at_r] = R
    if ts is None:
        return Arrivals(stream, None, r, s)
    times = np.empty(len(stream), np.int64)
    times[stream == R], times[stream == S] = ts
    return Arrivals(stream, times, r, s)
