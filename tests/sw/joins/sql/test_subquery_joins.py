"""Conditions on a SELECT within WHERE, which run as semi and anti joins: the rows are DuckDB's."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.base import recent
from splitjoin.base.errors import SplitJoinError, StatementError
from splitjoin.joins.sql import explain_sql, subqueries
from tests.support.accounts import accounted
from tests.support.databases import database, wanted
from tests.support.sampling import examples

R = pa.table({"id": range(7), "x": [1, 2, None, 5, 5, 9, 0], "k": ["a", "b", "b", None, "c", "", "zz"],
              "f": [1.5, float("nan"), None, 5.0, -0.0, 2.0, 9.0]})
S = pa.table({"id": range(5), "a": [2, 5, None, 7, 0], "k": ["b", None, "c", "a", "a"],
              "f": [5.0, float("nan"), None, 0.0, 1.0]})
FULL = pa.table({"a": [1, 5, 5, 8], "k": ["a", "b", "b", "q"]})
ONE = pa.table({"w": [0, 5]})
TABLES = {"r": R, "s": S, "no_null": FULL, "one": ONE}


def rows_of(table: pa.Table) -> list[str]:
    return list(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def check(text: str, tables: dict[str, pa.Table]) -> Any:
    """Assert that the rows of ``text`` are DuckDB's, in its order where it has ORDER BY, and give the result."""
    with database() as db:
        for name, table in tables.items():
            db.register(name, table)
        want = rows_of(wanted(db.sql(text)))
    used = {name: table for name, table in tables.items() if name in text}
    found = splitjoin.sql(text, tables=used)
    rows = rows_of(found.to_arrow())
    assert Counter(rows) == Counter(want)
    assert rows == want or "ORDER BY" not in text.rpartition(")")[2]
    return found


