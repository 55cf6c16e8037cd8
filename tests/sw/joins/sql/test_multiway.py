"""SELECT over three tables and more: whole tables and windows, beside their definition and DuckDB."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.base.errors import InputError, OrderError, PredicateError, SchemaError, StatementError, WindowError
from tests.support.databases import database
from tests.support.multiway import combinations
from tests.support.sampling import examples


def tables(seed: int, *sizes: int) -> dict[str, pa.Table]:
    """Tables a, b, c, … with a time, a key and a value each."""
    chance = np.random.default_rng(seed)
    return {name: pa.table({"t": np.sort(chance.integers(0, 30, n)), "k": chance.integers(0, 3, n),
                            f"v{name}": pa.array(chance.integers(0, 9, n), pa.int32(), mask=chance.random(n) < 0.1)})
            for name, n in zip("abcd", sizes, strict=False)}


def less(a: Any, b: Any) -> bool:
    return a is not None and b is not None and a < b


@settings(max_examples=examples(25))
@given(st.integers(0, 10**6), st.lists(st.integers(0, 7), min_size=3, max_size=3),
       st.lists(st.integers(0, 12), min_size=3, max_size=3), st.sampled_from(["whole", "times", "windows"]))
def test_rows_and_their_order(seed: int, sizes: list[int], lengths: list[int], how: str) -> None:
    given_tables = tables(seed, *sizes)
    text = ("SELECT a.t AS at, b.t AS bt, c.t AS ct, va, vb, vc FROM a JOIN b ON a.k = b.k "
            "JOIN c ON c.k = a.k AND vb < vc WHERE va < 8")
    options: dict[str, Any] = {} if how == "whole" else {"time": "t"}
    if how == "windows":
        options["window"] = {name: f"RANGE {n}" for name, n in zip("abc", lengths, strict=True)}
    found = splitjoin.sql(text, **given_tables, **options).to_arrow().to_pylist()
    wanted = combinations(given_tables, lambda a, b, c: a["k"] == b["k"] == c["k"] and less(b["vb"], c["vc"])
                          and less(a["va"], 8), lengths if how == "windows" else None, None if how == "whole" else "t")
    assert found == [{"at": a["t"], "bt": b["t"], "ct": c["t"], "va": a["va"], "vb": b["vb"], "vc": c["vc"]}
                     for a, b, c in wanted]


@pytest.mark.parametrize("text", [
    "SELECT * FROM a, b, c WHERE a.k = b.k AND b.k = c.k",
    "SELECT a.*, vc + 1 AS more, c.k FROM a CROSS JOIN b JOIN c ON vc = vb AND va <= vc",
    "SELECT x.k, y.va AS other FROM a x JOIN a y ON x.va < y.va JOIN b ON b.k = y.k",
    "SELECT a.t, d.t AS last FROM a JOIN b ON a.k = b.k JOIN c ON abs(c.vc - b.vb) <= 1 JOIN d ON d.vd = a.va",
    "SELECT a.k, count(*) AS n, sum(vb + vc) AS total FROM a, b, c WHERE a.k = b.k AND vb < vc GROUP BY a.k ORDER BY 1",
    "SELECT DISTINCT a.t, upper(CAST(b.k AS VARCHAR)) || 'x' FROM a JOIN b ON a.k = b.k JOIN c ON vc >= va",
    "WITH few AS (SELECT * FROM c WHERE vc > 3) SELECT a.*, few.vc FROM a, b, few WHERE a.k = b.k AND few.k = b.k "
    "ORDER BY a.t DESC, va, few.vc, b.t LIMIT 25",
    "SELECT c.t FROM a JOIN b ON a.va < b.vb OR a.k = 1 JOIN c ON (a.va = c.vc OR b.vb = c.vc) AND c.k <> 2",
])
def test_as_duckdb(text: str) -> None:
    given_tables = tables(7, 12, 11, 9, 8)
    rows = splitjoin.sql(text, **{name: table for name, table in given_tables.items() if f" {name}" in text})
    with database() as db:
        for name, table in given_tables.items():
            db.register(name, table)
        wanted = db.sql(text).fetchall()
    plain = [tuple(int(v) if isinstance(v, Decimal) else v for v in row.values())
             for row in rows.to_arrow().to_pylist()]
    assert sorted(map(str, plain)) == sorted(map(str, wanted))
    assert len(wanted) > 2


def test_names_of_columns_are_those_of_two_tables() -> None:
    found = splitjoin.sql("SELECT *, va + vb FROM a, b, c WHERE a.k = b.k AND b.k = c.k", **tables(1, 3, 3, 3))
    assert found.column_names == ["t_a", "k_a", "va", "t_b", "k_b", "vb", "t_c", "k_c", "vc", "va + vb"]


def test_into_a_file_and_sorted(tmp_path: Path) -> None:
    given_tables = tables(3, 8, 8, 8)
    mixed = {name: table.take([3, 0, 1, 2, 7, 4, 6, 5]) for name, table in given_tables.items()}
    text, options = "SELECT a.t, va, vb, vc FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k", {
        "window": "RANGE 9", "time": "t"}
    rows = splitjoin.sql(text, **given_tables, **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a\.t must not decrease, but row 1 is earlier"):
        splitjoin.sql(text, **mixed, **options)  # type: ignore[arg-type]
    stored = splitjoin.sql(text, **mixed, **options, sort=True, to=tmp_path / "x.parquet")  # type: ignore[arg-type]
    assert sorted(map(str, stored.to_arrow().to_pylist())) == sorted(map(str, rows.to_arrow().to_pylist()))
    by_value = splitjoin.sql(f"{text} ORDER BY vc, va LIMIT 3", **given_tables, **options)  # type: ignore[arg-type]
    assert [row["vc"] for row in by_value.to_pylist()] == sorted(rows.to_pydict()["vc"])[:3]
    free = splitjoin.sql(text, **given_tables, **options, order="none")  # type: ignore[arg-type]
    assert sorted(map(str, free.to_arrow().to_pylist())) == sorted(map(str, rows.to_arrow().to_pylist()))


WINDOW = {"window": "RANGE 3", "time": "t"}


@pytest.mark.parametrize(("text", "options", "error", "said"), [
    ("SELECT * FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k", WINDOW, StatementError, "a join that is not inn"),
    ("SELECT * FROM a JOIN b USING (k) JOIN c ON a.k = c.k", WINDOW, StatementError, "USING is not supported"),
    ("SELECT a.t FROM a, b, c, a", {}, StatementError, "two tables are called 'a'"),
    ("SELECT va FROM a, b, c WHERE a.k = b.k AND sin(a.t) < sin(c.t - b.t)", WINDOW, PredicateError, r"'sin\(a\.t\)'"),
    ("SELECT a.q FROM a, b, c", {}, SchemaError, "table a has no column 'q'"),
    ("SELECT va FROM a, b, c WHERE k = 1", {}, SchemaError, "'k' is ambiguous"),
    ("SELECT va FROM a, b, c", {"window": "ROWS 3", "time": "t"}, WindowError, "takes windows of RANGE"),
    ("SELECT va FROM a, b, c", {"window": "RANGE 3"}, SchemaError, "needs a time column"),
    ("SELECT va FROM a, b, c", {"window": {"a": "RANGE 3"}, "time": "t"}, WindowError, "must have the keys 'a', 'b'"),
    ("SELECT va FROM a, b, c", {"order": "outer(3)"}, OrderError, "takes order 'total' or 'none'"),
    ("SELECT va FROM a, b, c", {"sort": True}, InputError, "sort=True needs a time column"),
    ("SELECT va, vb AS va FROM a, b, c", {}, StatementError, "must have distinct names"),
    ("SELECT va FROM a JOIN b ON a.k = c.k JOIN c ON b.k = c.k", WINDOW, StatementError, r"^ON behind b names 'c\.k'"),
    ("SELECT va FROM a JOIN b ON a.k = c.k JOIN c ON b.k = c.k", {}, StatementError, r"^ON behind b names 'c\.k'"),
    ("SELECT va FROM a, b, (SELECT t, k FROM c) c", WINDOW, StatementError, "those of one join"),
    ("SELECT va FROM a, b, c", {"window": "RANGE 3", "time": {"a": "t", "b": "t", "c": "q"}}, SchemaError,
     "table c has no column 'q'"),
    ("SELECT va FROM a, b, c WHERE a.k AND  b.k = c.k", WINDOW, PredicateError,
     r"^'\(a\.k\)': a condition .*\n.*\n +\^{3}$"),
    ("SELECT va FROM a, b, c WHERE a.k  + TRUE = c.k", {}, PredicateError, r"^'a\.k \+ TRUE': .*\n.*\n +\^{3}$"),
])
def test_refused(text: str, options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        splitjoin.sql(text, **tables(1, 2, 2, 2), **options)


def test_errors_of_times_name_the_table() -> None:
    a, b, c = tables(1, 2, 2, 2).values()
    for wrong, said in [([None, 1], r"c\.t must not hold NULL"), ([0.5, 1.0], r"time column c\.t must be an integer"),
                        (pa.array([0, 1], pa.date32()), r"c\.t is date32|c\.t is date|s\.t is|of one kind")]:
        with pytest.raises((InputError, SchemaError), match=said) as caught:
            splitjoin.sql("SELECT va FROM a, b, c", a=a, b=b, c=c.set_column(0, "t", pa.array(wrong)), **WINDOW)
        assert "r.t" not in str(caught.value) and "s.t" not in str(caught.value)


def test_rows_and_schemas_do_not_mix() -> None:
    a, b, c = tables(1, 2, 2, 2).values()
    with pytest.raises(InputError, match="as schemas all, but 'b' is a schema"):
        splitjoin.sql("SELECT va FROM a, b, c", a=a, b=b.schema, c=c)
    with pytest.raises(WindowError, match="streams that do not end need a window"):
        splitjoin.sql("SELECT va FROM a, b, c", a=a.schema, b=b.schema, c=c.schema)  # type: ignore[call-overload]


def test_tables_without_rows_and_without_columns_of_theirs() -> None:
    a, b, empty = *tables(1, 3, 3).values(), {"t": [], "vc": []}
    for options in ({}, {"window": "RANGE 3", "time": "t"}):
        assert len(splitjoin.sql("SELECT va FROM e JOIN a ON e.t = a.t, b", e=empty, a=a, b=b, **options)) == 0
        assert len(splitjoin.sql("SELECT va FROM a, e, b", e=empty, a=a, b=b, **options)) == 0
    assert splitjoin.sql("SELECT 1 AS one FROM a, b, a c", a=a, b=b).to_arrow().to_pydict() == {"one": [1] * 27}


def test_texts_within_windows_over_tables_and_streams() -> None:
    """Words of DuckDB on one table, and the beginning of a column, in steps as in a join of two."""
    chance = np.random.default_rng(3)
    given_tables = {name: pa.table({"t": np.sort(chance.integers(0, 30, 12)), f"w{name}": [
        "".join(chance.choice([*letters], 3 - (name == "c"))) for _ in range(12)]})
        for name, letters in (("a", "xy"), ("b", "XY"), ("c", "xy"))}
    text = ("SELECT a.t AS at, b.t AS bt, c.t AS ct, wa FROM a JOIN b ON lower(wb) <> wa AND reverse(wa) <> 'xxx' "
            "JOIN c ON starts_with(wa, wc) AND lower(wb) >= wc WHERE length(wb) = 3")
    wanted = [(a["t"], b["t"], c["t"], a["wa"]) for a, b, c in combinations(
        given_tables, lambda a, b, c: b["wb"].lower() != a["wa"] != "xxx" and a["wa"].startswith(c["wc"]) and (
            b["wb"].lower() >= c["wc"]), [9, 4, 7], "t")]
    window: dict[str, Any] = {"window": {"a": "RANGE 9", "b": "RANGE 4", "c": "RANGE 7"}, "time": "t"}
    found = splitjoin.sql(text, **given_tables, **window)
    assert len(wanted) > 30
    assert [tuple(row.values()) for row in found.to_pylist()] == wanted
    select = splitjoin.sql(text, **{name: table.schema for name, table in given_tables.items()}, **window)
    with splitjoin.open_multiway(select) as session:
        for name, table in given_tables.items():
            session.push(name, table)
        assert [tuple(row.values()) for row in session.flush().to_pylist()] == wanted
