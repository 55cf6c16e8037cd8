"""Streaming sessions: two streams pushed in batches, results polled while they come, on any device."""

from .limit import Limit
from .opening import open as open, query  # noqa: A004  # called as splitjoin.open
from .session import StreamJoin

__all__ = ["Limit", "StreamJoin", "query"]