STATEMENTS = [
    "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a > r.x)",
    "SELECT r.id FROM r WHERE NOT EXISTS (SELECT * FROM s WHERE s.a > x AND s.k <> r.k) AND x > 1",
    "SELECT count(*) FROM r WHERE x IN (SELECT a FROM s)",
    "SELECT id FROM r WHERE x NOT IN (SELECT a FROM s)",
    "SELECT id FROM r WHERE x NOT IN (SELECT a FROM s WHERE a IS NOT NULL)",
    "SELECT id FROM r WHERE NOT (x NOT IN (SELECT a FROM s))",
    "SELECT id FROM r WHERE x NOT IN (SELECT a FROM no_null)",
    "SELECT id FROM r WHERE x NOT IN (SELECT a FROM s WHERE s.k = r.k)",
    "SELECT id FROM r WHERE x + 1 NOT IN (SELECT a - 1 FROM s WHERE false)",
    "SELECT id FROM r WHERE f NOT IN (SELECT f FROM s WHERE s.f IS NOT NULL)",
    "SELECT id FROM r WHERE x IN (FROM one) AND k NOT IN (SELECT k FROM no_null)",
    "SELECT id FROM r AS t WHERE x IN (SELECT x FROM r WHERE k = 'b' OR k = t.k)",
    "SELECT id FROM r WHERE id IN (SELECT a FROM s AS r WHERE r.a < id + 4)",
    "SELECT id FROM r WHERE EXISTS (SELECT k FROM s WHERE id = 3)",
    "SELECT id FROM r WHERE EXISTS (SELECT NULL FROM s)",
    "SELECT id FROM r WHERE NOT EXISTS (FROM s)",
    "SELECT id FROM r WHERE lower(k) IN (SELECT DISTINCT lower(k) || '' FROM s) AND x <> 5",
    "SELECT id FROM r WHERE lower(k) NOT IN (SELECT DISTINCT lower(s.k) FROM s WHERE s.k IS NOT NULL)",
    "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE levenshtein(s.k, r.k) = 1 AND s.id < r.id)",
    "SELECT id FROM r WHERE x >= ALL (SELECT a FROM s WHERE a IS NOT NULL)",
    "SELECT id FROM r WHERE x >= ALL (SELECT a FROM s)",
    "SELECT id FROM r WHERE NOT x < ALL (SELECT a FROM s WHERE s.k = r.k)",
    "SELECT id FROM r WHERE x > ANY (SELECT a FROM s WHERE s.id <> r.id)",
    "SELECT id FROM r WHERE NOT x > ANY (SELECT a FROM s WHERE s.id = r.id)",
    "SELECT k, count(*) FROM r WHERE x IN (SELECT a FROM s) AND x > 1 GROUP BY k HAVING count(*) > 0 ORDER BY k",
    "SELECT r.id, s.id AS other FROM r, s WHERE r.x < s.a AND EXISTS (SELECT 1 FROM s t WHERE t.a > r.x + 3)",
    "SELECT r.id, s.id AS other FROM r LEFT JOIN s ON r.x = s.a WHERE s.a NOT IN (SELECT a FROM no_null)",
    "SELECT r.id, t.k FROM r LEFT JOIN s t ON x < a WHERE EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND s.a <> r.x)",
    "SELECT k, x FROM r JOIN s USING (k) WHERE k IN (SELECT k FROM no_null)",
    "WITH c AS (SELECT a AS x FROM s WHERE id < 3) SELECT id FROM r WHERE x NOT IN (SELECT x FROM c)",
    "SELECT q.id FROM (SELECT id, x FROM r WHERE x > 1) q WHERE q.x IN (SELECT a FROM s) UNION SELECT id FROM s",
    "WITH c AS (SELECT * FROM r WHERE NOT EXISTS (FROM s WHERE a > x)) SELECT c.id, s.id AS o FROM c JOIN s ON x > a",
    "SELECT max(id) FROM (SELECT id FROM r WHERE x IN (SELECT a FROM s)) q WHERE id < 5",
    "SELECT id FROM r WHERE x NOT IN (SELECT NULL FROM s)",
    "SELECT id FROM r WHERE x IN (SELECT 5 FROM s WHERE s.a > r.id)",
    "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.x) AND (SELECT max(a) FROM s) > x",
    "SELECT id FROM r WHERE (x, k) IN (SELECT a, k FROM no_null)",
    "SELECT id FROM r WHERE (x, k) NOT IN (SELECT a, k FROM s)",
    "SELECT id FROM r WHERE (x, k) IN (FROM no_null) OR (id, 1) NOT IN (SELECT a, count(*) FROM s GROUP BY a)",
    "SELECT id FROM r WHERE x IN (SELECT max(a) FROM s GROUP BY k)",
    "SELECT id FROM r WHERE x NOT IN (SELECT max(a) FROM s GROUP BY k HAVING count(*) > 1 ORDER BY 1 LIMIT 2)",
    "SELECT id FROM r WHERE x IN (SELECT s.a FROM s JOIN no_null n ON s.a = n.a AND s.id < 4)",
    "SELECT id FROM r WHERE x >= ALL (SELECT a FROM s WHERE a < 6 UNION SELECT w FROM one)",
    "SELECT id FROM r WHERE x IN (SELECT a FROM s WHERE k IN (SELECT k FROM no_null))",
    "SELECT id FROM r WHERE x IN (WITH q AS (FROM s) SELECT q.a FROM q, one WHERE a = w)",
    "SELECT id FROM r WHERE x IN (SELECT unnest([a, 9]) FROM s) AND EXISTS (SELECT count(*) FROM s)",
    "SELECT id FROM r WHERE NOT EXISTS (SELECT max(a) FROM s GROUP BY k HAVING max(a) > 90)",
    "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s JOIN no_null n ON s.a = n.a WHERE s.k <> r.k AND n.a <= x)",
    "SELECT id FROM r WHERE NOT EXISTS (SELECT * FROM s, no_null n WHERE s.k = n.k AND s.a < r.x AND n.a > id)",
    "SELECT id FROM r WHERE x NOT IN (SELECT s.a + w FROM s LEFT JOIN one ON s.a = w WHERE s.k <> r.k)",
    "SELECT id FROM r WHERE x IN (SELECT q.a FROM (SELECT a, k FROM s WHERE id < 4) q WHERE q.k <= r.k)",
    "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE a = x AND s.id IN (SELECT w FROM one))",
    "SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s r WHERE r.a = x) OR id NOT IN (SELECT a FROM s WHERE a > 0)",
    "SELECT id FROM r WHERE x IN (SELECT a FROM s) OR x > 6",
    "SELECT * FROM r WHERE x > 100 OR k IS NULL OR EXISTS (SELECT 1 FROM s WHERE s.a = r.x AND s.k < r.k)",
    "SELECT id FROM r WHERE NOT (x IN (SELECT a FROM s) AND (k = 'b' OR k IN (SELECT k FROM s WHERE s.id = r.id)))",
    "SELECT id FROM r WHERE (x BETWEEN 1 AND 2 OR x NOT IN (SELECT a FROM s)) AND id < 6",
    "SELECT id FROM r WHERE x NOT IN (SELECT a FROM s) OR x > (SELECT avg(a) FROM s WHERE s.id <= r.id)",
    "SELECT r.id FROM r JOIN s USING (id) WHERE x IN (SELECT max(a) FROM no_null) OR EXISTS (FROM one WHERE w = x)",
    "SELECT r.id FROM r JOIN s ON x = a WHERE s.k IN (SELECT max(k) FROM no_null) OR r.id IN (SELECT w FROM one)",
    "SELECT id FROM r WHERE CASE WHEN x > 1 OR k = 'a' THEN true END AND x IN (VALUES (5), (9))",
    "SELECT id FROM r WHERE x IN (SELECT max(a) FROM s WHERE s.k = r.k) OR EXISTS (SELECT max(a) FROM s WHERE a = x)",
    "SELECT id FROM r WHERE x IN (SELECT a FROM s WHERE s.k = r.k ORDER BY a LIMIT 2)",
    "SELECT id FROM r WHERE (SELECT count(*) FROM s WHERE a > x) > 0 AND NOT (SELECT count(*) FROM s WHERE a = x) = 0",
    "SELECT id FROM r WHERE 0 = (SELECT count(*) FROM s WHERE s.k = r.k) OR (SELECT count(*) FROM s WHERE a > x) >= 2",
    "SELECT id FROM r WHERE (SELECT count(a) FROM s WHERE s.k = r.k) > 0",
    "SELECT id, (SELECT count(*) FROM s WHERE s.k = r.k) > 0 AS has FROM r WHERE x < 6 OR f > 1",
    "SELECT * FROM r WHERE x > 1 AND NOT x > 5 AND EXISTS (FROM s WHERE a < x) ORDER BY k DESC, id LIMIT 2 OFFSET 1",
    "SELECT id FROM r WHERE (x > 4 OR k = 'b') AND EXISTS (FROM s WHERE a = x)",
    "SELECT x, id FROM r WHERE EXISTS (FROM s WHERE a = x) ORDER BY 1 DESC, 2 LIMIT 3",
    "SELECT DISTINCT r.k FROM r JOIN s ON r.x < s.a",
    "SELECT DISTINCT s.a, s.k FROM r, s WHERE r.x < s.a AND s.id > 0 AND r.id > 1 ORDER BY 1 DESC, k LIMIT 3",
    "SELECT DISTINCT k, x FROM (SELECT r.k, r.x FROM r, s WHERE r.x <= s.a) q WHERE x > 0",
    "SELECT r.k FROM r JOIN s ON x < a WHERE r.id < 6 GROUP BY r.k",
    "SELECT s.k, s.a FROM r JOIN s ON x <= a GROUP BY s.k, s.a, s.f",
    "SELECT r.k FROM r JOIN s ON x < a GROUP BY r.k HAVING r.k > 'a'",
    "SELECT r.k FROM r JOIN s ON x < a GROUP BY r.k, ROLLUP (r.x)",
    "SELECT r.x FROM r JOIN s ON x < a GROUP BY r.x, r.k",
    "SELECT DISTINCT s.* FROM r, s WHERE x < a",
    "SELECT k, max(b) AS m FROM (SELECT r.k, r.x AS b FROM r JOIN s ON r.x < s.a) q GROUP BY k HAVING max(b) > "
    "(SELECT min(w) FROM (SELECT w, w + 3 AS b FROM one) o WHERE b > 4)",
    "SELECT r.id, q.id AS o, a FROM r, LATERAL (SELECT id, a FROM s WHERE k = r.k AND a < x ORDER BY a DESC LIMIT 1) q",
    "SELECT r.id, Of FROM r LEFT JOIN LATERAL (SELECT s.id AS Of FROM s WHERE a >= x ORDER BY a LIMIT 1) q ON true",
    "SELECT r.id, q.a FROM r LEFT JOIN LATERAL (SELECT * FROM s WHERE a >= x ORDER BY a LIMIT 1) q ON q.k = r.k",
    "SELECT r.id, q.f FROM r, LATERAL (SELECT s.f FROM s WHERE s.f <= r.f AND s.k <> r.k ORDER BY s.f DESC LIMIT 1) q",
    "SELECT id, (SELECT max(a) FROM s WHERE s.k = r.k AND a <= x) + 1 AS m FROM r",
    "SELECT id, (SELECT min(f) FROM s WHERE s.f > r.f) AS f FROM r WHERE (SELECT max(a) FROM s WHERE x >= a) > 0",
    "SELECT id, (SELECT max(f) FROM s WHERE s.f <= r.f AND s.id > 0) AS f FROM r",
    "SELECT id, (SELECT max(k) FROM s WHERE s.k < r.k) AS k FROM r",
    "SELECT id, (SELECT s.id FROM s WHERE a < x ORDER BY a DESC LIMIT 1) AS s FROM r WHERE EXISTS (FROM s WHERE a = x)",
    "SELECT id, (SELECT max(a) FROM s WHERE a <= x AND a > x - 4) AS m FROM r",
    "SELECT id, (SELECT sum(a) FROM s WHERE s.id <= r.id) * 2 AS t, (SELECT avg(a) FROM s WHERE a < x) AS m FROM r",
    "SELECT r.id, s.a FROM r, s WHERE x = a UNION ALL SELECT r.id, s.a FROM r, s WHERE x < a AND r.k = s.k",
    "SELECT id FROM (SELECT r.id, s.a AS b FROM r JOIN s ON x < a) q WHERE b > 5 ORDER BY b, id DESC LIMIT 4",
    "SELECT q.id, q.b FROM (SELECT r.id, s.a AS b FROM r JOIN s ON x < a) q WHERE q.b > 5",
    "SELECT i AS f FROM (SELECT id AS i, f AS b FROM r JOIN one ON x <> w) q ORDER BY b DESC, i LIMIT 3",
    "SELECT q.i AS x FROM (SELECT r.id AS i FROM r JOIN one ON r.x <> w) q ORDER BY -x LIMIT 3",
    "SELECT q.i AS x, rank() OVER (ORDER BY x) AS n FROM (SELECT r.id AS i FROM r JOIN s ON r.x < s.a) q ORDER BY x",
    "WITH q AS (SELECT r.id AS i, s.a FROM r JOIN s ON x < a) SELECT i AS a, a AS i FROM q ORDER BY a, i",
    "WITH q AS (SELECT id, x FROM r WHERE x > 1), p AS (FROM s) SELECT q.id, p.a FROM q JOIN p ON q.x <= p.a",
    "SELECT r.id, s.id AS o FROM (SELECT id, x AS y FROM r WHERE k IN ('b', 'c')) r LEFT JOIN s ON y = a WHERE y < 6",
    "WITH q AS (SELECT w FROM one) SELECT * FROM (WITH one AS (SELECT r.id, s.a FROM r JOIN s ON x < a) "
    "SELECT one.id, q.w FROM q, one WHERE q.w < one.a)",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_rows_are_those_of_duckdb(text: str) -> None:
    with accounted(__file__, text):
        check(text, TABLES)
    check(text, TABLES | {"s": S.slice(0, 0)})


NUMBERS = st.lists(st.tuples(st.none() | st.integers(0, 4), st.none() | st.integers(0, 4)), max_size=6)
BOTH = ["s.b < r.y", "s.b = r.y", "s.b <> r.x OR s.a = r.y", "s.a IS NULL", "r.y > 1", "s.b + r.y > 3", "b IN (1, y)"]
VALUES = [("x", "a"), ("r.x + y", "s.a"), ("y", "a + b"), ("x", "3"), ("coalesce(x, 1)", "a")]
OWN = ["s.a IS NULL", "s.b > 1"]
ROWS = st.sampled_from(["x > 2", "y IS NULL", "r.x = r.y"])


@st.composite
def conditions(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 3)) == 0:
        joint = draw(st.sampled_from(["OR", "AND"]))
        return f"{draw(st.sampled_from(['', 'NOT ']))}({draw(conditions())} {joint} {draw(conditions() | ROWS)})"
    kind = draw(st.sampled_from(["EXISTS", "IN", "NOT IN", "compared", "rows"]))
    where = draw(st.lists(st.sampled_from(BOTH if kind != "rows" else OWN), max_size=2, unique=True))
    table = draw(st.sampled_from(["s", "s", "c s", "(SELECT a, max(b) AS b FROM s GROUP BY a) s",
                                  "s JOIN r q ON s.a = q.x"]))
    source = f"FROM {table}{' WHERE ' * bool(where)}{' AND '.join(f'({term})' for term in where)}"
    value, other = draw(st.sampled_from(VALUES))
    negated = draw(st.sampled_from(["", "NOT "]))
    if kind == "EXISTS":
        return f"{negated}EXISTS (SELECT 1 {source})"
    if kind == "rows":  # of which DuckDB takes no others
        return f"({value}, r.y) {negated}IN (SELECT {other}, s.b {source})"
    if kind == "compared":
        kind = f"{draw(st.sampled_from(['=', '<>', '<', '>=']))} {draw(st.sampled_from(['ANY', 'ALL']))}"
    return f"{negated}({value} {kind} (SELECT {other} {source}))"


