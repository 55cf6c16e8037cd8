"""Statements of the kinds that DuckDB's own tests of joins have, written anew: the rows are DuckDB's."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from tests.support.accounts import accounted
from tests.support.databases import wanted
from tests.support.sampling import examples

MADE = """
CREATE TABLE a AS FROM (VALUES (1, 'x', 10), (2, 'y', NULL), (3, NULL, 30), (3, 'x', 31), (NULL, 'z', 5)) v(k, name, n);
CREATE TABLE b AS FROM (VALUES (1, 'x', 7), (3, 'q', 30), (3, NULL, 8), (4, 'z', 5), (NULL, 'y', 10)) v(k, name, m);
CREATE TABLE c AS FROM (VALUES (3, 1.5), (4, 2.5), (1, NULL), (9, 0.5)) v(k, w);
CREATE TABLE empty AS SELECT * FROM b WHERE false;
CREATE TABLE spans AS FROM (VALUES (1, 4, 'p'), (3, 9, 'q'), (NULL, 2, 'r'), (20, 30, 's')) v(lo, hi, tag);
CREATE TABLE boxed AS FROM (VALUES ({'u': 1, 'v': 'x'}, [1, 2], 1), ({'u': 1, 'v': NULL}, [1], 2), (NULL, [], 3),
  ({'u': 2, 'v': 'a'}, [NULL], 4), ({'u': 1, 'v': 'x'}, NULL, 5)) v(pair, items, id);
CREATE TABLE events AS FROM (
  VALUES (1.0, 'x', 1), (3.0, 'y', 2), (3.5, 'x', 3), (6.5, 'x', 4), (NULL, 'x', 5)) v(ts, name, e);
CREATE TABLE probes AS FROM (
  VALUES (7.0, 'x', 1), (2.0, 'y', 2), (0.5, 'x', 3), (6.5, 'x', 4), (4.0, 'z', 5)) v(ts, name, p);
