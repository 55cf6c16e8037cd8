"""Aggregates of whole tables by ranges of sorted keys: golden's rows, and DuckDB's."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.base.errors import InputError
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu import CpuDevice, range_folds
from splitjoin.engines.tuning import Tuning
from splitjoin.joins.explain import explain
from splitjoin.joins.join import join

from ....support.sampling import examples
from ...sessions.test_feeding import rows_of

VALUES: dict[str, list[Any]] = {"k": [None, 0, 1], "x": [None, -3, -1, 0, 1, 2, 5],
                                "b": [None, -2**63, -7, 5, 2**63 - 1],
                                "f": [None, -2.5, -0.0, 0.0, 1.5, float("inf"), float("nan")]}
CONDITIONS = ("r.f = s.f", "r.k = s.k AND r.x = s.x", "r.x < s.x", "r.f >= s.f", "abs(r.x - s.x) <= 1",
              "r.k = s.k AND r.x <= s.x", "abs(r.f - s.f) <= 1", "r.k = s.k AND r.x > s.x - 2 AND s.x > 0")
AGGREGATES = {"n": "count(*)", "c": "count(s.f)", "low": "min(s.b)", "high": "max(s.x - s.k)", "sum": "sum(s.x)",
              "mean": "avg(s.b)"}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    n = draw(st.integers(0, 14))
    return pa.table({name: pa.array(draw(st.lists(st.sampled_from(values), min_size=n, max_size=n)),
                                    pa.float64() if name == "f" else pa.int64()) for name, values in VALUES.items()})


@settings(max_examples=examples(30), deadline=None)
@given(tables(), tables(), st.sampled_from(CONDITIONS), st.sampled_from(["inner", "left"]), st.sampled_from([1, 3]),
       st.booleans())
def test_rows_are_goldens(r: pa.Table, s: pa.Table, on: str, how: str, threads: int,
                         has_groups: bool) -> None:
    cpu = CpuDevice(threads=threads, tuning=Tuning(table_share=1, table_rows=3))
    with pytest.MonkeyPatch.context() as patch:
        if not has_groups:
            patch.setattr(range_folds, "groups_of", lambda *_: None)
        found, expected = (join(r, s, on=on, how=how, aggregate=AGGREGATES, device=device)
                           for device in (cpu, "golden"))
    is_equal = has_groups and "<" not in on and ">" not in on
    assert found.plan == f"rows without pairs, by {'totals of equal' if is_equal else 'ranges of sorted'} keys"
    assert rows_of(found.table) == rows_of(expected.table)
    assert found.schema == expected.schema


def test_ranks_and_bands_are_duckdbs(tmp_path: Any) -> None:
    chance, n = np.random.default_rng(1), 3000
    r, s = (pa.table({"i": np.arange(n), "k": chance.integers(0, 9, n), "x": chance.integers(0, n, n)}) for _ in "rs")
    for on in ("r.k = s.k", "s.x <= r.x", "r.k = s.k AND s.x BETWEEN r.x - 50 AND r.x + 50"):
        aggregate = {"n": "count(*)", "low": "min(s.i)", "sum": "sum(s.i)"}
        found = join(r, s, on=on, aggregate=aggregate, select=["i"], to=tmp_path / "rows.parquet").to_pylist()
        expected = duckdb.sql(f"SELECT r.i, count(*), min(s.i), sum(s.i) FROM r JOIN s ON {on} GROUP BY r.i "
                              f"ORDER BY r.i").fetchall()
        assert [tuple(row.values()) for row in found] == expected


def test_a_sum_that_does_not_fit_names_its_row() -> None:
    r, s = pa.table({"x": [0, 3, 0, 4, 5]}), pa.table({"x": [1, 2, 4], "b": [2**63 - 1, 1, 1]})
    for threads in (1, 3):  # of several that do not fit, the first one
        with pytest.raises(InputError, match=r"of row 1 of r must fit int64, but is 9223372036854775808"):
            join(r, s, on="s.x <= r.x", aggregate={"sum": "sum(s.b)"},
                 device=CpuDevice(threads=threads, tuning=Tuning(table_share=1, table_rows=1)))


def test_floats_are_summed_from_pairs() -> None:
    r, s = pa.table({"x": [3]}), pa.table({"x": [1, 2, 3], "f": [1e16, 1.0, -1e16]})
    for aggregate, without_pairs in (({"sum": "sum(s.f)"}, False), ({"n": "count(s.f)"}, True)):
        query = splitjoin.query(r.schema, s.schema, on="s.x <= r.x", window="ROWS 3", aggregate=aggregate)
        assert (CpuDevice().join_tables(query, arrivals(query, r, s), 0) is not None) == without_pairs


def test_explain_says_so() -> None:
    schema = pa.schema([("x", pa.int64())])
    for aggregate, told in (({"n": "count(*)"}, True), ({"d": "max(s.x - r.x)"}, False)):
        query = splitjoin.query(schema, schema, on="s.x <= r.x", window="ROWS 3", aggregate=aggregate)
        assert ("without a window by ranges of sorted keys" in explain(query)) == told