def with_numbers(rows: list[tuple[int | None, int | None]], a: str, b: str) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.table({a: pa.array(columns[0], pa.int64()), b: pa.array(columns[1], pa.int64())})


@settings(max_examples=examples(25))
@given(st.tuples(NUMBERS, NUMBERS), st.tuples(NUMBERS, NUMBERS),
       st.lists(conditions(), min_size=1, max_size=2, unique=True), st.booleans())
def test_random_conditions(first: Any, second: Any, terms: list[str], listed: bool) -> None:
    """Over other tables the second time, where NULL may be in other rows between the steps that the first time took."""
    text = f"SELECT x, y, {', '.join(terms)} FROM r" if listed else f"SELECT * FROM r WHERE {' AND '.join(terms)}"
    text = f"WITH c AS (SELECT * FROM s WHERE b < 3) {text}" if "c s" in text else text
    for r, s in (first, second):
        check(text, {"r": with_numbers(r, "x", "y"), "s": with_numbers(s, "a", "b")})


def test_a_null_that_is_not_looked_for_is_found() -> None:
    recent.forget()  # the steps of the right one
    with mock.patch.object(subqueries.SubqueryJoin, "steps", lambda self, one: [
            (*self.inner.conditions, *(of[0] for of in self.alternatives))]), pytest.raises(
            AssertionError):
        check("SELECT id FROM r WHERE x NOT IN (SELECT a FROM s)", TABLES)
    recent.forget()


