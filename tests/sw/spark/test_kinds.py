"""Kinds of join and aggregates give the rows of `splitjoin.join`: over batch DataFrames, wherever the partitions are
cut, and over streaming ones.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import splitjoin
from splitjoin import signed
from splitjoin.base.errors import InputError, UnsupportedError
from splitjoin.spark import explain, stream_join, stream_sql
from splitjoin.spark.streaming.plan import SHOW_CONDITION

from ...support.sampling import at_length
from ...support.spark_files import Files
from ...support.spark_streams import ON, answer, rows
from .test_streams import parts

Frames = tuple[DataFrame, DataFrame]
Tables = tuple[pa.Table, pa.Table]

ROOT = Path(__file__).parents[3]
CUTS = [-7, 30, 31, 32, 60, 61, 119, 120, 500]
WINDOW = ("RANGE 9", "RANGE 4")


@pytest.mark.parametrize(("kind", "window"), [
    ({"how": "left"}, WINDOW), ({"how": "anti"}, WINDOW), ({"how": "asof_left", "direction": "nearest"}, WINDOW),
    *(at_length({"how": how}, window) for how in ("left", "right", "semi", "anti", "asof", "asof_left")
      for window in (WINDOW, "RANGE 0", "RANGE 200"))], ids=str)
def test_total_order_row_for_row(frames: Frames, tables: Tables, kind: dict[str, Any], window: Any) -> None:
    how: dict[str, Any] = {"on": ON, "window": window, "time": "ts", **kind}
    got = stream_join(*frames, **how, order="total", partitions=CUTS).toArrow()
    expected = answer(*tables, **how)
    assert len(expected) > 5
    assert list(map(repr, got.to_pylist())) == list(map(repr, expected.to_pylist()))


def test_full_joins_and_chosen_partitions(frames: Frames, tables: Tables) -> None:
    how: dict[str, Any] = {"on": ON, "window": WINDOW, "time": "ts", "how": "full", "select": ["x_r", "price_s"]}
    assert rows(stream_join(*frames, **how, partitions=5).toArrow()) == rows(answer(*tables, **how))


def test_statements(frames: Frames, tables: Tables) -> None:
    text = "SELECT r.n, s.n IS NULL AS lacks, s.price FROM r ASOF LEFT JOIN s ON r.ts > s.ts AND abs(r.x - s.x) <= 6"
    how: dict[str, Any] = {"window": "RANGE 20", "time": "ts"}
    got = stream_sql(text, r=frames[0], s=frames[1], partitions=4, device="golden", **how)
    assert rows(got.toArrow()) == rows(splitjoin.sql(text, r=tables[0], s=tables[1], device="golden", **how).table)


def test_fields_and_explanation(frames: Frames) -> None:
    how: dict[str, Any] = {"on": ON, "window": WINDOW, "time": "ts", "how": "anti"}
    assert stream_join(*frames, **how).columns == frames[0].columns
    assert "kind       anti, decided in the Spark task from the pairs" in explain(*frames, **how, partitions=1)


def test_refused(frames: Frames) -> None:
    for kind, what in (({"how": "left"}, "of kind 'left'"), ({"aggregate": AGGREGATE}, "with aggregates")):
        with pytest.raises(UnsupportedError, match=f"a join {what} of batch DataFrames needs RANGE windows without"):
            stream_join(*frames, on=ON, window="ROWS 4", time="ts", select=["r.ts"], **kind)
    streams = [frame.sparkSession.readStream.format("rate").load() for frame in frames]
    with pytest.raises(InputError, match="a join of kind 'full' needs one group here, not 2"):
        stream_join(*streams, on="TRUE", window="RANGE 4 SECONDS", time="timestamp", how="full", groups=2,
                    late="0 SECONDS")


def test_the_examples_of_the_pages(spark: SparkSession) -> None:
    blocks = {page: re.findall(r"```python spark\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.S)
              for page in ("kinds.md", "aggregates.md")}
    moments = [dt.datetime(2024, 1, 1, 10, minute, tzinfo=dt.UTC) for minute in (0, 5, 30)]
    names: dict[str, Any] = {
        "trades": spark.createDataFrame(list(zip(moments, (10, 20, 30), strict=True)), "ts timestamp, price int"),
        "quotes": spark.createDataFrame(list(zip(moments, (12, 80, 90), strict=True)), "ts timestamp, bid int")}
    names["rides"] = names["trades"].selectExpr("ts", "price AS zone")
    names["offers"] = names["quotes"].selectExpr("ts", "bid - 2 AS area", "bid AS price")
    for page, (block,) in blocks.items():
        exec(compile(block, page, "exec"), names)
    assert sorted(row.price for row in names["unmatched"].collect()) == [20, 30]
    assert sorted((row.ts.minute, row.n, row["mean"]) for row in names["features"].collect()) == [
        (0, 1, 12.0), (5, 0, None), (30, 0, None)]


AGGREGATE = {"n": "count(*)", "first": "first(s.n)", "total": "sum(s.price)", "mean": "avg(r.y + s.y)",
             "all": "list(s.n)"}


@splitjoin.aggregate
class GreatestTwice:
    """Twice the greatest value."""

    best: signed(40)  # type: ignore[valid-type]

    def init(self):  # type: ignore[no-untyped-def]
        self.best = 0

    def add(self, x: signed(32)):  # type: ignore[no-untyped-def,valid-type]
        self.best = max(self.best, 2 * x)

    def result(self):  # type: ignore[no-untyped-def]
        return self.best


#: What tasks fold without pairs, where the condition is an equality.
FOLDED = {"n": "count(*)", "first": "first(s.n)", "total": "sum(s.price)", "mean": "avg(s.y)"}


@pytest.mark.parametrize(("how", "on", "aggregate", "said"), [
    ("left", "r.name = s.name", FOLDED, "avg(s.y), folded in the Spark task without pairs, by engine sliding: "),
    at_length("inner", ON, AGGREGATE, "avg(r.y + s.y), folded in the Spark task from the pairs: ")])
def test_aggregates(frames: Frames, tables: Tables, how: str, on: str, aggregate: dict[str, str], said: str) -> None:
    query: dict[str, Any] = {"on": on, "window": WINDOW, "time": "ts", "how": how, "by": "r", "aggregate": aggregate,
                             "select": ["ts", "price"]}
    got = stream_join(*frames, **query, order="total", partitions=CUTS)
    expected = answer(*tables, **query)
    assert list(map(repr, got.toArrow().to_pylist())) == list(map(repr, expected.to_pylist()))
    assert len(expected) > 5
    assert said in explain(*frames, **query, partitions=1)


def test_statements_with_aggregates(frames: Frames, tables: Tables) -> None:
    text = ("SELECT r.n * 2 AS twice, count(*) AS n, max(s.day) AS latest, greatest_twice(s.n) AS best FROM r "
            "LEFT JOIN s ON abs(r.x - s.x) <= 6 GROUP BY r")
    how: dict[str, Any] = {"window": "RANGE 20", "time": "ts", "aggregates": {"greatest_twice": GreatestTwice}}
    got = stream_sql(text, r=frames[0], s=frames[1], partitions=3, **how).toArrow()
    assert rows(got) == rows(splitjoin.sql(text, r=tables[0], s=tables[1], device="golden", **how).table)


def test_statements_over_streams(spark: SparkSession, tmp_path: Path, tables: Tables) -> None:
    files = Files(spark, tmp_path)
    for r, s in zip(parts(tables[0], [30]), parts(tables[1], [70]), strict=True):
        files.add(r, s)
    text = "SELECT r.n, count(s.x) AS found FROM r JOIN s ON abs(r.x - s.x) <= 6 GROUP BY r"
    query: dict[str, Any] = {"window": {"r": "RANGE 0", "s": "RANGE 20"}, "time": "ts"}
    frames = {side: files.frame(side) for side in "rs"}
    files.run(stream_sql(text, **frames, late=0, state=files.state, order="total", **query))
    assert rows(files.found()) == rows(splitjoin.sql(text, r=tables[0], s=tables[1], device="golden", **query).table)
    said = explain(*frames.values(), on="r.x = s.x", how="left", late=0, state=files.state, **query)
    joined = stream_join(*frames.values(), on="r.x = s.x", how="left", late=0, state=files.state, **query)
    assert "splitjoin[(r.x = s.x); left; r: " in joined._jdf.queryExecution().analyzed().toString()
    try:
        spark.conf.set(SHOW_CONDITION, "false")  # literals in it may be nobody else's business
        joined = stream_join(*frames.values(), on="r.x = s.x", how="left", late=0, state=files.state, **query)
        spark.conf.set(SHOW_CONDITION, "no")
        with pytest.raises(InputError, match=r"spark\.splitjoin\.showCondition must be true or false, not 'no'"):
            stream_join(*frames.values(), on="r.x = s.x", how="left", late=0, state=files.state, **query)
    finally:
        spark.conf.unset(SHOW_CONDITION)
    assert "splitjoin[condition not shown; left; r: " in joined._jdf.queryExecution().analyzed().toString()
    assert "rows come out when the watermark has decided them" in said
