"""Aggregates over groups of one join's rows, folded for each row of a table, beside DuckDB over all pairs."""

from __future__ import annotations

import math
import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import splitjoin
from tests.support.databases import database, wanted
from tests.support.sampling import examples

CONDITIONS = [
    "abs(r.x - s.a) <= 9", "r.k = s.j AND r.x BETWEEN s.a - 20 AND s.a + 5", "r.x < s.a", "r.k = s.j",
    "r.k = s.j AND s.a >= r.x", "r.x - s.a BETWEEN -3 AND 8",
]
FOLDED = [
    "count(*)", "count(s.f)", "sum(s.a)", "sum(s.f)", "avg(s.a)", "avg(s.f)", "min(s.t)", "max(s.f)", "max(s.d)",
    "sum(s.a + s.b)", "min(r.f)", "count(r.k)", "sum(r.x)", "avg(r.f)", "sum(s.a) FILTER (WHERE s.b > 30)",
    "count(*) FILTER (WHERE r.x > 40)", "max(upper(s.t))",
]
#: Those that are put together only where each row is a group.
ALONE = ["median(s.f)", "count(DISTINCT s.t)", "stddev(s.a)", "arg_min(s.t, s.n)"]
KEYS = ["r.k", "u", "r.k, r.t", "r.x % 5", "r.n", "upper(r.t)"]


def _table(chance: random.Random, names: str, rows: int) -> pa.Table:
    def some(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    columns: list[list[Any]] = [
        [some(chance.randrange(100)) for _ in range(rows)], [some(chance.randrange(100)) for _ in range(rows)],
        [some(chance.randrange(4)) for _ in range(rows)], [some(chance.choice("aBc")) for _ in range(rows)],
        [some(chance.randrange(-80, 80) / 8) for _ in range(rows)], list(range(rows))]
    kinds = [pa.int64(), pa.int32(), pa.int64(), pa.string(), pa.float64(), pa.int64()]
    return pa.table({name: pa.array(values, kind) for name, values, kind in zip(names, columns, kinds, strict=True)} | {
        "d": pa.array([some(chance.randrange(50)) for _ in range(rows)], pa.int32()).cast(pa.date32())})


def _alike(a: Any, b: Any) -> bool:
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9))


def _check(text: str, r: pa.Table, s: pa.Table) -> str:
    """Compare with DuckDB, and give the plan."""
    found = splitjoin.sql(text, r=r, s=s)
    with database() as db:
        db.register("r", r)
        db.register("s", s)
        other = wanted(db.sql(text))
    made, expected = (sorted((tuple(row.values()) for row in table.to_pylist()), key=repr) for table in (
        found.table, other))
    assert len(made) == len(expected), text
    assert all(_alike(a, b) for one, other in zip(made, expected, strict=True) for a, b in zip(
        one, other, strict=True)), (text, made, expected)
    return str(found.plan)


def test_random_statements() -> None:
    for seed in range(examples(40)):
        chance = random.Random(seed)
        r, s = (_table(chance, names, 40) for names in ("xuktfn", "abjtfn"))
        keys = chance.choice([*KEYS, "", ""])
        calls = chance.sample(FOLDED + (ALONE if keys == "r.n" else []), chance.randint(1, 4))
        how = chance.choice(["JOIN", "JOIN", "LEFT JOIN"])
        text = f"SELECT {', '.join([*([keys] if keys else []), *calls])} FROM r {how} s ON {chance.choice(CONDITIONS)}"
        if how == "JOIN" and chance.random() < 0.3:
            text += f" WHERE {chance.choice(['r.f > 0', 's.b < 50 AND r.x > 10'])}"
        text += f" GROUP BY {keys}" if keys else ""
        if chance.random() < 0.3:
            text += f" HAVING {chance.choice(calls)} IS NOT NULL AND count(*) > 2"
        assert "without pairs" in _check(text, r, s), text


