"""Streaming sessions: two streams pushed in batches, results polled while they come, on any device."""

from .aio import AsyncSource, AsyncStreamJoin
from .limit import Limit
from .opening import open as open, open_async, query  # noqa: A004  # called as splitjoin.open
from .session import StreamJoin

__all__ = ["AsyncSource", "AsyncStreamJoin", "Limit", "StreamJoin", "open_async", "query"]
