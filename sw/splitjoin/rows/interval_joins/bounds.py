"""The interval of row ids of S in which each base tuple's partners lie (semantics, sections 2 and 8)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Ints
from splitjoin.base.sliding import SlidingArray
from splitjoin.engines.compiled.jit import compiled
from splitjoin.lang.query import Query

_UNLIMITED = 2**62


class _Extent(NamedTuple):
    """A window: its rows, and its length in ticks where ``ranged``."""

    rows: int
    ranged: bool
    length: np.uint64


class _Arrived(NamedTuple):
    """The S tuples before each base tuple, its times, and those of S from row id ``first`` to before ``end``."""

    before: Ints
    r_times: Ints
    s_times: Ints
    first: int
    end: int


class IntervalBounds:
    """Computes intervals, for base tuples in arrival order, from the arrivals of both streams.

    A base tuple meets the S tuples before it that are in S's window as it sees it, and those behind it that still find
    it in R's window. Both ends of the interval never move back.
    """

    def __init__(self, query: Query):
        self._r, self._s = (_Extent(_UNLIMITED if e.rows is None else min(e.rows, _UNLIMITED), e.length is not None,
                                    np.uint64(min(e.length or 0, 2**64 - 1))) for e in (query.window_r, query.window_s))
        self._s_times, self._r_times = SlidingArray(), SlidingArray()
        self._s_before = SlidingArray()  # of each R tuple: the number of S tuples that precede it
        self._first_r = self._first_s = 0
        self.ends = [0, 0]
        self._fronts = np.zeros(2, np.int64)  # where the last base tuple's interval began and ended

    def skip(self, r: int, s: int) -> None:
        """Begin with row ids ``r`` and ``s``."""
        self._first_r, self._first_s, self.ends = r, s, [r, s]
        self._fronts[:] = s

    def append(self, stream: npt.NDArray[np.uint8], times: Ints | None) -> None:
        """Note the next slice of arrival order."""
        at = np.flatnonzero(stream == 0)
        self._s_before.append(at - np.arange(len(at)) + self.ends[1])
        if (self._r.ranged or self._s.ranged) and times is not None:
            self._r_times.append(times[at])
            self._s_times.append(times[stream == 1])
        self.ends[0] += len(at)
        self.ends[1] += len(stream) - len(at)

    def decided(self, now: int | None) -> int:
        """The number of base tuples that are decided if no tuple below event time ``now`` arrives any more."""
        count = max(len(self._s_before) - self._r.rows, 0)
        if self._r.ranged and now is not None and now - int(self._r.length) > -(2**63):
            count = max(count, int(np.searchsorted(self._r_times.values, now - int(self._r.length))))
        return count

    def of(self, first: int, count: int, *, keep: bool = False) -> tuple[Ints, Ints]:
        """The intervals ``(low, high)`` of ``count`` decided base tuples from row id ``first`` on, which are forgotten
        then. ``keep``: they are not, and need not be decided: the intervals end with the last S tuple so far.
        """
        fronts = self._fronts.copy() if keep else self._fronts
        low, high = np.empty(count, np.int64), np.empty(count, np.int64)
        start = first - self._first_r
        _bounds(start, self._r, self._s, _Arrived(self._s_before.values, self._r_times.values, self._s_times.values,
                                                  self._first_s, self.ends[1]), fronts, low, high)
        if keep:
            return low, high
        for kept in (self._s_before, self._r_times):
            if len(kept):
                kept.drop(start + count)
        self._first_r += start + count
        gone = int(self._fronts[0]) - self._first_s  # no later interval begins before
        if len(self._s_times) and gone > 0:
            self._s_times.drop(min(gone, len(self._s_times)))
        self._first_s += max(gone, 0)
        return low, high

    @property
    def earliest(self) -> int:
        """A row id of S before which no later base tuple has a partner: where the last interval began."""
        return int(self._fronts[0])


@compiled
def _bounds(start: Any, window_r: Any, window_s: Any, arrived: Any, fronts: Any, low: Any, high: Any) -> None:
    s_before, r_times, s_times, first_s, end_s = arrived
    left, came = fronts[0], fronts[1]
    for i in range(len(low)):
        at = start + i
        before = s_before[at]
        left = max(left, before - window_s.rows)
        limit = end_s
        if at + window_r.rows < len(s_before):  # the tuple of R that pushes this one out of R's window
            limit = min(limit, s_before[at + window_r.rows])
        came = max(came, before)
        if window_s.ranged:
            time = np.uint64(r_times[at])  # the difference of two int64 fits uint64
            while left < before and time - np.uint64(s_times[left - first_s]) > window_s.length:
                left += 1
        if window_r.ranged:
            time = np.uint64(r_times[at])
            while came < limit and np.uint64(s_times[came - first_s]) - time <= window_r.length:
                came += 1
        else:
            came = max(came, limit)
        low[i], high[i] = left, min(came, limit)
    fronts[0], fronts[1] = left, came


_MIN, _MAX = -(2**63), 2**63 - 1


class IntervalLengths(NamedTuple):
    """The lengths before and behind a base tuple in which partners lie, in ticks: S's and R's window."""

    before: int
    behind: int

    @classmethod
    def of(cls, query: Query) -> IntervalLengths:
        """That of ``query``, whose windows are RANGE."""
        before, behind = query.window_s.length, query.window_r.length
        assert before is not None and behind is not None, "both windows are RANGE"
        return cls(min(before, _MAX), min(behind, _MAX))


def before(time: int, length: int) -> int:
    """``time − length``, at least the least time."""
    return max(time - length, _MIN)