def test_what_runs_where() -> None:
    schemas = {name: table.schema for name, table in TABLES.items() if name in ("r", "s")}
    said = explain_sql("SELECT id FROM r WHERE x NOT IN (SELECT a FROM s WHERE s.k < r.k) AND x > 2 AND EXISTS "
                       "(SELECT 1 FROM r q WHERE r.x = q.id)", schemas, window="ROWS 9", windowed=False)
    assert said.splitlines()[1:] == [
        'join             r ANTI JOIN s ON "s"."k" < "r"."k" AND ("r"."x") = ("s"."a")',
        'join             r SEMI JOIN q ON "r"."x" = "q"."id"',
        "the rest         SELECT id WHERE (x > 2)"]
    plans = [splitjoin.sql(f"SELECT {listed} FROM r WHERE x IN (SELECT a FROM s)", r=R, s=S).plan for listed in (
        "id", "id + 1")]
    assert [plan.endswith("; the rest by DuckDB") for plan in plans] == [False, True]


def test_within_a_window() -> None:
    r = pa.table({"ts": [1, 2, 9], "x": [1, None, 3]})
    s = pa.table({"ts": [1, 5, 9], "a": [1, 7, None]})
    for text, want in [("x IN (SELECT a FROM s)", [1]), ("x NOT IN (SELECT a FROM s WHERE s.ts < 9)", [9]),
                       ("NOT EXISTS (SELECT 1 FROM s WHERE a >= 1)", [9])]:
        found = splitjoin.sql(f"SELECT ts FROM r WHERE {text}", r=r, s=s, window="RANGE 1", time="ts")
        assert found.to_pylist() == [{"ts": ts} for ts in want]
    one = "SELECT ts, (SELECT max(a) FROM s) AS m FROM (SELECT r.ts FROM r JOIN s ON x <= a) q"
    found = splitjoin.sql(one, r=r, s=s, window="RANGE 1", time="ts")
    assert found.to_pylist() == [{"ts": 1, "m": 7}]
    with pytest.raises(StatementError, match="those of one join, but the statement has several"):
        splitjoin.sql("SELECT ts FROM r WHERE x IN (SELECT a FROM s) AND EXISTS (FROM s)", r=r, s=s, window="RANGE 1",
                      time="ts")


