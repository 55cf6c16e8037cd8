"""`ProgressLog`: a listener that collects the counters of streaming joins, micro-batch by micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.listener import QueryProgressEvent, QueryStartedEvent

from splitjoin.base import threads
from splitjoin.engines.effectiveness import effectiveness, effectiveness_text

from .listeners import Listener

#: The beginnings of the names of counters that add up over micro-batches.
_SUMMED = "pairs", "comparisons", "compared", "matches", "tuples_", "late_", "null_", "reloads", "device_us", "pushed"


class ProgressLog(Listener):
    """Collects the counters of the joins called ``name`` in all streaming queries of a session.

    Add it with ``spark.streams.addListener``. ``say``, such as ``print``, is called with a line of text for each
    micro-batch.
    """

    def __init__(self, name: str = "splitjoin", *, say: Callable[[str], Any] | None = None):
        self._name, self._say = name, say
        self._rows: list[dict[str, Any]] = []
        self._lock = threads.lock()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each micro-batch so far.

        Each has the id of its ``query``, the number ``batch``, its ``timestamp``, its run time in ``milliseconds``, and
        the join's counters.
        """
        with self._lock:
            return list(self._rows)

    @property
    def totals(self) -> dict[str, int]:
        """The sums, over all micro-batches, of pairs, comparisons, pairs compared and matching, tuples, late rows, rows
        without a time, reloads, device time and rows pushed.
        """
        found: dict[str, int] = {}
        for row in self.rows:
            for key, value in row.items():
                if key.startswith(_SUMMED):
                    found[key] = found.get(key, 0) + value
        return found

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's name
        """Do nothing: nothing is counted yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
        """Collect the counters of a micro-batch."""
        progress = event.progress
        counts = progress.observedMetrics.get(self._name)
        if counts is None:
            return
        row: dict[str, Any] = {"query": str(progress.id), "batch": progress.batchId, "timestamp": progress.timestamp,
                               "milliseconds": progress.durationMs.get("triggerExecution", 0), **observed(counts)}
        with self._lock:
            self._rows.append(row)
        if self._say is not None:
            share = effectiveness({"matches": row["matches"], "candidates": row["compared"]})
            effective = "" if share is None else f", {effectiveness_text(share)} results per comparison"
            self._say(f"micro-batch {row['batch']}: {row['tuples_r']} + {row['tuples_s']} rows, {row['pairs']} pairs, "
                      f"{row['late_r'] + row['late_s']} late, {row['stored_rows']} stored, "
                      f"{row['milliseconds']} ms{effective}")


def observed(row: Row) -> dict[str, int]:
    """The observed metrics of a micro-batch by name: ``row`` is of ``StreamingQueryProgress.observedMetrics``."""
    found = row.asDict()
    if set(found) == {"values", "schema"}:  # the client of Spark Connect keeps the names apart
        return dict(zip((field["name"] for field in found["schema"]["fields"]), found["values"], strict=True))
    return found
