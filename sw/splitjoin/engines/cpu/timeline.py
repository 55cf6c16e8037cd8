"""The window of each probe, as an interval of the other stream's row ids (semantics, section 2)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.lang.windows import Extent

from ..arrival import Arrivals, R, S
from .jit import compiled
from .store import Store

__all__ = ["Timeline", "Windows", "extent"]

Rows = npt.NDArray[np.int64]
#: Per stream its probes' windows: first row id of the other stream, and the one behind the last.
Windows = dict[str, tuple[Rows, Rows]]

_UNLIMITED = 2**62


class Timeline:
    """Counter of both streams' tuples, and the event times that RANGE windows need."""

    def __init__(self, query: Query):
        self._extents = {side: query.window(side) for side in ("r", "s")}
        self._times = {side: Store() for side in ("r", "s")}
        self._starts = np.zeros(2, np.int64)  # where R's and S's windows begin, for the last probe that looked
        self.ends = {"r": 0, "s": 0}

    @property
    def starts(self) -> dict[str, int]:
        """Per stream the first row that a future probe may still see."""
        found = {}
        for n, side in enumerate(("r", "s")):
            rows = self._extents[side].rows
            found[side] = max(int(self._starts[n]), 0 if rows is None else self.ends[side] - rows)
        return found

    def windows(self, arrivals: Arrivals, jobs: list[Callable[[], None]]) -> Windows:
        """The windows of the next arrivals, which are counted: they are there when the ``jobs`` have run."""
        if any(extent.length is not None for extent in self._extents.values()):
            return self._ranged(arrivals)
        stream, limits = arrivals.stream, [_limit(self._extents[side]) for side in SIDES]

        def of(side: str) -> tuple[Rows, Rows]:
            other, n = 1 - SIDES.index(side), len(arrivals.table(side))
            out = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
            jobs.append(partial(_row_windows, stream, 1 - other, int(self._starts[other]), self.ends[SIDES[other]],
                                limits[other], *out))
            return out[0][:n], out[1][:n]

        windows: Windows = {side: of(side) for side in SIDES}
        for n, side in enumerate(SIDES):
            self.ends[side] += len(arrivals.table(side))
            self._starts[n] = max(int(self._starts[n]), self.ends[side] - limits[n])
        return windows

    def _ranged(self, arrivals: Arrivals) -> Windows:
        stream, ts = arrivals.stream, arrivals.ts
        at, limits, lengths = [], [], []
        for number, side in ((R, "r"), (S, "s")):
            extent, times = self._extents[side], self._times[side]
            if extent.length is not None and ts is not None:
                times.append([ts[stream == number]], int((stream == number).sum()))
            at.append(times.arrays[0] if times.end else np.empty(0, np.int64))
            limits.append(_limit(extent))
            lengths.append(2**64 - 1 if extent.length is None else min(extent.length, 2**64 - 1))
        n = {side: len(arrivals.table(side)) for side in ("r", "s")}
        out = {side: (np.empty(n[side], np.int64), np.empty(n[side], np.int64)) for side in ("r", "s")}
        ranged = [self._extents[side].length is not None for side in ("r", "s")]
        _windows(stream, np.empty(0, np.int64) if ts is None else ts, self._starts, self.ends["r"], self.ends["s"],
                 limits[0], limits[1], ranged[0], ranged[1], np.uint64(lengths[0]), np.uint64(lengths[1]), at[0], at[1],
                 self._times["r"].base, self._times["s"].base, out["r"][0], out["r"][1], out["s"][0], out["s"][1])
        for side in ("r", "s"):
            self.ends[side] += n[side]
        return out

    def trim(self) -> None:
        """Drop the event times that no future probe needs."""
        if not any(times.end for times in self._times.values()):
            return
        starts = self.starts
        for side, times in self._times.items():
            if times.end:
                times.trim(min(starts[side], times.end))


def _limit(extent: Extent) -> int:
    return _UNLIMITED if extent.rows is None else min(extent.rows, _UNLIMITED)


def extent(windows: Windows) -> tuple[int, int]:
    """The number of pairs of probes and stored tuples in ``windows``, and the tuples of the longest window."""
    return cast(tuple[int, int], _extent(*windows["r"], *windows["s"]))


@compiled
def _extent(start_r: Any, end_r: Any, start_s: Any, end_s: Any) -> Any:
    pairs = longest = np.int64(0)
    for i in range(len(start_r)):
        pairs += end_r[i] - start_r[i]
        longest = max(longest, end_r[i] - start_r[i])
    for i in range(len(start_s)):
        pairs += end_s[i] - start_s[i]
        longest = max(longest, end_s[i] - start_s[i])
    return pairs, longest


@compiled
def _row_windows(stream: Any, own: Any, start: Any, row: Any, limit: Any, first: Any, last: Any) -> None:
    """The windows of the probes of stream ``own``: the last ``limit`` rows of the other one, whose next row is ``row``.

    ``first`` and ``last`` have room for one more. Without branches, as arrivals may come in any order.
    """
    p = np.uint64(0)
    for i in range(len(stream)):
        first[p] = max(start, row - limit)
        last[p] = row
        mine = stream[i] == own
        p += np.uint64(mine)
        row += 1 - np.int64(mine)


@compiled
def _windows(stream: Any, ts: Any, starts: Any, row_r: Any, row_s: Any, limit_r: Any, limit_s: Any, ranged_r: Any,
             ranged_s: Any, length_r: Any, length_s: Any, ts_r: Any, ts_s: Any, base_r: Any, base_s: Any,
             first_r: Any, last_r: Any, first_s: Any, last_s: Any) -> None:
    start_r, start_s = starts[0], starts[1]
    p_r, p_s = np.int64(0), np.int64(0)
    now = np.uint64(0)
    if not len(stream):
        return
    for i in range(len(stream)):
        now = np.uint64(ts[i])
        if stream[i] == 0:
            start_s = max(start_s, row_s - limit_s)
            if ranged_s:  # the difference of two int64 fits uint64
                while start_s < row_s and now - np.uint64(ts_s[start_s - base_s]) > length_s:
                    start_s += 1
            first_r[p_r], last_r[p_r] = start_s, row_s
            p_r += 1
            row_r += 1
        else:
            start_r = max(start_r, row_r - limit_r)
            if ranged_r:
                while start_r < row_r and now - np.uint64(ts_r[start_r - base_r]) > length_r:
                    start_r += 1
            first_s[p_s], last_s[p_s] = start_r, row_r
            p_s += 1
            row_s += 1
    # Tuples expire on any arrival; those beyond the ROWS window may have been dropped already.
    start_r, start_s = max(start_r, row_r - limit_r), max(start_s, row_s - limit_s)
    if ranged_r:
        while start_r < row_r and now - np.uint64(ts_r[start_r - base_r]) > length_r:
            start_r += 1
    if ranged_s:
        while start_s < row_s and now - np.uint64(ts_s[start_s - base_s]) > length_s:
            start_s += 1
    starts[0], starts[1] = start_r, start_s
