"""Joins in Spark: ours and the strongest rewrites for Spark's own joins, side by side. Run: python -m bench.spark

Both streams have 1,000 tuples a second of event time; the condition is the band benchmark. In every round each way runs
once, one after the other in one session; the figures are the medians of the rounds. Micro-batches before the first one
are left out, since they start workers and compile.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses
from splitjoin.spark import local_session, stream_join

from bench.record import Recorder, arguments

ON = "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10"
#: Tuples of a stream in a second of event time, and in a file; cores.
RATE, FILE, CORES = 1_000, 2_500, 2
WINDOWS = (10, 60, 900)
#: Spark keeps the state of streaming joins in RocksDB, or in memory with files (its default).
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_HOW = ("rows of both streams a second, Parquet files to a sink that drops rows, all micro-batches after the first "
        "one, median of {} rounds; rows and micro-batches of each way as its configuration says")


@dataclass(frozen=True)
class Way:
    """A way to join, for streams and for batch DataFrames alike: R, S and the window in seconds → the result.

    ``files``: the most files of each stream that it gets, as slow ways would not end otherwise; ``each``: how many of
    them in a micro-batch.
    """

    name: str
    join: Callable[[DataFrame, DataFrame, int], DataFrame]
    files: int = 1 << 20
    each: int = 40


def ours(left: DataFrame, right: DataFrame, window: int) -> DataFrame:
    """`stream_join`."""
    more = {"late": "0 SECONDS", "state": STATE} if left.isStreaming else {}
    return stream_join(left, right, on=ON, window=f"RANGE {window} SECONDS", time="ts", select=["x", "a"], **more)


def within(left: DataFrame, right: DataFrame, keys: list[str], window: int) -> DataFrame:
    """Spark's join by ``keys``, with the whole condition behind it."""
    condition = F.expr(f"abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10 AND r.ts >= s.ts - INTERVAL {window} SECONDS "
                       f"AND s.ts >= r.ts - INTERVAL {window} SECONDS")
    if left.isStreaming:
        left, right = left.withWatermark("ts", "0 seconds"), right.withWatermark("ts", "0 seconds")
    equal = [F.col(f"r.{key}") == F.col(f"s.{key}") for key in keys]
    return left.alias("r").join(right.alias("s"), [*equal, condition]).select("x", "a")


def by_bins(left: DataFrame, right: DataFrame, window: int) -> DataFrame:
    """Bins of the band: S's rows are in the bin of ``a``, R's in that of ``x`` and in both beside it."""
    spread = left.withColumn("bin", F.explode(F.sequence(F.expr("x div 10 - 1"), F.expr("x div 10 + 1"))))
    return within(spread, right.withColumn("bin", F.expr("a div 10")), ["bin"], window)


def by_bins_and_time(left: DataFrame, right: DataFrame, window: int) -> DataFrame:
    """Bins of the band × bins of time, as long as the window: R's rows are in nine of them."""
    long = f"(unix_micros(ts) div {window * 1_000_000})"
    spread = left.withColumn("bin", F.explode(F.sequence(F.expr("x div 10 - 1"), F.expr("x div 10 + 1"))))
    spread = spread.withColumn("slice", F.explode(F.sequence(F.expr(f"{long} - 1"), F.expr(f"{long} + 1"))))
    return within(spread, right.withColumn("bin", F.expr("a div 10")).withColumn("slice", F.expr(long)),
                  ["bin", "slice"], window)


def by_constant(left: DataFrame, right: DataFrame, window: int) -> DataFrame:
    """A constant key, which Spark takes in streams, as it demands an equality."""
    return within(left.withColumn("one", F.lit(1)), right.withColumn("one", F.lit(1)), ["one"], window)


def nested_loop(left: DataFrame, right: DataFrame, window: int) -> DataFrame:
    """No key: Spark's nested loop over a broadcast side."""
    return within(left, F.broadcast(right), [], window)


STREAMS = (Way("splitjoin", ours), Way("bins", by_bins, 80), Way("bins and time", by_bins_and_time, 80),
           Way("constant key", by_constant, 3, 1))
BATCH = (Way("splitjoin", ours), Way("bins", by_bins), Way("bins and time", by_bins_and_time))
STATE = ""


def write(folder: Path, rows: int, side: str) -> None:
    """A stream as files of `FILE` rows."""
    rng = np.random.default_rng(side == "r")
    folder.mkdir(parents=True)
    x, y = ("x", "y") if side == "r" else ("a", "b")
    for n, first in enumerate(range(0, rows, FILE)):
        size = min(FILE, rows - first)
        ts = (np.arange(first, first + size) * 1_000_000) // RATE
        pq.write_table(pa.table({"ts": pa.array(ts, pa.timestamp("us", "UTC")),
                                 x: rng.integers(1, 10_001, size).astype(np.int32),
                                 y: rng.integers(1, 10_001, size).astype(np.float32)}), folder / f"{n:05d}.parquet")


def part(folder: Path, side: str, files: int) -> Path:
    """A folder with the first ``files`` files of a stream."""
    kept = folder / f"{side}-{files}"
    if not kept.exists():
        kept.mkdir()
        for file in sorted((folder / side).iterdir())[:files]:
            (kept / file.name).hardlink_to(file)
    return kept


def schema(side: str) -> str:
    """The columns of a stream."""
    return "ts timestamp, x int, y float" if side == "r" else "ts timestamp, a int, b float"


