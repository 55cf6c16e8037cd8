"""Ordered categories: compared by their order, as Polars, pandas and DuckDB do, or refused; never by their text."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import PredicateError, SchemaError

LEVELS = ["low", "mid", "high"]  # by text: high, low, mid
VALUES = ["low", "high", "mid", None, "high"]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne}


def arrow(values: list[str | None], levels: list[str] = LEVELS) -> pa.Table:
    indices = pa.array([None if v is None else levels.index(v) for v in values], pa.int8())
    return pa.table({"x": pa.DictionaryArray.from_arrays(indices, levels, ordered=True)})


def numbered(table: Any) -> pa.Table:
    return table.append_column("n", pa.array(range(len(table))))


MADE: dict[str, Callable[[], Any]] = {
    "arrow": lambda: numbered(arrow(VALUES)),
    "pandas": lambda: pd.DataFrame({"x": pd.Categorical(VALUES, LEVELS, ordered=True), "n": range(5)}),
    "polars": lambda: pl.DataFrame({"x": pl.Series(VALUES, dtype=pl.Enum(LEVELS)), "n": range(5)}),
    "duckdb": lambda: duckdb.sql(f"SELECT unnest({[v or 'none' for v in VALUES]})::VARCHAR AS v, unnest(range(5)) AS n"
                                 ).project(f"nullif(v, 'none')::ENUM{tuple(LEVELS)} AS x, n"),
    "dict": lambda: {"x": pd.Series(pd.Categorical(VALUES, LEVELS, ordered=True)), "n": list(range(5))},
}


@pytest.mark.parametrize("kind", MADE)
def test_comparisons_are_by_the_order_of_the_categories(kind: str) -> None:
    for name, compare in OPERATORS.items():
        found = splitjoin.join(MADE[kind](), MADE["arrow"](), on=f"r.x {name} s.x", device="golden")
        want = [(i, j) for i, a in enumerate(VALUES) for j, b in enumerate(VALUES)
                if a is not None and b is not None and compare(LEVELS.index(a), LEVELS.index(b))]
        assert sorted(zip(*(found[c].to_pylist() for c in ("n_r", "n_s")), strict=True)) == want, name


@pytest.mark.parametrize("device", [{"device": "cpu"}, {"device": "pysim", "cores": 1, "capacity": 8}], ids=str)
def test_every_engine(device: dict[str, Any]) -> None:
    t = MADE["arrow"]()
    for on in ("r.x < s.x", "r.x BETWEEN 'mid' AND s.x", "r.x >= s.x AND r.x <> 'high'"):
        assert splitjoin.join(t, t, on=on, **device) == splitjoin.join(t, t, on=on, device="golden")


@pytest.mark.parametrize(("on", "rows"), [
    ("r.x < 'high'", [0, 2]), ("'high' > r.x", [0, 2]), ("r.x BETWEEN 'mid' AND 'high'", [1, 2, 4]),
    ("r.x = 'other'", []), ("r.x <> 'other'", [0, 1, 2, 4]), ("r.x < NULL", []), ("starts_with(r.x, 'h')", [1, 4]),
    ("r.x IN ('low', 'other')", [0]), ("coalesce(r.x, 'none') = 'none'", [3]), ("r.x LIKE '%i%'", [1, 2, 4]),
    ("CAST(r.x AS VARCHAR) < 'i'", [1, 4]), ("CASE WHEN r.x = 'low' THEN 1 ELSE 2 END < 2", [0]),
    (lambda r, s: r.x < "high", [0, 2]), (lambda r, s: r.x.cast("string") < "i", [1, 4])])
def test_one_column(on: Any, rows: list[int]) -> None:
    assert splitjoin.join(MADE["arrow"](), {"a": [1]}, on=on, device="golden")["n"].to_pylist() == rows


OTHER = arrow(["low"], ["low", "high"])


@pytest.mark.parametrize(("on", "s", "said"), [
    ("r.x < 'h'", OTHER, r"a constant must be one of 'low', 'mid', 'high', not 'h'; write one of them, or compare"),
    ("r.x < s.x", OTHER, "which both columns must have, but these have 'low', 'mid', 'high' and 'low', 'high'; give"),
    ("r.x < s.x", pa.table({"x": ["low"]}), "and with one of them as a constant only, not with 's.x'; compare as text"),
    ("coalesce(r.x, 'a') < s.x", arrow(["low"]), "as a constant only, not with '.CASE WHEN .*'; compare as text"),
    ("least(r.x, s.x) = 'low'", arrow(["low"]), r"least\(\) of ordered categories is not supported"),
    (lambda r, s: r.x >= "h", OTHER, "a constant must be one of 'low', 'mid', 'high', not 'h'"),
    ("s.x < s.x", arrow(["c0"], ["z", *(f"c{n}" for n in range(256))]), "up to 256 of them, but there are 257"),
    ("s.x < s.x", pa.concat_tables([arrow(["low"]), arrow(["a"], ["b", "a"])]), "that of s.x is not known"),
])
def test_refused_where_the_order_does_not_say(on: Any, s: Any, said: str) -> None:
    with pytest.raises(PredicateError, match=said):
        splitjoin.join(MADE["arrow"](), s, on=on, device="golden")


def test_a_schema_does_not_tell_the_order() -> None:
    schema = arrow([]).schema
    with pytest.raises(PredicateError, match=r"that of r\.x is not known: it is in the rows, not in a schema"):
        splitjoin.query(schema, schema, on="r.x < s.x", window="ROWS 3")
    query = splitjoin.query(schema, schema, on="r.x = s.x", window="ROWS 3")
    with splitjoin.open(query, "golden") as session:
        session.push_r(arrow(["low", "mid"]))
        session.push_s(arrow(["mid"]))
        assert session.flush().to_pylist() == [{"x_r": "mid", "x_s": "mid"}]


@pytest.mark.parametrize("device", ["golden", "cpu"])
def test_aggregates_by_order(device: str) -> None:
    t = MADE["arrow"]()
    found = splitjoin.sql("SELECT r.n, min(s.x) AS lo, max(s.x) AS hi, argmax(s.n, s.x) AS at, first(s.x) AS f, "
                          "count(DISTINCT s.x) AS d, r.x > 'low' AS b FROM r JOIN s ON r.x <= s.x GROUP BY r",
                          r=t, s=t, device=device)
    names = ("n", "lo", "hi", "at", "d", "b")
    assert [tuple(row[name] for name in names) for row in found.to_pylist()] == [
        (0, "low", "high", 1, 3, False), (1, "high", "high", 1, 1, True), (2, "mid", "high", 1, 2, True),
        (4, "high", "high", 1, 1, True)]
    joined = splitjoin.join(t, t, on="r.x <= s.x", by="r", aggregate={"lo": "min(s.x)"}, device=device)
    assert joined["lo"].to_pylist() == ["low", "high", "mid", "high"]


def test_files_and_statements(tmp_path: Path) -> None:
    frame = MADE["pandas"]()
    frame.to_parquet(tmp_path / "r.parquet")
    MADE["polars"]().write_ipc(tmp_path / "s.arrow")
    found = splitjoin.sql("SELECT r.n, s.n AS m FROM r JOIN s ON r.x < s.x AND r.n < 2", r=tmp_path / "r.parquet",
                          s=tmp_path / "s.arrow", device="golden")
    assert found.to_pylist() == [{"n": 0, "m": 1}, {"n": 0, "m": 2}, {"n": 0, "m": 4}]
    empty = splitjoin.join(frame[:0], frame, on="r.x < s.x", device="golden")
    assert len(empty) == 0


def test_categories_that_are_no_text() -> None:
    def frame(order: list[int]) -> pd.DataFrame:
        return pd.DataFrame({"x": pd.Categorical([3, 1, 2], order, ordered=True)})

    assert len(splitjoin.join(frame([1, 2, 3]), frame([1, 2, 3]), on="r.x < s.x", device="golden")) == 3
    with pytest.raises(SchemaError, match="which a join condition cannot use"):  # values would be compared
        splitjoin.join(frame([3, 1, 2]), frame([3, 1, 2]), on="r.x < s.x", device="golden")
