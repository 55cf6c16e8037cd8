"""Joins in Spark: ours and the strongest rewrites for Spark's own joins, side by side. Run: python -m bench.spark

Both streams have 1,000 tuples a second of event time; the condition is the band benchmark. In every round each way runs
once, one after the other in one session; the figures are the medians of the rounds. Micro-batches before the first one
are left out, since they start workers and compile.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

from bench.record import Recorder, options_of
from splitjoin.spark import ProgressLog, local_session, stream_join

ON = "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10"
#: Tuples of a stream in a second of event time, in a file of the batch joins; cores.
RATE, FILE, CORES = 1_000, 125_000, 2
#: The first event time, in microseconds. Spark's watermark begins at 1970, and rows of that moment are late to it.
START = 1_700_000_000_000_000
WINDOWS = (10, 60, 900)
#: Where Spark keeps the state of streaming joins, and in which format: for `Way.newest` and otherwise.
PROVIDER, FORMAT = "spark.sql.streaming.stateStore.providerClass", "spark.sql.streaming.join.stateFormatVersion"
_STATE = "org.apache.spark.sql.execution.streaming.state."
STORES = {True: (f"{_STATE}RocksDBStateStoreProvider", "4"), False: (f"{_STATE}HDFSBackedStateStoreProvider", "2")}
_HOW = ("rows of both streams a second, Parquet files to a sink that drops rows, all micro-batches after the first "
        "one, median of {} rounds; rows and micro-batches of each way as its configuration says")


@dataclass(frozen=True)
class Way:
    """A way to join, for streams and for batch DataFrames alike: R, S and the window in seconds → the result.

    ``rows``: the rows of each stream that it gets, since slow ways would not end otherwise; ``each``: how many of them
    are in a file, which is a micro-batch; ``newest``: with Spark's newest format of join state, which RocksDB keeps,
    instead of the default one in the default store, in memory, which is faster.
    """

    name: str
    join: Callable[[DataFrame, DataFrame, int], DataFrame]
    rows: int = 2_000_000
    each: int = 250_000
    newest: bool = False


def ours(left: DataFrame, right: DataFrame, window: int) -> DataFrame:
    """`stream_join`."""
    more: dict[str, Any] = {"late": "0 SECONDS", "state": STATE} if left.isStreaming else {}
    return stream_join(left, right, on=ON, window=f"RANGE {window} SECONDS", time="ts",
                       select=["ts_r", "x", "ts_s", "a"], **more)


def within(left: DataFrame, right: DataFrame, keys: list[str], window: int) -> DataFrame:
    """Spark's join by ``keys``, with the whole condition behind it."""
    condition = F.expr(f"abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10 AND r.ts >= s.ts - INTERVAL {window} SECONDS "
                       f"AND s.ts >= r.ts - INTERVAL {window} SECONDS")
    if left.isStreaming:
        left, right = left.withWatermark("ts", "0 seconds"), right.withWatermark("ts", "0 seconds")
    else:
        right = right.hint("SHUFFLE_HASH")  # faster here than the sort-merge join that Spark takes by itself
    equal = [F.col(f"r.{key}") == F.col(f"s.{key}") for key in keys]
    joined = left.alias("r").join(right.alias("s"), [*equal, condition])
    return joined.select(F.col("r.ts").alias("ts_r"), "x", F.col("s.ts").alias("ts_s"), "a")


def by_bins(bands: dict[str, str], width: int, slices: int) -> Callable[[DataFrame, DataFrame, int], DataFrame]:
    """Joins by bins of the ``bands`` (R's column → S's), ``width`` wide, and of time, ``slices`` windows long.

    S's rows are in one bin; R's rows are in all that their bands and their window touch. No bins of time for 0.
    """
    def join(left: DataFrame, right: DataFrame, window: int) -> DataFrame:
        keys = []
        for x, a in bands.items():
            keys.append(f"bin_{x}")
            low, high = (f"cast(floor(({x} {sign} 10) / {width}) as int)" for sign in "-+")
            left = left.withColumn(keys[-1], F.explode(F.expr(f"sequence({low}, {high})")))
            right = right.withColumn(keys[-1], F.expr(f"cast(floor({a} / {width}) as int)"))
        if slices:
            long, reach = slices * window * 1_000_000, window * 1_000_000
            keys.append("slice")
            left = left.withColumn("slice", F.explode(F.expr(
                f"sequence((unix_micros(ts) - {reach}) div {long}, (unix_micros(ts) + {reach}) div {long})")))
            right = right.withColumn("slice", F.expr(f"unix_micros(ts) div {long}"))
        return within(left, right, keys, window)

    return join