def streamed(spark: SparkSession, folder: Path, way: Way, window: int) -> tuple[float, int]:
    """Rows of both streams a second in all micro-batches after the first one, and the pairs of the whole input."""
    frames = [spark.readStream.schema(schema(side)).option("maxFilesPerTrigger", way.each).parquet(
        str(part(folder, side, way.files))) for side in "rs"]
    for name in ("checkpoint", "state"):
        shutil.rmtree(folder / name, ignore_errors=True)
    joined = way.join(*frames, window).observe("bench", F.count(F.lit(1)).alias("pairs"))
    query = joined.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint")).trigger(
        availableNow=True).start()
    query.awaitTermination()
    pairs = sum(p.observedMetrics["bench"]["pairs"] for p in query.recentProgress if "bench" in p.observedMetrics)
    later = [p for p in query.recentProgress if p.numInputRows][1:]
    seconds = sum(p.durationMs["triggerExecution"] for p in later) / 1000
    return len(later) * 2 * way.each * FILE / seconds, pairs


def batch(spark: SparkSession, folder: Path, way: Way, window: int) -> tuple[float, int]:
    """Rows of both inputs a second, from the files to the count of the pairs, and the pairs."""
    frames = [spark.read.schema(schema(side)).parquet(str(folder / side)) for side in "rs"]
    rows = 2 * len(list((folder / "r").iterdir())) * FILE
    began = time.perf_counter()
    pairs = way.join(*frames, window).count()
    return rows / (time.perf_counter() - began), pairs


def measure(out: Recorder, metric: str, spark: SparkSession, folder: Path, ways: tuple[Way, ...], window: int,
            rounds: int, run: Callable[[SparkSession, Path, Way, int], tuple[float, int]], how: str) -> None:
    """The figures of all ``ways``, and their ratio; ways with equal input must give equally many pairs."""
    found: dict[str, list[float]] = {way.name: [] for way in ways}
    pairs: dict[int, int] = {}
    if run is streamed:  # the right numbers of pairs, for those ways that get less of the input
        pairs = {way.files: run(spark, folder, Way("splitjoin", ours, way.files, way.each), window)[1] for way in ways}
    for n in range(rounds + 1):  # the first round compiles
        for way in ways:
            if n == 0 and way.each == 1:
                continue
            rate, count = run(spark, folder, way, window)
            assert pairs.setdefault(way.files, count) == count, f"{way.name} gives {count} pairs, not {pairs}"
            if n:
                found[way.name].append(rate)
    for way in ways:
        config = {"way": way.name, "window_s": window, "cores": CORES}
        if metric == "stream":
            config |= {"rows": len(list(part(folder, "r", way.files).iterdir())) * FILE, "batch_rows": way.each * FILE}
        out.add(metric, statistics.median(found[way.name]) / 1000, "k rows/s", config, how)
    best = max(statistics.median(found[way.name]) for way in ways[1:])
    out.add(f"{metric}_ratio", statistics.median(found[ways[0].name]) / best, "x", {"window_s": window},
            f"{metric}: splitjoin over the fastest of the others, in the same rounds")


def unselective(out: Recorder, spark: SparkSession, folder: Path, rows: int) -> None:
    """A condition that no bins serve, beside Spark's nested loop."""
    for way in (Way("splitjoin", lambda r, s, w: stream_join(
            r, s, on="r.x * 2 < s.a + r.y", window=f"RANGE {w} SECONDS", time="ts", select=["x"])),
            Way("nested loop", lambda r, s, w: r.alias("r").join(F.broadcast(s.alias("s")), F.expr(
                f"r.x * 2 < s.a + r.y AND abs(unix_micros(r.ts) - unix_micros(s.ts)) <= {w * 1_000_000}")))):
        frames = [spark.read.schema(schema(side)).parquet(str(folder / side)).limit(rows) for side in "rs"]
        began = time.perf_counter()
        pairs = way.join(*frames, 1).count()
        out.add("batch_theta", 2 * rows / (time.perf_counter() - began) / 1000, "k rows/s",
                {"way": way.name, "window_s": 1, "rows": rows, "pairs": pairs},
                "rows of both inputs a second, r.x * 2 < s.a + r.y within a second, from Parquet to the count of pairs")


def main() -> None:
    """All figures."""
    global STATE
    options = arguments(__doc__ or "")
    out = Recorder("spark", quick=options.quick)
    rows, rounds = (300_000, 1) if options.quick else (1_000_000, 2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        STATE = str(folder / "state")
        for side in "rs":
            write(folder / side, rows, side)
        spark = local_session("bench", cores=CORES, log=folder / "spark.log", config={
            "spark.sql.shuffle.partitions": str(CORES), "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
            "spark.driver.memory": "6g", "spark.sql.autoBroadcastJoinThreshold": "-1"})
        for window in WINDOWS[1:2] if options.quick else WINDOWS:
            measure(out, "stream", spark, folder, STREAMS, window, rounds, streamed,
                    _HOW.format(rounds))
        for window in WINDOWS[:1] if options.quick else WINDOWS[:2]:
            measure(out, "batch", spark, folder, BATCH, window, rounds, batch,
                    f"rows of both inputs a second, {rows:,} each, from Parquet to the count of pairs, median of "
                    f"{rounds} rounds")
        unselective(out, spark, folder, 20_000 if options.quick else 100_000)
        spark.stop()
    out.write()


if __name__ == "__main__":
    main()
