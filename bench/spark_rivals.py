"""Stream joins of a few rows in Spark, ours and Spark's own with its newest state, beside Flink's interval join.

Flink joins streams without an equality, in one task. Each way joins the whole input twice in one session, of which the
second counts, with its start but without that of the engine. The same stream without a join is Spark's own share of
ours. Run: python -m bench.spark_rivals
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from bench import spark as ways
from bench.record import Recorder, options_of
from bench.rivals_environment import rival
from bench.spark_sql import CpuTime
from splitjoin.spark import local_session
from splitjoin.spark.session import find_java

ROWS, WINDOW, BATCHES = (2_000, 20_000), 10, 4


def unjoined(left: DataFrame, right: DataFrame, window: int) -> DataFrame:
    """The rows of both streams, handed to tasks in Python as to ours, which give none."""
    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from ()

    rows = left.union(right).repartition(ways.CORES)
    return rows.mapInArrow(nothing, "ts_r timestamp, x int, ts_s timestamp, a int")


def write(folder: Path, rows: int) -> None:
    """The streams of `bench.spark` as CSV files too, which Flink reads without jars of Hadoop."""
    for side in "rs":
        (folder / side).mkdir(parents=True)
        table = pq.read_table(ways.stream(folder, side, rows, rows // BATCHES))
        columns = [table[0].cast(pa.int64()), *table.columns[1:]]
        plain = pa.table(columns, names=list("abc"))
        with pa.csv.CSVWriter(folder / side / "0.csv", plain.schema,
                              write_options=pa.csv.WriteOptions(include_header=False)) as file:
            file.write_table(plain)


def flink(folder: Path) -> list[dict[str, Any]]:
    """The figures of each way in which Flink joins the files in ``folder``, as `bench/flink_join.py` prints them.

    Raises `RuntimeError` if Flink does not run here.
    """
    script = Path(__file__).with_name("flink_join.py")
    done = subprocess.run([str(rival("flink")), str(script), str(folder)], capture_output=True, text=True,
                          env=os.environ | {"JAVA_HOME": str(find_java()), "_python_worker_execution_mode": "process"})
    if done.returncode:
        raise RuntimeError(f"Flink's join ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def spark(folder: Path, rows: int) -> list[dict[str, Any]]:
    """The same of each way in Spark."""
    found, cpu = [], CpuTime()
    ways.STATE = str(folder / "state")
    session = local_session("rivals", cores=ways.CORES, log=folder / "spark.log", config={
        "spark.sql.shuffle.partitions": str(ways.CORES)})
    for way in (ways.STREAMS[0], next(way for way in ways.STREAMS if way.newest), ways.Way("no join", unjoined)):
        for again in range(2):
            began, used = time.perf_counter(), cpu.seconds()
            _, pairs = ways.streamed(session, folder, replace(way, rows=rows, each=rows // BATCHES), WINDOW)
            if again:
                found.append({"way": f"Spark, {way.name}", "pairs": pairs, "cpu": cpu.seconds() - used,
                              "seconds": time.perf_counter() - began})
    session.stop()
    return found


def main() -> None:
    """All figures. Raises `AssertionError` if the ways differ in their pairs."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--spark", action="store_true", help="only Spark's ways; Flink's figures stay")
    options = parser.parse_args()
    out = Recorder("spark_rivals", quick=options.quick)
    if options.spark:
        out.keep(lambda row: "Flink" in row["config"]["way"])
    for rows in ROWS[:1] if options.quick else ROWS:
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), rows)
            found = [*([] if options.spark else flink(Path(name))), *spark(Path(name), rows)]
        for each in found:
            config = {"way": each["way"], "rows": rows, "window_s": WINDOW, "pairs": each["pairs"]}
            how = (f"all processes, the second run in a session; Spark: Parquet, {BATCHES} micro-batches; Flink: CSV, "
                   "parallelism 2")
            out.add("spark_rivals_cpu", each["cpu"], "CPU s", config, how)
            out.add("spark_rivals_seconds", each["seconds"], "s", config, how)
        out.write()
        assert len({each["pairs"] for each in found} - {0}) == 1, found
    out.write()


if __name__ == "__main__":
    main()
