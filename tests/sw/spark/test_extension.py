"""`splitjoin.SplitJoinExtensions`: plain `spark.sql` gives Spark's own rows, from splitjoin's join where one is due."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

_ENABLED = "spark.splitjoin.sql.enabled"

#: Two tables with NULL, NaN, −0.0, texts, times, decimals, nested columns and equal names.
_TABLES = {
    "l": """SELECT id, nullif(cast(pmod(hash(id), 40) AS int), 7) x, cast(pmod(hash(id, 1), 50) AS bigint) - 25 y,
        CASE WHEN id % 9 = 0 THEN double('NaN') WHEN id % 9 = 1 THEN -0.0D ELSE pmod(hash(id, 2), 9) / 2 END d,
        cast(pmod(hash(id, 3), 900) / 100 AS decimal(9, 2)) m, concat('k', pmod(hash(id, 4), 30)) name,
        date_add(date'2024-01-31', cast(pmod(hash(id, 5), 40) AS int)) day,
        timestamp'2024-03-31 00:30:00' + make_dt_interval(0, 0, cast(pmod(hash(id, 6), 300) AS int), 0) at,
        array(id, id + 1) both, id % 3 = 0 ok FROM range(90)""",
    "r": """SELECT id, nullif(cast(pmod(hash(id, 7), 40) AS int), 5) x, cast(pmod(hash(id, 8), 50) AS bigint) - 25 z,
        CASE WHEN id % 7 = 0 THEN double('NaN') WHEN id % 7 = 1 THEN 0.0D ELSE pmod(hash(id, 9), 9) / 2 END e,
        cast(pmod(hash(id, 10), 9000) / 1000 AS decimal(12, 3)) n, concat('k', pmod(hash(id, 11), 30)) word,
        date_add(date'2024-01-31', cast(pmod(hash(id, 12), 40) AS int)) date,
        timestamp'2024-03-31 00:30:00' + make_dt_interval(0, 0, cast(pmod(hash(id, 13), 300) AS int), 0) due,
        named_struct('a', id, 'b', 'x') pair FROM range(70)""",
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> None:
    """The tables as views that are computed once."""
    for name, text in _TABLES.items():
        spark.sql(text).cache().createOrReplaceTempView(name)


@contextmanager
def settings(spark: SparkSession, **changed: object) -> Iterator[None]:
    """Settings of Spark, with "__" for each dot, for a while."""
    named = {name.replace("__", "."): str(value) for name, value in changed.items()}
    before = {name: spark.conf.get(name, None) for name in named}
    try:
        for name, value in named.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan().toString())


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def same_rows(spark: SparkSession, text: str, joins: int = 1) -> int:
    """The number of rows of ``text``, after a check that splitjoin runs so many ``joins`` of it, with Spark's rows."""
    own = rows_of(spark.sql(text))
    with settings(spark, spark__splitjoin__sql__enabled=True):
        frame = spark.sql(text)
        assert plan_of(frame).count("MapInArrow splitjoin[") == joins, plan_of(frame)
        found = rows_of(frame)
    assert found == own, f"{len(found)} rows for {len(own)}"
    return len(own)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("text", [
    "SELECT * FROM l JOIN r ON l.x BETWEEN r.x - 2 AND r.x + 2",
    "SELECT l.id, word FROM l LEFT JOIN r ON l.x < r.x AND l.y > r.z",
    "SELECT name, pair FROM l RIGHT JOIN r ON abs(l.x - r.x) <= 1 AND l.ok",
    "SELECT l.id, r.id FROM l FULL JOIN r ON l.name < r.word AND l.d >= r.e",
    "SELECT * FROM l LEFT SEMI JOIN r ON l.d > r.e AND l.m < r.n",
    "SELECT * FROM l LEFT ANTI JOIN r ON l.day BETWEEN r.date AND r.date + 1 AND l.x < r.x - 9",
    "SELECT * FROM l WHERE EXISTS (SELECT 1 FROM r WHERE l.at BETWEEN r.due AND r.due + INTERVAL 1 DAY)",
    "SELECT * FROM l WHERE id < 5 OR EXISTS (SELECT 1 FROM r WHERE l.m + 1 < r.n)",
    "SELECT count(*) FROM l JOIN r ON l.d <= r.e",
    "SELECT count(*) FROM l, r WHERE greatest(l.x, r.x) < least(l.y, r.z) OR NOT (l.d = r.e)",
    "SELECT sum(l.id * r.id) FROM l JOIN r ON (l.x - r.x) * (l.x - r.x) + (l.y - r.z) * (l.y - r.z) <= 25",
    "SELECT count(*) FROM l JOIN r ON datediff(l.day, r.date) IN (0, 3) OR CASE WHEN l.ok THEN l.x > r.x END",
    "SELECT a.id, b.id FROM l a JOIN l b ON a.x < b.x AND a.name > b.name",
])
def test_rows_are_those_of_spark(spark: SparkSession, text: str) -> None:
    assert same_rows(spark, text) > 0