CREATE TABLE days AS SELECT DATE '2024-01-01' + CAST(i * i AS INT) AS day, i FROM range(6) t(i);
"""

STATEMENTS = """
SELECT a.k, m FROM a NATURAL JOIN b
SELECT * FROM a NATURAL JOIN b
SELECT k, w FROM a NATURAL LEFT JOIN c
SELECT * FROM a JOIN b USING (k) JOIN c USING (k)
SELECT k, n, m, w FROM a LEFT JOIN b USING (k) LEFT JOIN c USING (k)
SELECT k, count(*) FROM a FULL JOIN b USING (k) FULL JOIN c USING (k) GROUP BY k
SELECT a.k, b.k FROM a RIGHT JOIN b USING (k)
SELECT a.k, b.k, k FROM a FULL JOIN b USING (k)
SELECT b.name, k FROM a JOIN b USING (k, name)
SELECT a.*, b.* FROM a FULL JOIN b USING (k)
SELECT b.k, * FROM a FULL JOIN b USING (k)
SELECT count(*) FROM a JOIN b USING (k) JOIN c x USING (k) JOIN c y USING (k)
SELECT s.v, r.s.v FROM (VALUES (1)) s(v) LEFT JOIN (VALUES ({'v': 2})) r(s) ON EXISTS (SELECT 1 WHERE r.s.v = s.v + 1)
SELECT a.*, k FROM a FULL JOIN b USING (k) ORDER BY k, m, n
SELECT a.n, b.m, c.w FROM a JOIN b JOIN c ON c.k = b.k ON a.k = b.k
SELECT b.*, a.n FROM a LEFT JOIN b USING (name)
SELECT a.n, c.w FROM a JOIN b USING (k) JOIN c ON c.k = b.k WHERE b.k > 1
SELECT * FROM a x LEFT JOIN a y ON x.k = y.k WHERE x.n <> y.n OR y.n IS NULL
SELECT a.*, c.w FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON c.k = b.k AND w > 1
SELECT a.n, b.m, c.w FROM a RIGHT JOIN b ON a.k = b.k RIGHT JOIN c ON c.k = b.k
SELECT a.n, b.m, c.w FROM a FULL JOIN b ON a.k = b.k FULL JOIN c ON c.k = a.k OR c.k = b.k
SELECT x.n, y.n, z.n FROM a x JOIN a y ON x.k < y.k LEFT JOIN a z ON z.k = x.k + y.k
SELECT a.n, b.m FROM a, b LEFT JOIN c ON c.k = b.k WHERE a.k = b.k AND (w IS NULL OR w > 1)
SELECT a.n, b.m, c.w FROM a, b LEFT JOIN c ON a.k = c.k
SELECT a.n, b.m, z.n FROM a, b LEFT JOIN c ON a.k = c.k AND c.w > 1 LEFT JOIN a z ON z.k = c.k AND z.n > a.n WHERE m > 7
SELECT a.n, c.w FROM a SEMI JOIN b ON a.k = b.k LEFT JOIN c ON c.k = a.k
SELECT count(*) FROM a ANTI JOIN b USING (k) CROSS JOIN c
SELECT a.n, m FROM a LEFT JOIN (b JOIN c ON b.k = c.k) ON a.k = b.k
SELECT a.n, b.m, c.w FROM a LEFT JOIN (b LEFT JOIN c USING (k)) ON a.n = b.m
SELECT x, y FROM (VALUES (1), (2)) l(x) JOIN (VALUES (2), (3)) r(y) ON x < y
SELECT i, k FROM range(5) t(i) JOIN a ON i = k
SELECT l.i, r.i FROM range(4) l(i), generate_series(1, 3) r(i) WHERE l.i + r.i = 4
SELECT t.q, b.m FROM a AS t(q, r, s) JOIN b ON t.q = b.k
SELECT one, m FROM (SELECT k, n FROM a) AS t(one, two) JOIN b ON one = b.k
FROM a SEMI JOIN b ON a.k = b.k
FROM a JOIN b ON a.k = b.k SELECT a.n, b.m WHERE m > 7 ORDER BY m
FROM spans l ANTI JOIN spans r ON l.lo < r.hi AND r.lo < l.hi AND l.tag <> r.tag ORDER BY tag
WITH t AS (FROM a) FROM t JOIN c ON c.k = t.k SELECT n, w
WITH t(x, y) AS (SELECT k, n FROM a), u AS MATERIALIZED (FROM b) SELECT x, m FROM t JOIN u ON x = u.k
WITH t AS (SELECT 1 AS x UNION SELECT 3), u AS (SELECT x FROM t JOIN a ON x = k) SELECT max(x) FROM u JOIN b ON x = b.k
SELECT a.k FROM a JOIN b ON a.k = b.k UNION ALL SELECT c.k FROM c JOIN b ON b.k = c.k ORDER BY 1
SELECT a.k AS q FROM a JOIN b ON a.k = b.k UNION SELECT k FROM c EXCEPT SELECT 4
SELECT n FROM a JOIN b USING (k) INTERSECT (SELECT m FROM b JOIN c USING (k))
SELECT count(*) FROM (SELECT a.k FROM a JOIN b USING (k) UNION ALL SELECT k FROM c) u JOIN b ON b.k = u.k
SELECT max(n) FROM (SELECT a.n, b.m FROM a JOIN b ON a.k <> b.k) q WHERE m > 5
SELECT k FROM (SELECT a.k, b.m FROM a JOIN b ON a.k <> b.k) q WHERE k > (SELECT min(k) FROM c)
SELECT COLUMNS('k') FROM (SELECT a.k, b.m FROM a JOIN b ON a.k <> b.k) q WHERE m > 5
SELECT a.n, b.m FROM a LEFT JOIN b ON EXISTS (SELECT 1 FROM c WHERE c.k = a.k AND c.k = b.k)
SELECT a.n, b.m FROM a FULL JOIN b ON a.k IN (SELECT k FROM c WHERE c.k = b.k)
SELECT a.n FROM a ANTI JOIN b ON EXISTS (SELECT 1 FROM c WHERE c.k = a.k AND b.m < 9)
SELECT a.n FROM a SEMI JOIN b ON a.n + b.m > (SELECT max(k) * 3 FROM c)
SELECT a.n, b.m FROM a JOIN b ON a.n + 0 > (SELECT avg(m) FROM b q WHERE q.k <= a.k)
SELECT a.n, b.m FROM a LEFT JOIN b ON a.k <> b.k AND a.n + b.m > (SELECT avg(w) * 9 FROM c WHERE c.k <= a.k + b.k)
SELECT a.n, b.m FROM a JOIN b ON a.k = b.k AND (SELECT count(*) FROM c WHERE c.k = b.k) = 1
SELECT a.name, b.name FROM a JOIN b ON levenshtein(a.name, b.name) < 1
SELECT a.name, b.name FROM a LEFT JOIN b ON a.name || b.name = 'xq' OR a.k = b.m - 3
SELECT a.n, b.m FROM a FULL JOIN b ON a.k = b.k AND sin(a.n + b.m) > 0
SELECT a.n FROM a SEMI JOIN b ON concat(a.name, b.name) = 'zz'
SELECT l.id, r.id FROM boxed l JOIN boxed r ON l.pair = r.pair
SELECT l.id, r.id FROM boxed l LEFT JOIN boxed r ON l.items = r.items
SELECT l.id, r.id FROM boxed l FULL JOIN boxed r ON l.pair < r.pair AND l.id <> r.id
SELECT l.id, r.id FROM boxed l JOIN boxed r ON l.items IS NOT DISTINCT FROM r.items
SELECT l.id, r.id FROM boxed l JOIN boxed r ON l.pair IS DISTINCT FROM r.pair WHERE l.id < r.id
SELECT l.id, r.id FROM boxed l JOIN boxed r ON l.items <= r.items AND l.pair.u = r.pair.u
SELECT l.id, r.id FROM boxed l JOIN boxed r USING (pair)
SELECT q.q.u AS v FROM (SELECT pair AS q, id AS u FROM boxed) q JOIN boxed r ON q.u < r.id GROUP BY q.u, q.q.u
SELECT a.* EXCLUDE (n, name) FROM a JOIN c ON a.k <= c.k GROUP BY a.k, a.n, a.name
SELECT q.q.u, q.u AS n FROM (SELECT l.pair AS q, r.id AS u FROM boxed l JOIN boxed r ON l.id < r.id) q
SELECT count(*) FROM boxed l SEMI JOIN boxed r ON l.items = r.items AND l.pair <> r.pair
SELECT l.id, r.id FROM boxed l JOIN boxed r ON [l.id, 1] = [r.id, 1]
SELECT p, e FROM probes ASOF JOIN events ON probes.ts >= events.ts
SELECT p, e FROM probes ASOF LEFT JOIN events ON probes.name = events.name AND probes.ts > events.ts
SELECT p, e FROM probes ASOF RIGHT JOIN events ON probes.name = events.name AND probes.ts >= events.ts
SELECT p, e FROM probes ASOF FULL JOIN events ON probes.name = events.name AND probes.ts <= events.ts
SELECT p FROM probes ASOF SEMI JOIN events ON probes.name = events.name AND probes.ts >= events.ts
SELECT p FROM probes ASOF ANTI JOIN events ON probes.name = events.name AND probes.ts >= events.ts
SELECT p, e, ts FROM probes ASOF JOIN events USING (name, ts)
SELECT * FROM probes ASOF LEFT JOIN events USING (ts)
SELECT p, e FROM probes ASOF JOIN events ON probes.ts >= events.ts + 1 AND upper(probes.name) = upper(events.name)
SELECT p, e FROM probes ASOF LEFT JOIN events ON probes.ts >= events.ts WHERE e IS NULL OR p < 4
SELECT p, sum(e) FROM probes ASOF JOIN (SELECT * FROM events WHERE e <> 4) q ON probes.ts >= q.ts GROUP BY p
SELECT i, e FROM range(8) t(i) ASOF JOIN events ON i > ts
SELECT i, w FROM range(8) t(i) ASOF LEFT JOIN (SELECT ts::DOUBLE AS w FROM events WHERE e > 9) q ON i > w
SELECT x.day, y.i FROM days x ASOF JOIN days y ON x.day > y.day
SELECT x.i, y.i FROM days x JOIN days y ON x.day + INTERVAL 1 DAY = y.day::TIMESTAMP
SELECT x.i, y.i FROM days x JOIN days y ON date_part('month', x.day) = date_part('month', y.day) AND x.i < y.i
SELECT * FROM a x POSITIONAL JOIN c y
SELECT c.w, b.m FROM c POSITIONAL JOIN b WHERE c.k IS NULL OR b.m > 8
SELECT count(a.k), sum(b.m) FROM empty POSITIONAL JOIN a JOIN b ON a.k = b.k
SELECT x.k, y.i FROM (SELECT k FROM a WHERE k > 1) x POSITIONAL JOIN range(2) y(i)
SELECT * FROM a JOIN empty ON a.k = empty.k
SELECT a.n, empty.m FROM a LEFT JOIN empty ON a.k < empty.k
SELECT count(*), count(m) FROM a FULL JOIN empty USING (k)
SELECT n FROM a ANTI JOIN empty ON true
SELECT s.tag, a.k FROM spans s JOIN a ON a.k BETWEEN s.lo AND s.hi ORDER BY ALL
SELECT s.tag, count(a.k) FROM spans s LEFT JOIN a ON NOT (a.k BETWEEN s.lo AND s.hi) GROUP BY s.tag
SELECT count(*) FROM spans l, spans r WHERE l.lo < r.hi AND r.lo < l.hi AND l.tag < r.tag
SELECT l.tag, r.tag FROM spans l LEFT JOIN spans r ON l.lo < r.lo AND l.hi > r.hi
SELECT a.n, b.m FROM a JOIN b ON 1 = 1 AND NULL IS NULL AND a.k >= b.k
SELECT a.n FROM a JOIN b ON NULL
SELECT a.n, b.m FROM a LEFT JOIN b ON a.k = b.k AND a.n > 10 AND b.m IS NOT NULL
SELECT a.n, b.m FROM a FULL JOIN b ON a.k = b.k AND a.n > 10 WHERE coalesce(m, 0) < 9
SELECT (a.k, b.k) AS both, a.k IN (SELECT k FROM c) AS there FROM a JOIN b ON a.n = b.m OR a.name = b.name
SELECT a.k, (SELECT max(w) FROM c WHERE c.k > b.k) FROM a JOIN b ON a.k = b.k
SELECT a.k % 2 AS odd, list(b.m ORDER BY b.m) FROM a JOIN b ON a.k <= b.k GROUP BY odd HAVING count(*) > 2
SELECT * EXCLUDE (name) REPLACE (k + 1 AS k) FROM a SEMI JOIN b USING (k)
SELECT a.k, rank() OVER (PARTITION BY a.k ORDER BY m) FROM a JOIN b ON a.k = b.k QUALIFY rank() OVER (ORDER BY m) < 4
SELECT a.n, b.m FROM a JOIN b ON (a.k = b.k) = (a.name = b.name)
SELECT a.n, b.m FROM a JOIN b ON a.k::VARCHAR = b.k::VARCHAR AND try_cast(a.name AS INT) IS NULL
SELECT a.k, z FROM a, LATERAL (SELECT a.k + 1 AS z) q
SELECT a.k, z FROM a JOIN (SELECT a.k + 1 AS z) q ON z > 3
SELECT a.n, q.m FROM a LEFT JOIN LATERAL (SELECT m FROM b WHERE b.m > a.n ORDER BY m LIMIT 1) q ON true
SELECT a.n, q.c FROM a CROSS JOIN LATERAL (SELECT count(*) AS c FROM b WHERE b.k <> a.k) q WHERE c > 1 ORDER BY a.n
SELECT a.n, z, y, c.w FROM a, (SELECT k + 1) q(z), (SELECT z * 2 AS y) p LEFT JOIN c ON c.k = y - z
SELECT a.n, q.* FROM a, LATERAL (SELECT count(*) AS c, max(m) + 1 FROM b WHERE b.k = a.k AND b.m > a.n) q
SELECT * FROM a LEFT JOIN LATERAL (SELECT m AS z FROM b WHERE b.k = a.k) q ON z < n
SELECT a.n, b.m, z FROM a FULL JOIN b ON a.k = b.k LEFT JOIN LATERAL (SELECT n + m AS z) q ON true
SELECT a.n, b.m FROM a JOIN b USING (k), LATERAL (SELECT n * m AS z) q WHERE z > 80
SELECT k, z FROM a FULL JOIN b USING (k) JOIN LATERAL (SELECT a.k + b.k AS z) q ON z < 9
SELECT id, v FROM boxed, unnest(items) AS u(v)
SELECT b.id, v, a.n FROM boxed b CROSS JOIN unnest(b.items) u(v) JOIN a ON a.k = v
SELECT k, i FROM a, range(a.k) t(i) WHERE i > 0
SELECT a.n, b.m FROM a JOIN b NEAREST 2 BY DISTANCE abs(a.n - b.m)
SELECT a.n, b.m FROM a LEFT JOIN b APPROX NEAREST BY SIMILARITY a.n * b.m + b.k
SELECT x.n, q.m FROM a x JOIN (SELECT * FROM b WHERE m > 5) q EXACT NEAREST 3 BY DISTANCE abs(x.n - q.m) + 0.5
SELECT a.n, b.m, c.w FROM a JOIN b NEAREST 1 BY DISTANCE abs(a.n - b.m) JOIN c ON c.k = b.k
SELECT count(*) FROM a JOIN (b JOIN c ON b.k = c.k) NEAREST 1 BY DISTANCE a.n - m + w
SELECT a.n, e.m FROM a LEFT JOIN empty e NEAREST 2 BY DISTANCE m
SELECT a.n FROM a JOIN BY (TYPE semi) b ON a.k = b.k
SELECT n, m FROM a JOIN BY (TYPE LEFT_JOIN) b ON (a.k = b.k AND m > 7)
SELECT count(*) FROM a JOIN BY (TYPE full) b USING (k)
SELECT k FROM a EXCEPT SELECT k FROM b ORDER BY k
WITH q AS (SELECT a.n FROM a JOIN b USING (k)) SELECT EXISTS (FROM q WHERE n > 9) AS e, (SELECT sum(n) FROM q) AS n
SELECT a.k, (SELECT count(*) FROM b WHERE b.k = a.k), EXISTS (FROM c WHERE c.k = a.k) FROM a
""".strip().splitlines()


@pytest.fixture(scope="module")
def db() -> Any:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(MADE)
        yield connection


def tables_of(db: duckdb.DuckDBPyConnection, text: str) -> dict[str, pa.Table]:
    named = {name for (name,) in db.sql("SELECT table_name FROM duckdb_tables()").fetchall()}
    return {name: db.sql(f"FROM {name}").to_arrow_table() for name in named if re.search(
        rf"(FROM|JOIN|,|\)) \(?{name}\b", text)}


def rows_of(table: pa.Table) -> list[str]:
    return list(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def check(db: duckdb.DuckDBPyConnection, text: str) -> int:
    """Assert that the rows of ``text`` are DuckDB's, in its order where it has ORDER BY; how many they are."""
    want = rows_of(wanted(db.sql(text)))
    found = rows_of(splitjoin.sql(text, tables=tables_of(db, text)).to_arrow())
    if "ORDER BY" in text.rpartition(")")[2] and "GROUP" not in text:
        assert found == want
    assert Counter(found) == Counter(want)
    return len(want)


