"""`Listener`: a listener of streaming queries whose events come from the JVM in one piece.

PySpark asks the JVM for each field of a progress event by itself, with the name of each class it meets: some 480
requests for a micro-batch. A driver that has other work answers them more slowly than micro-batches come. Then events
wait in the queue that Spark shares with its own events, of which each keeps the plan of a query: the heap grows.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryProgressEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)


class Listener(StreamingQueryListener):
    """Does nothing; a class of it that overrides ``onQueryProgress`` gets each event by one request."""

    @property
    def _jlistener(self) -> Any:  # PySpark's name; through Spark Connect, which sends text anyway, it is not asked for
        if not hasattr(self, "_jlistenerobj"):
            from pyspark import SparkContext  # which the package of Spark Connect's client alone does not have

            jvm: Any = SparkContext._jvm
            self._jlistenerobj = jvm.PythonStreamingQueryListenerWrapper(_Events(self))
        return self._jlistenerobj

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
        """Do nothing."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  # Spark's name
        """Do nothing: an idle query has no counters."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # Spark's name
        """Do nothing."""


class _Events(JStreamingQueryListener):
    """Events as the JVM gives them."""

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802  # Spark's name
        if type(self.pylistener).onQueryProgress is Listener.onQueryProgress:
            return
        try:
            event = QueryProgressEvent.fromJson(json.loads(jevent.json()))
        except Exception:  # a metric of the user's own, of a type that Spark does not write as JSON
            event = QueryProgressEvent.fromJObject(jevent)
        self.pylistener.onQueryProgress(event)

    def onQueryIdle(self, jevent: Any) -> None:  # noqa: N802  # Spark's name
        if type(self.pylistener).onQueryIdle is not Listener.onQueryIdle:
            super().onQueryIdle(jevent)

    def onQueryTerminated(self, jevent: Any) -> None:  # noqa: N802  # Spark's name
        if type(self.pylistener).onQueryTerminated is not Listener.onQueryTerminated:
            super().onQueryTerminated(jevent)

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
