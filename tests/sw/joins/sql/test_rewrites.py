"""SELECTs of WITH are inlined where they are named, and so are parts of one plan; and which ones are not."""

from __future__ import annotations

import pytest

from splitjoin.joins.sql.rewrites import with_subqueries
from splitjoin.joins.sql.trees import statement_tree


@pytest.mark.parametrize(("statement", "moved"), [
    ("WITH t AS (SELECT x FROM a) SELECT x FROM t", "SELECT x FROM (SELECT x FROM a) AS \"t\""),
    ("WITH T AS (SELECT x FROM a) SELECT x FROM b JOIN t AS u ON b.x = u.x",
     "SELECT x FROM b JOIN (SELECT x FROM a) AS u ON b.x = u.x"),
    ("WITH t AS (SELECT x FROM a), u AS (SELECT x FROM t) SELECT x FROM u",
     "SELECT x FROM (SELECT x FROM (SELECT x FROM a) AS \"t\") AS \"u\""),
    ("WITH t AS (SELECT x FROM a), u AS (SELECT x FROM b) SELECT t.x FROM t, u, u AS v",
     "WITH u AS (SELECT x FROM b) SELECT t.x FROM (SELECT x FROM a) AS \"t\", u, u AS v"),
])
def test_a_select_that_is_named_once_stands_there(statement: str, moved: str) -> None:
    assert with_subqueries(statement_tree(statement)[0]).sql() == moved


@pytest.mark.parametrize("statement", [
    "WITH t AS (SELECT x FROM a) SELECT t.x FROM t, t AS u",  # twice
    "WITH t AS (SELECT x FROM a) SELECT x FROM a",  # never
    "WITH t AS MATERIALIZED (SELECT x FROM a) SELECT x FROM t",
    "WITH t(y) AS (SELECT x FROM a) SELECT y FROM t",
    "WITH t AS (SELECT x FROM a) SELECT y FROM t AS u(y)",
    "WITH t AS (SELECT x FROM a) SELECT x FROM main.t",  # another table
    "WITH t AS (SELECT x FROM a) SELECT x FROM b WHERE x IN (WITH t AS (SELECT x FROM c) SELECT x FROM t)",
    # Where it is named, another WITH has the name of its own table.
    "WITH t AS (SELECT x FROM a) SELECT x FROM b JOIN (WITH a AS (SELECT x FROM c) SELECT t.x FROM t, a, a AS d) "
    "AS u ON b.x = u.x",
])
def test_others_stay_in_with(statement: str) -> None:
    tree, _ = statement_tree(statement)
    assert with_subqueries(tree.copy()).sql() == tree.sql()
