"""Joins of batch DataFrames without windows: each kind has the rows of `splitjoin.join`, however they are cut."""

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import splitjoin
from splitjoin import InputError, OrderError, PredicateError, SchemaError, UnsupportedError
from splitjoin.rows.output import ResultNames
from splitjoin.spark import JoinMetrics, explain, stream_join, stream_sql, task_error
from splitjoin.spark.batch import BatchJob
from splitjoin.spark.inputs import Inputs
from splitjoin.spark.join import made_query
from splitjoin.spark.routes import PartRoute, numbers_of_parts
from splitjoin.spark.settings import JoinSettings

from ...support.sampling import at_length, examples
from ...support.spark_streams import ON, in_order, rows, stream

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
    metrics = JoinMetrics(left.sparkSession)
    settings = JoinSettings(partitions=1, metrics=metrics)
    made = BatchJob.of(query, {"r": left, "s": right}, result, gathered, None, settings)
    route = PartRoute((5, 4), hashed=False)
    assert rows(replace(made, route=route).plan().toArrow()) == _golden(tables, on=ON)
    assert metrics.partitions == 20
    assert str(route) == "20: each joins one of 5 parts of left with one of 4 parts of right"
    assert "parts      1, which joins all rows" in explain(*frames, on=ON, partitions=1)


@pytest.mark.parametrize(("how", "rows_of", "parts"), [
    ("inner", (3_000_000, 400_000), (12, 1)), ("inner", (400_000, 3_000_000), (1, 12)),
    ("inner", (9_000_000, 2_500_000), (36, 3)), ("left", (400_000, 3_000_000), (2, 1)),
    ("right", (9_000_000, 10), (1, 2)), ("full", (9_000_000, 2_000_000), (36, 8)),
    ("full", (250_000, 9), (1, 1)), ("semi", (10**9, 10), (256, 1))])
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


@pytest.mark.parametrize(("how", "partitions"), [
    ({"how": "asof", "on": "r.name = s.name"}, 4),
    ({"how": "asof_left", "direction": "nearest"}, 4),
    ({"how": "asof_left", "direction": "forward", "on": ON, "allow_exact": False}, 4),
    *(at_length({"how": kind, "direction": direction, "on": on}, parts) for kind in ("asof", "asof_left")
      for direction in ("backward", "forward", "nearest") for on in (None, ON, _EQUAL) for parts in (1, 4))], ids=str)
def test_as_of_joins_look_back_without_end(frames: tuple[DataFrame, DataFrame], tables: tuple[pa.Table, pa.Table],
                                           how: dict[str, Any], partitions: int) -> None:
    assert rows(stream_join(*frames, time="ts", partitions=partitions, **how).toArrow()) == _golden(
        tables, time="ts", **how)


@pytest.mark.parametrize("seed", range(7, 7 + examples(2)))
def test_as_of_joins_of_sparse_keys_with_ties(spark: SparkSession, seed: int) -> None:
    """By a call and by a statement; columns of the users order rows of equal times."""
    rng = random.Random(seed)
    given = [stream(rng.randrange(2**31), rng.randrange(1, 40), rng.choice([4, 1000])) for _ in range(2)]
    left, right = (spark.createDataFrame(table).repartition(3) for table in given)
    tables = in_order(given[0], "n"), in_order(given[1], "day", "x")
    ties = {"r": "n", "s": ["day", "x"]}
    on = rng.choice(["r.name = s.name", "r.x % 5 = s.x % 5 AND r.ts >= s.ts - 900"])
    found = stream_join(left, right, on=on, how="asof_left", time="ts", ties=ties, partitions=rng.choice([1, 4]))
    assert rows(found.toArrow()) == _golden(tables, on=on, how="asof_left", time="ts")
    text = f"SELECT r.n, s.n AS m FROM r ASOF JOIN s ON {on} AND r.ts > s.ts"
    found = stream_sql(text, r=left, s=right, time="ts", ties=ties, partitions=4)
    assert rows(found.toArrow()) == rows(splitjoin.sql(text, r=tables[0], s=tables[1], time="ts").to_arrow())


def test_as_of_joins_that_bound_one_side_have_windows(frames: tuple[DataFrame, DataFrame],
                                                      tables: tuple[pa.Table, pa.Table]) -> None:
    query: dict[str, Any] = {"on": "s.ts >= r.ts - 7", "how": "asof", "time": "ts"}
    assert "windows    r: the last 0; s: the last 7\n" in explain(*frames, **query, partitions=[60])
    assert rows(stream_join(*frames, **query, partitions=[60]).toArrow()) == _golden(tables, **query)


def test_explanation_and_what_needs_a_window(spark: SparkSession, frames: tuple[DataFrame, DataFrame]) -> None:
    query: dict[str, Any] = {"on": "r.name = s.name", "how": "asof", "time": "ts"}
    said = explain(*frames, **query, ties="n", partitions=4)
    assert "windows    none; a partner may be of any age\n" in said
    assert "equal times: R before S, then r: n, x, " in said
    assert said.endswith("parts      4; a row goes to the one of its key")
    assert explain(*frames, on=_EQUAL, partitions=3).endswith("parts      3; a row goes to the one of its key")
    with pytest.raises(OrderError, match=r"without a window the tasks have keys or parts of left, not times; give wi"):
        stream_join(*frames, **query, order="total")
    with pytest.raises(InputError, match=r"without a window, partitions must be a number from 1 to 100000, not \[3\]"):
        stream_join(*frames, **query, partitions=[3])
    with pytest.raises(PredicateError, match="a join needs a condition"):
        stream_join(*frames, time="ts")
    none = frames[1].selectExpr("CASE WHEN x > 0 THEN ts END AS ts", "name")
    with pytest.raises(PySparkException) as raised:
        stream_join(frames[0], none, **query, partitions=2).collect()
    assert "the time column s.ts (of the right DataFrame) must not hold NULL" in str(task_error(raised.value))


def test_windows_may_say_all(frames: tuple[DataFrame, DataFrame], tables: tuple[pa.Table, pa.Table]) -> None:
    query: dict[str, Any] = {"window": ("RANGE 2", "RANGE 0"), "time": "ts"}
    assert rows(stream_join(*frames, **query).toArrow()) == _golden(tables, **query)


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