@pytest.mark.parametrize("text", STATEMENTS)
def test_rows_are_those_of_duckdb(db: duckdb.DuckDBPyConnection, text: str) -> None:
    with accounted(__file__, text):
        check(db, text)


#: Terms on two tables, in the language, of one table by DuckDB, and of both by DuckDB.
TERMS = ["{0}.k = {1}.k", "{0}.k < {1}.k", "{0}.k + {1}.k <= 5", "lower({0}.name) = {1}.name", "{0}.k % 2 = {1}.k % 2",
         "{0}.k IS DISTINCT FROM {1}.k", "{0}.name || {1}.name > 'xy'", "{0}.k IN ({1}.k, 3)", "[{0}.k] <= [{1}.k]",
         "{0}.k BETWEEN {1}.k - 1 AND {1}.k", "EXISTS (SELECT 1 FROM c WHERE c.k = {0}.k OR c.k = {1}.k)", "{1}.k > 1",
         "({0}.k = 3 OR {1}.k = 1)", "NOT coalesce({0}.k, 0) = {1}.k", "{0}.k::VARCHAR = {1}.k::VARCHAR"]
TABLES = ["a", "b", "(SELECT k, name FROM a WHERE k > 1)", "(SELECT k, upper(name) AS name FROM b)",
          "(SELECT a.k, b.name FROM a JOIN b ON a.k <= b.k)", "(VALUES (1, 'x'), (3, NULL))", "empty"]
