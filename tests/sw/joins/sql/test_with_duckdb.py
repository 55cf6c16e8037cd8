"""Statements whose join runs here and the rest of which DuckDB computes give the rows that DuckDB gives for them."""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import InputError, PredicateError, SchemaError, StatementError
from splitjoin.joins.sql import explain_sql
from splitjoin.joins.sql.database import close_idle
from splitjoin.joins.sql.table_join import TableJoin
from tests.support.accounts import accounted
from tests.support.databases import database, wanted
from tests.support.sampling import examples

DAY = dt.datetime(2024, 2, 28)
R = pa.table({
    "id": range(8), "k": ["a", "B", None, "b", "c ", "a", "", "ab"], "x": [5, 1, None, 7, 3, 5, 2, 9],
    "t": [DAY, DAY + dt.timedelta(hours=30), None, *[DAY + dt.timedelta(days=n) for n in (3, 40, 400, -1, 0)]],
    "d": pa.array([0, 1, 2, None, 19782, 5, 6, 7], pa.date32()),
    "ok": [True, False, None, True, False, True, None, None]})
S = pa.table({
    "id": range(3, 9), "k": ["A", "b", "b", None, "", "abc"], "a": [4, None, 5, 1, 9, 2],
    "due": [DAY + dt.timedelta(hours=20), DAY, None, *[DAY + dt.timedelta(days=n) for n in (1, 39, 800)]]})



def rows_of(text: str, **tables: pa.Table) -> pa.Table:
    with database() as db:
        db.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            db.register(name, table)
        return wanted(db.sql(text))


def check(text: str, r: pa.Table = R, s: pa.Table = S, **how: Any) -> list[tuple[Any, ...]]:
    """Assert that the rows of ``text`` are DuckDB's, in its order where the statement asks for one."""
    want = [tuple(row.values()) for row in positional(rows_of(text, r=r, s=s))]
    found = [tuple(row.values()) for row in positional(splitjoin.sql(text, r=r, s=s, **how).to_arrow())]
    if "ORDER BY" in text.rpartition(")")[2]:
        assert found == want
    assert Counter(map(repr, found)) == Counter(map(repr, want))
    return found