def by_constant(left: DataFrame, right: DataFrame, window: int) -> DataFrame:
    """A constant key, which Spark takes in streams, as it demands an equality."""
    return within(left.withColumn("one", F.lit(1)), right.withColumn("one", F.lit(1)), ["one"], window)


#: Bins of one band are 20 wide, as the band is. Those of both bands may be wider: there are so many more of them.
ONE, BOTH = ({"x": "a"}, 20), ({"x": "a", "y": "b"}, 200)
STREAMS = (Way("splitjoin", ours), Way("bins", by_bins(*ONE, 0), 125_000, 25_000),
           Way("bins of both bands and time", by_bins(*BOTH, 4), 500_000, 100_000),
           Way("bins of both bands and time, newest state", by_bins(*BOTH, 4), 500_000, 100_000, newest=True),
           Way("constant key", by_constant, 7_500, 2_500))
BATCH = (Way("splitjoin", ours), Way("bins of band and time", by_bins(*ONE, 1)),
         Way("bins of band and long time", by_bins(*ONE, 4)), Way("bins of both bands and time", by_bins(*BOTH, 4)))
LIVE = (Way("splitjoin", ours), Way("bins of both bands and time", by_bins(*BOTH, 4)))
STATE = ""


def stream(folder: Path, side: str, rows: int, each: int) -> Path:
    """A folder with a stream of ``rows`` rows, ``each`` of them in a file; written once."""
    target = folder / f"{side}-{rows}-{each}"
    if target.exists():
        return target
    target.mkdir(parents=True)
    rng = np.random.default_rng(side == "r")
    x, y = ("x", "y") if side == "r" else ("a", "b")
    for n, first in enumerate(range(0, rows, each)):
        size = min(each, rows - first)
        ts = START + (np.arange(first, first + size) * 1_000_000) // RATE
        pq.write_table(pa.table({"ts": pa.array(ts, pa.timestamp("us", "UTC")),
                                 x: rng.integers(1, 10_001, size).astype(np.int32),
                                 y: rng.integers(1, 10_001, size).astype(np.float32)}), target / f"{n:05d}.parquet")
        os.utime(target / f"{n:05d}.parquet", (n, n))  # Spark's file source takes the oldest file first
    return target


def schema(side: str) -> str:
    """The columns of a stream."""
    return "ts timestamp, x int, y float" if side == "r" else "ts timestamp, a int, b float"


def streamed(spark: SparkSession, folder: Path, way: Way, window: int) -> tuple[float, int]:
    """Rows of both streams a second in all micro-batches after the first one, and the pairs of the whole input."""
    frames = [spark.readStream.schema(schema(side)).option("maxFilesPerTrigger", 1).parquet(
        str(stream(folder, side, way.rows, way.each))) for side in "rs"]
    for name in ("checkpoint", "state"):
        shutil.rmtree(folder / name, ignore_errors=True)
    spark.conf.set(PROVIDER, STORES[way.newest][0])
    spark.conf.set(FORMAT, STORES[way.newest][1])
    joined = way.join(*frames, window).observe("bench", F.count(F.lit(1)).alias("pairs"))
    query = joined.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint")).trigger(
        availableNow=True).start()
    query.awaitTermination()
    pairs = sum(p.observedMetrics["bench"]["pairs"] for p in query.recentProgress if "bench" in p.observedMetrics)
    later = [p for p in query.recentProgress if p.numInputRows][1:]
    seconds = sum(p.durationMs["triggerExecution"] for p in later) / 1000
    return sum(p.numInputRows for p in later) / seconds, pairs


def batch(spark: SparkSession, folder: Path, way: Way, window: int) -> tuple[float, int]:
    """Rows of both inputs a second, from the files to the count of the pairs, and the pairs."""
    frames = [spark.read.schema(schema(side)).parquet(str(stream(folder, side, way.rows, FILE))) for side in "rs"]
    began = time.perf_counter()
    pairs = way.join(*frames, window).count()
    return 2 * way.rows / (time.perf_counter() - began), pairs


