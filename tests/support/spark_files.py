"""Streaming queries over folders of Parquet files, a file of each stream a micro-batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from splitjoin.spark.progress_log import observed

T = TypeVar("T")


class Files:
    """Both streams as folders of files below ``root``, and a query that writes to ``root``/out."""

    def __init__(self, spark: SparkSession, root: Path):
        self.spark, self.root = spark, root
        self.state = str(root / "state")
        self._written = 0

    def add(self, r: pa.Table, s: pa.Table) -> None:
        """Add a file of each stream."""
        for side, table in (("r", r), ("s", s)):
            folder = self.root / side
            folder.mkdir(exist_ok=True)
            path = folder / f"{self._written:05d}.parquet"
            pq.write_table(table, path, coerce_timestamps="us")
            # Spark reads files by their times of change, in milliseconds.
            os.utime(path, (10**9 + self._written, 10**9 + self._written))
        self._written += 1

    def frame(self, side: str) -> DataFrame:
        """A stream as a streaming DataFrame."""
        schema = self.spark.read.parquet(str(self.root / side)).schema
        files = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return files.parquet(str(self.root / side))

    def run(self, joined: DataFrame, name: str = "out") -> StreamingQuery:
        """Run a query over all files that are there and were not read."""
        sink = joined.writeStream.format("parquet").option("path", str(self.root / name))
        query = sink.option("checkpointLocation", str(self.root / f"{name}-checkpoint")).trigger(
            availableNow=True).start()
        query.awaitTermination()
        return query

    def found(self, name: str = "out") -> pa.Table:
        """All rows that the query has written."""
        return self.spark.read.parquet(str(self.root / name)).toArrow()

    def batches(self, joined: DataFrame, collect: Callable[[DataFrame, int], Any]) -> StreamingQuery:
        """Run a query that hands each micro-batch to ``collect``."""
        query = (joined.writeStream.foreachBatch(collect).option("checkpointLocation", str(self.root / "each"))
                 .trigger(availableNow=True).start())
        query.awaitTermination()
        return query


def counts(queries: Sequence[StreamingQuery], name: str = "splitjoin") -> dict[str, int]:
    """The observed metrics of all micro-batches of ``queries``, summed."""
    total: dict[str, int] = {}
    for query in queries:
        for progress in query.recentProgress:
            if name in progress.observedMetrics:
                for key, value in observed(progress.observedMetrics[name]).items():
                    total[key] = total.get(key, 0) + value
    return total


def patiently(action: Callable[[], T]) -> T:
    """The value of ``action``, which is called again where Spark gave up waiting for a Python of its own. It does so
    after ten seconds, which no setting changes, on machines that have other work for longer, too.
    """
    for _ in range(20):
        try:
            return action()
        except PySparkException as error:
            if "connect back" not in str(error):
                raise
    return action()