#: Tables that are others for each row of those before them.
ROWS_OF = ["LATERAL (SELECT {0}.k + 1, upper({0}.name))", "(SELECT m - 5, b.name FROM b WHERE b.k = {0}.k)",
           "LATERAL (SELECT max(b.k), {0}.name FROM b WHERE b.k <> {0}.k)", "(SELECT k, name FROM a WHERE k < {0}.k "
           "ORDER BY ALL LIMIT 2)"]
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "CROSS JOIN"]
LISTS = ["{0}.k", "*", "count(*)", "DISTINCT {0}.name", "{0}.k, upper({0}.name) AS u", "{0}.name, count({0}.k) AS n",
         "max({0}.k), min({0}.name)", "{0}.k, {0}.k IN (SELECT k FROM c WHERE w > 1) OR {0}.name = 'x' AS i",
         "{0}.name, EXISTS (FROM c WHERE c.k >= {0}.k), (SELECT max(w) FROM c WHERE c.k <> {0}.k)",
         "{0}.k + 1, row_number() OVER (ORDER BY {0}.k, {0}.name) > 1"]
#: Conditions of WHERE, and those on the rows of a SELECT, of which each is a join.
TESTS = ["{0}.k > 1", "{0}.k IS NULL", "{0}.name <> 'y'", "{0}.k = (SELECT max(k) FROM b)", "{1}.name LIKE 'x%'",
         "({0}.k < 3 OR {1}.k = 3)"]
