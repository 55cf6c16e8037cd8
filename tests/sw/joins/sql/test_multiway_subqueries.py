"""Inner joins of three tables and more with a SELECT over another table within them give DuckDB's rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import StatementError
from tests.support.accounts import accounted
from tests.support.databases import database, wanted

FROM = "FROM t1 a JOIN t2 b ON a.x = b.x JOIN t4 c ON b.x = c.x"
STATEMENTS = [
    f"SELECT a.x {FROM} WHERE a.k IN (SELECT k FROM t3)",
    f"SELECT a.x {FROM} WHERE a.k NOT IN (SELECT k FROM t3 WHERE k IS NOT NULL)",
    f"SELECT a.x, b.w {FROM} WHERE EXISTS (SELECT 1 FROM t3 WHERE t3.k = a.k)",
    f"SELECT a.x, b.w {FROM} WHERE NOT EXISTS (SELECT 1 FROM t3 WHERE t3.k = a.k AND t3.v > c.z)",
    f"SELECT a.x {FROM} WHERE a.k > ANY (SELECT k FROM t3)",
    f"SELECT a.x {FROM} WHERE a.k >= ALL (SELECT k FROM t3 WHERE k < 4)",
    f"SELECT a.x {FROM} WHERE a.k = (SELECT max(k) FROM t3)",
    f"SELECT a.x {FROM} WHERE a.k IN (SELECT k FROM t3) OR b.w = 3",
    f"SELECT a.x, b.w {FROM} WHERE (a.k, b.w) IN (SELECT k, v FROM t3)",
    f"SELECT a.x, (SELECT max(v) FROM t3) m {FROM}",
    f"SELECT a.x, (SELECT max(v) FROM t3 WHERE t3.k = a.k) m {FROM}",
    f"SELECT a.k IN (SELECT k FROM t3) m, b.w + (SELECT min(v) FROM t3) n {FROM} WHERE c.z > 2",
    f"SELECT CASE WHEN EXISTS (SELECT 1 FROM t3 WHERE t3.k = a.k) THEN 1 ELSE 0 END e {FROM}",
    "SELECT a.x, c.z FROM t1 a JOIN t2 b ON a.x = b.x AND a.k IN (SELECT k FROM t3) JOIN t4 c ON b.x = c.x",
    f"SELECT a.x, c.z {FROM} AND c.z < (SELECT max(v) FROM t3)",
    f"SELECT a.x, c.z {FROM} AND EXISTS (SELECT 1 FROM t3 WHERE t3.k = c.z)",
    f"SELECT a.x {FROM} JOIN t5 d ON d.z = c.z WHERE a.k IN (SELECT k FROM t3)",
    f"SELECT a.x {FROM} WHERE a.k IN (SELECT k FROM t3 JOIN t5 USING (v))",
    "SELECT a.x FROM t1 a, t2 b, t4 c WHERE a.x = b.x AND b.x = c.x AND a.k IN (SELECT k FROM t3)",
]


def tables(seed: int) -> dict[str, pa.Table]:
    chance = np.random.default_rng(seed)

    def table(n: int, *names: str) -> pa.Table:
        return pa.table({name: pa.array(chance.integers(0, 6, n), mask=chance.random(n) < 0.1) for name in names})

    return {"t1": table(9, "x", "k"), "t2": table(8, "x", "w"), "t3": table(7, "k", "v"), "t4": table(9, "x", "z"),
            "t5": table(5, "z", "v")}


@pytest.mark.parametrize("text", STATEMENTS)
def test_rows_are_those_of_duckdb(text: str) -> None:
    given = {name: table for name, table in tables(3).items() if name in text}
    with database() as db:
        for name, table in given.items():
            db.register(name, table)
        want = wanted(db.sql(text)).to_pylist()
    with accounted(__file__, text):
        found = splitjoin.sql(text, **given).to_pylist()
    assert Counter(map(repr, found)) == Counter(map(repr, want))


def test_the_join_runs_here() -> None:
    given = {name: table for name, table in tables(3).items() if name != "t5"}
    assert splitjoin.sql(STATEMENTS[0], **given).plan.startswith("rows ")


def test_streams_take_no_other_select() -> None:
    schemas = {name: table.schema for name, table in tables(1).items() if name != "t5"}
    with pytest.raises(StatementError, match=r"a SELECT within a SELECT is for whole tables, .*; streams take one"):
        splitjoin.sql(STATEMENTS[0], window="ROWS 9", **schemas)
