"""How the place of a query's checkpoint, below which a join keeps its state, reaches the tasks.

Spark tells a query's checkpoint to nobody but the query. A listener of the session's queries is called in the query's
own thread before its first micro-batch; what it sets in the query's own session, every task of the query can read.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryStartedEvent

from ..listeners import Listener
from .micro_batch import CHECKPOINT

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
        execution.sparkSessionForStream().conf().set(CHECKPOINT, execution.resolvedCheckpointRoot())
