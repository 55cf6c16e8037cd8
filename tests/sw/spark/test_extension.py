"""`splitjoin.SplitJoinExtensions`: plain `spark.sql` gives Spark's own rows, from splitjoin's join where one is due."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

from ...support.sampling import at_length

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


def sql_page(spark: SparkSession) -> str:
    """The plan of the last query, as the SQL page of Spark's UI shows it."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    return str(spark._jsparkSession.sharedState().statusStore().executionsList().last().physicalPlanDescription())


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
    at_length("SELECT name, pair FROM l RIGHT JOIN r ON abs(l.x - r.x) <= 1 AND l.ok"),
    "SELECT l.id, r.id FROM l FULL JOIN r ON l.name < r.word AND l.d >= r.e",
    at_length("SELECT * FROM l LEFT SEMI JOIN r ON l.d > r.e AND l.m < r.n"),
    "SELECT * FROM l LEFT ANTI JOIN r ON l.day BETWEEN r.date AND r.date + 1 AND l.x < r.x - 9",
    at_length("SELECT * FROM l WHERE EXISTS (SELECT 1 FROM r WHERE l.at BETWEEN r.due AND r.due + INTERVAL 1 DAY)"),
    "SELECT * FROM l WHERE id < 5 OR EXISTS (SELECT 1 FROM r WHERE l.m + 1 < r.n)",
    at_length("SELECT count(*) FROM l JOIN r ON l.d <= r.e"),
    at_length("SELECT count(*) FROM l, r WHERE greatest(l.x, r.x) < least(l.y, r.z) OR NOT (l.d = r.e)"),
    "SELECT sum(l.id * r.id) FROM l JOIN r ON (l.x - r.x) * (l.x - r.x) + (l.y - r.z) * (l.y - r.z) <= 25",
    "SELECT count(*) FROM l JOIN r ON datediff(l.day, r.date) IN (0, 3) OR CASE WHEN l.ok THEN l.x > r.x END",
    at_length("SELECT a.id, b.id FROM l a JOIN l b ON a.x < b.x AND a.name > b.name"),
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
        # The rows of a join that splitjoin runs are not thought to be few.
        assert same_rows(spark, "SELECT a.id, c.id FROM l a JOIN r b ON a.x < b.x JOIN l c ON a.y = c.y") > 0
        with settings(spark, spark__splitjoin__sql__enabled=True):
            cached = spark.sql("SELECT l.id, r.z FROM l JOIN r ON l.x < r.x").cache()
            assert cached.count() == cached.selectExpr("*").count() > 0
            cached.unpersist()


@pytest.mark.usefixtures("tables")
def test_exists_and_in_among_the_columns(spark: SparkSession) -> None:
    text = "SELECT id, EXISTS (SELECT 1 FROM r WHERE l.x < r.x AND l.y > r.z), x + 1 NOT IN (SELECT x FROM r) FROM l"
    assert same_rows(spark, text, joins=2) == 90


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
@pytest.mark.parametrize("kind", ["LEFT", at_length("INNER")])
def test_python_functions_of_one_side(spark: SparkSession, kind: str, tmp_path: Path) -> None:
    """Spark computes them ahead, in the tasks that read the rows; one of both sides is left to it."""
    spark.udf.register("twice", lambda value: None if value is None else 2 * value, "int")
    spark.table("l").write.parquet(str(tmp_path / "l"))
    spark.read.parquet(str(tmp_path / "l")).createOrReplaceTempView("l_file")
    text = f"SELECT l.id, r.* FROM l_file l {kind} JOIN r ON twice(l.x) BETWEEN r.x AND r.x + twice(r.x - 1)"
    assert same_rows(spark, text) > 0
    with settings(spark, spark__splitjoin__sql__enabled=True):
        plan = plan_of(spark.sql(text))
        assert plan.count("twice(x#") == 1, plan  # of l, for both ends; named so in the join
        assert "Coalesce" not in plan
        plan = plan_of(spark.sql(text.replace("twice(r.x - 1)", "twice(r.x - l.x)").replace("LEFT", "INNER")))
        assert "a Python function of both sides" in plan, plan


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
    with settings(spark, spark__sql__ui__explainMode="extended"):
        assert same_rows(spark, text, joins=0) == 1
    assert f"left to Spark by splitjoin: {reason}" in sql_page(spark)


