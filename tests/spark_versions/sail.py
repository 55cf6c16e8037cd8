"""Joins on Sail, an engine that speaks Spark Connect, from a client that has neither Spark nor Java.

``python -m tests.spark_versions sail`` installs both. Answers are compared with those of `splitjoin.join`; streams must
be refused in words.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pysail.spark import SparkConnectServer  # type: ignore[import-not-found,unused-ignore]  # not in the environment
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

import splitjoin
from splitjoin.base.errors import InputError, SplitJoinError, UnsupportedError
from splitjoin.spark import explain, stream_join, task_error, with_null_values

from ..support.spark_streams import ON, answer, rows, stream

TABLES = stream(1, 240), stream(2, 190)
QUERY: dict[str, Any] = {"on": ON, "window": "RANGE 9", "time": "ts"}


class Sail:
    """The joins; each method raises where an answer is wrong."""

    def __init__(self, spark: SparkSession):
        self.spark = spark
        self.left, self.right = (spark.createDataFrame(table) for table in TABLES)

    def _same(self, joined: DataFrame, **query: Any) -> None:
        made, expected = joined.toArrow(), answer(*TABLES, **(QUERY | query))
        assert rows(made) == rows(expected), f"{len(made)} rows for {len(expected)}"

    def batch(self, **more: Any) -> None:
        self._same(stream_join(self.left, self.right, **(QUERY | more), partitions=3), **more)

    def order(self) -> None:
        made = stream_join(self.left, self.right, **QUERY, order="total", partitions=7).toArrow()
        assert repr(made.to_pylist()) == repr(answer(*TABLES, **QUERY).to_pylist())

    def engines(self) -> None:
        self._same(stream_join(self.left, self.right, **QUERY, engine="auto"))
        band = "abs(r.x - s.x) <= 6"
        self._same(stream_join(self.left, self.right, **(QUERY | {"on": band}), engine="rewrite"), on=band)

    def columns(self) -> None:
        self._same(stream_join(self.left, self.right, **(QUERY | {"on": F.abs(self.left.x - self.right.x) <= 6})),
                   on="abs(r.x - s.x) <= 6")
        assert with_null_values(self.left, {"x": 3}).where("x IS NULL").count() >= self.left.where("x = 3").count() > 0
        assert "every partition runs on it" in explain(self.left, self.right, **QUERY)

    def windowless(self) -> None:
        for on in (ON, "r.x = s.x"):
            for how in ("inner", "full"):
                made = stream_join(self.left, self.right, on=on, how=how, partitions=4).toArrow()
                assert rows(made) == rows(splitjoin.join(*TABLES, on=on, how=how).to_arrow()), (on, how)

    def refused(self) -> None:
        nulls = self.left.selectExpr("CASE WHEN x < 5 THEN ts END ts", "x")
        try:
            stream_join(nulls, self.right, on="r.x = s.x", window="RANGE 9", time="ts", partitions=2).collect()
        except Exception as error:
            assert isinstance(task_error(error), InputError), error
        else:
            raise AssertionError("a NULL time must be refused")
        ticks = self.spark.readStream.format("rate").load()
        try:
            stream_join(ticks, ticks, on="r.value = s.value", window="RANGE 9 SECONDS", time="timestamp", late=0)
        except SplitJoinError as error:
            assert isinstance(error, UnsupportedError), error
            assert "connect to Spark" in str(error), error
        else:
            raise AssertionError("streams must be refused")


def main() -> int:
    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}").getOrCreate()
    sail = Sail(spark)
    steps: dict[str, Callable[[], None]] = {
        "batch": sail.batch, "rows": lambda: sail.batch(window="ROWS 9"), "order": sail.order, "engines": sail.engines,
        **{how: (lambda how=how: sail.batch(how=how)) for how in  # type: ignore[misc]
           ("left", "right", "full", "semi", "anti", "asof")},
        "aggregates": lambda: sail.batch(by="r", aggregate={"many": "count(*)", "most": "max(s.x)"}),
        "columns": sail.columns, "windowless": sail.windowless, "refused": sail.refused,
    }
    failed = 0
    for name, step in steps.items():
        try:
            step()
        except Exception as error:  # the other steps are to run too
            failed += 1
            print(f"Sail  FAILED  {name}: {type(error).__name__}: {str(error)[:2000]}", flush=True)
        else:
            print(f"Sail  passed  {name}", flush=True)
    spark.stop()
    server.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main())
