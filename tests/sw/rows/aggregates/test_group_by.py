"""GROUP BY with the first table has SQL's meaning: DuckDB gives the same groups and values, whatever finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import InputError
from splitjoin.rows.aggregates import identical, identical_rows
from tests.support.databases import database
from tests.support.sampling import examples

AGGREGATES = ("count(*)", "count(q.a)", "count(t.n)", "sum(q.a)", "sum(coalesce(q.a, 0))", "sum(t.x)", "sum(t.y)",
              "avg(coalesce(q.a, 3))", "min(coalesce(q.w, 'zz'))", "max(t.x + 1)", "count(DISTINCT coalesce(q.a, 9))",
              "sum(coalesce(q.a, 0) * 1.5)", "max(CASE WHEN q.a IS NULL THEN t.n ELSE q.w END)")
LIST = ", ".join(f"{text} AS v{n}" for n, text in enumerate(AGGREGATES))
#: What DuckDB computes of them: over the list, and behind GROUP BY.
EXPRESSIONS = (("t.*, count(*) + 1 AS c, max(q.a) - min(q.a) AS d, sum(q.a) FILTER (WHERE q.w = 'p') || '' AS e",
                "HAVING count(*) > 1 OR max(t.x) = 1"), ("x, max(w) || n AS m, avg(a) / 2 AS h", "HAVING NOT m = 'pa'"),
               ("t.x, sum(t.x * q.a) + 1 AS v", ""), ("median(a) + 1 AS v", "ORDER BY count(a)"))
CONDITIONS = ("t.x = q.a", "t.x < q.a AND q.w <> 'q'", "t.x >= q.a AND t.n = 'a'", "FALSE")
X = st.one_of(st.none(), st.integers(0, 2))
R_ROWS = st.lists(st.tuples(X, st.sampled_from([None, 0.5, 0.0, -0.0, float("nan")]), st.sampled_from([None, "a"])),
                  min_size=1, max_size=8)
S_ROWS = st.lists(st.tuples(X, st.sampled_from([None, "p", "q"])), max_size=6)


def tables(r: Any, s: Any) -> tuple[pa.Table, pa.Table]:
    types = {"x": pa.int64(), "y": pa.float64(), "n": pa.string()}
    made = pa.table([pa.array([row[n] for row in r], t) for n, t in enumerate(types.values())], names=list(types))
    return made, pa.table({"a": pa.array([row[0] for row in s], pa.int64()),
                           "w": pa.array([row[1] for row in s], pa.string())})


def shown(rows: list[dict[str, Any]]) -> list[str]:
    """``rows`` as a multiset in which numbers count, not their types, and -0.0 is 0.0."""
    def value(v: Any) -> str:
        return repr(v) if v is None or isinstance(v, str) else repr(float(v) + 0.0)

    return sorted(repr([value(v) for v in row.values()]) for row in rows)


def from_duckdb(text: str, r: pa.Table, s: pa.Table) -> list[str]:
    with database() as connection:
        connection.register("t", r)
        connection.register("q", s)
        found = connection.sql(text.replace("GROUP BY t", "GROUP BY t.x, t.y, t.n")).to_arrow_table()
    return shown(found.to_pylist())


@settings(max_examples=examples(30))
@given(R_ROWS, S_ROWS, st.sampled_from(CONDITIONS), st.sampled_from(["LEFT JOIN", "JOIN"]),
       st.sampled_from(["golden", "cpu"]), st.sampled_from([(f"t.x, t.y, t.n, {LIST}", ""), *EXPRESSIONS]))
def test_groups_and_values_are_those_of_duckdb(r: Any, s: Any, on: str, kind: str, device: str,
                                               listed: tuple[str, str]) -> None:
    t, q = tables(r, s)
    text = f"SELECT {listed[0]} FROM t {kind} q ON {on} GROUP BY t {listed[1]}"
    assert shown(splitjoin.sql(text, t=t, q=q, device=device).to_pylist()) == from_duckdb(text, t, q)


#: Rows 0 and 1, 3 and 4 are identical; 2 and 5 meet nothing.
R = [(1, 0.5, "a"), (1, 0.5, "a"), (2, None, "a"), (0, 1.0, "b"), (0, 1.0, "b"), (None, 2.0, None)]
S = [(1, "p"), (0, "p"), (1, None), (0, "q")]


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("device", [{"device": "cpu", "engine": "sliding"}, {"device": "golden"},
                                    {"device": "pysim", "cores": 1, "capacity": 8}], ids=str)
def test_every_way_of_folding(device: dict[str, Any], distinct: bool, tmp_path: Path) -> None:
    """Engines that make no pairs, and circuits that fold, give a state for each tuple of R."""
    t, q = tables([row for n, row in enumerate(R) if not distinct or n not in (1, 4)], S)
    text = ("SELECT t.x, t.y, t.n, count(*) AS c, sum(q.a) AS s, max(q.a) AS m FROM t "
            "LEFT JOIN q ON t.x = q.a GROUP BY t")
    for to in (None, tmp_path / "rows.arrow"):
        found = splitjoin.sql(text, t=t, q=q, window="ROWS 6", to=to, **device)  # which holds all rows
        assert shown(found.to_pylist()) == from_duckdb(text, t, q)


def test_the_columns_that_nobody_selects_tell_rows_apart(tmp_path: Path) -> None:
    t = pa.table({"x": [1, 1, 1], "tags": [["a"], ["b"], ["a"]]})
    pq.write_table(t, tmp_path / "t.parquet")
    text = "SELECT x, count(*) AS n FROM t LEFT JOIN q ON t.x = q.a GROUP BY t"
    for given_ in (t, str(tmp_path / "t.parquet")):
        found = splitjoin.sql(text, t=given_, q={"a": [1, 1]}, device="golden")
        assert found.to_pylist() == [{"x": 1, "n": 4}, {"x": 1, "n": 2}]
    assert [row["n"] for row in splitjoin.join(t, {"a": [1, 1]}, on="r.x = s.a", how="left", by="r", device="golden",
                                               aggregate={"n": "count(*)"}).to_pylist()] == [2, 2, 2]


def test_a_session_has_a_row_of_nulls_for_a_tuple_that_meets_nothing() -> None:
    t, q = tables(R, S)
    select = splitjoin.sql("SELECT x, count(*) AS c, count(q.a) AS m, sum(coalesce(q.a, 7)) AS s FROM t LEFT JOIN q "
                           "ON t.x = q.a AND q.a > 0 GROUP BY t", t=t.schema, q=q.schema, window="ROWS 6")
    with splitjoin.open(select, "golden") as session:
        session.push_r(t)
        session.push_s(q)
        assert session.flush().to_pylist() == [
            {"x": 1, "c": 2, "m": 2, "s": 2}, {"x": 1, "c": 2, "m": 2, "s": 2}, {"x": 2, "c": 1, "m": 0, "s": 7},
            {"x": 0, "c": 1, "m": 0, "s": 7}, {"x": 0, "c": 1, "m": 0, "s": 7}, {"x": None, "c": 1, "m": 0, "s": 7}]


@splitjoin.aggregate
class Least:
    least: splitjoin.unsigned(4)

    def init(self):  # type: ignore[no-untyped-def]
        self.least = 15

    def add(self, x: splitjoin.unsigned(4)):  # type: ignore[no-untyped-def]
        self.least = min(self.least, x)

    def result(self) -> splitjoin.unsigned(4):
        return self.least


def test_aggregates_of_ones_own() -> None:
    t, q = tables(R, S)
    text = "SELECT x, smallest(coalesce(q.a, {})) AS v FROM t LEFT JOIN q ON t.x = q.a AND q.a > 0 GROUP BY t"
    for device in ("golden", "cpu"):
        how: dict[str, Any] = {"t": t, "q": q, "aggregates": {"smallest": Least}, "device": device}
        assert splitjoin.sql(text.format("9"), **how)["v"].to_pylist() == [1, 9, 9, 9]
    for rows in (t, t.slice(4)):
        with pytest.raises(InputError, match=r"but is 99 for (row 2 of r|a row of r that meets nothing); "):
            splitjoin.sql(text.format("99"), **how | {"t": rows})


@pytest.mark.parametrize(("columns", "first"), [
    ({"x": [1, 2, 1, None, None]}, [0, 1, 0, 3, 3]), ({"x": [1, 2, 3]}, None), ({"x": pa.array([], pa.int8())}, None),
    ({"x": [1, 1, 1], "y": [0.0, -0.0, float("nan")]}, [0, 0, 2]),
    ({"x": pa.array([1, 1, 2], pa.decimal128(30, 2)), "y": [b"a", b"a", b"a"]}, [0, 0, 2]),
    ({"x": [[1], [1], None], "y": pa.array(["a", "a", "b"]).dictionary_encode()}, [0, 0, 2]),
    ({"x": [True, False, True], "y": pa.nulls(3)}, [0, 1, 0]),
    ({"x": pa.chunked_array([["a", "b"], ["a"]]), "y": pa.array([1, 1, 1], pa.time32("s"))}, [0, 1, 0]),
    ({"x": pa.array([1.5, 1.5], pa.float16()), "y": pa.array(["x", "x"], pa.string_view())}, [0, 0]),
    ({"x": pa.array([2**63, 2**63], pa.uint64()), "y": pa.array([1, 1], pa.decimal256(60, 1))}, [0, 0])])
def test_identical_rows(columns: dict[str, Any], first: list[int] | None) -> None:
    found = identical_rows(pa.table(columns))
    assert (None if found is None else found.tolist()) == first


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(["rises", "number", "float", "time", "text", "nulls"]),
                                       min_size=1, max_size=4, unique=True), st.integers(1, 9))
def test_identical_rows_are_those_with_the_same_values(seed: int, names: list[str], spread: int) -> None:
    rng, n = np.random.default_rng(seed), 30
    whole = rng.integers(-spread, spread, n)
    columns = {
        "rises": np.sort(rng.integers(0, 4 * spread, n)), "number": pa.array(whole, pa.int16()),
        "float": np.where(whole == 0, np.nan, whole / 2), "time": pa.array(np.abs(whole).astype(np.int32),
                                                                                   pa.time32("s")),
        "text": pa.array([f"t{v}" for v in rng.permutation(whole)]),
        "nulls": pa.array(whole, pa.timestamp("us"), mask=whole % 3 == 0)}
    table = pa.table({name: columns[name] for name in names})
    rows = [repr(row) for row in table.to_pylist()]
    first = [rows.index(row) for row in rows]
    found = identical_rows(table)
    assert (list(range(n)) if found is None else found.tolist()) == first


@pytest.mark.parametrize("order", ["rises", "mixed"])
def test_rows_that_numbers_tell_apart_are_not_numbered_by_their_texts(order: str,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    n, seen, numbered = 2000, list[int](), identical._numbered

    def counted(values: pa.Array) -> Any:
        seen.append(len(values))
        return numbered(values)

    monkeypatch.setattr(identical, "_numbered", counted)
    at = np.arange(n) if order == "rises" else np.random.default_rng(1).permutation(n)
    table = pa.table({"ts": at // 2, "x": at % 2, "t": ["a"] * n})
    assert identical_rows(table) is None
    same = identical_rows(pa.concat_tables([table, table.slice(5, 1)]))
    assert same is not None
    assert len(set(same.tolist())) == n
    assert sum(seen) < n // 10