def through_python(spark: SparkSession, folder: Path, rows: int) -> float:
    """Rows of both inputs a second from the files through a Python stage that does nothing, to their count: what a
    batch join that runs in Python cannot exceed by much.
    """
    frames = [spark.read.schema(schema(side)).parquet(str(stream(folder, side, rows, FILE))) for side in "rs"]
    began = time.perf_counter()
    count = frames[0].union(frames[1]).mapInArrow(unchanged, frames[0].schema).count()
    assert count == 2 * rows
    return count / (time.perf_counter() - began)


def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches."""
    yield from batches


def measure(out: Recorder, metric: str, spark: SparkSession, folder: Path, ways: Sequence[Way], window: int,
            rounds: int, run: Callable[[SparkSession, Path, Way, int], tuple[float, int]], how: str) -> None:
    """The figures of all ``ways``, and their ratio; ways with equal input must give equally many pairs."""
    found: dict[str, list[float]] = {way.name: [] for way in ways}
    pairs: dict[tuple[int, int], int] = {}
    if run is streamed:  # the right numbers of pairs, for those ways that get less of the input
        pairs = {(way.rows, way.each): run(spark, folder, replace(way, join=ours), window)[1] for way in ways}
    for n in range(rounds + 1):  # the first round compiles
        for way in ways:
            if n == 0 and run is streamed and way.join is not ours:
                continue  # Spark's own code was compiled for the first micro-batch, which does not count
            rate, count = run(spark, folder, way, window)
            right = pairs.setdefault((way.rows, way.each), count)
            assert count == right, f"{way.name} gives {count} pairs, not {right}"
            if n:
                found[way.name].append(rate)
    for way in ways:
        config: dict[str, Any] = {"way": way.name, "window_s": window, "cores": CORES, "rows": way.rows}
        if run is streamed:
            config["batch_rows"] = way.each
        out.add(metric, statistics.median(found[way.name]) / 1000, "k rows/s", config, how)
    best = max(statistics.median(found[way.name]) for way in ways[1:])
    out.add(f"{metric}_ratio", statistics.median(found[ways[0].name]) / best, "x", {"window_s": window},
            f"{metric}: splitjoin over the fastest of the others, in the same rounds")


class Sender(threading.Thread):
    """Writes files of both streams ten times a second, each row with the time at which it is written."""

    def __init__(self, folder: Path):
        super().__init__(daemon=True)
        self.folder, self.ended = folder, threading.Event()

    def run(self) -> None:
        """Write until `ended`."""
        rng, n, began = np.random.default_rng(5), 0, time.time()
        while not self.ended.is_set():
            for side, (x, y) in (("r", "xy"), ("s", "ab")):
                values = rng.integers(1, 10_001, (2, RATE // 10))
                rows = pa.table({"ts": pa.array(np.full(RATE // 10, time.time() * 1e6, np.int64),
                                                pa.timestamp("us", "UTC")),
                                 x: values[0].astype(np.int32), y: values[1].astype(np.float32)})
                pq.write_table(rows, self.folder / f".{side}.part")
                (self.folder / f".{side}.part").rename(self.folder / side / f"{n:06d}.parquet")
            n += 1
            self.ended.wait(max(began + n / 10 - time.time(), 0))


def live(out: Recorder, spark: SparkSession, folder: Path, way: Way, window: int, seconds: int) -> None:
    """Latency of pairs at a trigger of a second, from the time of the later row to the pair in the driver; and the
    bytes of the state. The first half of the ``seconds`` fills the window and is not measured.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for side in "rs":
        (folder / side).mkdir(parents=True)
    frames = [spark.readStream.schema(schema(side)).parquet(str(folder / side)) for side in "rs"]
    found: list[tuple[float, npt.NDArray[np.float64]]] = []

    def take(frame: DataFrame, _: int) -> None:
        rows = frame.toArrow()
        now = time.time()
        later = np.maximum(*(rows[name].cast(pa.int64()).to_numpy() for name in ("ts_r", "ts_s")))
        found.append((now, now - later / 1e6))

    spark.conf.set(PROVIDER, STORES[way.newest][0])
    spark.conf.set(FORMAT, STORES[way.newest][1])
    log, sender = ProgressLog(), Sender(folder)
    spark.streams.addListener(log)
    began = time.time()
    sender.start()
    query = way.join(*frames, window).writeStream.foreachBatch(take).option(
        "checkpointLocation", str(folder / "checkpoint")).trigger(processingTime="1 second").start()
    query.awaitTermination(seconds)
    assert query.isActive
    sender.ended.set()
    query.stop()
    spark.streams.removeListener(log)
    times = np.concatenate([chunk for at, chunk in found if at > began + seconds / 2])
    config = {"way": way.name, "window_s": window, "cores": CORES}
    how = (f"from the time at which the later row is written to a file until the pair is in the driver, {len(times):,} "
           f"pairs, 1,000 tuples a second of each stream, files of 100 rows, trigger 1 s")
    for quantile in (50, 99):
        out.add(f"pair_latency_p{quantile}", float(np.percentile(times, quantile)), "s", config, how)
    if log.rows:
        raw = 2 * window * RATE * (8 + 4 + 4)
        out.add("state_bytes", log.rows[-1]["state_bytes"] / raw, "x", config,
                f"state files of the newest version, over the {raw:,} bytes of the columns of all rows in the windows")


