"""Intervals of time around base tuples, within 64 bits."""

from __future__ import annotations

from splitjoin.lang.query import Query

__all__ = ["before", "interval_lengths"]

_MIN, _MAX = -(2**63), 2**63 - 1


def interval_lengths(query: Query) -> tuple[int, int]:
    """The length before a base tuple and the one behind it in which partners lie, in ticks: S's and R's window."""
    pre, follow = query.window_s.length, query.window_r.length
    assert pre is not None and follow is not None, "both windows are RANGE"
    return min(pre, _MAX), min(follow, _MAX)


def before(time: int, length: int) -> int:
    """``time − length``, at least the least time."""
    return max(time - length, _MIN)
