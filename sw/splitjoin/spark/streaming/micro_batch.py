"""The micro-batch that a Spark task belongs to."""

from __future__ import annotations

from pyspark import TaskContext

from splitjoin.base.errors import UnsupportedError

__all__ = ["micro_batch"]


def micro_batch() -> tuple[int, str]:
    """The number of the micro-batch, from 0, and the id of the streaming query, which outlives restarts.

    Raises `UnsupportedError` in a task that belongs to no streaming query.
    """
    context = TaskContext.get()
    batch = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    if batch is None or query is None:
        raise UnsupportedError("a join of streaming DataFrames runs in a streaming query only; start one with "
                               "writeStream")
    return int(batch), query
