"""`MicroBatch`: the micro-batch that a Spark task belongs to, and how each micro-batch's plan carries it to its tasks.

Spark tells the number of a micro-batch to threads that descend from the query's own. But a function of ``foreachBatch``
may compute its DataFrame in other threads, as Spark Connect always does. What every thread has is the plan, in which
Spark replaces a scalar subquery by its value while the query's own thread still prepares the micro-batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from splitjoin.base.errors import SnapshotError, UnsupportedError

from ..workers import shipped

#: The folder of states in a checkpoint.
FOLDER = "splitjoin"
#: The setting of a query's session that has the checkpoint's place; tasks see settings that begin with "spark.".
CHECKPOINT = "spark.splitjoin.checkpointRoot"
_ARROW = pa.schema([("number", pa.int64()), ("query", pa.string()), ("checkpoint", pa.string()),
                    ("run", pa.string()), ("hot", pa.list_(pa.int32()))])


@dataclass(frozen=True)
class MicroBatch:
    """A micro-batch.

    Attributes:
        number: Its number, from 0.
        query: The id of its streaming query, which outlives restarts.
        checkpoint: The place of the query's checkpoint as Spark has it; None where the query did not tell it.
        run: Spark's id of the run of the query, another one after each restart; empty where nobody needs it.
    """

    number: int
    query: str
    checkpoint: str | None
    run: str = ""

    @classmethod
    def of(cls, planned: Mapping[str, Any] | None) -> MicroBatch:
        """The micro-batch that a plan says, ``planned``; without one, that of the thread that started the task.

        Raises `UnsupportedError` where neither knows any.
        """
        if planned is not None and planned["number"] is not None and planned["query"] is not None:
            return cls(planned["number"], planned["query"], planned["checkpoint"], planned.get("run") or "")
        context = TaskContext.get()
        number, query, checkpoint, run = (None if context is None else context.getLocalProperty(name) for name in (
            "streaming.sql.batchId", "sql.streaming.queryId", CHECKPOINT, "spark.jobGroup.id"))
        if number is None or query is None:
            raise UnsupportedError(
                "a join of streaming DataFrames runs in a streaming query only; start one with writeStream. If this is "
                "one, its foreachBatch function computes a micro-batch without any input of the join in a thread of "
                "its own: start the thread with pyspark.inheritable_thread_target, or let the function call "
                "persist() and count() before it starts threads")
        return cls(int(number), query, checkpoint, run or "")

    def root(self, given: str | None) -> str:
        """The folder of the state files: as ``given``, else below the query's checkpoint.

        Raises `SnapshotError` where the checkpoint is not known.
        """
        if given is not None:
            return given
        if not self.checkpoint:
            raise SnapshotError("the join keeps its state below the query's checkpoint, but the query did not tell "
                                "where that is; start it by the session of its DataFrames, or give "
                                "state='hdfs://…', 's3://…' or another folder that driver and executors reach")
        return reached(self.checkpoint)


def reached(checkpoint: str) -> str:
    """The folder of states in a ``checkpoint``, whose place Spark has, as a path or URI that Arrow reaches."""
    local = re.fullmatch(r"file:(?://)?(/.*)", checkpoint, re.DOTALL)
    place = local[1] if local else re.sub(r"^s3[an]://", "s3://", checkpoint)
    if place.startswith("dbfs:"):
        place = "/dbfs/" + place[5:].lstrip("/")
    return f"{place.rstrip('/')}/{FOLDER}"


class PlannedBatch:
    """The micro-batch in the plan of a streaming query: a subquery with the fields of `MicroBatch` and ``hot``.

    ``hot``: finds the hot slots of the state before the micro-batch, in the task of the subquery; None for none.
    """

    def __init__(self, spark: SparkSession, hot: Callable[[MicroBatch], Iterable[int]] | None):
        self._spark = spark
        self._row = spark.range(0, 1, 1, 1).mapInArrow(
            shipped(_Current(hot)), "number bigint, query string, checkpoint string, run string, hot array<int>")

    def beside(self, rows: DataFrame, *, field: str | None = None) -> DataFrame:
        """``rows`` with the struct, or a ``field`` of it, as their last column."""
        value = "(SELECT struct(*) FROM {row})" + ("" if field is None else f".{field}")
        return self._spark.sql(f"SELECT *, {value} AS micro_batch FROM {{rows}}", rows=rows, row=self._row)


@dataclass(frozen=True)
class _Current:
    hot: Callable[[MicroBatch], Iterable[int]] | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            continue
        batch = MicroBatch.of(None)
        hot = [] if self.hot is None else sorted(self.hot(batch))
        yield pa.RecordBatch.from_pylist([{**asdict(batch), "hot": hot}], schema=_ARROW)
