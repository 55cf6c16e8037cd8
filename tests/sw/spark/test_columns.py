"""Conditions of Spark Columns mean what the same SQL text means, and say where they cannot be read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession, Window, functions as F  # noqa: N812

import splitjoin
from splitjoin import PredicateError, Schema, SchemaError
from splitjoin.lang.query import predicate
from splitjoin.spark import stream_join

from ...support.spark_streams import answer, rows

R = Schema.from_arrow("r", pa.schema([
    ("x", pa.int32()), ("y", pa.float32()), ("z", pa.float64()), ("name", pa.string()), ("ok", pa.bool_()),
    ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("p", pa.decimal128(9, 2)),
    ("raw", pa.binary()), ("odd name", pa.int8()), ("own", pa.int64())]))
S = Schema.from_arrow("s", pa.schema([
    ("a", pa.int32()), ("b", pa.float32()), ("x", pa.int64()), ("word", pa.string()), ("fine", pa.bool_()),
    ("due", pa.timestamp("us", "UTC")), ("list", pa.list_(pa.int8()))]))
c: Callable[[str], Column] = F.col


#: Conditions by Spark's functions ``f`` (`pyspark.sql.functions`) and ``c = f.col``, and as SQL text.
CONDITIONS: list[tuple[Any, str]] = [
    (lambda f, c: f.abs(c("r.x") - c("s.a")) <= 10, "abs(r.x - s.a) <= 10"),
    (lambda f, c: (c("r.x") < c("s.a")) & ~(c("r.name") == c("word")), "r.x < s.a AND NOT (r.name = s.word)"),
    (lambda f, c: (c("r.x") > c("a")) | c("ok"), "r.x > s.a OR r.ok"),
    (lambda f, c: (c("r.x") != c("s.a")), "NOT (r.x = s.a)"),
    (lambda f, c: c("r.y") <= 10.1, "r.y <= 10.1"),
    (lambda f, c: c("r.y") + 0.1 < c("s.b"), "r.y + 0.1 < s.b"),
    (lambda f, c: c("r.x").between(c("s.a") - 5, c("s.a") + 5), "r.x BETWEEN s.a - 5 AND s.a + 5"),
    (lambda f, c: c("r.x").isin(1, 2, 3) | c("r.x").isin(c("s.a")), "r.x IN (1, 2, 3) OR r.x IN (s.a)"),
    (lambda f, c: c("r.x").isNull() | c("s.b").isNotNull(), "r.x IS NULL OR s.b IS NOT NULL"),
    (lambda f, c: c("r.x").eqNullSafe(c("s.a")), "r.x IS NOT DISTINCT FROM s.a"),
    (lambda f, c: f.when(c("r.ok"), 1).when(c("fine"), c("s.a")).otherwise(3) < 3,
     "CASE WHEN r.ok THEN 1 WHEN s.fine THEN s.a ELSE 3 END < 3"),
    (lambda f, c: f.when(c("r.ok"), c("s.a")) < 3, "CASE WHEN r.ok THEN s.a END < 3"),
    (lambda f, c: c("day") >= f.lit(dt.date(2013, 1, 31)), "r.day >= DATE '2013-01-31'"),
    (lambda f, c: c("r.at") >= f.lit(dt.datetime(2013, 1, 31, 1, 2, 3, 500, dt.UTC)),
     "r.at >= TIMESTAMPTZ '2013-01-31 01:02:03.0005'"),
    (lambda f, c: c("r.at") - c("s.due") < f.lit(dt.timedelta(minutes=15)), "r.at - s.due < INTERVAL 15 MINUTES"),
    (lambda f, c: c("r.at") + f.expr("INTERVAL 15 MINUTES") > c("s.due"), "r.at + INTERVAL 15 MINUTES > s.due"),
    (lambda f, c: f.expr("r.x + 1 > s.a") & c("ok"), "r.x + 1 > s.a AND r.ok"),
    (lambda f, c: c("r.name").startswith("U") | c("word").like("V%"), "starts_with(r.name, 'U') OR s.word LIKE 'V%'"),
    (lambda f, c: c("word").like("it's") | (c("r.name") == "it's"), "s.word LIKE 'it''s' OR r.name = 'it''s'"),
    (lambda f, c: c("word").like("U%A_") & (f.sqrt(c("r.x")) < 3), "s.word LIKE 'U%A_' AND sqrt(r.x) < 3"),
    (lambda f, c: (f.round("p", 1) < 3) & (f.date_trunc("day", c("local")) < f.date_trunc("MONTH", c("day"))),
     "round(r.p, 1) < 3 AND date_trunc('day', r.local) < date_trunc('month', r.day)"),
    (lambda f, c: (c("r.x") - c("s.a")) % 7 == 0, "(r.x - s.a) % 7 = 0"),
    (lambda f, c: -c("r.x") / 2 < c("s.a"), "-r.x / 2 < s.a"),
    (lambda f, c: f.negative("r.x") < c("s.a"), "-r.x < s.a"),
    (lambda f, c: f.bit_count(c("r.x").bitwiseXOR(c("s.a"))) <= 3, "bit_count(r.x ^ s.a) <= 3"),
    (lambda f, c: c("r.x").bitwiseAND(15).bitwiseOR(c("s.a")) == f.bitwise_not("r.x"), "((r.x & 15) | s.a) = ~r.x"),
    (lambda f, c: f.shiftleft("r.x", 2) > f.shiftright(c("s.a"), 1), "(r.x << 2) > (s.a >> 1)"),
    (lambda f, c: f.coalesce("r.x", f.lit(0)) == f.greatest("r.x", "s.a"), "coalesce(r.x, 0) = greatest(r.x, s.a)"),
    (lambda f, c: f.least("r.x", "s.a") < f.nullif(c("r.x"), f.lit(3)), "least(r.x, s.a) < nullif(r.x, 3)"),
    (lambda f, c: c("r.x").cast("bigint") == c("s.x"), "CAST(r.x AS BIGINT) = s.x"),
    (lambda f, c: c("ok").cast("int") + c("s.a") >= 1, "CAST(r.ok AS INT) + s.a >= 1"),
    (lambda f, c: c("p") == f.lit(Decimal("1.50")), "r.p = 1.5"), (lambda f, c: f.lit(None) == c("a"), "s.a = NULL"),
    (lambda f, c: c("raw") == f.lit(b"a\0"), "r.raw = X'6100'"), (lambda f, c: f.lit(True), "TRUE"),
    (lambda f, c: c("r.`odd name`") == c("own").alias("other"), 'r."odd name" = r.own'),
    (lambda f, c: (c("s.a") < 2.5e-10), "s.a < 2.5e-10"),
    (lambda f, c: f.datediff("r.day", c("r.day")) == f.expr("date_diff('day', r.day, r.day)"),
     "date_diff('day', r.day, r.day) = date_diff('day', r.day, r.day)"),
    (lambda f, c: c("r.at") < f.date_add("s.due", 2) + f.expr("make_dt_interval(0, 1)"),
     "r.at < date_trunc('day', s.due) + INTERVAL '1' DAY * 2 + INTERVAL '1' HOUR"),
    (lambda f, c: f.trunc("r.local", "MM") < c("r.local"), "date_trunc('month', r.local) < r.local"),
]


@pytest.mark.parametrize(("make", "sql"), CONDITIONS)
def test_columns_are_conditions(spark: SparkSession, make: Any, sql: str) -> None:
    assert predicate(make(F, c), R, S) == predicate(sql, R, S)


#: Conditions that are refused, the errors, and their texts.
REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda f, c: f.sin(c("r.x")) < 3, PredicateError,
     "'sin(r.x)': function SIN is not supported in a condition of Spark Columns; it may hold columns, literals, "
     "operators, cast,"),
    (lambda f, c: f.udf(lambda v: v, "int")(c("r.x")) == 1, PredicateError,
     "'<lambda>(…)': PythonUDF is not supported in a condition of Spark Columns"),
    (lambda f, c: f.rand() < 1, PredicateError, "function RAND is not supported"),
    (lambda f, c: f.round("y", 1) < 3, PredicateError, "Spark rounds the decimal digits that a float prints as"),
    (lambda f, c: f.date_trunc("day", "at") < c("due"), PredicateError, "truncates a timestamp in the session's"),
    (lambda f, c: f.date_trunc("MM", "local") < c("due"), PredicateError, "the unit of date_trunc() must be one of"),
    (lambda f, c: f.trunc("local", "DAY") < c("local"), PredicateError, "the unit of trunc() must be one of MM, MON, "),
    (lambda f, c: f.pmod("r.x", "s.a") == 1, PredicateError, "pmod() must be by a constant above 0, not by s.a"),
    (lambda f, c: f.expr("extract(HOUR FROM abs(r.at - s.due))") < 1, PredicateError, "is no difference of two times"),
    (lambda f, c: f.expr("timestampdiff(MONTH, r.at, s.due)") < 1, PredicateError, "a month has no fixed length"),
    (lambda f, c: f.expr("r.at + make_interval(0, 1)") < c("due"), PredicateError, "without months and years"),
    (lambda f, c: f.expr("INTERVAL '1' DAY TO HOUR") < c("due"), PredicateError, "must be written as INTERVAL '1 02:"),
    (lambda f, c: f.like(c("r.name"), c("word")), PredicateError, "the pattern of LIKE must be a constant text"),
    (lambda f, c: c("r.name") < 3, PredicateError, "'<(r.name, 3)': string and exact number cannot be compared"),
    (lambda f, c: c("r.x") + c("s.a"), PredicateError, "a condition (true or false) is needed here"),
    (lambda f, c: c("r.z").cast("int") == c("s.a"), PredicateError, "float64 cannot be cast to int32 in a condition"),
    (lambda f, c: c("r.x").try_cast("int") == c("s.a"), PredicateError, "TRY_CAST is not supported in a condition"),
    (lambda f, c: c("r.x").cast("array<int>") == c("s.a"), PredicateError, "a cast must be to tinyint, smallint, int"),
    (lambda f, c: c("s.list")[0] == c("r.x"), PredicateError, "an element of an array, map or struct is not supported"),
    (lambda f, c: c("s.list") == c("r.x"), SchemaError,
     "column s.list has type list<item: int8>, which a join condition cannot use"),
    (lambda f, c: f.rank().over(Window.orderBy("r.x")) == 1, PredicateError, "a window function is not supported"),
    (lambda f, c: c("r.x.y") == 1, PredicateError, "a name of more than two parts is not supported"),
    (lambda f, c: c("x") == 1, SchemaError, "column 'x' is ambiguous: it could be r.x or s.x; write which"),
    (lambda f, c: c("q.x") == 1, SchemaError, "there is no stream 'q'; the streams are r and s"),
    (lambda f, c: c("nope") == 1, SchemaError, "neither stream has a column 'nope'"),
    (lambda f, c: f.lit(float("nan")) > c("y"), PredicateError, "a numeric literal must be finite, not nan"),
    (lambda f, c: f.expr("r.x +") > c("y"), PredicateError, "the condition 'r.x +' cannot be read"),
    (lambda f, c: f.expr("r.x + 'a'") > c("y"), PredicateError, "\"r.x + 'a'\": '+' needs numbers"),
    (lambda f, c: f.lit([1, 2]) == c("r.x"), PredicateError, "function ARRAY is not supported"),
    (lambda f, c: c("r.x") == f.expr("(SELECT 1)"), PredicateError, "a subquery is not supported"),
    (lambda f, c: c("r.local") < f.lit(dt.datetime(2013, 1, 1)), PredicateError,
     "a timestamp with a time zone cannot be combined with one without"),
]


@pytest.mark.parametrize(("make", "error", "said"), REFUSED)
def test_columns_that_are_refused(spark: SparkSession, make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        predicate(make(F, c), R, S)
    assert said in str(caught.value)


def test_errors_name_the_place(spark: SparkSession) -> None:
    with pytest.raises(PredicateError, match=r"test_columns.py:\d+$"):
        predicate((c("r.x") == 1) & (c("r.name") < 3), R, S)  # type: ignore[arg-type]  # a Column


def test_depth(spark: SparkSession) -> None:
    deep = c("r.x")
    for _ in range(150):
        deep = deep + 1
    with pytest.raises(PredicateError, match="must not be nested more than 100 levels deep"):
        predicate(deep > c("s.a"), R, S)  # type: ignore[arg-type]  # a Column


def test_a_chain_of_ands_or_of_ors_is_one_level(spark: SparkSession) -> None:
    for combine, word in ((and_, " AND "), (or_, " OR ")):
        chain: Any = reduce(combine, [c("r.x") < n for n in range(105)])
        sql = word.join(f"r.x < {n}" for n in range(105))
        assert predicate(chain, R, S) == predicate(sql, R, S)


@pytest.fixture(scope="module")
def frames(spark: SparkSession, tables: tuple[pa.Table, pa.Table]) -> tuple[DataFrame, DataFrame]:
    return spark.createDataFrame(tables[0]), spark.createDataFrame(tables[1])


@pytest.mark.parametrize("make", [
    lambda left, right: (F.abs(c("r.x") - c("s.x")) <= 6) & ((c("r.y") <= c("s.y")) | (c("r.name") == c("s.name"))),
    lambda left, right: (F.abs(left["x"] - right.x) <= 6) & ((left.y <= right["y"]) | (left.name == right["name"])),
])
def test_stream_join_by_columns(tables: tuple[pa.Table, pa.Table], frames: tuple[DataFrame, DataFrame],
                                make: Any) -> None:
    on = "abs(r.x - s.x) <= 6 AND (r.y <= s.y OR r.name = s.name)"
    made = stream_join(*frames, on=make(*frames), window="RANGE 9", time="ts").toArrow()
    assert rows(made) == rows(answer(*tables, on=on, window="RANGE 9", time="ts"))


def test_arrow_join_by_columns(spark: SparkSession, tables: tuple[pa.Table, pa.Table]) -> None:
    near = F.abs(c("r.x") - c("s.x")) <= 2
    made = splitjoin.join(*tables, on=near, window="ROWS 9", time="ts")  # type: ignore[arg-type]  # a Column
    assert rows(made) == rows(answer(*tables, on="abs(r.x - s.x) <= 2", window="ROWS 9", time="ts"))


def test_columns_of_other_frames(spark: SparkSession, frames: tuple[DataFrame, DataFrame]) -> None:
    left, right = frames
    other = spark.createDataFrame([(1,)], "x int")
    with pytest.raises(SchemaError, match=r"must be one of left or right; write F.col\('r.x'\) or "):
        stream_join(left, right, on=left.x == other.x, window="RANGE 9", time="ts")
    with pytest.raises(SchemaError, match=r"left and right are one DataFrame, or share columns; write F.col\('r.x'\)"):
        stream_join(left, left, on=left.x == c("s.x"), window="RANGE 9", time="ts")