@pytest.mark.parametrize("text", [
    "SELECT s.j, count(*) AS n, sum(r.x) FROM r JOIN s ON r.x < s.a GROUP BY s.j",  # groups of the second table
    "SELECT r.n, max(upper(r.v)), sum(s.a) FROM r JOIN s ON r.x < s.a GROUP BY r.n",
    "SELECT r.x % 5 AS g, count(*) FROM r JOIN s ON r.x < s.a GROUP BY g",
    "SELECT gcd(r.k, 2) AS g, count(*) FROM r JOIN s ON r.x < s.a GROUP BY r.k",
    "SELECT count(*) FROM r, s WHERE abs(r.x - s.a) < 3 AND s.f > 0",
    "SELECT r.k, count(*) AS n FROM r JOIN s ON r.x < s.a GROUP BY ALL ORDER BY n DESC, 1 LIMIT 2",
    "SELECT count(*) + 1 AS n, coalesce(sum(a), -1) FROM r JOIN s ON r.x > s.a + 1000",
    "SELECT t.k, t.n FROM (SELECT r.k, count(*) AS n FROM r JOIN s ON r.x < s.a GROUP BY r.k) t WHERE t.n > 9",
])
def test_statements_around(text: str) -> None:
    chance = random.Random(1)
    r, s = (_table(chance, names, 30) for names in ("xukvfn", "abjtfn"))
    assert "without pairs" in _check(text, r, s)


@pytest.mark.parametrize("text", [
    "SELECT r.k, s.j, count(*) FROM r JOIN s ON r.x < s.a GROUP BY r.k, s.j",  # keys of both
    "SELECT r.k, sum(r.x * s.a) FROM r JOIN s ON r.x < s.a GROUP BY r.k",  # values of both
    "SELECT r.k, median(s.f) FROM r JOIN s ON r.x < s.a GROUP BY r.k",
    "SELECT r.k, count(*), fsum(r.f) FROM r JOIN s ON r.x < s.a GROUP BY r.k",
    "SELECT r.k, mode(r.u) FROM r JOIN s ON r.x < s.a GROUP BY r.k",
    "SELECT r.k, count(DISTINCT s.t) FROM r JOIN s ON r.x < s.a GROUP BY r.k",
    "SELECT DISTINCT r.k, count(*) OVER (PARTITION BY r.k) FROM r JOIN s ON r.x < s.a",
])
def test_what_needs_pairs(text: str) -> None:
    chance = random.Random(2)
    r, s = (_table(chance, names, 30) for names in ("xukvfn", "abjtfn"))
    assert "without pairs" not in _check(text, r, s)


def test_floats_of_32_bits_are_summed_as_those_of_64() -> None:
    r = pa.table({"k": [0, 0, 1], "v": pa.array([0.1, 0.7, 1.3], pa.float32())})
    s = pa.table({"a": range(11)})
    text = "SELECT k, sum(v) AS total, avg(v) AS mean FROM r JOIN s ON a > k GROUP BY k ORDER BY k"
    found = splitjoin.sql(text, r=r, s=s)
    with duckdb.connect() as db:
        db.register("r", r)
        db.register("s", s)
        expected = [(k, pytest.approx(total, rel=1e-14), pytest.approx(mean, rel=1e-14))
                    for k, total, mean in db.execute(text).fetchall()]
    assert [tuple(row.values()) for row in found.to_arrow().to_pylist()] == expected


def test_sums_that_pass_64_bits_are_those_of_duckdb() -> None:
    r = pa.table({"k": [1, 1], "x": [1, 2]})
    s = pa.table({"a": pa.array([5, 6], pa.int64()), "v": pa.array([2**62, 2**62], pa.int64())})
    text = "SELECT k, sum(v) // 4 AS v FROM r JOIN s ON r.x < s.a GROUP BY k"
    assert splitjoin.sql(text, r=r, s=s).table.column("v").to_pylist() == [2**62]


@pytest.mark.parametrize("values", [
    pa.nulls(3), pa.array([[None], [], None]), pa.array([{"a": None}, {"a": None}, None]),
], ids=["nulls", "lists", "structs"])
def test_columns_of_type_null(values: pa.Array) -> None:
    """DuckDB writes their type as ``"NULL"``, alone or in a nested one."""
    r, s = pa.table({"k": [1, 2, 3], "v": values}), pa.table({"j": [1, 2, 3], "w": values})
    for text in ("SELECT r.k, max(r.v), count(r.v) FROM r JOIN s ON r.k <= s.j GROUP BY r.k",
                 "SELECT min(r.v) FILTER (WHERE r.k > 1), count(*) FROM r JOIN s ON r.k <= s.j"):
        assert "without pairs" in _check(text, r, s)
    if values.type == pa.null():
        _check("SELECT r.k, min(s.w), count(s.w) FROM r LEFT JOIN s ON r.k < s.j GROUP BY r.k", r, s)
