"""Kinds of join over batch DataFrames give the rows of `splitjoin.join`, wherever the partitions are cut."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import splitjoin
from pyspark.sql import DataFrame, SparkSession
from splitjoin.errors import UnsupportedError
from splitjoin.spark import explain, stream_join, stream_sql

from ...support.sampling import at_length
from ...support.spark_streams import ON, answer, rows

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
    with pytest.raises(UnsupportedError, match="a join of kind 'left' of DataFrames needs RANGE windows without ROWS"):
        stream_join(*frames, on=ON, window="ROWS 4", time="ts", how="left")
    streams = [frame.sparkSession.readStream.format("rate").load() for frame in frames]
    with pytest.raises(UnsupportedError, match="streaming DataFrames have inner joins only, not 'left'"):
        stream_join(*streams, on="TRUE", window="RANGE 4 SECONDS", time="timestamp", how="left")


def test_the_example_of_the_page(spark: SparkSession) -> None:
    (block,) = re.findall(r"```python spark\n(.*?)```", (ROOT / "docs" / "kinds.md").read_text(encoding="utf-8"), re.S)
    moments = [dt.datetime(2024, 1, 1, 10, minute, tzinfo=dt.UTC) for minute in (0, 5, 30)]
    names: dict[str, Any] = {
        "trades": spark.createDataFrame(list(zip(moments, (10, 20, 30), strict=True)), "ts timestamp, price int"),
        "quotes": spark.createDataFrame(list(zip(moments, (12, 80, 90), strict=True)), "ts timestamp, bid int")}
    exec(compile(block, "kinds.md", "exec"), names)
    assert sorted(row.price for row in names["unmatched"].collect()) == [20, 30]


def test_aggregates_are_refused(frames: Frames) -> None:
    with pytest.raises(UnsupportedError, match="joins of DataFrames have no aggregates yet"):
        stream_sql("SELECT count(*) FROM r JOIN s ON r.n = s.n GROUP BY r", r=frames[0], s=frames[1], window="RANGE 4",
                   time="ts")
