"""Aggregates of whole tables by ranges of rows: golden's rows, and DuckDB's; sums of floats are `math.fsum`'s."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.base.errors import InputError
from splitjoin.engines.cpu import CpuDevice, range_folds
from splitjoin.engines.tuning import Tuning
from splitjoin.joins.explain import explain
from splitjoin.joins.join import join

from ....support.sampling import at_length, examples

_HUGE = 1.7976931348623157e308
#: Columns, and values that cancel, overflow, are of the least or greatest of their type, or are equal but not the same.
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "k": (pa.int64(), [None, 0, 1]), "x": (pa.int64(), [None, -3, -1, 0, 1, 2, 5]),
    "b": (pa.int64(), [None, -2**63, -7, 5, 2**63 - 1]), "u": (pa.uint64(), [None, 0, 3, 2**63, 2**64 - 1]),
    "d": (pa.decimal128(38, 2), [None, Decimal("-0.25"), Decimal("7.5"), Decimal(10**30), Decimal(-10**30)]),
    "f": (pa.float64(), [None, -2.5, -0.0, 0.0, 1.5, math.inf, -math.inf, math.nan]),
    "g": (pa.float64(), [None, 0.1, -0.3, 1e16, 1.0, -1e16, 5e-324, _HUGE, -_HUGE, 2.0**-53, 1e-300]),
    "h": (pa.float32(), [None, 0.1, 2.5, -1.0, 3e38, 1e-45]),
    "t": (pa.string(), [None, "", "a", "ab", "é", "𝄞"]), "o": (pa.bool_(), [None, True, False]),
    "m": (pa.timestamp("us"), [None, 0, 7, -10**15])}
#: Conditions, and the windows that leave the partners of a tuple one range.
WINDOWS: list[dict[str, Any]] = [{}, *({"window": w, "time": "ts"} for w in ("RANGE 2", ("RANGE 0", "RANGE 9"))),
                                 {"window": ("ROWS 3", "ROWS 5")}, {"window": "ROWS 4 RANGE 3", "time": "ts"}]
RANGED = ("r.f = s.f", "r.x < s.x", "r.f >= s.f", "abs(r.x - s.x) <= 1", "r.k = s.k AND r.x <= s.x",
          "abs(r.f - s.f) <= 1", "r.k = s.k AND r.x > s.x - 2 AND s.x > 0", "r.t >= s.t", "r.g < s.g")
BY_TIME = ("TRUE", "r.k = s.k", "r.k = s.k AND r.x = s.x", "r.k = s.k AND s.x > 0 AND r.x < 5",
           "s.ts BETWEEN r.ts - 2 AND r.ts + 1", "r.k = s.k AND abs(r.ts - s.ts) <= 2", "s.ts <= r.ts")
#: Two ranges, on keys that differ, or of which one is a window: a range tree.
TWO = ("r.x < s.x AND r.f > s.f", "r.k = s.k AND r.x <= s.x AND r.g >= s.g", "r.x <= s.b AND s.x <= r.b",
       "abs(r.x - s.x) <= 2 AND r.f < s.f", "s.t < r.t AND r.u >= s.u")
CASES = [*((on, window) for on in RANGED[1:5] for window in WINDOWS[1:3]), *((on, {}) for on in (*TWO, *RANGED)),
         *((on, window) for on in BY_TIME for window in WINDOWS)]
_NUMBERS, _ORDERED = "xbudfgh", "xbudfghtm"
AGGREGATES = [
    "count(*)", *(f"count(s.{c})" for c in "xft"), *(f"count(DISTINCT s.{c})" for c in _ORDERED),
    *(f"{name}(s.{c})" for c in _NUMBERS for name in ("sum", "avg", "var_samp", "stddev_pop", "median")),
    *(f"{name}(s.{c})" for c in _ORDERED for name in ("min", "max", "first", "last", "mode")),
    *(f"quantile(s.{c}, {q})" for c in _ORDERED for q in (0, 0.3, 1)),
    *(f"arg{name}(s.{c}, s.{by})" for name in ("min", "max") for c in "xt" for by in _ORDERED),
    *(f"bit_{name}(s.{c})" for name in ("and", "or", "xor") for c in "xbu"), "bool_and(s.o)", "bool_or(s.o)",
    "product(s.g)", "string_agg(s.t, '-')", "list(s.g)", "sum(DISTINCT s.f)", "sum(r.x * s.x)", "max(s.x - s.k)",
    "sum(s.g) FILTER (WHERE s.o)", "max(s.t) FILTER (WHERE s.x > 0)", "median(s.b) FILTER (WHERE s.f <> 1.5)"]


def _table(chance: random.Random) -> pa.Table:
    """Up to 24 rows with rising times."""
    n = chance.randint(0, 24)
    steps = [chance.randint(0, 2) for _ in range(n)]
    return pa.table({"ts": pa.array(np.cumsum(steps, dtype=np.int64)), **{
        name: pa.array(chance.choices(values, k=n), type_) for name, (type_, values) in COLUMNS.items()}})


def _same(values: list[Any]) -> list[Any]:
    return [repr(v) for v in values]


@pytest.mark.parametrize("cases", [examples(60), at_length(3000)])
def test_rows_are_goldens(cases: int) -> None:
    """Random folds, types, conditions and windows."""
    for seed in range(cases):
        _compare(random.Random(seed), f"seed {seed}")


def _compare(chance: random.Random, seed: str) -> None:
    r, s, (on, window) = _table(chance), _table(chance), chance.choice(CASES)
    how, aggregates = chance.choice(["inner", "left"]), chance.sample(AGGREGATES, chance.randint(1, 6))
    cpu = CpuDevice(threads=chance.choice([1, 3]), tuning=Tuning(table_share=1, table_rows=3))
    asked = {"n": "count(*)"} | {f"v{n}": text for n, text in enumerate(aggregates)}
    by = chance.choice([None, None, ["k"], ["k", "x"], ["o"]])
    found = list[Any]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(range_folds, "_expected", lambda *_: math.inf)
        if chance.random() < 0.5:
            patch.setattr(range_folds, "groups_of", lambda *_: None)
        for device in (cpu, "golden"):
            try:
                found.append(join(r, s, on=on, how=how, aggregate=asked, device=device, by=by, **window))
            except InputError as error:  # a sum that does not fit
                found.append(str(error))
    if isinstance(found[0], str) or isinstance(found[1], str):
        assert found[0] == found[1], seed
        return
    mine, golden = found
    # A row of NULL, of a tuple that meets nothing, may count in an aggregate of a group.
    assert (by and how == "left") or mine.plan.startswith("rows without pairs, by "), (seed, on, window, by, mine.plan)
    assert mine.schema == golden.schema, seed
    for name in mine.schema.names:
        assert _same(mine.table[name].to_pylist()) == _same(golden.table[name].to_pylist()), (
            seed, on, window, asked[name])


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.one_of(st.sampled_from(COLUMNS["g"][1][1:]), st.floats(allow_nan=False, allow_infinity=False)),
                min_size=1, max_size=60), st.integers(0, 9))
def test_sums_over_ranges_are_fsums(values: list[float], length: int) -> None:
    n = len(values)
    r, s = pa.table({"x": range(n)}), pa.table({"x": range(n), "g": values})
    made = join(r, s, on=f"s.x BETWEEN r.x AND r.x + {length * n // 9}", aggregate={"sum": "sum(s.g)"}).to_pylist()
    for row in made:
        part = values[row["x"]:row["x"] + length * n // 9 + 1]
        try:
            assert row["sum"] == math.fsum(part)
        except OverflowError:  # of a partial sum
            assert row["sum"] == splitjoin.lang.aggregate_functions.rounded_sum(part)


def test_ranks_and_bands_are_duckdbs(tmp_path: Any) -> None:
    chance, n = np.random.default_rng(1), 3000
    r, s = (pa.table({"i": np.arange(n), "k": chance.integers(0, 9, n), "x": chance.integers(0, n, n),
                      "f": chance.integers(-99, 99, n) / 8}) for _ in "rs")
    aggregates = ["count(*)", "min(s.i)", "sum(s.i)", "avg(s.f)", "max(s.f)", "count(DISTINCT s.f)", "median(s.f)",
                  "quantile_disc(s.i, 0.3)", "arg_min(s.i, s.f * 9000 + s.i)", "bit_xor(s.i)"]
    for on in ("r.k = s.k", "s.x <= r.x", "r.k = s.k AND s.x BETWEEN r.x - 50 AND r.x + 50"):
        found = join(r, s, on=on, aggregate={f"v{n}": text for n, text in enumerate(aggregates)}, select=["i"],
                     to=tmp_path / "rows.parquet").to_pylist()
        wanted = duckdb.sql(f"SELECT r.i, {', '.join(aggregates)} FROM r JOIN s ON {on} GROUP BY r.i ORDER BY r.i")
        assert wanted is not None
        expected = wanted.fetchall()
        assert [tuple(row.values()) for row in found] == expected


def test_a_sum_that_does_not_fit_names_its_row() -> None:
    r, s = pa.table({"x": [0, 3, 0, 4, 5]}), pa.table({"x": [1, 2, 4], "b": [2**63 - 1, 1, 1]})
    for threads in (1, 3):  # of several that do not fit, the first one
        with pytest.raises(InputError, match=r"of row 1 of r must fit int64, but is 9223372036854775808"):
            join(r, s, on="s.x <= r.x", aggregate={"sum": "sum(s.b)"},
                 device=CpuDevice(threads=threads, tuning=Tuning(table_share=1, table_rows=1)))


def test_explain_says_so() -> None:
    schema = pa.schema([("x", pa.int64())])
    for aggregate, told in (({"n": "count(*)"}, True), ({"d": "median(s.x)"}, True), ({"d": "max(s.x - r.x)"}, False)):
        query = splitjoin.query(schema, schema, on="s.x <= r.x", window="ROWS 3", aggregate=aggregate)
        assert ("over whole tables by ranges of rows" in explain(query)) == told


@pytest.mark.parametrize("device", ["cpu", "golden"])
@pytest.mark.parametrize("type_", [pa.int64(), pa.float64(), pa.timestamp("s")])
@pytest.mark.parametrize(("closed", "wanted"), [
    ("both", [2, 3, 3]), ("left", [1, 3, 2]), ("right", [2, 2, 3]), ("neither", [1, 2, 2])])
def test_ends_of_a_window_are_closed_by_name(device: str, type_: pa.DataType, closed: str, wanted: list[int]) -> None:
    r, s = (pa.table({"ts": pa.array(times).cast(type_)}) for times in ([2, 4, 5], [1, 4, 5, 7]))
    unit = " SECONDS" if pa.types.is_timestamp(type_) else ""
    made = join(r, s, on="TRUE", window=(f"RANGE 2{unit}", f"RANGE 3{unit}"), closed=closed, time="ts", how="left",
                aggregate={"n": "count(*)"}, device=device)
    assert made.table["n"].to_pylist() == wanted


@pytest.mark.parametrize("device", ["cpu", "golden"])
@pytest.mark.parametrize("closed", ["both", "left", "right", "neither"])
@pytest.mark.parametrize("window", [(0, 3), (2, 0)])
def test_an_end_at_the_tuple_itself_may_be_open(device: str, window: tuple[int, int], closed: str) -> None:
    r, s = (pa.table({"ts": times}) for times in ([2, 4, 5], [1, 4, 5, 7]))
    low, high = -window[1], window[0]
    found = join(r, s, on="TRUE", window=(f"RANGE {window[0]}", f"RANGE {window[1]}"), closed=closed, time="ts",
                 device=device).to_pylist()
    ends = ({low} if closed not in ("both", "left") else set()) | ({high} if closed not in ("both", "right") else set())
    assert sorted(tuple(row.values()) for row in found) == [
        (t, u) for t in (2, 4, 5) for u in (1, 4, 5, 7) if low <= u - t <= high and u - t not in ends]


def test_a_window_with_no_tuple_at_all_is_refused() -> None:
    r = pa.table({"ts": [1]})
    for window, closed in (("RANGE 0", "neither"), ("RANGE 0 OPEN", None)):
        with pytest.raises(splitjoin.WindowError, match="is open and of length 0, so no tuple is in it"):
            join(r, r, on="TRUE", window=window, closed=closed, time="ts")
