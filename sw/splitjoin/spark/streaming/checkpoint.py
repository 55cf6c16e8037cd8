"""The state of a join below the checkpoint of its query: how the place of the checkpoint reaches the tasks.

Spark tells a query's checkpoint to nobody but the query. A listener of the session's queries is called in the query's
own thread before its first micro-batch; what it sets in the query's own session, every task of the query can read.
"""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakSet

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryStartedEvent

from splitjoin.base.errors import SnapshotError

from ..listeners import Listener

__all__ = ["FOLDER", "reached", "state_root", "tell_checkpoints"]

#: The folder of states in a checkpoint.
FOLDER = "splitjoin"
#: The setting of a query's session that has the checkpoint's place; tasks see settings that begin with "spark.".
_SETTING = "spark.splitjoin.checkpointRoot"
#: Sessions whose queries tell their checkpoints.
_SESSIONS = WeakSet[SparkSession]()


def tell_checkpoints(spark: SparkSession) -> None:
    """From now on, tell the tasks of each streaming query of ``spark`` where its checkpoint is; not over Connect."""
    if spark not in _SESSIONS:
        spark.streams.addListener(_Teller(spark))
        _SESSIONS.add(spark)


class _Teller(Listener):
    def __init__(self, spark: SparkSession):
        self._spark = spark

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's name
        query: Any = self._spark.streams.get(str(event.id))
        execution = query._jsq.streamingQuery()
        execution.sparkSessionForStream().conf().set(_SETTING, execution.resolvedCheckpointRoot())


def state_root(given: str | None) -> str:
    """The folder of the state files, in a task: as ``given``, else below the query's checkpoint.

    Raises `SnapshotError` where the task does not know the checkpoint.
    """
    if given is not None:
        return given
    context = TaskContext.get()
    checkpoint = None if context is None else context.getLocalProperty(_SETTING)
    if not checkpoint:
        raise SnapshotError("the join keeps its state below the query's checkpoint, but the query did not tell where "
                            "that is; start it by the session of its DataFrames, or give state='hdfs://…', 's3://…' "
                            "or another folder that driver and executors reach")
    return reached(checkpoint)


def reached(checkpoint: str) -> str:
    """The folder of states in a ``checkpoint``, whose place Spark has, as a path or URI that Arrow reaches."""
    local = re.fullmatch(r"file:(?://)?(/.*)", checkpoint, re.DOTALL)
    place = local[1] if local else re.sub(r"^s3[an]://", "s3://", checkpoint)
    if place.startswith("dbfs:"):
        place = "/dbfs/" + place[5:].lstrip("/")
    return f"{place.rstrip('/')}/{FOLDER}"
