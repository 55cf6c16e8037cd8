"""`replay`: a streaming source that plays Parquet files with event times, at a chosen rate or at once."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from .replay_files import Files, Options
from .versions import demand


def replay(spark: SparkSession, path: str | Path, *, time: str, rows_per_second: float | None = None,
           speed: float | None = None, rows_per_batch: int | None = None,
           start: int | dt.date | dt.datetime | None = None) -> DataFrame:
    """A streaming DataFrame of the rows of Parquet files, in their order.

    Args:
        spark: The session.
        path: A file, a folder or a glob of Parquet files that driver and executors reach. Files are read by their
            names; together they must be in order of ``time``.
        time: The event-time column: an integer, a date or a timestamp, without NULL.
        rows_per_second: The rate, more than 0.
        speed: How many times as fast as the clock event time passes, more than 0; with an integer column, how many
            units of it pass in a second. Give one of ``rows_per_second`` and ``speed``, or none of them for all rows at
            once.
        rows_per_batch: The most rows of a micro-batch, from 1; no limit by default.
        start: With ``speed``, the event time at which the query starts, a value of the column's type; by default that
            of the first row. Two streams with one ``start`` play side by side.

    An offset is a number of rows, so a query that starts again reads the same rows in the same micro-batches, and plays
    on from where it was. The trigger ``availableNow`` delivers all rows, ``rows_per_batch`` at a time, and ends.

    Raises `InputError` and `SchemaError`; what only reading can find (rows that are not in order, NULL times, files
    that change meanwhile) fails the query.
    """
    options = Options.checked(str(path), time, rows_per_second, speed, rows_per_batch, start)
    Files(options).index  # noqa: B018  # reads the footers, so that what is wrong is told here
    demand((4, 2), "replay", "its Python sources cannot limit a micro-batch; read the files with spark.readStream")
    from .replay_source import FORMAT, ReplaySource  # this Spark has what it imports

    spark.dataSource.register(ReplaySource)
    return spark.readStream.format(FORMAT).option("splitjoin", json.dumps(asdict(options))).load()