def test_rows_of_a_number_that_spark_does_not_know(spark: SparkSession) -> None:
    unknown = spark.createDataFrame(spark.sparkContext.parallelize([(1,)]), "x int").persist()
    with settings(spark, spark__splitjoin__sql__enabled=True):
        plan = plan_of(unknown.join(unknown.toDF("y"), F.expr("x < y"), "full"))
    assert "it has an unknown number of rows" in plan


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
        left = spark.table("l")
        for right in (spark.table("r").hint("NO_SPLITJOIN"), spark.sql("SELECT /*+ NO_SPLITJOIN */ * FROM r")):
            assert "MapInArrow" not in plan_of(left.join(right, left.x < right.x))
        # Spark warns of a hint that stays where no join is.
        hinted = spark.sql(text.format("/*+ SPLITJOIN */"))
        assert "splitjoin[inner" in plan_of(hinted)
        assert hinted._jdf.queryExecution().analyzed().nodeName() == "Project"
        with settings(spark, spark__splitjoin__sql__explainOnly=True):
            assert "splitjoin would run it, but spark.splitjoin.sql.explainOnly is true" in plan_of(
                spark.sql(text.format("")))
        with settings(spark, spark__splitjoin__sql__minComparisons=10**6):
            assert "left to Spark by splitjoin: about " in plan_of(spark.sql(text.format("")))
            assert "splitjoin[inner" in plan_of(spark.sql(text.format("/*+ SPLITJOIN */")))
        for rows, parts in ((50, "2 x 1"), (100_000, "1 x 1")):
            with settings(spark, spark__splitjoin__sql__rowsPerTask=rows):
                assert f"splitjoin[inner, {parts} parts" in plan_of(spark.sql(text.format("")))
        with settings(spark, spark__sql__execution__pyspark__python="/no/python"):
            assert "left to Spark by splitjoin: the workers' Python, /no/python, does not run" in plan_of(
                spark.sql(text.format("")))


def test_few_rows_of_files_are_read_by_the_task_that_joins_them(spark: SparkSession, tmp_path: Path) -> None:
    for name, files in (("few", 2), ("many", 9)):
        spark.range(0, 40, 1, files).selectExpr("id", "id * 7 % 50 x").write.parquet(str(tmp_path / name))
        spark.read.parquet(str(tmp_path / name)).createOrReplaceTempView(name)
    for other, rows_per_task, reads in (("few", 1000, True), ("few", 1, False), ("many", 1000, False)):
        with settings(spark, spark__splitjoin__sql__rowsPerTask=rows_per_task):
            text = f"SELECT a.id, b.id FROM few a JOIN {other} b ON a.x < b.x WHERE a.id > 5"
            assert same_rows(spark, text) > 100
            with settings(spark, spark__splitjoin__sql__enabled=True):
                plan = spark.sql(text)._jdf.queryExecution().executedPlan().toString()
        assert ("Exchange" not in plan) == ("Coalesce 1" in plan) == reads, plan


@pytest.mark.usefixtures("tables")
def test_wrong_settings_and_names_in_hints(spark: SparkSession, spark_log: Path) -> None:
    text = "SELECT {} l.id, r.id FROM l JOIN r ON l.x < r.x"
    for name, value, said in (("enabled", "yes", "must be true or false, not yes"),
                              ("explainOnly", "on", "must be true or false, not on"),
                              ("minComparisons", "many", "must be a number of at least 0, not many"),
                              ("rowsPerTask", "0", "must be a number of at least 1, not 0")):
        setting = f"spark.splitjoin.sql.{name}"
        with (settings(spark, **{_ENABLED: True}), settings(spark, **{setting: value}),
              pytest.raises(IllegalArgumentException, match=f"{setting} {said}")):
            plan_of(spark.sql(text.format("")))
    before = spark_log.stat().st_size
    spark.sparkContext.setLogLevel("WARN")
    spark.sql(text.format("/*+ SPLITJOIN(elsewhere, L) */"))
    spark.sparkContext.setLogLevel("ERROR")
    assert b"the hint SPLITJOIN names elsewhere, but the SELECT has no such table" in spark_log.read_bytes()[before:]


