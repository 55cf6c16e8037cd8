"""The order in which whole tables are joined is chosen by estimates, and changes no row, nor the order of rows."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from tests.support.databases import database
from tests.support.sampling import at_length

LENGTHS = {"a": 900, "b": 500, "c": 30}
SIZES = {"a": 12_000, "b": 9_000, "c": 60}


def tables(seed: int, names: str = "abc", *, windows: bool = False) -> dict[str, pa.Table]:
    """The tables ``names``, with a place in arrival order, a time, a key of few values and a value of many."""
    chance = np.random.default_rng(seed)
    times = [np.sort(chance.integers(0, 10_000, SIZES[name])) for name in names]
    places = [np.arange(len(of)) * 3 + n for n, of in enumerate(times)]
    if windows:
        order = np.argsort(np.concatenate(times), kind="stable")  # at equal times the first table's rows are first
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        places = np.split(place, np.cumsum([len(of) for of in times])[:-1])
    return {name: pa.table({
        "place": place, "t": t, "k": pa.array(chance.integers(0, 40, len(t)), mask=chance.random(len(t)) < 0.05),
        "v": chance.integers(0, 100_000, len(t))}) for name, place, t in zip(names, places, times, strict=True)}


def by_duckdb(text: str, given_tables: dict[str, pa.Table]) -> list[Any]:
    with database() as db:
        for name, table in given_tables.items():
            db.register(name, table)
        return db.sql(text).fetchall()


@pytest.mark.parametrize(("names", "windows"), [
    ("abc", False), ("bac", True), ("cab", True),
    *(at_length("".join(names), windows) for names in permutations("abc") for windows in (False, True))], ids=str)
def test_rows_and_their_order_stay(names: str, windows: bool) -> None:
    given_tables = tables(7, names, windows=windows)
    x, y, z = names
    on = {"ab": "a.k = b.k", "ac": "abs(a.v - c.v) <= 40", "bc": "b.v <= c.v + 3000 AND c.v - b.v < 9000"}
    terms = [on["".join(sorted(pair))] for pair in ((x, y), (x, z), (y, z))]
    text = f"SELECT *, a.v + c.v AS total FROM {x} JOIN {y} ON {terms[0]} JOIN {z} ON {terms[1]} AND {terms[2]}"
    how: dict[str, Any] = {"window": {n: f"RANGE {length}" for n, length in LENGTHS.items()},
                           "time": "t"} if windows else {}
    found = splitjoin.sql(text, **given_tables, **how)
    within = " AND ".join(f"greatest(a.t, b.t, c.t) - {n}.t <= {length}" for n, length in LENGTHS.items())
    wanted = by_duckdb(f"{text} WHERE {within if windows else 'TRUE'}", given_tables)
    at = [0, 4, 8]  # the places, in each row
    wanted.sort(key=lambda row: (max(row[n] for n in at), *(row[n] for n in at)))
    assert [tuple(row.values()) for row in found.to_arrow().to_pylist()] == wanted
    assert len(wanted) > 20
    assert found.plan.startswith("tables in the order ") == (z != "b")  # a with c gives the fewest rows


@pytest.mark.parametrize("text", [
    "SELECT a.k, count(*) AS n, max(b.v) AS most FROM a JOIN b ON a.k = b.k JOIN c ON a.v = c.v AND c.v > b.v "
    "GROUP BY a.k ORDER BY 1",
    "SELECT a.t, upper(CAST(b.k AS VARCHAR)) AS k FROM a, b, c WHERE a.k = b.k AND abs(a.v - c.v) <= 9 AND b.v < 500",
    "SELECT DISTINCT a.k FROM a JOIN b ON a.k = b.k AND a.v % 7 = 1 JOIN c ON a.v BETWEEN c.v - 5 AND c.v ORDER BY 1",
    "SELECT a.k FROM a JOIN b ON a.k = b.k AND b.v < 900 JOIN c ON lower(CAST(a.k AS VARCHAR)) = "
    "lower(CAST(c.k AS VARCHAR)) AND b.v = c.v",
    "SELECT a.k FROM a JOIN b ON a.k = b.k JOIN c ON a.v = c.v LEFT JOIN c d ON d.t = a.t WHERE b.v < 900",
])
def test_the_rest_of_statements(text: str) -> None:
    given_tables = tables(5)
    found = splitjoin.sql(text, **given_tables).to_arrow()
    assert sorted(map(str, (tuple(row.values()) for row in found.to_pylist()))) == sorted(map(str, [
        tuple(row) for row in by_duckdb(text, given_tables)]))


def test_what_explains_it() -> None:
    given_tables = tables(2)
    text = "SELECT a.t FROM a JOIN b ON a.k = b.k JOIN c ON a.v = c.v AND c.v > b.v"
    found = splitjoin.sql(text, **given_tables)
    assert found.plan.startswith("tables in the order a, c, b, by estimate: "), found.plan
    assert "rows between the steps, 2,400,000 in the order of FROM; then " in found.plan
    cut = splitjoin.sql(f"{text} ORDER BY a.t LIMIT 9", **given_tables)
    assert "tables in the order a, c, b" in cut.plan
    kept = splitjoin.sql("SELECT a.t FROM a JOIN c ON a.v = c.v JOIN b ON a.k = b.k AND c.v > b.v", **given_tables)
    assert not kept.plan.startswith("tables in")
    assert splitjoin.sql(text, **{n: t.slice(0, 50) for n, t in given_tables.items()}).plan.startswith("rows of whole")
