"""What windows show of whole tables: the tuples of S that each tuple of R meets within both (semantics, section 2)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from splitjoin.base.arrays import Rows
from splitjoin.lang.query import Query
from splitjoin.plan.keys import Codes

from ..arrival import Arrivals
from ..merging import aligned
from .table_work import Work, plain_work


class Spans:
    """For each tuple of R a range of S's row ids, those before it or after it within the windows of ``query``, from
    `start` to before `end`: int64 (r,). Neither falls.
    """

    def __init__(self, query: Query, incoming: Arrivals, work: Work | None = None):
        self._query, self._incoming = query, incoming
        self._work = work or plain_work()
        self._rows = len(incoming.r), len(incoming.s)

    @cached_property
    def hold_all(self) -> bool:
        """True if every range is that of all rows of S."""
        if not self.limits:
            return True
        return not self._rows[0] or (int(self.start.max()) == 0 and int(self.end.min()) == self._rows[1])

    @cached_property
    def lengths(self) -> tuple[int, int] | None:
        """How much earlier than a tuple of R those of S may be, and how much later, if no more limits the ranges."""
        extents = self._query.window_s, self._query.window_r
        if not self._incoming.is_timed or any(e.length is None for e in extents) or any(
                e.rows is not None and e.rows < rows for e, rows in zip(extents, self._rows[::-1], strict=True)):
            return None
        return extents[0].length or 0, extents[1].length or 0

    def forget(self) -> None:
        """Give the memory of ranges back, which are found anew if they are asked for."""
        for name in ("start", "end", "intervals"):
            self.__dict__.pop(name, None)

    @cached_property
    def pairs(self) -> int:
        """The number of pairs in the ranges."""
        if not self.limits:
            return self._rows[0] * self._rows[1]
        if self.lengths is not None and "start" not in self.__dict__:
            return sum(self._work.each(self._rows[0], self._pairs_within))
        start, end = self.start, self.end
        return sum(self._work.each(len(start), lambda mine: int(np.maximum(end[mine] - start[mine], 0).sum())))

    def _pairs_within(self, mine: slice) -> int:
        """The number of pairs of some tuples of R, where only times limit the ranges."""
        assert self.lengths is not None
        times, times_s = self._incoming.times("r")[mine], aligned(self._incoming.times("s"))
        counts = np.empty((2, len(times)), np.int64)
        for end, by in enumerate((-self.lengths[0], self.lengths[1])):
            self._work.loops["merged_counts"](times_s, aligned(_moved(times, by)), end, counts[end])
        return int((counts[1] - counts[0]).sum())

    @cached_property
    def start(self) -> Rows:
        """The first row id of each range."""
        extent, start = self._query.window_s, None
        if extent.rows is not None and extent.rows < self._rows[1]:
            before = self._incoming.positions("r") - np.arange(self._rows[0])  # tuples of S before each of R
            start = np.maximum(before - extent.rows, 0)
        if self._incoming.is_timed and extent.length is not None:
            by_time = self._work.counts_below(self._incoming.times("s"), self._shifted(-extent.length))
            start = by_time if start is None else np.maximum(start, by_time, out=start)
        return np.zeros(self._rows[0], np.int64) if start is None else start

    @cached_property
    def end(self) -> Rows:
        """The row id behind each range."""
        extent, end = self._query.window_r, None
        if extent.rows is not None and extent.rows < self._rows[0]:
            before = self._incoming.positions("s") - np.arange(self._rows[1])  # tuples of R before each of S
            end = self._work.counts_below(before, np.arange(self._rows[0]) + extent.rows, equal=True)
        if self._incoming.is_timed and extent.length is not None:
            by_time = self._work.counts_below(self._incoming.times("s"), self._shifted(extent.length), equal=True)
            end = by_time if end is None else np.minimum(end, by_time, out=end)
        return np.full(self._rows[0], self._rows[1], np.int64) if end is None else end

    @cached_property
    def intervals(self) -> tuple[Codes, Codes]:
        """The first and the last row id of each range as unsigned numbers (r,): 1 and 0 of one that is empty."""
        start, end, n = self.start, self.end, len(self.start)
        low, high = np.empty(n, np.uint64), np.empty(n, np.uint64)

        def some(mine: slice) -> None:
            none = end[mine] <= start[mine]
            low[mine], high[mine] = np.where(none, 1, start[mine]), np.where(none, 0, end[mine] - 1)

        self._work.each(n, some)
        return low, high

    def _shifted(self, by: int) -> Rows:
        """R's times moved by ``by`` ticks, as far as 64 bits go; they rise."""
        times = self._incoming.times("r")
        return self._work.made(len(times), np.int64, lambda mine: _moved(times[mine], by))

    @cached_property
    def limits(self) -> bool:
        """False if no window leaves out a tuple, as it has as many rows and is as long as what there is."""
        ts = self._incoming.ends
        for extent, rows in zip((self._query.window_r, self._query.window_s), self._rows, strict=True):
            if extent.rows is not None and extent.rows < rows:
                return True
            if ts is not None and extent.length is not None and extent.length < ts[1] - ts[0]:
                return True
        return False


def _moved(times: Rows, by: int) -> Rows:
    """``times`` moved by ``by`` ticks, as far as 64 bits go."""
    if len(times) and int(times[0]) + by >= -(2**63) and int(times[-1]) + by < 2**63:
        return times + by
    length = np.uint64(min(abs(by), 2**64 - 1))  # more than a signed number holds
    above = times.view(np.uint64) ^ np.uint64(1 << 63)  # above the least time
    room = above if by < 0 else ~above
    moved = np.where(room < length, room, length)
    return ((above - moved if by < 0 else above + moved) ^ np.uint64(1 << 63)).view(np.int64)
