"""A streaming query over files, which starts again between some of them, by Spark's own join or by splitjoin's."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

_ENABLED = "spark.splitjoin.sql.enabled"
#: Seconds within which a task or a micro-batch must end. All tasks are small, and the machine may be busy.
_PATIENCE = 600


@dataclass(frozen=True)
class Outcome:
    """The rows of each micro-batch; of each what Spark reports: the watermark, late rows, and input rows; and whether
    splitjoin ran the join.
    """

    rows: dict[int, list[str]]
    reported: dict[int, tuple[Any, ...]]
    here: bool


def run(spark: SparkSession, folder: Path, name: str, starts: Sequence[int], inputs: Sequence[str],
        config: Mapping[str, str], enabled: bool, frame: Callable[[], DataFrame], at_once: bool = False) -> Outcome:
    """The outcome of a query over the files ``waiting/INPUT/NUMBER.parquet`` of ``folder``, as far as they exist.

    The query starts anew whenever the files before the numbers of ``starts`` have been linked to ``NAME/INPUT``, where
    ``frame`` reads them. ``at_once``: with Spark's default trigger, else until all that is there is read.
    """
    rows: dict[int, list[str]] = {}
    reported: dict[int, tuple[Any, ...]] = {}
    given, here = 0, True
    with settings(spark, {**config, _ENABLED: str(enabled).lower()}):
        for side in inputs:
            (folder / name / side).mkdir(parents=True)
        for files in starts:
            for number in range(given, files):
                for side in inputs:
                    if (waiting := folder / "waiting" / side / f"{number}.parquet").exists():
                        os.link(waiting, folder / name / side / waiting.name)
            given = files
            writer = frame().writeStream.foreachBatch(
                lambda batch, number: rows.__setitem__(number, sorted(map(str, batch.collect()))))
            writer = writer.option("checkpointLocation", str(folder / name / "checkpoint"))
            if at_once:
                query = writer.start()
                _wait(spark, query, query.processAllAvailable)
                query.stop()
            else:
                query = writer.trigger(availableNow=True).start()
                _wait(spark, query, query.awaitTermination)
            if (error := query.exception()) is not None:
                raise error
            here &= "splitjoin[stream" in query._jsq.explainInternal(False)
            for progress in query.recentProgress:  # by names in brackets, which is all that Spark 3.5 has
                if progress["batchId"] in rows:
                    reported[progress["batchId"]] = (progress["eventTime"].get("watermark"), [
                        operator["numRowsDroppedByWatermark"] for operator in progress["stateOperators"]],
                        progress["numInputRows"])
    return Outcome(rows, reported, here)


def _wait(spark: SparkSession, query: StreamingQuery, call: Callable[[], Any]) -> None:
    """Wait for ``call``, as long as tasks or micro-batches of the query end: so it does not matter how busy the machine
    is.
    """
    failed: list[Exception] = []

    def guarded() -> None:
        try:
            call()
        except Exception as error:  # that of the query is raised by the caller
            failed.append(error)

    waiting = threading.Thread(target=guarded, daemon=True)
    waiting.start()
    seen, since = "", time.monotonic()
    while waiting.is_alive():
        waiting.join(0.1 if time.monotonic() - since < 1 else 2)
        if (now := _progress(spark, query)) != seen:
            seen, since = now, time.monotonic()
        assert time.monotonic() - since < _PATIENCE, f"the query stands still: {now}"
    if failed and query.exception() is None:
        raise failed[0]


def _progress(spark: SparkSession, query: StreamingQuery) -> str:
    """Text that changes with each task and each micro-batch that ends."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    tasks = [(stage.stageId, stage.numCompletedTasks) for stage in stages if stage is not None]
    last = query.lastProgress
    return f"{query.status}, {last and last['batchId']}, {sorted(tasks)}"


@contextmanager
def settings(spark: SparkSession, changed: Mapping[str, str]) -> Iterator[None]:
    """Context manager: the session has the settings ``changed``."""
    before = {name: spark.conf.get(name, None) for name in changed}
    try:
        for name, value in changed.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