QUERIES = ["{0}.k IN (SELECT m - 5 FROM b)", "{1}.k NOT IN (SELECT k FROM c WHERE w < {0}.k)",
           "NOT EXISTS (FROM c WHERE k < {0}.k)", "({0}.k, {0}.name) NOT IN (SELECT k, name FROM b WHERE k > 1)",
           "(EXISTS (SELECT 1 FROM a q, c WHERE q.k = c.k AND c.k <= {0}.k) OR {1}.k IN (SELECT max(k) FROM b "
           "GROUP BY name))", "{0}.k >= ALL (SELECT k FROM c UNION SELECT 3)", "({1}.k IS NULL OR {1}.k <> ANY (FROM "
           "(SELECT b.k FROM b JOIN c ON b.k < c.k)))", "NOT ({0}.k < 3 AND {1}.name IN (SELECT name FROM b))"]


@st.composite
def statements(draw: st.DrawFn) -> str:
    """A SELECT over one to three tables, with any kinds of join, and what may stand before, in and behind them."""
    labels = ["x", "y", "z"][:draw(st.sampled_from([1, 2, 2, 3, 3]))]
    tables = [draw(st.sampled_from(TABLES)) for _ in labels]
    source, seen = f"{tables[0]} x(k, name)", ["x"]
    for label, table in zip(labels[1:], tables[1:], strict=True):
        kind, how = draw(st.sampled_from(KINDS)), draw(st.sampled_from(["on", "on", "using", "natural"]))
        item = f"{table} {label}(k, name)"
        terms = draw(st.lists(st.sampled_from(TERMS), min_size=1, max_size=2, unique=True))
        each = draw(st.sampled_from(ROWS_OF)).format(draw(st.sampled_from(seen)))
        if kind == "CROSS JOIN":
            source += f" {kind} {item}"
        elif kind in ("JOIN", "LEFT JOIN") and draw(st.integers(0, 3)) == 0:
            term = draw(st.sampled_from([of for of in TERMS if "SELECT" not in of]))  # DuckDB takes no other ones
            source += f" {kind} {each} {label}(k, name) ON {term.format(draw(st.sampled_from(seen)), label)}"
        elif how == "using" and len(seen) == 1:
            source += f" {kind} {item} USING ({draw(st.sampled_from(['k', 'name', 'k, name']))})"
        elif how == "natural" and len(seen) == 1:
            source += f" NATURAL {kind} {item}"
        else:
            source += f" {kind} {item} ON {' AND '.join(t.format(draw(st.sampled_from(seen)), label) for t in terms)}"
        if kind not in ("SEMI JOIN", "ANTI JOIN"):
            seen.append(label)
    merged = "USING" in source or "NATURAL" in source
    first = "x" if not merged else draw(st.sampled_from(["x", seen[-1]]))
    chosen = draw(st.sampled_from([one for one in LISTS if one != "*" or not merged])).format(first)
    group = f" GROUP BY {first}.name" if chosen.endswith(" AS n") else ""
    where = draw(st.lists(st.sampled_from(TESTS), max_size=2, unique=True)) + draw(
        st.lists(st.sampled_from(QUERIES), min_size=len(labels) == 1, max_size=2, unique=True))
    where = [term.format(first, seen[-1]) for term in where]
    text = f"SELECT {chosen} FROM {source}{' WHERE ' * bool(where)}{' AND '.join(where)}{group}"
    if draw(st.integers(0, 5)) == 0:
        text = f"WITH q AS ({text.replace('*', 'x.k', 1) if chosen == '*' else text}) SELECT count(*) FROM q, c"
    elif draw(st.integers(0, 5)) == 0:
        text += f" {draw(st.sampled_from(['UNION ALL', 'UNION', 'EXCEPT']))} {text}"
    return text


@settings(max_examples=examples(40))
@given(text=statements())
def test_random_statements(db: duckdb.DuckDBPyConnection, text: str) -> None:
    check(db, text)
