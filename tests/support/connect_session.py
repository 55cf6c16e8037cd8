"""Joins through a Spark Connect session: the program that tests/sw/spark/test_connect.py runs in a process of its own.

``python -m tests.support.connect_session FOLDER sc://HOST:PORT`` compares with `splitjoin.join`, and prints the name of
each part that has passed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

import splitjoin
from splitjoin.base.errors import InputError, PredicateError, SchemaError, ToolError, UnsupportedError
from splitjoin.spark import (
    JoinMetrics,
    ProgressLog,
    explain,
    joined_with,
    stream_join,
    stream_sql,
    task_error,
    workers as workers_module,
)
from splitjoin.spark.workers import cores, places_by_number

from .patience import until
from .spark_files import Files, counts, patiently
from .spark_streams import ON, answer, rows, stream
from .spark_workers import python_without_splitjoin

TABLES = stream(1, 240), stream(2, 190)
QUERY: dict[str, Any] = {"on": ON, "window": "RANGE 9", "time": "ts"}


def batch(spark: SparkSession, left: DataFrame, right: DataFrame, folder: Path) -> None:
    expected = answer(*TABLES, **QUERY)
    seen = Observation("seen")
    joined = left.transform(joined_with(right, **QUERY, partitions=3)).observe(seen, F.count("*").alias("n"))
    assert rows(joined.toArrow()) == rows(expected)
    assert seen.get == {"n": len(expected)}
    assert "partitions 2 " in explain(left, right, **QUERY, device="golden")
    assert cores(spark) == 2


def sql(spark: SparkSession, left: DataFrame, right: DataFrame, folder: Path) -> None:
    text = "SELECT r.n, s.n AS other, r.x - s.x AS gap FROM r JOIN s ON abs(r.x - s.x) <= 2"
    made = stream_sql(text, r=left, s=right, window="RANGE 9", time="ts", device="golden", partitions=2).toArrow()
    expected = splitjoin.sql(text, r=TABLES[0], s=TABLES[1], window="RANGE 9", time="ts", device="golden")
    assert rows(made) == rows(expected.table)


def columns(spark: SparkSession, left: DataFrame, right: DataFrame, folder: Path) -> None:
    expected = rows(answer(*TABLES, **QUERY))
    c: Callable[[str], Any] = F.col
    on = (F.abs(left["x"] - right.x) <= 6) & ((left.y <= right["y"]) | (c("r.name") == c("s.name")))
    assert rows(stream_join(left, right, **(QUERY | {"on": on}), device="golden").toArrow()) == expected
    query: dict[str, Any] = {"window": "RANGE 9", "time": "ts"}
    with pytest.raises(SchemaError, match=r"must be one of left or right; write F.col\('r.x'\) or "):
        stream_join(left, right, on=left.x == spark.createDataFrame([(1,)], "x int").x, **query)
    with pytest.raises(SchemaError, match=r"left and right are one DataFrame, or share columns; write F.col\('r.x'\)"):
        stream_join(left, left, on=left.x == c("s.x"), **query)
    with pytest.raises(PredicateError, match=r"string and exact number cannot be .*\n  .*connect_session.py:\d+"):
        stream_join(left, right, on=(c("r.x") == 1) & (c("r.name") < 3), **query)


def errors(spark: SparkSession, left: DataFrame, right: DataFrame, folder: Path) -> None:
    with pytest.raises(UnsupportedError, match="Spark accumulators, which Spark Connect does not have"):
        JoinMetrics(spark)
    nulls = left.selectExpr("CASE WHEN x < 5 THEN ts END ts", "x")
    with pytest.raises(PySparkException) as failure:
        stream_join(nulls, right, on="r.x = s.x", window="RANGE 9", time="ts", partitions=1).collect()
    assert isinstance(task_error(failure.value), InputError)


def streaming(spark: SparkSession, left: DataFrame, right: DataFrame, folder: Path) -> None:
    files = Files(spark, folder)
    for lot in (slice(0, 100), slice(100, None)):
        files.add(*(table.take(pa.array(range(len(table))[lot])) for table in TABLES))
    query: dict[str, Any] = QUERY | {"late": 0, "device": "golden"}
    near = F.abs(F.col("r.x") - F.col("s.x")) <= 6
    same = (F.col("r.y") <= F.col("s.y")) | (F.col("r.name") == F.col("s.name"))
    joined = stream_join(files.frame("r"), files.frame("s"), **(query | {"on": near & same}), state=files.state)
    log = ProgressLog()
    spark.streams.addListener(log)
    run = files.run(joined)
    # Both streams' last rows are waiting for the watermark: what was joined is what came before them.
    last = min(max(table["ts"].to_pylist()) for table in TABLES)
    due = [table.filter(pa.compute.less(table["ts"], last)) for table in TABLES]
    found, expected = rows(files.found()), rows(answer(*due, **QUERY))
    assert not expected - found
    assert found <= rows(answer(*TABLES, **QUERY))
    total = counts([run])
    assert total["pairs"] == found.total()
    assert total["tuples_r"] == len(TABLES[0])
    until(lambda: log.totals.get("tuples_r") == len(TABLES[0]))  # the server sends its events later
    spark.streams.removeListener(log)
    with pytest.raises(InputError, match="keeps its state in files that all executors reach: give state="):
        stream_join(files.frame("r"), files.frame("s"), **query)
    with pytest.raises(InputError, match="but nothing can be written to '/proc/nothing'"):
        stream_join(files.frame("r"), files.frame("s"), **query, state="/proc/nothing")


def each_batch(spark: SparkSession, left: DataFrame, right: DataFrame, folder: Path) -> None:
    """The server runs the function, and its commands in threads that Spark tells nothing of the micro-batch."""
    files = Files(spark, folder / "each")
    files.root.mkdir()
    for lot in (slice(0, 100), slice(100, None)):
        files.add(*(table.take(pa.array(range(len(table))[lot])) for table in TABLES))
    equal: dict[str, Any] = {"on": "r.name = s.name", "window": "RANGE 9", "time": "ts"}
    joined = stream_join(files.frame("r"), files.frame("s"), **equal, late=0, device="golden", state=files.state)
    root = str(files.root)

    def write(frame: DataFrame, batch: int) -> None:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(frame.write.mode("overwrite").parquet, f"{root}/{sink}/{batch}") for sink in "ab"]:
                done.result()

    patiently(lambda: files.batches(joined, write))
    found = [rows(pa.concat_tables(spark.read.parquet(f"{root}/{sink}/{n}").toArrow() for n in range(2)))
             for sink in "ab"]
    assert found[0] == found[1]
    assert found[0] == rows(stream_join(left, right, **equal, device="golden").toArrow())


def elsewhere(spark: SparkSession, left: DataFrame, right: DataFrame, folder: Path) -> None:
    """Engines that speak Spark Connect alone: what places rows refuses, or puts them anywhere."""
    session = spark.session_id  # type: ignore[attr-defined,unused-ignore]  # of Connect's class
    assert {session: True} == workers_module._PLACES
    for placed in (lambda frame, n, column: frame.where("nowhere"), lambda frame, n, column: frame):
        workers_module._PLACES.clear()
        with patch.object(workers_module, "by_number", placed):
            assert not places_by_number(spark)
    try:
        made = stream_join(left, right, **QUERY, partitions=4, order="total", device="golden").toArrow()
        assert repr(made.to_pylist()) == repr(answer(*TABLES, **QUERY).to_pylist())
        times = spark.readStream.format("rate").load()
        with pytest.raises(UnsupportedError, match=r"streaming .* by number, as Spark does, but the server of this .* "
                                                   r"does not; join batch DataFrames there, or connect to Spark"):
            stream_join(times, times, on="r.value = s.value", window="RANGE 9 SECONDS", time="timestamp", late=0)
    finally:
        workers_module._PLACES.clear()


def workers(spark: SparkSession, left: DataFrame, right: DataFrame, folder: Path) -> None:
    spark.conf.set("spark.sql.execution.pyspark.python", str(python_without_splitjoin(folder)))
    with pytest.raises(ToolError, match=r"must have splitjoin .*, as the driver has, but this one has none"):
        stream_join(left, right, **QUERY)


PARTS: dict[str, Callable[[SparkSession, DataFrame, DataFrame, Path], None]] = {
    f.__name__: f for f in (batch, sql, columns, errors, streaming, each_batch, elsewhere, workers)}


def main() -> None:
    spark = SparkSession.builder.remote(sys.argv[2]).getOrCreate()
    left, right = (spark.createDataFrame(table) for table in TABLES)
    for name, part in PARTS.items():
        part(spark, left, right, Path(sys.argv[1]))
        print(name, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
