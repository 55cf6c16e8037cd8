"""Joins of two streams in Spark's Real-time Mode: how long after the later row of a pair the pair comes.

`stream_join`, whose tasks join a micro-batch when they have all of it, and a `StatefulProcessor` in the JVM that joins
row by row (``bench/java/RealTimeJoin.java``), over the only source with this mode that PySpark has: Spark's in-memory
one, which gives each row by a request of its own. It and the sink in memory are for tests, so Spark's check of what it
allows is off; the processor passes it with the console as sink. All rows come in one micro-batch or in several, by the
trigger. Run: python -m bench.spark_realtime
"""

from __future__ import annotations

import subprocess
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.record import Recorder, options_of
from splitjoin.spark import local_session, stream_join

#: Tasks at once: in this mode each task of each stage has a slot of its own.
SLOTS = 14
#: Microseconds of the window, the band, and the number of values: a row meets two in a thousand of the other stream.
WINDOW, BAND, VALUES = 10_000_000, 5, 5_000
#: Seconds between two pushes of rows.
STEP = 0.02
_MODE, _STORE = "spark.sql.streaming.realTimeMode.", "spark.sql.streaming.stateStore."


def processor_jar(folder: Path) -> Path:
    """The jar of the processor, compiled against the Spark that is installed."""
    import pyspark

    jars, source = Path(pyspark.__file__).parent / "jars", Path(__file__).parent / "java" / "RealTimeJoin.java"
    subprocess.run(["javac", "-nowarn", "-d", folder, "-cp", f"{jars}/*", source], check=True)
    with zipfile.ZipFile(folder / "join.jar", "w") as archive:
        for path in folder.glob("*.class"):
            archive.write(path, path.name)
    return folder / "join.jar"


def latencies(spark: SparkSession, processor: bool, rate: int, seconds: int, trigger: int, folder: Path) -> list[float]:
    """Milliseconds of all pairs, sorted, of two streams of ``rate`` rows a second each."""
    jvm: Any = spark.sparkContext._jvm
    memory = jvm.org.apache.spark.sql.execution.streaming.sources.LowLatencyMemoryStream
    sources = [memory.apply(spark._jsparkSession, 1, jvm.org.apache.spark.sql.Encoders.LONG()) for _ in "rs"]
    # A number is a microsecond and which of its rows this is, in thousandths.
    r, s = (DataFrame(source.toDF(), spark).selectExpr(f"{side} side", "value div 1000 ts",
                                                       f"pmod(xxhash64(value), {VALUES}) x")
            for side, source in enumerate(sources))
    if processor:
        joined = DataFrame(jvm.RealTimeJoin.of(r._jdf, s._jdf, WINDOW, BAND), spark)
        later = "greatest(ts_r, ts_s)"
    else:
        left, right = (frame.selectExpr("timestamp_micros(ts) ts", f"x {name}") for frame, name in ((r, "x"), (s, "a")))
        joined = stream_join(left, right, on=f"abs(r.x - s.a) <= {BAND}", window=f"RANGE {WINDOW // 10**6} SECONDS",
                             time="ts", late="1 SECOND", groups=1)
        later = "unix_micros(greatest(ts_r, ts_s))"
    # A function of the JVM tells the time of each row; those of Spark tell that of the micro-batch.
    timed = joined.selectExpr(f"{later} ts", "CAST(java_method('java.lang.System', 'currentTimeMillis') AS long) now")
    query = timed.writeStream.outputMode("update").format("memory").queryName("pairs").option(
        "checkpointLocation", str(folder)).trigger(realTime=f"{trigger} seconds").start()
    time.sleep(15)  # the first micro-batch is planned
    began, count = time.time(), max(1, round(rate * STEP))
    for n in range(int(seconds / STEP)):
        for source in sources:
            first = int(time.time() * 1e6) * 1000
            source.addData(jvm.scala.jdk.javaapi.CollectionConverters.asScala(
                jvm.java.util.stream.LongStream.range(first, first + count).boxed().toList()))
        time.sleep(max(0, began + (n + 1) * STEP - time.time()))
    time.sleep(1.5 * trigger)  # the sink shows rows when their micro-batch ends
    found = spark.sql("SELECT now - ts / 1000 ms FROM pairs ORDER BY ms").collect()
    query.stop()
    return [float(row.ms) for row in found]


def main() -> None:
    """All figures."""
    options = options_of(__doc__ or "").parse_args()
    out = Recorder("spark_realtime", quick=options.quick)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = local_session("real-time", cores=SLOTS, log=folder / "spark.log", config={
            "spark.jars": str(processor_jar(folder)), "spark.sql.shuffle.partitions": "1", f"{_MODE}allowlistCheck":
            "false", f"{_STORE}checkpointFormatVersion": "2", f"{_STORE}providerClass":
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"})
        runs = [(True, 10, 40), (True, 70, 40), (False, 10, 40)]
        for n, (processor, trigger, seconds) in enumerate(runs[:1] if options.quick else runs):
            found = latencies(spark, processor, 100, 5 if options.quick else seconds, trigger, folder / str(n))
            config = {"way": "processor in the JVM" if processor else "stream_join", "rate": 100, "trigger_s": trigger}
            for metric, share in (("realtime_p50", 0.5), ("realtime_p99", 0.99)):
                out.add(metric, found[int(share * len(found))], "ms", config | {"pairs": len(found)},
                        f"from the later row of a pair to the pair, in the task; {seconds} s of two streams")
        spark.stop()
    out.write()


if __name__ == "__main__":
    main()
