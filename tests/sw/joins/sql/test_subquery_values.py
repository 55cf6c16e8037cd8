"""SELECTs that are values, in the SELECT list and WHERE of a SELECT over one table: the rows are DuckDB's."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import SplitJoinError
from splitjoin.joins.sql import ask, explain_sql
from splitjoin.joins.sql.table_join import JoinedTables
from tests.support.accounts import accounted

from .test_subquery_joins import TABLES, S, check

STATEMENTS = [
    "SELECT r.*, (SELECT count(*) FROM s WHERE s.a <= r.x) AS n FROM r",
    "SELECT *, (SELECT max(a) FROM s WHERE s.k = r.k) AS m FROM r ORDER BY id",
    "SELECT * EXCLUDE (f), (SELECT max(a) FROM s WHERE s.k = r.k) AS m FROM r WHERE id < 5",
    "SELECT id FROM r WHERE x > (SELECT avg(a) FROM s WHERE s.id <= r.id)",
    "SELECT id, (SELECT k FROM s WHERE s.id = r.id) AS name FROM r",
    "SELECT id, x - (SELECT sum(a) + 1 FROM s, one WHERE s.id < r.id AND w < s.a) AS gap FROM r WHERE x IN (FROM one)",
    "SELECT k, sum((SELECT count(*) FROM s WHERE s.k = q.k)) AS n FROM r q GROUP BY k ORDER BY k",
    "SELECT id, (SELECT max(a) FROM s) AS top, coalesce((SELECT min(a) FROM s WHERE a > r.x), 0) AS next FROM r",
    "SELECT id FROM r WHERE (SELECT count(DISTINCT k) FROM s WHERE s.a <> r.x) = 3 OR x IS NULL",
    "SELECT max(id) FROM r WHERE f < (SELECT avg(f) FROM s WHERE s.k <> r.k AND a IN (SELECT a FROM no_null))",
    "SELECT q.v FROM (SELECT id, (SELECT max(a) FROM s WHERE s.id < r.id) AS v FROM r) q WHERE q.v > 2",
    "SELECT id FROM r WHERE x = (SELECT max(x) FROM r i WHERE i.k = r.k)",
    "SELECT id, (SELECT max(f) FROM s WHERE s.id <> r.id) AS m, (SELECT min(f) FROM s WHERE s.a >= r.x) AS l FROM r",
    "SELECT id, (SELECT count(k) FROM s WHERE levenshtein(s.k, r.k) < 2), (SELECT max(k) FROM s WHERE a > x) FROM r",
    "SELECT id, (SELECT list(a ORDER BY a) FROM s WHERE s.id <= r.id) AS l FROM r",
    "SELECT id, (SELECT x + max(a) FROM s WHERE s.k = r.k) AS l FROM r WHERE EXISTS (FROM s WHERE s.a = r.x)",
    "SELECT id FROM r WHERE x > (SELECT avg(a) FROM s WHERE s.k >= r.k) AND x NOT IN (SELECT a FROM s WHERE a > 6)",
    "WITH v AS (SELECT id, (SELECT count(a) FROM s WHERE s.a < r.x) AS n FROM r) SELECT n, count(*) FROM v GROUP BY n",
    "SELECT id FROM r WHERE x > (SELECT avg(a) FROM s)",
    "SELECT id, (SELECT max(a) FROM s) AS v, (SELECT a FROM s WHERE s.id = r.id LIMIT 1) AS w FROM r",
    "SELECT id, (SELECT r.x + max(a) FROM s WHERE s.id = r.id) AS v FROM r",
    "SELECT *, EXISTS (SELECT 1 FROM s WHERE s.a > r.x) AS e FROM r",
    "SELECT id, NOT EXISTS (FROM s WHERE s.a > r.x) AND id < 4 FROM r",
    "SELECT id, x IN (SELECT a FROM s) AS i, x NOT IN (SELECT a FROM s) n, k IN (SELECT k FROM s WHERE s.a = x) FROM r",
    "SELECT id, x IN (SELECT a FROM s WHERE a > 2) OR x > ALL (SELECT a FROM s WHERE s.id > r.id) FROM r",
    "SELECT id, CASE WHEN EXISTS (FROM s WHERE a = x) THEN (SELECT max(a) FROM s WHERE s.id < r.id) END AS c FROM r",
    "SELECT id, (x, k) IN (SELECT a, k FROM s), NOT (x <> ANY (SELECT a FROM s)) FROM r WHERE EXISTS (FROM one)",
    "SELECT count(*), count(*) FILTER (WHERE x IN (SELECT a FROM s)) FROM r",
    "SELECT EXISTS (FROM s WHERE a >= x) AS e, count(*) FROM r GROUP BY e ORDER BY e",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_rows_are_those_of_duckdb(text: str) -> None:
    with accounted(__file__, text):
        check(text, TABLES)
    check(text, TABLES | {"s": S.slice(0, 0)})
    check(text, TABLES | {"r": TABLES["r"].slice(0, 0)})


def test_rows_of_pairs_are_told_apart() -> None:
    """DuckDB gives the rows of a condition with a SELECT in another order."""
    text = "SELECT r.id, s.id AS o FROM r JOIN s ON r.x + s.a > (SELECT avg(a) FROM s q WHERE q.id <= r.id + s.id)"
    check(text, TABLES)

    def by_places(self: JoinedTables, db: Any, condition: str, scope: dict[str, pa.Table]) -> Any:
        source, views = self.views()
        true = ask(db, f"SELECT {condition} FROM {source}", {**scope, **views}).column(0)
        return np.flatnonzero(true.fill_null(False))

    with mock.patch.object(JoinedTables, "where", by_places), pytest.raises(AssertionError):
        check(text, TABLES)


def test_what_runs_where() -> None:
    schemas = {name: TABLES[name].schema for name in ("r", "s")}
    said = explain_sql("SELECT id, (SELECT max(a) FROM s WHERE s.k = r.k) AS top FROM r", schemas, window="ROWS 9",
                       windowed=False)
    assert "join             r JOIN s ON " in said
    said = explain_sql("SELECT EXISTS (FROM s WHERE s.k = r.k) FROM r", schemas, window="ROWS 9", windowed=False)
    assert "join             r SEMI JOIN s ON " in said


@pytest.mark.parametrize(("text", "said"), [
    ("SELECT id, (SELECT a FROM s WHERE s.id < r.id AND s.id < 2) AS v FROM r", "must have one row at most"),
    ("SELECT id, (SELECT a, id FROM s WHERE s.id < r.id) AS v FROM r", "refuses it: Binder Error: Subquery returns 2"),
    ("SELECT id, (SELECT a, k FROM s WHERE a < x ORDER BY a LIMIT 1) FROM r", "refuses it: Binder Error: Subquery ret"),
    ("SELECT id, (SELECT a FROM u WHERE u.id = r.id) AS v FROM r", "the table 'u' of the statement is not given"),
])
def test_refused(text: str, said: str) -> None:
    with pytest.raises(SplitJoinError, match=said):
        splitjoin.sql(text, tables={name: table for name, table in TABLES.items() if f" {name}" in text})


def test_values_have_the_types_of_duckdb() -> None:
    r, s = pa.table({"k": [1, 2]}), pa.table({"k": [2, 2], "a": [5, 6]})
    found = splitjoin.sql("SELECT k, (SELECT count(*) FROM s WHERE s.k = r.k) AS n, (SELECT max(a) FROM s WHERE s.k = "
                          "r.k) AS m FROM r", r=r, s=s)
    assert found.schema.field("n").type == pa.int64()
    assert found.to_pylist() == [{"k": 1, "n": 0, "m": None}, {"k": 2, "n": 2, "m": 6}]