@pytest.mark.usefixtures("tables")
def test_several_joins_subqueries_and_cached_results(spark: SparkSession) -> None:
    """With adaptive execution and compiled stages, as sessions of users have them."""
    text = """WITH near AS (SELECT l.id, l.name, r.z FROM l JOIN r ON abs(l.x - r.x) <= 1)
        SELECT near.id, count(*) n, max(other.id) FROM near JOIN l other ON near.z < other.y AND near.name <> other.name
        WHERE near.id > (SELECT avg(a.id) / 2 FROM l a JOIN r b ON a.y < b.z) GROUP BY near.id ORDER BY n"""
    with settings(spark, spark__sql__adaptive__enabled=True, spark__sql__codegen__wholeStage=True,
                  spark__sql__codegen__factoryMode="FALLBACK"):
        assert same_rows(spark, text, joins=3) > 0
        with settings(spark, spark__splitjoin__sql__enabled=True):
            cached = spark.sql("SELECT l.id, r.z FROM l JOIN r ON l.x < r.x").cache()
            assert cached.count() == cached.selectExpr("*").count() > 0
            cached.unpersist()


@pytest.mark.usefixtures("tables")
def test_dataframes_join(spark: SparkSession) -> None:
    left, right = spark.table("l"), spark.table("r")
    condition = (left.y > right.z) & (left.name != right.word)
    own = rows_of(left.join(right, condition, "left"))
    with settings(spark, spark__splitjoin__sql__enabled=True):
        joined = left.join(right, condition, "left")
        assert "splitjoin[left" in plan_of(joined)
        assert rows_of(joined) == own
        # Equal names, renamed and computed columns.
        assert "splitjoin[inner" in plan_of(left.alias("a").join(left.alias("b"), F.expr("a.x > b.y + a.y")))


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(("text", "reason"), [
    ("SELECT count(*) FROM l JOIN r ON l.name LIKE concat(r.word, '%')", "the function Like of both sides"),
    ("SELECT count(*) FROM l JOIN r ON pow(l.x - r.x, 2) < 3", "the function Pow of both sides"),
    ("SELECT count(*) FROM l JOIN r ON l.m * r.n * 1.00000000000000000001 < 2", "decimals that may be rounded"),
    ("SELECT /*+ BROADCAST(r) */ count(*) FROM l JOIN r ON l.x < r.x", "the query's hint broadcast chooses"),
])
def test_what_is_left_to_spark(spark: SparkSession, text: str, reason: str) -> None:
    with settings(spark, spark__splitjoin__sql__enabled=True):
        plan = plan_of(spark.sql(text))
        assert f"left to Spark by splitjoin: {reason}" in plan
        assert "MapInArrow" not in plan
    assert same_rows(spark, text, joins=0) == 1