def theta(out: Recorder, spark: SparkSession, folder: Path, rows: int) -> None:
    """Conditions that no bins serve, one with few results and one with half of all pairs, beside the nested loop."""
    for condition in ("r.x + s.a > 19900", "r.x < s.a"):
        for name in ("splitjoin", "nested loop"):
            r, s = (spark.read.schema(schema(side)).parquet(str(stream(folder, side, rows, rows // 4)))
                    for side in "rs")
            if name == "splitjoin":
                joined = stream_join(r, s, on=condition, window="RANGE 1 SECOND", time="ts", select=["x", "a"])
            else:
                joined = r.alias("r").join(F.broadcast(s.alias("s")), F.expr(
                    f"{condition} AND abs(unix_micros(r.ts) - unix_micros(s.ts)) <= 1000000")).select("x", "a")
            pairs = joined.count()  # compiles
            began = time.perf_counter()
            assert joined.count() == pairs
            out.add("batch_theta", 2 * rows / (time.perf_counter() - began) / 1000, "k rows/s",
                    {"way": name, "condition": condition, "window_s": 1, "rows": rows, "pairs": pairs},
                    "rows of both inputs a second, from Parquet to the count of pairs, the second run")


def main() -> None:
    """All figures, or those of one part."""
    global STATE
    parser = options_of(__doc__ or "")
    parser.add_argument("--part", choices=("streams", "batch", "theta", "live"), help="measure this part only")
    parser.add_argument("--window", type=int, choices=WINDOWS, help="streams and batches within so many seconds only; "
                        "figures of other windows stay")
    options = parser.parse_args()
    quick = options.quick
    rounds = 1 if quick else 2
    streams = [replace(STREAMS[0], rows=400_000, each=100_000), replace(STREAMS[2], rows=200_000)] if quick else STREAMS
    batches = [replace(way, rows=250_000 if quick else 1_000_000) for way in (BATCH[0], *BATCH[1 + quick:])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        STATE = str(folder / "state")
        spark = local_session("bench", cores=CORES, log=folder / "spark.log", config={
            "spark.sql.shuffle.partitions": str(CORES), "spark.driver.memory": "6g",
            "spark.sql.autoBroadcastJoinThreshold": "-1"})
        for part in [options.part] if options.part else ("streams", "batch", "theta", "live"):
            out = Recorder("spark", quick=quick, part=part)
            windows = {"streams": WINDOWS[1:2] if quick else WINDOWS, "batch": WINDOWS[:1] if quick else WINDOWS[:2]}
            if options.window and part in windows:
                windows[part] = (options.window,)
                out.keep(lambda row: row["config"].get("window_s", options.window) != options.window)
            match part:
                case "streams":
                    for window in windows[part]:
                        measure(out, "stream", spark, folder, streams, window, rounds, streamed, _HOW.format(rounds))
                case "batch":
                    for window in windows[part]:
                        measure(out, "batch", spark, folder, batches, window, rounds, batch,
                                f"rows of both inputs a second, from Parquet to the count of pairs, median of {rounds} "
                                f"rounds")
                    through = [through_python(spark, folder, batches[0].rows) for _ in range(rounds + 1)][1:]
                    out.add("batch_through_python", statistics.median(through) / 1000, "k rows/s",
                            {"cores": CORES, "rows": batches[0].rows},
                            f"rows of both inputs a second through a mapInArrow that does nothing, from Parquet to "
                            f"their count, median of {rounds} rounds")
                case "theta":
                    theta(out, spark, folder, 20_000 if quick else 50_000)
                case _:
                    for way in LIVE:
                        live(out, spark, folder / "live", way, 2 if quick else 60, 10 if quick else 130)
            out.write()
        spark.stop()


if __name__ == "__main__":
    main()
