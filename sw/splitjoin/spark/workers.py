"""Settings that Spark's Python workers get from the driver, and the check that they have the same splitjoin."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

from splitjoin.base.errors import SplitJoinError
from splitjoin.base.version import __version__
from splitjoin.catalyst.reused import Reused

from . import loader
from .errors import rebuilt
from .versions import by_number

cloudpickle.register_pickle_by_value(loader)  # type: ignore[no-untyped-call]  # untyped

#: Sessions whose workers have been checked: the application or Connect session, and the workers' Python.
_CHECKED: set[tuple[str, str]] = set()
#: Whether the engines of Connect sessions put rows where `by_number` says, by the ids of the sessions.
_PLACES: dict[str, bool] = {}
#: Partitions in which Spark cuts a range at most, where it is asked for the number of its cores.
_MOST_CORES = 1 << 14


def shipped(function: Callable[..., Any]) -> Any:
    """``function``, given to ``mapInArrow``, in a form that a worker without splitjoin refuses with a clear text."""
    return _Shipped(function)


class _Shipped:
    __name__ = "splitjoin"  # as Spark's plans show it

    def __init__(self, function: Callable[..., Any], load: Callable[[str, bytes], Any] = loader.load):
        self._function, self._load = function, load

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self._function(batches)

    def __reduce__(self) -> tuple[Any, ...]:
        data = cloudpickle.dumps(Reused(self._function))  # type: ignore[no-untyped-call]  # cloudpickle has no types
        return self._load, (__version__, data)


def is_remote(spark: Any) -> bool:
    """True for a session of Spark Connect, which has no JVM of its own."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def local_zone(spark: SparkSession) -> str:
    """The time zone by whose clock the session counts local times."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def check_workers(spark: SparkSession) -> None:
    """Run one small Spark task, once for each session and Python of its workers, that imports splitjoin.

    Runs nothing in local mode where the workers' Python is this one. Raises `ToolError` if the workers have no
    splitjoin, or another version.
    """
    python = str(spark.conf.get("spark.sql.execution.pyspark.python", "") or "")
    if is_remote(spark):
        key = str(spark.session_id), python  # type: ignore[attr-defined,unused-ignore]  # of Connect's class
    else:
        context = spark.sparkContext
        python = python or context.pythonExec
        master = context.master or ""
        if (master == "local" or master.startswith("local[")) and (shutil.which(python) or python) == sys.executable:
            return
        key = str(context.applicationId), python
    if key not in _CHECKED:
        in_a_task(spark, os.getpid)
        _CHECKED.add(key)


def in_a_task(spark: SparkSession, work: Callable[[], object]) -> None:
    """Call ``work`` in one Spark task. Raises the `SplitJoinError` that it raises there."""
    task = _Shipped(partial(_worked, work), loader.load_or_report)
    for row in spark.range(0, 1, 1, 1).mapInArrow(task, "kind string, message string").collect():
        raise rebuilt(row["kind"], row["message"])


def _worked(work: Callable[[], object], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Call ``work``, and give the error that it raises as a row: a task that fails makes Spark print a long trace."""
    for _ in batches:
        continue
    try:
        work()
    except SplitJoinError as error:
        yield pa.RecordBatch.from_pydict({"kind": [type(error).__name__], "message": [str(error)]})


def places_by_number(spark: Any) -> bool:
    """True if `by_number` puts rows where it says. It does in Spark; engines that speak Spark Connect alone need not
    have it. A session of Spark Connect runs a small job to find out, once.
    """
    if not is_remote(spark):
        return True
    session = str(spark.session_id)
    if session not in _PLACES:
        numbers = by_number(spark.range(0, 4, 1, 1).select(F.col("id").cast("int").alias("n")), 4, "n")
        try:
            rows = numbers.select("n", F.spark_partition_id().alias("partition")).collect()
            _PLACES[session] = all(row["n"] == row["partition"] for row in rows)
        except (AnalysisException, UnsupportedOperationException):
            _PLACES[session] = False
    return _PLACES[session]


def task_cpus(spark: SparkSession) -> int:
    """The number of processors that Spark gives a task (``spark.task.cpus``)."""
    return int(spark.conf.get("spark.task.cpus", "1") or 1)


def cores(spark: SparkSession) -> int:
    """The number of tasks that Spark runs at once. A session of Spark Connect runs a small job to find it."""
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    # Spark cuts a range into as many partitions as it has cores.
    numbers = spark.range(_MOST_CORES).select(F.spark_partition_id().alias("n"))
    row = numbers.agg(F.max("n").alias("last")).first()
    assert row is not None
    return int(row["last"]) + 1
