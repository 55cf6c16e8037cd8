"""Results of joins: for every library that takes tables, in memory or in a file, and what they look like."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import CapacityError, InputError, JoinResult, SchemaError, ToolError, join
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import Device
from splitjoin.engines.golden import GoldenDevice
from splitjoin.joins import execution, expected_size
from splitjoin.joins.expected_size import compared_pairs
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.rows import whole as whole_rows
from splitjoin.tables import writing
from tests.support.sampling import examples

R = pa.table({"ts": [1, 4, 9], "x": [10, 20, 30], "t": ["<a>", None, "c" * 40]})
S = pa.table({"ts": [2, 5, 9], "a": [12, 70, 31]})
HOW: dict[str, Any] = {"on": "abs(r.x - s.a) <= 5", "window": "RANGE 4", "time": "ts", "device": "golden"}
WANT = pa.table({"ts_r": [1, 9], "x": [10, 30], "t": ["<a>", "c" * 40], "ts_s": [2, 9], "a": [12, 31]})


@pytest.fixture(params=["memory", "parquet", "csv", "arrow"])
def result(request: pytest.FixtureRequest, tmp_path: Path) -> JoinResult:
    to = None if request.param == "memory" else tmp_path / f"out.{request.param}"
    return join(R, S, **HOW, to=to)


def test_a_result_is_a_table_for_every_library(result: JoinResult) -> None:
    assert result.to_arrow() == result.table == WANT
    assert pa.table(result) == WANT
    assert result.to_pandas().to_dict("list") == WANT.to_pydict()
    assert result.to_polars().equals(pl.from_arrow(WANT))
    assert pl.DataFrame(result).to_dict(as_series=False) == WANT.to_pydict()
    assert result.to_duckdb().filter("x > 10").fetchall() == [(9, 30, "c" * 40, 9, 31)]
    assert pa.Table.from_batches(list(result)) == WANT
    assert [len(batch) for batch in result.batches(1)] == [1, 1]
    assert len(result) == result.num_rows == 2
    assert result.column_names == WANT.column_names
    assert result.schema == WANT.schema
    assert (result.to_pylist(), result.to_pydict()) == (WANT.to_pylist(), WANT.to_pydict())
    assert result.column("a") == result["a"] == result[-1] == WANT.column("a")
    assert (result.head(), result.head(1)) == (WANT, WANT.slice(0, 1))
    for missing in ("aa", 5, -6):
        with pytest.raises(SchemaError, match=rf"the result has no column '?{missing}'?.*; its columns are ts_r, x"):
            _ = result[missing]
    for wrong in (slice(0, 1), 1.5, True):
        with pytest.raises(InputError, match=r"a column is chosen by its name or its place, not by .*; head\(\) and"):
            _ = result[wrong]  # type: ignore[index]  # wrong on purpose
    assert result.select(["a", "x"]) == WANT.select(["a", "x"])
    assert result == WANT == result
    assert result != WANT.slice(1)
    assert result != 5
    assert result.counters["matches"] == 2
    assert join(result, result, on="r.x = s.x", window="ROWS 9").num_rows == 2
    assert duckdb.sql("SELECT a FROM result WHERE x > 10").fetchall() == [(31,)]
    for made in (pd.DataFrame, np.asarray):
        with pytest.raises(TypeError, match=r"a JoinResult does not convert to an array.*write result.to_pandas\(\)"):
            made(result)


def test_the_file_and_the_items(tmp_path: Path) -> None:
    memory, stored = join(R, S, **HOW), join(R, S, **HOW, to=tmp_path / "out.parquet")
    assert memory.path is None
    assert len(memory.items) == 8  # two rows and a star after each probe
    assert stored.path == tmp_path / "out.parquet"
    with pytest.raises(InputError, match="the items of a join are kept where its rows are the result"):
        _ = stored.items
    with pytest.raises(InputError, match="a batch must have at least 1 row, not 0"):
        stored.batches(0)


def test_what_it_looks_like(result: JoinResult) -> None:
    text = repr(result).splitlines()
    assert text[0].startswith("JoinResult: 2 rows, 5 columns")
    assert "pairs within the windows" in text[0]
    assert text[1].split() == ["ts_r", "x", "t", "ts_s", "a"]
    assert text[2].split() == ["1", "10", "<a>", "2", "12"]
    assert "c" * 31 + "…" in text[3]
    html = result._repr_html_()
    assert "<td>&lt;a&gt;</td>" in html
    assert "<a>" not in html


def test_large_and_empty_results_are_shown_in_short() -> None:
    wide = pa.table({f"c{n}": list(range(20)) for n in range(10)} | {"n": [None] * 20})
    made = join(wide, {"k": [1]}, on="r.c0 >= 0", window="ROWS 99", device="golden")
    assert repr(made).splitlines()[-1] == "… 15 more rows and 4 more columns"
    empty = join(R, S, **HOW | {"on": "r.x > 100"})
    assert repr(empty).splitlines()[1:] == ["ts_r  x  t  ts_s  a"]
    assert "0 rows" in empty._repr_html_()
    assert empty.head() == empty.to_arrow()
    for wrong in (0, -1, "2", True):
        with pytest.raises(InputError, match=f"head gives 1 row or more, not {wrong!r}"):
            empty.head(wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_a_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError("no module", name=name)

    made = join(R, S, **HOW)
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ToolError, match="to_polars needs the Python package 'polars', which is not installed; pip "
                                        "install polars"):
        made.to_polars()


KINDS: list[dict[str, Any]] = [
    {}, {"how": "left"}, {"how": "full"}, {"how": "semi"}, {"how": "anti"},
    {"how": "asof_left", "direction": "nearest"},
    {"by": "r", "aggregate": {"n": "count(*)", "top": "max(s.a)"}, "how": "left"}, {"order": "outer(3)"},
]


class SmallCpu(CpuDevice):
    most_arrivals = 7


class SmallGolden(GoldenDevice):
    most_arrivals = 7


@pytest.mark.parametrize("device", [SmallCpu(), SmallGolden()], ids=["cpu", "golden"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rows_in_parts_are_those_in_one_piece(kind: dict[str, Any], device: Device, tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_WRITTEN", 50)
    monkeypatch.setattr(writing, "_GROUP", 8)
    rng = np.random.default_rng(5)
    r = {"ts": np.sort(rng.integers(0, 60, 150)), "x": rng.integers(0, 9, 150)}
    s = {"ts": np.sort(rng.integers(0, 60, 130)), "a": rng.integers(0, 9, 130)}
    how = {"on": "r.x = s.a", "window": "RANGE 3", "time": "ts", "device": device} | kind
    whole, stored = join(r, s, **how), join(r, s, **how, to=tmp_path / "out.parquet")
    assert stored == whole
    assert stored.num_rows > 10
    assert pyarrow.parquet.ParquetFile(stored.path).metadata.num_row_groups > 1


def test_a_statement_into_a_file(tmp_path: Path) -> None:
    how: dict[str, Any] = {"r": R, "s": S, "window": "RANGE 4", "time": "ts", "device": "golden"}
    text = "SELECT x - a AS gap, t FROM r JOIN s ON abs(r.x - s.a) <= 5"
    assert splitjoin.sql(text, **how, to=str(tmp_path / "o.parquet")) == splitjoin.sql(text, **how)


def test_a_join_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("old")
    unsorted = R.take([2, 1, 0])
    with pytest.raises(InputError, match="must not decrease"):
        join(unsorted, S, **HOW, to=out)
    with pytest.raises(InputError, match="column 'l' of the result"):
        join(R.append_column("l", pa.array([[1]] * 3)), S, **HOW, to=out)
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert out.read_text() == "old"


def test_inputs_that_are_not_sorted() -> None:
    mixed = R.take([2, 0, 1])
    assert join(mixed, S.take([1, 2, 0]), **HOW, sort=True) == WANT
    with pytest.raises(InputError, match="sort=True sorts by the time column, but there is none"):
        join(R, S, on="TRUE", sort=True)
    found = splitjoin.sql("SELECT x FROM r JOIN s ON abs(r.x - s.a) <= 5", r=mixed, s=S, window="RANGE 4", time="ts",
                          sort=True)
    assert found.column("x").to_pylist() == [10, 30]


@pytest.mark.parametrize("device", ["cpu", "golden"])
def test_without_a_window_every_earlier_row_is_in_it(device: str) -> None:
    pairs = join(R, S, on="r.x < s.a", time="ts", device=device).to_pydict()
    assert pairs["x"] == [10, 10, 20, 30, 10, 20, 30]
    assert pairs["a"] == [12, 70, 70, 70, 31, 31, 31]
    assert splitjoin.sql("SELECT x, a FROM r JOIN s ON x < a", r=R, s=S, time="ts", device=device).num_rows == 7


def test_windows_that_do_not_fit_are_refused_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitjoin.base.memory, "_SMALL", 100)
    monkeypatch.setattr(splitjoin.base.memory, "available_memory", lambda: 200)
    with pytest.raises(CapacityError, match="without a window, all 6 rows stay in memory, which takes about 384 bytes"):
        join(R, S, on="r.x < s.a")


class Large(CpuDevice):
    most_arrivals = 1000


def test_a_result_that_cannot_fit_is_told_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 4000
    table = {"x": np.arange(n) % 2}
    monkeypatch.setattr(expected_size, "_LEAST", 1000)
    monkeypatch.setattr(CpuDevice, "count_pairs", lambda *_: None)
    monkeypatch.setattr(whole_rows, "room_for", lambda *_: 1)
    monkeypatch.setattr(expected_size, "available_memory", lambda: 1 << 20)
    with pytest.raises(CapacityError, match=(
            r"12% of the input gave 125,000 rows, so about 8,000,000 are expected, which take about \d+ MiB, and 1 "
            r"MiB are free; write it to a file with to='OUT\.parquet'")):
        join(table, table, on="r.x = s.x", device=Large())


@settings(max_examples=examples(30))
@given(st.lists(st.integers(-9, 9), max_size=12), st.lists(st.integers(-9, 9), max_size=12),
       st.sampled_from(["ROWS 3", "RANGE 4", "ROWS 2 RANGE 5", "ROWS 100", "RANGE 0"]), st.booleans())
def test_compared_pairs_are_counted_as_the_golden_model_does(a: list[int], b: list[int], window: str,
                                                             timed: bool) -> None:
    r, s = (pa.table({"ts": pa.array(sorted(times), pa.int64())}) for times in (a, b))
    if not timed and "RANGE" in window:
        return
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="TRUE", window=window,
                       time="ts" if timed else None)
    counted = compared_pairs(query, arrivals(query, r, s))
    want = join(r, s, on="TRUE", window=window, time="ts" if timed else None, device="golden").counters["comparisons"]
    assert (int(counted[-1]) if len(counted) else 0) == want