@pytest.mark.usefixtures("tables")
def test_conditions_that_let_many_pairs_through_stay(spark: SparkSession) -> None:
    with settings(spark, spark__splitjoin__sql__enabled=True, spark__splitjoin__sql__minComparisons=1):
        for on in ("l.x < r.x", "l.x < r.x AND l.y < r.z", "l.x - r.x < 3", "l.x = r.x OR l.y < r.z", "l.x <> r.x",
                   "l.x + 1 > r.x AND l.name <> r.word", "timestampdiff(MINUTE, l.at, r.due) > 5"):
            assert "the condition seems to let a large part of all pairs through" in plan_of(
                spark.sql(f"SELECT l.id FROM l JOIN r ON {on}")), on
        for on in ("l.x < r.x AND l.y > r.z", "abs(l.x - r.x) < 3", "greatest(l.x, r.x) < least(l.y, r.z)",
                   "l.x > r.x AND (l.x < r.x + 9 OR r.x IS NULL AND l.ok)", "l.x = r.x OR l.y - r.z BETWEEN 0 AND 2"):
            assert "splitjoin[left" in plan_of(spark.sql(f"SELECT l.id, r.id FROM l LEFT JOIN r ON {on}")), on


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(("on", "raises"), [
    ("l.i - r.i > 5", True), at_length("l.i < r.i + 1", True), ("abs(l.i - r.j) < 9", False),
    at_length("abs(r.i) < l.i", True), at_length("l.i * r.i < r.j", True),
    at_length("l.i >= r.i OR l.i - r.i > 5", True), ("l.i > 0 AND l.i - r.i > 5", True),
    at_length("l.j > 0 AND l.i - r.j > 5", False), ("l.j < 0 AND l.i < r.i + 1", False),
    ("l.j / r.j > 2 OR l.i < r.j", None), ("cast(l.t AS int) < r.j", True), at_length("10 / (l.j - 1) > r.j", True),
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
                first = "".join(str(found.value).splitlines()[:5])  # behind it come traces of Python and Java
                assert ("the join's condition raises an error for some rows" in first) == enabled


#: Values at the ends of types, for random conditions.
_EDGES = {
    "i": ("int", ["NULL", "0", "1", "-1", "7", "2147483647", "-2147483648"]),
    "j": ("bigint", ["NULL", "0", "2", "-3", "9223372036854775807", "-9223372036854775808", "1073741824"]),
    "d": ("double", ["NULL", "double('NaN')", "-0.0D", "0.0D", "1.5D", "double('Infinity')", "-2147483649.5D"]),
    "f": ("float", ["NULL", "float('NaN')", "float(-0.0)", "float(0.1)", "float(16777217)", "float('-Infinity')"]),
    "m": ("decimal(9,2)", ["NULL", "0.00", "-0.01", "9999999.99", "1.50"]),
    "n": ("decimal(18,4)", ["NULL", "0.0000", "1.5000", "-99999999999999.9999"]),
    "t": ("string", ["NULL", "''", "'7'", "'x'", "'é'", "'\\U0001F600'"]),
    "b": ("boolean", ["NULL", "true", "false"]),
    "day": ("date", ["NULL", "date'1970-01-01'", "date'2024-02-29'", "date'9999-12-31'", "date'0001-01-01'"]),
    "at": ("timestamp", ["NULL", "timestamp'1970-01-01'", "timestamp'2024-03-31 02:30:00.000001'",
                         "timestamp'9999-12-31 23:59:59'"]),
    "c": ("tinyint", ["NULL", "0", "1", "127", "-128"]),
    "h": ("smallint", ["NULL", "0", "-1", "128", "32767", "-32768"]),
    "w": ("binary", ["NULL", "X''", "X'00'", "X'7F01'", "X'FF'"]),
    "u": ("timestamp_ntz", ["NULL", "timestamp_ntz'1970-01-01'", "timestamp_ntz'2024-03-31 02:30:00.000001'",
                            "timestamp_ntz'0001-01-01'"]),
    "v": ("interval day to second", ["NULL", "INTERVAL '0' DAY", "INTERVAL '1 00:00:00.000001' DAY TO SECOND",
                                     "INTERVAL '-40' DAY", "INTERVAL '106751991' DAY"]),
}


class _Conditions:
    """Random conditions over l and r, of all types that are claimed and of some that are not."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def column(self, name: str) -> str:
        return f"{self.rng.choice('lr')}.{name}"

    def value(self, kind: str, depth: int) -> str:
        """An expression of the kind: whole, float, decimal, text, boolean, day, at, binary, plain (a time
        without a zone) or span.
        """
        rng, again = self.rng, depth > 0
        if kind == "boolean":
            return self.condition(depth - 1) if again else self.column("b")
        if not again or rng.random() < 0.3:
            names = {"whole": "ijch", "float": "df", "decimal": "mn", "text": "t", "binary": "w", "plain": "u",
                     "span": "v"}.get(kind, [kind])
            return self.column(rng.choice(names))
        a, b = self.value(kind, depth - 1), self.value(kind, depth - 1)
        of = {
            "whole": [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"abs({a})", f"(- {a})", f"({a} - 1)",
                      f"({a} + 3)", f"({a} % 3)", f"length({self.column('t')})",
                      f"datediff({self.column('day')}, {self.column('day')})",
                      f"cast({a} AS bigint)", f"year({self.column('day')})", f"cast({self.column('t')} AS int)"],
            "float": [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"abs({a})", f"sqrt({a})", f"({a} / 2)",
                      f"cast({self.value('whole', 0)} AS double)", f"({a} + 0.1D)", f"cast({a} AS double)"],
            "decimal": [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"abs({a})", f"({a} + 1.5)",
                        f"cast({self.value('whole', 0)} AS decimal(20, 2))"],
            "text": [f"upper({a})", f"concat({a}, {b})", f"substring({a}, 1, 1)"],
            "day": [f"date_add({a}, 1)", f"({a} - 1)"], "at": [f"({a} + INTERVAL 1 HOUR)", f"({a} - INTERVAL 40 DAYS)"],
            "binary": [f"concat({a}, {b})", f"substring({a}, 1, 1)"],
            "plain": [f"({a} + INTERVAL 1 HOUR)", f"cast({self.column('day')} AS timestamp_ntz)"],
            "span": [f"({a} + {b})", f"({a} - {b})", f"(- {a})", f"abs({a})", f"({a} * 2)",
                     f"({self.column('u')} - {self.column('u')})", f"({self.column('at')} - {self.column('at')})"],
        }[kind]
        of += [f"greatest({a}, {b})", f"least({a}, {b})", f"coalesce({a}, {b})", f"nullif({a}, {b})",
               f"if({self.column('b')}, {a}, {b})"]
        return rng.choice(of)

    def condition(self, depth: int = 2) -> str:
        rng = self.rng
        if depth > 0 and rng.random() < 0.6:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return rng.choice([f"({a} AND {b})", f"({a} OR {b})", f"(NOT {a})", f"({a} IS NULL)",
                               f"(CASE WHEN {a} THEN {b} END)"])
        kind = rng.choice(["whole", "whole", "float", "decimal", "text", "boolean", "day", "at", "binary", "plain",
                           "span"])
        a, b, c = (self.value(kind, rng.randrange(3)) for _ in range(3))
        return rng.choice([f"({a} {op} {b})" for op in ("<", "<=", ">", ">=", "<>", "<=>")] +
                          [f"({a} BETWEEN {b} AND {c})", f"({a} IN ({b}, {c}))", f"({a} IS NOT NULL)"])


@pytest.mark.parametrize("seed", [1, *map(at_length, range(2, 31))])
def test_random_conditions(spark: SparkSession, seed: int) -> None:
    """The same rows as Spark's, or an error where Spark raises one; some are left to Spark."""
    rng = random.Random(seed)
    for side in "lr":
        rows = ", ".join(f"({n}, {', '.join(f'cast({rng.choice(v)} AS {kind})' for kind, v in _EDGES.values())})"
                         for n in range(7))
        spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, {', '.join(_EDGES)})").createOrReplaceTempView(f"edges_{side}")
    made, taken, raised = _Conditions(seed), 0, 0
    for number in range(6 if seed == 1 else 12):
        kind = rng.choice(["JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
        text = f"SELECT * FROM edges_l l {kind} edges_r r ON {made.condition()}"
        answers = []
        with settings(spark, spark__sql__ansi__enabled=number % 2 == 0):
            for enabled in (True, False):
                with settings(spark, spark__splitjoin__sql__enabled=enabled):
                    try:
                        frame = spark.sql(text)
                        taken += "MapInArrow splitjoin[" in plan_of(frame)
                        answers.append(rows_of(frame))
                    except PySparkException as error:
                        assert error.getCondition() is None or "SYNTAX" not in error.getCondition()
                        answers.append(["an error"])
                    except Py4JJavaError as error:  # intervals have errors of Java's
                        assert "ArithmeticException" in str(error)
                        answers.append(["an error"])
        assert answers[0] == answers[1], text
        raised += answers[0] == ["an error"]
    assert taken > 1, (taken, raised)
