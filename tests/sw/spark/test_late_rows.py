"""Late rows are Spark's: plain SQL and calls beside Spark's own joins of streams, micro-batch by micro-batch."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ...spark_streams.streams import RandomStreams
from ...support.sampling import examples
from .test_extension import settings


@pytest.mark.parametrize("seed", range(examples(4)))
def test_random_streams(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Rows, watermarks and counts of late rows; `python -m tests.spark_streams` runs hundreds."""
    RandomStreams(spark, seed, tmp_path).check()


@pytest.mark.parametrize("seed", range(0, 5 * examples(2), 5))
def test_random_streams_by_a_call(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    RandomStreams(spark, seed, tmp_path).check_call()


def outcome(spark: SparkSession, folder: Path, hint: str) -> tuple[list[Any], list[tuple[str, int, int]]]:
    """The pairs of rows at 100, 50, 50, 0 and −7 s, a file each, and of each micro-batch the watermark, the late rows
    and the rows in the state.
    """
    for n, seconds in enumerate((-7, 0, 100, 50, 50)):
        for side in "ab":
            path = folder / side / f"{n}.parquet"
            path.parent.mkdir(exist_ok=True)
            time = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)
            pq.write_table(pa.table({"ts": pa.array([time], pa.timestamp("us", "UTC")), "k": [n]}), path)
            os.utime(path, (1.7e9 + n, 1.7e9 + n))  # Spark reads files by their age
    for side, names in (("a", "ts, k"), ("b", "ts AS ts2, k AS k2")):
        stream = spark.readStream.schema("ts timestamp, k bigint").option("maxFilesPerTrigger", 1).parquet(
            str(folder / side))
        stream.withWatermark("ts", "0 seconds").createOrReplaceTempView("marked")
        spark.sql(f"SELECT {names} FROM marked").createOrReplaceTempView(side)
    rows: list[Any] = []
    query = spark.sql(f"""SELECT {hint} k, k2 FROM a JOIN b ON k = k2 AND ts BETWEEN ts2 - INTERVAL 5 SECONDS
        AND ts2 + INTERVAL 5 SECONDS""").writeStream.foreachBatch(
            lambda batch, _: rows.append([tuple(row) for row in batch.collect()])).option(
                "checkpointLocation", str(folder / f"checkpoint {bool(hint)}")).trigger(availableNow=True).start()
    assert query.awaitTermination(300), "the query does not end"
    return rows, [(progress.eventTime["watermark"][11:19], progress.stateOperators[0].numRowsDroppedByWatermark,
                   progress.stateOperators[0].numRowsTotal) for progress in query.recentProgress]


def test_rows_behind_the_watermark_of_the_micro_batch_before(spark: SparkSession, tmp_path: Path) -> None:
    """And rows at or before 1970, where Spark's first watermark is."""
    with settings(spark, spark__splitjoin__sql__enabled=True, spark__sql__session__timeZone="UTC"):
        ours, theirs = outcome(spark, tmp_path, "/*+ SPLITJOIN */"), outcome(spark, tmp_path, "")
    assert ours == theirs
    assert ours[0] == [[], [], [(2, 2)], [(3, 3)], []]
    assert [(watermark, late) for watermark, late, _ in ours[1]] == [
        ("00:00:00", 2), ("00:00:00", 2), ("00:00:00", 0), ("00:01:40", 0), ("00:01:40", 2)]