@pytest.mark.parametrize(("text", "said"), [
    ("SELECT id FROM r WHERE x IN (SELECT a, k FROM s)", "refuses it: Binder Error"),
    ("SELECT id FROM r WHERE k IN (SELECT a FROM s)", "refuses it: Binder Error: Cannot compare values of type"),
    ("SELECT id FROM r LEFT JOIN s ON x = a WHERE s.a IS NULL", "refuses it: Binder Error: Ambiguous reference to col"),
    ("SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE a = zz)", 'column "zz" not found'),
    ("SELECT id FROM r WHERE EXISTS (SELECT zz FROM s WHERE a = x)", 'column "zz" not found'),
    ("SELECT id FROM r WHERE EXISTS (SELECT 1 FROM u WHERE b = x)", "the table 'u' of the statement is not given"),
    ("SELECT id FROM r UNION SELECT id + 1 FROM r", "UNION is not supported"),
    ("SELECT r.id FROM r JOIN s ON a = x + random()", "has other values|function RAND is not"),
    ("SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE a = x + random())", "has other values at other times"),
    ("SELECT id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE a = x AND age(DATE '2024-01-01') > INTERVAL 1 DAY)",
     "age has other values at other times"),
])
def test_refused(text: str, said: str) -> None:
    with pytest.raises(SplitJoinError, match=said):
        splitjoin.sql(text, tables={name: table for name, table in TABLES.items() if f" {name}" in text})


@pytest.mark.parametrize("text", [
    "SELECT n FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k)", "SELECT n FROM r WHERE k IN (SELECT k FROM s)",
    "SELECT DISTINCT n FROM r JOIN s ON r.k = s.k"])
def test_rows_that_a_table_keeps_are_taken_as_they_stand(text: str) -> None:
    """In the order of their table, and where most of them follow each other, without a copy: sorted keys stay sorted,
    so that DISTINCT tells rows apart without a hash of each.
    """
    r = pa.table({"n": range(9000), "k": [n % 900 for n in range(9000)]})
    s = pa.table({"k": range(899, -1, -1)})
    found = splitjoin.sql(text, r=r, s=s).table.column("n")
    assert found.to_pylist() == list(range(9000))
    assert {part.buffers()[1].address for part in found.chunks} == {r.column("n").chunk(0).buffers()[1].address}
