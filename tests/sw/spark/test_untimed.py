"""Joins of batch DataFrames without event time: each kind has the rows of `splitjoin.join`, however they are cut."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import splitjoin
from splitjoin import InputError, OrderError, SchemaError, UnsupportedError
from splitjoin.rows.output import ResultNames
from splitjoin.spark import JoinMetrics, explain, stream_join, stream_sql
from splitjoin.spark.inputs import Inputs
from splitjoin.spark.join import made_query
from splitjoin.spark.untimed import UntimedJoin, numbers_of_parts

from ...support.sampling import at_length
from ...support.spark_streams import ON, rows

_EQUAL = "r.name = s.name AND r.x < s.x"


def _golden(tables: tuple[pa.Table, pa.Table], **query: Any) -> Any:
    return rows(splitjoin.join(*tables, device="golden", **query).to_arrow())


@pytest.mark.parametrize(("how", "on", "partitions"), [
    ("inner", ON, None), at_length("inner", _EQUAL, 5), at_length("left", ON, 3), at_length("right", ON, 4),
    ("full", ON, 4), at_length("full", _EQUAL, 3), at_length("semi", ON, 3), ("anti", _EQUAL, 2)])
def test_kinds(frames: tuple[DataFrame, DataFrame], tables: tuple[pa.Table, pa.Table], how: str, on: str,
               partitions: int | None) -> None:
    found = stream_join(*frames, on=on, how=how, partitions=partitions).toArrow()
    assert rows(found) == _golden(tables, on=on, how=how)


def test_parts_of_both_sides(frames: tuple[DataFrame, DataFrame], tables: tuple[pa.Table, pa.Table]) -> None:
    left, right = frames
    query, result, gathered = made_query(Inputs.of(left, right, ON, None, None), order="none", names=ResultNames())
    made = UntimedJoin.of(query, left, right, result, gathered, None, device="cpu", device_options={}, partitions=1,
                          fail_on_fallback=True)
    metrics = JoinMetrics(left.sparkSession)
    assert rows(replace(made, parts=(5, 4)).plan(metrics).toArrow()) == _golden(tables, on=ON)
    assert metrics.partitions == 20
    assert replace(made, parts=(5, 4)).said() == "20: each joins one of 5 parts of left with one of 4 parts of right"
    assert "parts      1, which joins all rows" in explain(*frames, on=ON, partitions=1)


@pytest.mark.parametrize(("how", "rows_of", "parts"), [
    ("inner", (3_000_000, 400_000), (12, 1)), ("inner", (400_000, 3_000_000), (1, 12)),
    ("inner", (9_000_000, 2_500_000), (36, 3)), ("left", (400_000, 3_000_000), (2, 1)),
    ("right", (9_000_000, 10), (1, 2)), ("full", (9_000_000, 9_000_000), (1, 1)), ("semi", (10**9, 10), (256, 1))])
def test_numbers_of_parts(frames: tuple[DataFrame, DataFrame], how: str, rows_of: tuple[int, int],
                          parts: tuple[int, int]) -> None:
    query, *_ = made_query(Inputs.of(*frames, ON, None, None), order="none", names=ResultNames(), kind={"how": how})
    assert numbers_of_parts(query, {"r": rows_of[0], "s": rows_of[1]}, None, 2) == parts


def test_aggregates_and_select(frames: tuple[DataFrame, DataFrame], tables: tuple[pa.Table, pa.Table]) -> None:
    fold = {"k": "count(*)", "most": "max(s.y)"}
    query: dict[str, Any] = {"on": "r.x < s.x", "how": "left", "by": "r", "aggregate": fold, "select": ["n"]}
    assert rows(stream_join(*frames, **query).toArrow()) == _golden(tables, **query)
    text = "SELECT r.n, s.x - r.x AS d FROM r JOIN s ON abs(r.x - s.x) <= 2"
    found = stream_sql(text, r=frames[0], s=frames[1]).toArrow()
    assert rows(found) == rows(splitjoin.sql(text, r=tables[0], s=tables[1], device="golden").to_arrow())


def test_no_rows(spark: SparkSession, frames: tuple[DataFrame, DataFrame]) -> None:
    left, right = frames
    nothing = right.where("false")
    assert stream_join(left, nothing, on=ON).count() == 0
    assert stream_join(left, nothing, on=ON, how="left").count() == left.count()
    assert stream_join(nothing, left, on=ON, how="left").count() == 0


def test_what_needs_time_is_refused(frames: tuple[DataFrame, DataFrame]) -> None:
    with pytest.raises(SchemaError, match=r"a window needs time=…"):
        stream_join(*frames, on=ON, window="ROWS 5")
    with pytest.raises(OrderError, match=r"order 'total' is by arrival, and rows of DataFrames have none"):
        stream_join(*frames, on=ON, order="total")
    with pytest.raises(UnsupportedError, match=r"asof chooses by the time of rows"):
        stream_join(*frames, on=ON, how="asof")
    with pytest.raises(UnsupportedError, match=r"first\(s.x\) chooses by the time"):
        stream_join(*frames, on=ON, by="r", aggregate={"f": "first(s.x)"})
    with pytest.raises(InputError, match=r"ties order rows with equal times, but the join has no time"):
        stream_join(*frames, on=ON, ties="n")
    with pytest.raises(InputError, match=r"without time=…, partitions must be a number from 1 to 100000, not \[3\]"):
        stream_join(*frames, on=ON, partitions=[3])


def test_columns_of_times_of_day(spark: SparkSession) -> None:
    """Spark itself refuses to count a DataFrame that has one."""
    left, right = (spark.sql(f"SELECT id {name}, TIME'09:00:00' {name}t FROM range(9)") for name in "ab")
    found = stream_join(left, right, on="abs(r.a - s.b) <= 1 AND r.at <= s.bt", device="golden").collect()
    assert len(found) == 25
    assert stream_join(left, right, on="abs(r.a - s.b) <= 1", engine="rewrite").toArrow().num_rows == 25
