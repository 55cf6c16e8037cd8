"""Rows a second of the ways by which Python can keep state in a Spark stream, with no join behind them.

Decision 30 rests on these figures. Run: python -m bench.spark_paths
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle, StreamingQuery

from bench.record import Recorder, arguments
from splitjoin.spark import local_session, stream_join

#: Rows in a file, files a micro-batch, and tasks.
ROWS, FILES, TASKS = 250_000, 2, 2
COUNTED = "rows bigint"


def write(folder: Path, files: int, rows: int = ROWS) -> None:
    """Files of ``rows`` rows that have 12 bytes beside their event time."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for n in range(files):
        ts = np.arange(n * ROWS, n * ROWS + rows) * 1000
        pq.write_table(pa.table({"ts": pa.array(ts, pa.timestamp("us", "UTC")),
                                 "x": rng.integers(1, 10_001, rows).astype(np.int32),
                                 "y": rng.integers(1, 10_001, rows).astype(np.float64)}), folder / f"{n:05d}.parquet")


class Counting(StatefulProcessor):
    """Counts the rows of a group in a value of Spark's state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Make the state."""
        self._total = handle.getValueState("total", "n bigint")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame],  # noqa: N802  # Spark's name
                        timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N803  # likewise
        """Count the rows of a micro-batch."""
        n = sum(map(len, rows)) + (self._total.get()[0] if self._total.exists() else 0)
        self._total.update((n,))
        yield pd.DataFrame({"rows": [n]})

    def close(self) -> None:
        """Nothing is held."""


def transform_with_state(stream: DataFrame, _: Path) -> DataFrame:
    """Rows of each group to a stateful processor, with RocksDB behind it."""
    return stream.selectExpr("*", f"pmod(x, {TASKS}) AS key").groupBy("key").transformWithStateInPandas(
        Counting(), COUNTED, "append", "none")


def map_in_arrow(stream: DataFrame, _: Path) -> DataFrame:
    """Rows to the tasks of a micro-batch, which could keep files."""
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"rows": [sum(b.num_rows for b in batches)]})

    return stream.selectExpr("*", f"pmod(x, {TASKS}) AS key").repartitionById(TASKS, "key").mapInArrow(count, COUNTED)


def packed(stream: DataFrame, folder: Path) -> DataFrame:
    """The way that was chosen, with a window that holds no pair: packed rows, and state files."""
    other = stream.sparkSession.readStream.schema(stream.schema).option("maxFilesPerTrigger", FILES).parquet(
        str(folder / "other"))
    return stream_join(stream, other, on="r.x > s.x", window="RANGE 1 SECOND", time="ts", late="0 SECONDS",
                       groups=TASKS, state=str(folder / "state"), select=["x_r"])


def rate(spark: SparkSession, folder: Path, files: int,
         run: Callable[[DataFrame, Path], StreamingQuery]) -> float:
    """Rows a second of all micro-batches after the first one."""
    stream = spark.readStream.schema("ts timestamp, x int, y double").option("maxFilesPerTrigger", FILES).parquet(
        str(folder / "in"))
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    query = run(stream, folder)
    query.awaitTermination()
    done = query.recentProgress[1:]
    rows = sum(p.numInputRows for p in done)
    assert rows >= (files - FILES) * ROWS
    return rows / sum(p.durationMs["triggerExecution"] for p in done) * 1000


def started(make: Callable[[DataFrame, Path], DataFrame]) -> Callable[[DataFrame, Path], StreamingQuery]:
    """A query of ``make``, whose rows go nowhere."""
    return lambda stream, folder: make(stream, folder).writeStream.format("noop").option(
        "checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


def to_driver(stream: DataFrame, folder: Path) -> StreamingQuery:
    """All rows to the driver, micro-batch by micro-batch."""
    return stream.writeStream.foreachBatch(lambda frame, _: len(frame.toArrow())).option(
        "checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


WAYS = {"transformWithStateInPandas": started(transform_with_state), "mapInArrow": started(map_in_arrow),
        "packed rows and state files": started(packed), "foreachBatch and toArrow": to_driver}


def main() -> None:
    """All figures, in one session, each way in turn, the faster one of two runs."""
    options = arguments(__doc__ or "")
    out = Recorder("spark_paths", quick=options.quick)
    files = 6 if options.quick else 14
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "in", files)
        write(folder / "other", files, 1)
        spark = local_session("bench", cores=TASKS, log=folder / "spark.log", config={
            "spark.sql.shuffle.partitions": str(TASKS),
            "spark.sql.streaming.stateStore.providerClass":
                "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"})
        began = time.perf_counter()
        found: dict[str, float] = {}
        for _ in range(1 if options.quick else 2):
            for way, run in WAYS.items():
                found[way] = max(found.get(way, 0), rate(spark, folder, files, run))
        for way, value in found.items():
            out.add("rows_through_python", value / 1000, "k rows/s", {"way": way, "tasks": TASKS},
                    "rows of Parquet files a second through a stateful step that does no work, all micro-batches of "
                    f"{FILES * ROWS:,} rows after the first one, local mode")
        spark.stop()
        print(f"{time.perf_counter() - began:.0f} s")
    out.write()


if __name__ == "__main__":
    main()