def positional(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of ``table`` with columns named by their place, as names may occur twice."""
    return table.rename_columns([str(n) for n in range(table.num_columns)]).to_pylist()


STATEMENTS = [
    "SELECT count(*) FROM r JOIN s ON r.x < s.a",
    "SELECT count(*), count(r.k), sum(x + a), avg(a), string_agg(s.k, ',' ORDER BY s.id, r.id) FROM r, s WHERE x >= a",
    "SELECT DISTINCT r.k FROM r JOIN s ON r.x <= s.a",
    "SELECT DISTINCT ON (x) x, a FROM r JOIN s ON x <= a ORDER BY x, a",
    "SELECT r.k, max(a) AS m FROM r, s WHERE x < a GROUP BY r.k HAVING count(*) > 1 ORDER BY r.k",
    "SELECT x, a, count(*) AS n FROM r, s WHERE x < a GROUP BY ROLLUP (x, a) ORDER BY ALL",
    "SELECT r.k, count(*) FILTER (WHERE a > 4) FROM r JOIN s ON x <> a GROUP BY ALL",
    "SELECT x, a FROM r JOIN s ON x < a ORDER BY x + a DESC, x, a LIMIT 4",
    "SELECT x, a FROM r JOIN s ON x < a ORDER BY r.id, s.id",
    "SELECT x, a, sum(a) OVER (PARTITION BY x ORDER BY a, s.id) AS total FROM r, s WHERE x < a",
    "SELECT x, row_number() OVER w AS n FROM r, s WHERE x < a WINDOW w AS (PARTITION BY x ORDER BY a) QUALIFY n < 3",
    "SELECT x, a FROM r LEFT JOIN s ON x = a WHERE s.k IS NULL OR a > 4",
    "SELECT x, a FROM r FULL JOIN s ON x = a WHERE coalesce(x, a) > 2",
    "SELECT * FROM r RIGHT JOIN s ON r.id = s.id WHERE x IS NULL",
    "SELECT r.* FROM r LEFT JOIN s ON r.x = s.a WHERE s.a IS NULL",
    "SELECT r.id FROM r LEFT JOIN s ON r.x < s.a WHERE s.id IS NULL AND r.x > 2",
    "SELECT r.id, s.k FROM r LEFT JOIN s ON r.x = s.a WHERE s.k IS NULL",
    "SELECT count(*) FROM r LEFT JOIN s ON r.x = s.id WHERE s.k IS NULL",
    "SELECT r.id FROM r LEFT JOIN s ON r.k > 'a' AND r.x >= s.a WHERE s.k IS NULL",
    "SELECT COLUMNS('^x|^a') FROM r LEFT JOIN s ON r.x = s.a WHERE s.a IS NULL",
    "SELECT count(*), min(x) FROM r ANTI JOIN s ON r.x < s.a",
    "SELECT upper(k) FROM r SEMI JOIN s ON r.x = s.a WHERE x > 1",
    "SELECT * FROM (SELECT r.k, ok, a FROM r JOIN s ON x <= a) PIVOT (sum(a) FOR ok IN (true, false)) ORDER BY ALL",
    "SELECT p.*, r.id FROM s PIVOT (max(a) FOR k IN ('b', '')) AS p JOIN r ON p.id <= r.id",
    "SELECT p.x, p.y, r.id FROM s PIVOT (max(a) FOR k IN ('b', '')) AS p(y, x) JOIN r ON p.y <= r.id",
    "SELECT * FROM r JOIN s USING (k)",
    "SELECT k, x, a FROM r LEFT JOIN s USING (k) WHERE a IS NULL",
    "SELECT k, count(x) FROM r FULL JOIN s USING (k) GROUP BY k",
    "SELECT k, id, a FROM r RIGHT JOIN s USING (id, k)",
    "SELECT count(*) FROM r SEMI JOIN s USING (k)",
    "WITH c AS (SELECT id, x FROM r WHERE ok), q AS (SELECT * FROM s) SELECT c.id, a FROM c JOIN q ON c.x < q.a",
    "WITH j AS (SELECT r.k, a FROM r JOIN s ON x < a) SELECT k, count(*) FROM j GROUP BY k ORDER BY k NULLS FIRST",
    "WITH r AS (SELECT * FROM r WHERE x > 4) SELECT count(*) FROM r, s WHERE x < a",
    "SELECT x FROM r SEMI JOIN s ON x = a UNION ALL SELECT a + 0.5 FROM s ANTI JOIN r ON x = a",
    "WITH u AS (SELECT x FROM r UNION ALL SELECT a FROM s), o AS (SELECT 5 AS y) SELECT x, y FROM u, o WHERE x < y",
    "WITH a AS (SELECT x AS y FROM r), b AS (SELECT sum(y) AS z FROM a) SELECT z, a FROM b JOIN s ON z > a",
    "SELECT q.x, p.a FROM (SELECT x FROM r WHERE k <> '' LIMIT 9) AS q JOIN (SELECT a FROM s) p ON q.x < p.a",
    "SELECT x, a FROM r JOIN s ON x < a WHERE x > (SELECT avg(x) FROM r)",
    "SELECT x FROM r, s WHERE x < a AND EXISTS (SELECT 1 FROM s AS t WHERE t.a > r.x + 3)",
    "SELECT x AS y, a FROM r, s WHERE y < a AND a IN (SELECT id FROM s)",
    "SELECT r.id, s.id FROM r JOIN s ON lower(r.k) = lower(s.k)",
    "SELECT r.id, s.id FROM r JOIN s ON trim(r.k) || 'c' = s.k OR length(r.k) > s.a",
    "SELECT r.id, s.id FROM r JOIN s ON substring(r.k, 1, 1) = replace(s.k, 'bc', '') AND concat(r.k, 'x') <> 'Bx'",
    "SELECT r.id, s.id FROM r, s WHERE r.k ILIKE 'A%' AND regexp_matches(s.k, '^[ab]') AND r.id <> s.id",
    "SELECT r.id, s.id FROM r, s WHERE extract(day FROM r.t) = s.a OR year(r.t) - 2023 < extract(hour FROM s.due)",
    "SELECT r.id, s.id FROM r, s WHERE r.t + INTERVAL 1 MONTH > s.due AND s.due >= DATE '2024-02-28'",
    "SELECT r.id, s.id FROM r, s WHERE r.d + INTERVAL 2 DAY < s.due AND strftime(r.t, '%H') = '00'",
    "SELECT r.id, s.id FROM r JOIN s ON sin(r.x) < s.a / 7 AND starts_with(s.k, lower('A'))",
    "SELECT r.id, s.id FROM r LEFT JOIN s ON upper(r.k) = upper(s.k) AND r.x::VARCHAR LIKE '%5'",
    "SELECT CASE WHEN starts_with(s.k, r.k) THEN r.k || '/' || s.k ELSE upper(r.k) END FROM r JOIN s ON r.x <> s.a",
    "SELECT r.x, s.* EXCLUDE (k) FROM r, s WHERE x IS DISTINCT FROM a -- a comment",
    "SELECT COLUMNS('^x|^a') FROM r, s WHERE (x BETWEEN 1 AND a) AND a > 1 OR x = 9",
    "SELECT -x, a FROM r, s WHERE x BETWEEN 1 AND a AND CASE WHEN ok AND x > 1 THEN true ELSE x < 3 END",
    'SELECT "x", s.a FROM r JOIN s ON r.x < s.a GROUP BY ALL',
    "SELECT t.id FROM r t ASOF JOIN s ON lower(t.k) = lower(s.k) AND t.t >= s.due WHERE x > 1",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_rows_are_those_of_duckdb(text: str) -> None:
    if "ASOF" in text:
        kept = R.filter(pa.array([v is not None for v in R["t"].to_pylist()])).sort_by("t")
        check(text, kept, S.filter(pa.array([v is not None for v in S["due"].to_pylist()])).sort_by("due"))
        return
    with accounted(__file__, text):
        check(text)


def test_empty_tables() -> None:
    for text in STATEMENTS[:-1]:
        check(text, R.slice(0, 0), S.slice(0, 0))


TERMS = ["r.x < s.a", "r.x + s.a <= 9", "r.id = s.id", "lower(r.k) = lower(s.k)", "r.k <= s.k", "length(r.k) < s.a",
         "r.x BETWEEN s.a - 2 AND s.a + 2", "(r.x > 3 OR s.a < 4)", "r.t + INTERVAL 1 MONTH < s.due", "r.ok"]
BEHIND = ["r.x > 2", "s.a IS NULL", "s.k IS NOT NULL", "coalesce(r.x, 0) + coalesce(s.a, 0) > 4", "r.k || 'b' <> s.k",
          "s.id IS NULL", "r.ok"]
LISTS = [("r.id, s.a", ""), ("count(*), sum(r.x)", ""), ("DISTINCT r.x, s.k", ""), ("r.k, count(s.a)", "GROUP BY r.k"),
         ("s.k, max(x) AS m", "GROUP BY s.k HAVING count(*) > 1"), ("x, a", "ORDER BY r.id, s.id LIMIT 5"),
         ("r.*", ""), ("x + a, upper(s.k)", ""), ("x, rank() OVER (ORDER BY x, a)", ""), ("r.id", "")]


@settings(max_examples=examples(40))
@given(st.sampled_from(LISTS), st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]),
       st.lists(st.sampled_from(TERMS), min_size=1, max_size=3, unique=True),
       st.lists(st.sampled_from(BEHIND), max_size=2, unique=True), st.booleans())
def test_random_statements(items: tuple[str, str], kind: str, on: list[str], where: list[str], nested: bool) -> None:
    chosen, tail = items
    behind = f" WHERE {' AND '.join(where)}" if where else ""
    first = "(SELECT * FROM r WHERE id <> 3) AS r" if nested else "r"
    check(f"SELECT {chosen} FROM {first} {kind} s ON {' AND '.join(on)}{behind} {tail}")


def test_windows_limit_the_pairs_that_are_counted() -> None:
    r, s = pa.table({"ts": [1, 2, 5], "x": [1, 2, 3]}), pa.table({"ts": [1, 4, 6], "a": [1, 2, 3]})
    found = splitjoin.sql("SELECT count(*) AS n, sum(x) AS t FROM r JOIN s ON x <= a", r=r, s=s, window="RANGE 1",
                          time="ts")
    assert found.to_pylist() == [{"n": 2, "t": 4}]
    with pytest.raises(StatementError, match="those of one join, but the statement has several"):
        splitjoin.sql("WITH j AS (SELECT r.ts FROM r JOIN s ON x <= a) SELECT count(*) FROM j JOIN s ON j.ts < s.ts",
                      r=r, s=s, window="RANGE 1", time="ts")


def test_names_are_those_of_a_select() -> None:
    found = splitjoin.sql("SELECT r.k, s.k, count(*), min(x + a), sum(a) t, x AS y FROM r, s WHERE x < a GROUP BY ALL",
                          r=R, s=S)
    assert found.column_names == ["k_r", "k_s", "count(*)", "min(x + a)", "t", "y"]
    star = splitjoin.sql("SELECT * FROM r, s WHERE x < a ORDER BY x + a", r=R, s=S)
    assert star.column_names == ["id_r", "k_r", "x", "t", "d", "ok", "id_s", "k_s", "a", "due"]
    both = splitjoin.sql(f"{'SELECT r.id, s.id FROM r, s WHERE x < a UNION ALL ' * 2}SELECT id, a FROM s", r=R, s=S)
    assert both.column_names == ["id_r", "id_s"]
    for items in ("r.* EXCLUDE (id, k, t, d, ok)", "COLUMNS('^x$')", "r.* LIKE 'x%'"):  # one column is left
        assert splitjoin.sql(f"SELECT {items} FROM r, s WHERE x < a", r=R, s=S).column_names == ["x"]


def test_files_and_devices(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(R, tmp_path / "r.parquet")
    found = splitjoin.sql("SELECT r.k, count(*) AS n FROM r, s WHERE x < a GROUP BY r.k ORDER BY n, r.k",
                          r=tmp_path / "r.parquet", s=pa.RecordBatchReader.from_batches(S.schema, S.to_batches()),
                          device="golden", to=tmp_path / "out.parquet")
    want = rows_of("SELECT r.k, count(*) AS n FROM r, s WHERE x < a GROUP BY r.k ORDER BY n, r.k", r=R, s=S)
    assert found.to_arrow().to_pylist() == want.to_pylist()
    assert found.path == tmp_path / "out.parquet"
    assert found.plan.endswith("; the rest by DuckDB")
    with pytest.raises(InputError, match="the items of a join are kept where"):
        _ = found.items


def test_explanations() -> None:
    said = explain_sql("WITH q AS (SELECT * FROM s) SELECT r.x FROM r LEFT JOIN q ON lower(r.k) = q.k "
                       "WHERE q.k IS NULL AND x > 2", {"r": R.schema, "s": S.schema}, window="ROWS 9", windowed=False)
    assert said.splitlines()[1:] == [
        "selection        SELECT * FROM s",
        'DuckDB           r: splitjoin_7 = LOWER("r"."k"), once per tuple',
        'join             r ANTI JOIN q ON "r"."splitjoin_7" = "q"."k"',
        "the rest         SELECT r.x WHERE (x > 2)"]
    plain = explain_sql("SELECT x FROM r, s WHERE x < a", {"r": R.schema, "s": S.schema}, window="ROWS 9")
    assert "main predicate   (r.x < s.a) (WHERE); by range" in plain


ENUM = pa.array([0, 1], pa.int8())
REFUSED: list[tuple[str, type[Exception], str]] = [
    ("SELECT DISTINCT x ^ 2 FROM r, s", StatementError, r"\^ is XOR in a condition and a power in DuckDB"),
    ("WITH RECURSIVE c AS (SELECT 1) SELECT count(*) FROM r, s", StatementError, "WITH RECURSIVE is not supported"),
    ("SELECT count(*) FROM r, s s(a) RIGHT JOIN LATERAL (SELECT x) q ON true", StatementError, "DuckDB|takes JOIN and"),
    ("SELECT x FROM r, unnest([x]) u(v) RIGHT JOIN s ON v = a", StatementError, "must not stand before RIGHT or FULL"),
    ("SELECT x FROM s, r FULL JOIN (SELECT x + 1 AS y) q ON y > 1", StatementError, "takes JOIN and LEFT JOIN, not"),
    ("SELECT x FROM r FULL JOIN s NEAREST BY DISTANCE x", StatementError, "NEAREST BY is for INNER and LEFT JOIN"),
    ("SELECT x FROM r JOIN s NEAREST 0 BY DISTANCE x", StatementError, "NEAREST takes a number from 1 on"),
    ("SELECT x FROM r JOIN BY (TYPE mark) s ON x = a", StatementError, r"JOIN BY \(TYPE …\) takes INNER, LEFT"),
    ("SELECT DISTINCT x FROM r, s, r u", StatementError, "Ambiguous reference"),
    ("SELECT DISTINCT zz FROM r, s", StatementError, 'refuses it: Binder Error: Referenced column "zz" not found'),
    ("SELECT DISTINCT r.id, upper(s.k), r AS one FROM r, s", StatementError, "r stands for all columns of a table"),
    ("SELECT max(a) - r.x + s.a AS d FROM r, s GROUP BY r", PredicateError, "MAX is not supported within a larger val"),
    ("SELECT x FROM r, s WHERE CAST(r.k AS INT) = a", InputError, "gives no rows: Conversion Error"),
    ("SELECT x FROM r JOIN s ON x < a AND random() < 1", PredicateError, "function RAND is not supported in ON"),
    ("WITH c AS SELECT 1 SELECT y FROM c, s, r", StatementError, "WITH takes a name, AS|cannot be read"),
    ("SELECT COLUMNS('k') FROM r JOIN s USING (k)", StatementError, "k is one column of both tables, by USING, and"),
    ("SELECT DISTINCT x FROM r JOIN s", StatementError, "a JOIN needs ON and a condition"),
    ("SELECT x FROM r JOIN s ON x = a POSITIONAL JOIN s q", StatementError, "POSITIONAL JOIN is of two tables"),
    ("SELECT DISTINCT x FROM r NATURAL JOIN (SELECT 1 AS y) t, s", StatementError, "a NATURAL JOIN needs columns of"),
    ("SELECT DISTINCT x FROM r JOIN s USING (x)", StatementError, r"USING \(x\) needs one column of this name on each"),
    ("SELECT DISTINCT x FROM r ASOF JOIN s ON r.t >= s.due AND levenshtein(r.k, s.k) < 2", PredicateError, "LEVENSHT"),
    ("SELECT DISTINCT x FROM r, s USING SAMPLE 3", StatementError, "USING SAMPLE is not supported"),
    ("SELECT r.k AS q, upper(s.k) AS q FROM r, s", StatementError, "result columns must have distinct names, but 'q'"),
    ("SELECT 1 FROM r, 'x.csv' AS q WHERE x IN (SELECT a FROM s)", InputError, "there is no file x.csv"),
    ("SELECT x FROM (SELECT x FROM r, read_csv('/etc/hosts')) q, s", InputError,
     "calls read_csv; give the file"),
    ("SELECT x FROM (SELECT x FROM r WHERE x IN (FROM read_csv('/etc/hosts'))) q, s", InputError,
     "calls read_csv; give the file"),
]


@pytest.mark.parametrize(("text", "kind", "said"), REFUSED, ids=[c[0][:60] for c in REFUSED])
def test_refused(text: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        splitjoin.sql(text, r=R, s=S)
    assert type(caught.value) is kind


LEVELS = pa.table({"n": [1, 2, 3], "level": pa.DictionaryArray.from_arrays(
    pa.array([0, 1, None], pa.int8()), ["low", "high"], ordered=True)})


@pytest.mark.parametrize(("text", "want"), [
    ("SELECT r.level FROM r JOIN s USING (n) ORDER BY r.level DESC", ["high", "low", None]),
    ("SELECT max(r.level) AS level FROM r, s", ["high"]), ("SELECT level FROM r WHERE n IN (FROM s) LIMIT 0", []),
    ("WITH c AS (SELECT level AS level FROM r WHERE level > 'low') SELECT DISTINCT level FROM c, s", ["high"]),
    ("SELECT r.level FROM r LEFT JOIN s ON r.n = s.n WHERE 'low' < r.level", ["high"]),
    ("SELECT r.level FROM r LEFT JOIN s ON r.n = s.n WHERE NOT r.level NOT BETWEEN 'low' AND 'low'", ["low"]),
    ("SELECT r.level FROM r JOIN s ON upper(r.level::VARCHAR) = 'LOW' AND r.n = s.n", ["low"]),
    ("SELECT (SELECT max(level) FROM r WHERE r.n <= s.n) AS level FROM s", ["low", "high", "high"]),
])
def test_ordered_categories_keep_their_order_and_type(text: str, want: list[str | None]) -> None:
    found = splitjoin.sql(text, r=LEVELS, s=LEVELS.select(["n"])).to_arrow()
    assert found.column("level").to_pylist() == want
    assert found.schema.field("level").type == LEVELS.schema.field("level").type


@pytest.mark.parametrize(("text", "said"), [
    ("SELECT DISTINCT level FROM r, s WHERE r.level > 'middle' OR s.n = 9", "one of 'low', 'high', not 'middle'"),
    ("SELECT r.n FROM r JOIN s USING (n) GROUP BY r.n HAVING max(r.level) > 'high'", "must stand beside a column"),
    ("SELECT DISTINCT (r.level) > 'high' AS g FROM r, s", "must stand beside a column alone"),
    ("SELECT DISTINCT coalesce(r.level, 'low') > 'low' AS g FROM r, s", "'low' must stand beside a column alone"),
    ("SELECT max(least(r.level, 'low')) AS g FROM r, s", "'low'::VARCHAR for a text, or compare the column itself"),
    ("SELECT EXISTS (SELECT 1 FROM (SELECT level AS d FROM r) z WHERE z.d > 'high') AS g FROM r JOIN s USING (n)",
     "must stand beside a column alone"),
    ("SELECT DISTINCT one FROM r, s", r"r\.one has ordered categories, whose order DuckDB takes only of text"),
])
def test_categories_without_a_place_in_the_order_are_refused(text: str, said: str) -> None:
    one = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int8()), [2, 1], ordered=True)
    with pytest.raises(StatementError, match=said):
        splitjoin.sql(text, r=LEVELS.append_column("one", one), s=LEVELS.select(["n"]))


@pytest.mark.parametrize("text", [
    "SELECT k, sum(n) AS z FROM r JOIN s USING (k) GROUP BY k",
    "SELECT k, (SELECT sum(n) FROM r WHERE r.k = s.k) AS z FROM s",
    "WITH q AS (SELECT k, sum(n) AS z FROM r GROUP BY k) SELECT z FROM q FULL JOIN (SELECT 9::HUGEINT AS z, k FROM s) "
    "p USING (z, k) WHERE z > 9",
])
def test_sums_of_integers_are_integers(text: str) -> None:
    r, s = pa.table({"k": [1, 1], "n": [2**62, 2**62 - 1]}), pa.table({"k": [1]})
    found = splitjoin.sql(text, r=r, s=s).to_arrow().column("z")
    assert (found.type, found.to_pylist()) == (pa.int64(), [2**63 - 1])
    with pytest.raises(InputError, match="the integers of 'z', which DuckDB computes, must fit int64"):
        splitjoin.sql(text, r=pa.table({"k": [1, 1], "n": [2**62, 2**62]}), s=s)


@pytest.mark.parametrize(("listed", "names"), [
    ("* EXCLUDE (id)", ["x_r", "x_s"]), ("* EXCLUDE (r.x, s.id)", ["id", "x"]), ("r.* EXCLUDE id, s.id, s.x",
                                                                           ["x_r", "id", "x_s"]),
    ("* EXCLUDE (r.id) REPLACE (5 AS x)", ["x", "id"])])
def test_names_of_both_tables_behind_a_star(listed: str, names: list[str]) -> None:
    both = pa.table({"id": [1], "x": [2]})
    found = splitjoin.sql(f"SELECT {listed} FROM r JOIN s ON r.id = s.id", r=both, s=both)
    assert found.to_arrow().column_names == names


def test_union_all_appends_null_to_a_column_that_has_none() -> None:
    r = pa.table({"x": [1, 2]}, pa.schema([pa.field("x", pa.int64(), nullable=False)]))
    found = splitjoin.sql("SELECT x FROM r SEMI JOIN s ON x = a UNION ALL SELECT a FROM s ANTI JOIN r ON x = a", r=r,
                          s=pa.table({"a": [None, 2]})).to_arrow()
    assert (found.to_pydict(), found.schema.field("x").nullable) == ({"x": [2, None]}, True)


def test_a_column_that_using_merges_keeps_its_name() -> None:
    found = splitjoin.sql("SELECT s.a FROM (SELECT s.a FROM s JOIN r USING (a)) s JOIN r USING (a)", r=pa.table({
        "a": [1], "b": [2]}), s=pa.table({"a": [1]}))
    assert found.to_pylist() == [{"a": 1}]


def test_a_table_that_is_not_named() -> None:
    with pytest.raises(InputError, match="'u' is given, but the statement has no such table"):
        splitjoin.sql("SELECT count(*) FROM r, s", r=R, s=S, u=S)
    with pytest.raises(StatementError, match="WITH RECURSIVE is not supported"):
        splitjoin.sql("WITH RECURSIVE u(n) AS (FROM s UNION SELECT n + 1 FROM u) SELECT * FROM u, s", r=R, s=S)


def test_without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    close_idle()
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(StatementError, match=r"DISTINCT is not supported .*; or install DuckDB") as caught:
        splitjoin.sql("SELECT DISTINCT x, a FROM r, s", r=R, s=S)
    assert str(caught.value).endswith("\n           ^^^^^^^^")
    for wrong in ("SELECT xx FROM r, s", "SELECT x FROM r JOIN s ON r.xx = s.a", "SELECT x FROM r JOIN s ON q.x = s.a"):
        with pytest.raises(SchemaError) as caught:
            splitjoin.sql(wrong, r=R, s=S)
        assert "DuckDB" not in str(caught.value)
    assert splitjoin.sql("SELECT x FROM r, s WHERE x = 9 AND a = 4", r=R, s=S).to_pylist() == [{"x": 9}]


@pytest.mark.parametrize("on", ["lower(r.k) = s.k", "s.k = lower(r.k)", "lower(r.k) = lower(s.k)",
                                "r.k || 'b' = reverse(s.k)", "lower(r.k) = s.k AND r.x < s.a"])
def test_equal_texts_that_duckdb_computes_are_not_ranked(on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks among the texts of both tables would take a sort."""
    def ranked(*_: Any) -> Any:
        raise AssertionError("ranked")

    monkeypatch.setattr(TableJoin, "ranked", ranked)
    words = pa.DictionaryArray.from_arrays(pa.array([1, 0, 0, None, 2, 3]), ["b", "A", "", "abc"])
    for k in (words, words.cast(pa.large_string())):
        assert check(f"SELECT r.id, s.id AS m FROM r JOIN s ON {on}", s=S.set_column(1, "k", k)) or "||" in on
    assert check(f"SELECT r.id, s.id AS m FROM r JOIN s ON {on}") or "||" in on