@pytest.mark.usefixtures("tables")
def test_settings_and_hints(spark: SparkSession) -> None:
    text = "SELECT {} l.id, r.id FROM l JOIN r ON l.x < r.x"
    equal = "SELECT {} l.id, r.id FROM l JOIN r ON l.x = r.x AND l.d <= r.e AND l.name < r.word"
    assert same_rows(spark, equal.format(""), joins=0) > 0
    for hint in ("SPLITJOIN", "SPLITJOIN(r)", "splitjoin(l, r)"):
        assert same_rows(spark, equal.format(f"/*+ {hint} */")) > 0
    outer = equal.replace("JOIN", "FULL JOIN").replace("l.x = r.x", "l.d = r.e")
    assert same_rows(spark, outer.format("/*+ SPLITJOIN */")) > 0
    for hint in ("NO_SPLITJOIN", "NO_SPLITJOIN(r)"):
        assert same_rows(spark, text.format(f"/*+ {hint} */"), joins=0) > 0
    with settings(spark, spark__splitjoin__sql__enabled=True):
        left, right = spark.table("l"), spark.table("r").hint("NO_SPLITJOIN")
        assert "MapInArrow" not in plan_of(left.join(right, left.x < right.x))
        with settings(spark, spark__splitjoin__sql__explainOnly=True):
            assert "splitjoin would run it, but spark.splitjoin.sql.explainOnly is true" in plan_of(
                spark.sql(text.format("")))
        with settings(spark, spark__splitjoin__sql__minComparisons=10**6):
            assert "left to Spark by splitjoin: about " in plan_of(spark.sql(text.format("")))
            assert "splitjoin[inner" in plan_of(spark.sql(text.format("/*+ SPLITJOIN */")))
        with settings(spark, spark__sql__execution__pyspark__python="/no/python"):
            assert "left to Spark by splitjoin: the workers' Python, /no/python, does not run" in plan_of(
                spark.sql(text.format("")))


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(("on", "raises"), [
    ("l.i - r.i > 5", True), ("l.i < r.i + 1", True), ("abs(l.i - r.j) < 9", False), ("abs(r.i) < l.i", True),
    ("l.i * r.i < r.j", True), ("l.i >= r.i OR l.i - r.i > 5", True),
    ("l.i > 0 AND l.i - r.i > 5", True), ("l.j > 0 AND l.i - r.j > 5", False), ("l.j < 0 AND l.i < r.i + 1", False),
    ("l.j / r.j > 2 OR l.i < r.j", None), ("cast(l.t AS int) < r.j", True), ("10 / (l.j - 1) > r.j", True),
])
def test_overflow_and_errors(spark: SparkSession, on: str, raises: bool | None, ansi: bool) -> None:
    """Integers wrap as in Spark; with ANSI mode an error is raised for the same data."""
    spark.sql("SELECT * FROM VALUES (2147483647, 1, '7'), (-5, 0, 'x'), (NULL, 2, NULL) AS l(i, j, t)"
              ).createOrReplaceTempView("edge_l")
    spark.sql("SELECT * FROM VALUES (-2147483648, 0), (2147483647, 1), (3, NULL) AS r(i, j)"
              ).createOrReplaceTempView("edge_r")
    text = f"SELECT l.i, r.i FROM edge_l l LEFT JOIN edge_r r ON {on}"
    with settings(spark, spark__sql__ansi__enabled=ansi):
        if raises is None:
            with settings(spark, spark__splitjoin__sql__enabled=True):
                assert "left to Spark by splitjoin: the function Divide of both sides" in plan_of(spark.sql(text))
        elif not (ansi and raises):
            assert same_rows(spark, text) > 0
        else:
            for enabled in (False, True):
                with settings(spark, spark__splitjoin__sql__enabled=enabled), pytest.raises(PySparkException) as found:
                    spark.sql(text).collect()
                assert ("the join's condition raises an error for some rows" in str(found.value)) == enabled
