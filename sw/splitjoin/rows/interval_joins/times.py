"""Intervals of time around base tuples, within 64 bits."""

from __future__ import annotations

from typing import NamedTuple

from splitjoin.lang.query import Query

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
