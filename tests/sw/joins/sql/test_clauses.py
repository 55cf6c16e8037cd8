"""Clauses of statements over tables: each part of a tree that sqlglot can make is honoured, or refused in words."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp

import splitjoin
from splitjoin import InputError, PredicateError, StatementError
from splitjoin.joins.sql.clauses import HONOURED, unread_clause

R, S = pa.table({"x": [1, 2, 3], "k": ["a", "b", "c"]}), pa.table({"a": [1, 2, 2]})
JOIN = "FROM r JOIN s ON r.x = s.a"

#: A text for each clause that sqlglot would leave out of its text for DuckDB, or that DuckDB has not; the words of the
#: refusal.
REFUSED = {
    f"SELECT x {JOIN} FOR UPDATE": "FOR UPDATE or FOR SHARE is not supported: leave it out",
    f"SELECT x {JOIN} GROUP BY x FOR SHARE OF r NOWAIT": "FOR UPDATE or FOR SHARE",
    f"WITH q AS (SELECT * {JOIN} FOR UPDATE) SELECT q.x FROM q JOIN s ON q.x = s.a": "FOR UPDATE or FOR SHARE",
    f"SELECT x {JOIN} WHERE x IN (SELECT a FROM s FOR UPDATE)": "FOR UPDATE or FOR SHARE",
    f"SELECT x {JOIN} UNION SELECT a FROM s LOCK IN SHARE MODE": "FOR UPDATE or FOR SHARE",
    f"SELECT x {JOIN} CLUSTER BY x": "CLUSTER BY", f"SELECT x {JOIN} DISTRIBUTE BY x": "DISTRIBUTE BY",
    f"SELECT AS STRUCT x {JOIN}": "SELECT AS", f"SELECT x INTO t {JOIN}": "INTO is not supported: the rows are what",
    f"SELECT x {JOIN} ORDER BY x FETCH FIRST 1 ROWS WITH TIES": "WITH TIES",
    f"SELECT x {JOIN} FETCH FIRST 50 PERCENT ROWS ONLY": "write LIMIT 50 PERCENT",
    f"SELECT x {JOIN} LIMIT 1 BY x": "LIMIT BY", f"SELECT x {JOIN} ORDER BY x WITH FILL": "WITH FILL",
    f"SELECT x {JOIN} START WITH x = 1 CONNECT BY x = 1": "CONNECT BY",
    f"SELECT x {JOIN} LATERAL VIEW explode([x]) t AS u": "LATERAL VIEW is not supported: write CROSS JOIN unnest",
    "SELECT x FROM r CROSS APPLY s": "APPLY is not supported", "SELECT x FROM r OUTER APPLY s": "APPLY",
    "WITH p AS (FROM r) WITH q AS (FROM s) SELECT x FROM p JOIN q ON p.x = q.a": "write a comma in place of the second",
    "WITH p AS (FROM r), WITH RECURSIVE q AS (FROM s) SELECT x FROM p JOIN q ON p.x = q.a": "a SELECT has one WITH",
    "SELECT x FROM r@1 JOIN s ON r.x = s.a": "what stands at this table",
    "WITH q USING KEY (x) AS (SELECT * FROM r) SELECT q.x FROM q JOIN s ON q.x = s.a": "USING KEY"}


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("streams", [False, True])
def test_refused_over_tables_and_streams(text: str, streams: bool) -> None:
    with pytest.raises(StatementError, match=REFUSED[text].replace("(", r"\(")):
        splitjoin.sql(text, r=R.schema if streams else R, s=S.schema if streams else S)


def test_the_place_is_marked() -> None:
    with pytest.raises(StatementError, match=r"leave it out\n    SELECT x FROM r, s FOR UPDATE\n {23}\^\^\^$"):
        splitjoin.sql("SELECT x FROM r, s FOR UPDATE", r=R, s=S)


@pytest.mark.parametrize("kind", HONOURED)
def test_no_part_of_a_tree_is_ignored(kind: type[exp.Expr]) -> None:
    """A part that a new version of sqlglot adds is refused until somebody says that it is honoured."""
    made = exp.Union if kind is exp.SetOperation else kind
    assert HONOURED[kind] <= {*kind.arg_types}
    for name in {*kind.arg_types} - HONOURED[kind]:
        assert unread_clause(made(**{name: exp.Var(this="x")})), name
    for name in HONOURED[kind]:
        assert not unread_clause(made(**{name: exp.Identifier(this="x")})), name


def test_what_is_tested_must_be_true_or_false() -> None:
    for text in (f"SELECT x {JOIN} GROUP BY x HAVING 'x'", f"SELECT x {JOIN} GROUP BY r HAVING 'x'",
                 f"SELECT count(*) AS n {JOIN} HAVING 'x'", f"SELECT x {JOIN} WHERE 'x'",
                 "SELECT x FROM r JOIN s ON r.k"):
        with pytest.raises(InputError, match=r"BOOL.*; a condition must be true or false; it was given"):
            splitjoin.sql(text, r=R, s=S)
    with pytest.raises(PredicateError, match=r"a condition .* is needed here, but this is string"):
        splitjoin.sql("SELECT x FROM r JOIN s ON 'x'", r=R, s=S)


def test_numbers_are_conditions_as_in_duckdb() -> None:
    assert len(splitjoin.sql("SELECT x FROM r JOIN s ON r.x - 1", r=R, s=S)) == 6
    assert len(splitjoin.sql("SELECT x FROM r JOIN s ON 1", r=R, s=S)) == 9
