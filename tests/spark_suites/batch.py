"""The cases of Spark's suites of batch joins whose answer is rows: JoinSuite, OuterJoinSuite, InnerJoinSuite,
ExistenceJoinSuite, the joins of PostgreSQL's tests in SQLQueryTestSuite, and DataFrameAsOfJoinSuite, of Spark 4.3.

Left out are cases about plans, hints, spilling and metrics. Spark's join says what the answer is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

from ..spark_streams.files import settings

#: The tables of the suites, as Spark's `SQLTestData` has them, or the suite itself.
_TABLES = {
    "upper": "VALUES (1, 'A'), (2, 'B'), (3, 'C'), (4, 'D'), (5, 'E'), (6, 'F') AS t(N, L)",
    "lower": "VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd') AS t(m, k)",
    "data": "SELECT CAST(id AS int) key, CAST(id AS string) value FROM range(1, 101)",
    "data2": "VALUES (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2) AS t(a, b)",
    "data3": "VALUES (1, NULL), (2, 2) AS t(a, b)",
    "pairs1": "VALUES (1, 2D), (2, 100D), (2, 1D), (2, 1D), (3, 3D), (5, 1D), (6, 6D), (NULL, NULL) AS t(a, b)",
    "pairs2": "VALUES (0, 0D), (2, 3D), (2, -1D), (2, -1D), (2, 3D), (3, 2D), (4, 1D), (5, 3D), (7, 7D), (NULL, NULL) "
              "AS t(c, d)",
    "j1": "VALUES (1, 4, 'one'), (2, 3, 'two'), (3, 2, 'three'), (4, 1, 'four'), (5, 0, 'five'), (6, 6, 'six'), "
          "(7, 7, 'seven'), (8, 8, 'eight'), (0, NULL, 'zero'), (NULL, NULL, 'null'), (NULL, 0, 'zero') AS t(i, j, t)",
    "j2": "VALUES (1, -1), (2, 2), (3, -3), (2, 4), (5, -5), (5, -5), (0, NULL), (NULL, NULL), (NULL, 0) AS t(i2, k)",
    "same1": "SELECT CAST(id AS int) c1, CAST(id AS int) c2 FROM range(5)",
    "same2": "SELECT CAST(id AS int) d1, CAST(id AS int) d2 FROM range(1, 6)",
    "asof1": "VALUES (1, 'x', 'a'), (5, 'y', 'b'), (10, 'z', 'c') AS t(a, b, left_val)",
    "asof2": "VALUES (1, 'v', 1), (2, 'w', 2), (3, 'x', 3), (6, 'y', 6), (7, 'z', 7) AS t(a, b, right_val)",
}
_HINT = "/*+ SPLITJOIN */"


@dataclass(frozen=True)
class Case:
    """A query of a suite, with a place for a hint; or an as-of join of the two tables for it, by its arguments."""

    name: str
    query: str = ""
    asof: tuple[tuple[str, Any], ...] = ()

    def check(self, spark: SparkSession, _: Path) -> bool:
        """Assert that both joins give the same rows; returns whether splitjoin ran the join."""
        for name, text in _TABLES.items():
            spark.sql(text if text.startswith("SELECT") else f"SELECT * FROM {text}").createOrReplaceTempView(name)
        found, here = {}, False
        for enabled in (True, False):
            with settings(spark, {"spark.splitjoin.sql.enabled": str(enabled).lower()}):
                frame = self._frame(spark, enabled)
                found[enabled] = Counter(map(str, frame.collect()))
                here |= "splitjoin[" in frame._jdf.queryExecution().optimizedPlan().toString()
        assert found[True] == found[False], f"{self.name}: {found[True]} here, {found[False]} by Spark"
        return here

    def _frame(self, spark: SparkSession, enabled: bool) -> DataFrame:
        if self.query:
            return spark.sql(self.query.replace("{hint}", _HINT if enabled else ""))
        options = {"how": "inner", "tolerance": None, "allowExactMatches": True, "direction": "backward", "on": None,
                   **dict(self.asof)}
        left, right = spark.table("asof1"), spark.table("asof2")
        if options.pop("itself", False):
            left, right = left.alias("l"), left.alias("r")
        tolerance = options.pop("tolerance")
        return left._joinAsOf(right, leftAsOfColumn=left["a"], rightAsOfColumn=right["a"],
                              tolerance=None if tolerance is None else F.lit(tolerance), **options)


_KINDS = ("", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
_FOUR = "SELECT * FROM data UNION ALL SELECT * FROM data UNION ALL SELECT * FROM data UNION ALL SELECT * FROM data"


def _joins(name: str, left: str, right: str, condition: str, kinds: tuple[str, ...] = _KINDS) -> tuple[Case, ...]:
    return tuple(Case(f"{kind.lower() or 'inner'} join {name}",
                      f"SELECT {{hint}} * FROM {left} {kind} JOIN {right} ON {condition}") for kind in kinds)


_JOIN_SUITE = (
    Case("inner join in WHERE, one match per row", "SELECT {hint} * FROM upper JOIN lower WHERE N = m"),
    Case("inner join, several matches", "SELECT {hint} * FROM (SELECT * FROM data2 WHERE a = 1) x "
         "JOIN (SELECT * FROM data2 WHERE a = 1) y ON x.a = y.a"),
    Case("inner join, no matches", "SELECT {hint} * FROM (SELECT * FROM data2 WHERE a = 1) x "
         "JOIN (SELECT * FROM data2 WHERE a = 2) y ON x.a = y.a"),
    Case("condition that is never true",
         "SELECT {hint} * FROM data x CROSS JOIN data y WHERE x.key = 0 AND x.key < y.key"),
    Case("big inner join, four matches per row", f"SELECT {{hint}} x.key, count(*) FROM ({_FOUR}) x JOIN ({_FOUR}) y "
         "ON x.key = y.key GROUP BY x.key"),
    Case("cartesian product", "SELECT {hint} * FROM data3 x JOIN data3 y"),
    *(Case(f"{kind.lower()} outer join where {more or 'keys are equal'}",
           f"SELECT {{hint}} * FROM upper {kind} JOIN lower ON m = N {more and f'AND {more}'}")
      for kind in ("LEFT", "RIGHT", "FULL") for more in ("", "m > 1", "N > 1", "k > L")),
    *(Case(f"groups of a {kind.lower()} outer join, by {key}",
           f"SELECT {{hint}} {key}, count(*) FROM upper {kind} JOIN (SELECT m AS o, k FROM lower WHERE m > 2) ON o = N "
           f"GROUP BY {key}") for kind in ("LEFT", "RIGHT", "FULL") for key in ("o", "N")),
    *(Case(f"full outer join of overlapping parts{more}", "SELECT {hint} * FROM (SELECT * FROM upper WHERE N <= 4) l "
           f"FULL JOIN (SELECT * FROM upper WHERE N >= 3) r ON l.N = r.N {more}")
      for more in ("", "AND l.N <> 3", "AND r.N <> 3")),
    Case("left semi join", "SELECT {hint} * FROM data LEFT SEMI JOIN data2 ON key = a"),
    Case("left semi join by a greater key", "SELECT {hint} * FROM data2 x LEFT SEMI JOIN data2 y ON x.b >= y.a + 2"),
    *(Case(f"equalities that repeat a key, {more}", f"SELECT {{hint}} * FROM same1 JOIN same2 ON {more}") for more in (
        "c1 = d1 AND c1 = d2", "c1 = d1 AND c2 = d1", "c1 = d1 AND c1 = d1 AND c2 = d2")),
    *(Case(f"NOT IN with NULL, {where}",
           f"SELECT {{hint}} * FROM data3 x WHERE x.b NOT IN (SELECT y.b FROM data2 y WHERE {where})")
      for where in ("y.b > x.a", "y.a > 5", "TRUE")),
    *(Case(f"{word}, correlated by an inequality", f"SELECT {{hint}} * FROM data2 x WHERE {word} "
           "(SELECT 1 FROM data3 y WHERE y.b BETWEEN x.a AND x.b + 1)") for word in ("EXISTS", "NOT EXISTS")),
)
_AS_OF: dict[str, dict[str, Any]] = {
    "simple": {}, "by a column": {"on": "b"}, "by a column, left outer": {"on": "b", "how": "left"},
    "tolerance 1": {"tolerance": 1}, "tolerance 0": {"tolerance": 0}, "no exact matches": {"allowExactMatches": False},
    "forward": {"direction": "forward"}, "nearest": {"direction": "nearest"},
    "with itself": {"itself": True, "how": "left", "allowExactMatches": False, "direction": "nearest"},
}

CASES = (
    *_JOIN_SUITE,
    *_joins("with a condition on both sides", "pairs1", "pairs2", "a = c AND b < d"),
    *_joins("by an inequality alone", "pairs1", "pairs2", "b < d"),
    *_joins("by a band", "pairs1", "pairs2", "abs(b - d) <= 1 OR a = c + 1"),
    *_joins("of PostgreSQL's tables by a key", "j1", "j2", "i = i2"),
    *_joins("of PostgreSQL's tables by another column", "j1", "j2", "i = k"),
    *_joins("of PostgreSQL's tables by an order", "j1", "j2", "i <= k"),
    *_joins("of PostgreSQL's tables by two columns", "j1", "j2", "i <=> i2 AND j > k"),
    *(Case(f"as-of join, {name}", asof=tuple(options.items()) or (("how", "inner"),))
      for name, options in _AS_OF.items()),
)
