"""A streaming join in Spark for an hour: every pair checked, and no growth in memory. Run: make soak-spark

Two streams of 500 rows a micro-batch are joined in Python workers that Spark reuses, under the eyes of a `ProgressLog`.
NumPy compares all rows of each micro-batch with those of the window. Each minute: the JVM's heap behind a collection,
the memory of the workers and of this process, and the events that wait in Spark's queue of streams. ``--minutes``: how
long (60); ``--quick``: one. Ends with exit code 1 at the first difference, or if memory has grown.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
from pyspark.sql import DataFrame, SparkSession

from bench.record import Recorder, options_of
from bench.spark_sql import workers
from splitjoin.spark import ProgressLog, local_session, stream_join

CORES, ROWS = 2, 500
#: Seconds of event time between two micro-batches, and the window, which reaches so many of them back.
STEP, BACK = 1, 2
#: Values of a stream, and how far two that match are apart.
VALUES, NEAR = 10_007, 3
#: Spark keeps the status of 1,000 executions, jobs and stages, 60 KiB for a micro-batch, until which its heap grows.
RETAINED = {f"spark.{what}": "60" for what in ("sql.ui.retainedExecutions", "ui.retainedJobs", "ui.retainedStages")}
#: Memory may differ by so much between the first and the last fifth of the time, beyond a first warm-up.
GROWTH = 1.15


def values(side: str, batch: int) -> npt.NDArray[np.int64]:
    """The values of a stream's micro-batch, those of `frames`."""
    numbers = np.arange(batch * ROWS, (batch + 1) * ROWS)
    return numbers * {"r": 31, "s": 57}[side] % VALUES


def expected(batch: int) -> tuple[int, int]:
    """Number of pairs whose later row is in a micro-batch, and the sum of their values' products."""
    number = total = 0
    for other in range(max(0, batch - BACK), batch + 1):
        for r, s in {(batch, other), (other, batch)}:
            x, a = values("r", r)[:, None], values("s", s)[None, :]
            near = abs(x - a) <= NEAR
            number, total = number + int(near.sum()), total + int((x * a)[near].sum())
    return number, total


def frames(spark: SparkSession) -> list[DataFrame]:
    """Both streams."""
    return [spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 1).option(
        "advanceMillisPerBatch", 1000 * STEP).option("startTimestamp", 0).load().selectExpr(
        "timestamp AS ts", f"value * {by} % {VALUES} {name}") for name, by in (("x", 31), ("a", 57))]


class Found:
    """Counts the pairs of micro-batches, and compares them with NumPy's; ``wrong`` says what differed first."""

    def __init__(self) -> None:
        self.batches = self.pairs = 0
        self.wrong: str | None = None

    def take(self, frame: DataFrame, _: int) -> None:
        """Compare the rows of a micro-batch, which are those of one second of event time."""
        rows = frame.toArrow()
        x, a = (rows[name].to_numpy() for name in "xa")
        found, want = (len(rows), int((x * a).sum())), expected(self.batches)
        if found != want and self.wrong is None:
            self.wrong = f"micro-batch {self.batches}: number and sum of pairs are {found}, not {want}"
        self.batches, self.pairs = self.batches + 1, self.pairs + len(rows)


def heap(spark: SparkSession) -> float:
    """MiB of the JVM's heap that are in use behind a collection."""
    beans: Any = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]  # there is one
    bean = beans.getMemoryMXBean()
    bean.gc()
    return float(bean.getHeapMemoryUsage().getUsed()) / 2**20


def waiting(spark: SparkSession) -> int:
    """The number of events in Spark's queue for listeners of streams."""
    gauges: Any = spark.sparkContext._jsc.sc().listenerBus().metrics().metricRegistry().getGauges()
    return sum(int(gauges[name].getValue()) for name in gauges if name.endswith("queue.streams.size"))


def main() -> int:
    """Run, and say how it went."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    minutes = 1.0 if options.quick else options.minutes
    out, found, log = Recorder("spark_soak", quick=options.quick), Found(), ProgressLog()
    looks: list[dict[str, float]] = []
    pids = set[int]()
    with tempfile.TemporaryDirectory() as name:
        spark = local_session("soak", cores=CORES, log=Path(name) / "spark.log", config={
            "spark.sql.shuffle.partitions": str(CORES), "spark.driver.memory": "1g", **RETAINED})
        spark.streams.addListener(log)
        joined = stream_join(*frames(spark), on=f"abs(r.x - s.a) <= {NEAR}", time="ts", late="0 SECONDS",
                             window=f"RANGE {BACK * STEP} SECONDS", groups=CORES, select=["x", "a"])
        query = joined.writeStream.foreachBatch(found.take).option("checkpointLocation", f"{name}/checkpoint").trigger(
            processingTime="500 milliseconds").start()
        began = time.monotonic()
        pause = min(60.0, 60 * minutes / 6)
        while found.wrong is None and (time.monotonic() < began + 60 * minutes or len(looks) < 3):
            if query.awaitTermination(int(pause)):
                break  # which raises what ended it
            if not found.batches:
                continue
            own = workers()
            pids |= {process.pid for process in own}
            looks.append({"heap": heap(spark), "workers": sum(p.memory_info().rss for p in own) / 2**20,
                          "driver": psutil.Process().memory_info().rss / 2**20, "waiting": waiting(spark),
                          "minute": round((time.monotonic() - began) / 60, 1)})
            print(looks[-1], found.batches, flush=True)
        took = time.monotonic() - began
        query.stop()
        spark.stop()
    if found.wrong is not None:
        print(found.wrong, file=sys.stderr)
        return 1
    config: dict[str, Any] = {"minutes": round(took / 60, 1), "rows of a micro-batch": 2 * ROWS}
    out.add("spark_soak_micro_batches", found.batches, "micro-batches", config, "micro-batches, all rows compared")
    out.add("spark_soak_pairs", found.pairs, "pairs", config, "pairs, as many as NumPy finds, with the same sum")
    out.add("spark_soak_processes", len(pids), "processes", config, "Python workers; Spark needs two at a time")
    out.add("spark_soak_counted", len(log.rows), "micro-batches", config, "micro-batches in a ProgressLog")
    told = {"heap": ("MiB", "the JVM's heap in use behind a collection"), "workers": ("MiB", "resident, all workers"),
            "driver": ("MiB", "resident, the driver's Python"), "waiting": ("events", "in Spark's queue of streams")}
    grown = False
    settled = looks[len(looks) // 10:]
    part = max(1, len(settled) // 5)
    for what, (unit, how) in told.items():
        for look in looks:
            out.add(f"spark_soak_{what}", look[what], unit, config | {"minute": look["minute"]}, how)
        if unit == "MiB":
            ratio = min(look[what] for look in settled[-part:]) / max(look[what] for look in settled[:part])
            grown |= ratio > GROWTH
            out.add(f"spark_soak_{what}_growth", ratio, "times", config, f"{how}: the least in the last fifth of the "
                    f"time over the most in the first, behind a warm-up")
    print(out.write())
    return int(grown and not options.quick)


if __name__ == "__main__":
    sys.exit(main())
