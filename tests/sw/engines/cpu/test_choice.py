"""The choice of the engine: by measured selectivity, by options that force one, and options that are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import DeviceError, UnsupportedError
from splitjoin.base.processors import processors
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu import CpuDevice, algorithm
from splitjoin.engines.cpu.grid_index import levels_for
from splitjoin.engines.cpu.search import SESSION_ALGORITHMS, PlanSearch, choose
from splitjoin.engines.cpu.selectivity import Selectivity, SessionJob
from splitjoin.engines.cpu.session import CpuSession
from splitjoin.engines.cpu.table_choice import TABLE_ALGORITHMS
from splitjoin.engines.gpu.tuning import GpuTuning
from splitjoin.engines.tuning import MOST_ARRIVALS, Tuning
from splitjoin.joins.explain import explain
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.plan import Plan

from ....support.sampling import at_length

BANDS = "abs(r.x - s.a) <= 3 AND abs(r.y - s.b) <= 3"


def tables(n: int, span: int) -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(5)
    columns = [random.integers(0, span, n).astype(np.int32) for _ in "xyab"]
    return pa.table(dict(zip("xy", columns[:2], strict=True))), pa.table(dict(zip("ab", columns[2:], strict=True)))


def plan_of(on: str) -> Plan:
    r, s = tables(1, 9)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 9")
    return make_plan(query.predicate)


def ran(on: str, window: int, span: int, n: int = 9000, **options: Any) -> str:
    r, s = tables(n, span)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=f"ROWS {window}")
    with CpuDevice(threads=1, **options).open(query) as session:
        session.push(arrivals(query, r, s))
        return session.plan()


@pytest.mark.parametrize(("on", "window", "span", "engine"), [
    (BANDS, 4096, 10_000, "an index"), ("r.x = s.a", 4096, 10_000, "an index of 256 cells by hash"),
    at_length("r.x = s.a AND r.y < s.b", 4096, 10_000, "an index"),
    ("r.x <= s.a", 4096, 10_000, "nested loops over the keys"),
    ("abs(r.x - s.a) <= 900", 64, 1000, "nested loops over the keys"),
    ("r.x = s.a OR r.y = s.b", 4096, 10_000, "nested loops over the keys"),
])
def test_auto_takes_what_selectivity_suggests(on: str, window: int, span: int, engine: str) -> None:
    assert ran(on, window, span).startswith(engine)


def test_forced() -> None:
    assert ran(BANDS, 512, 10_000, engine="nested") == "nested loops over 8-bit copies of the keys, verified"
    assert ran(BANDS, 512, 10_000, engine="nested", prefilter=False) == "nested loops over the keys"
    assert ran("r.x <= s.a", 512, 10_000, engine="index").startswith("an index")
    with pytest.raises(UnsupportedError, match="an index needs a comparison of both streams that must hold for every"):
        ran("r.x = s.a OR r.y = s.b", 512, 10_000, engine="index")


def test_what_narrow_copies_let_through_is_verified() -> None:
    r, s = tables(9000, 10_000)
    narrow, whole = (splitjoin.join(r, s, on=BANDS, window="ROWS 512", device=CpuDevice(
        engine="nested", threads=1, prefilter=prefilter)) for prefilter in (True, False))
    assert (narrow.plan, whole.plan) == ("nested loops over 8-bit copies of the keys, verified",
                                         "nested loops over the keys")
    assert narrow.table.num_rows > 0
    assert np.array_equal(narrow.items, whole.items)


def test_the_choice_follows_the_window_and_the_data() -> None:
    """A window that grows, and values that change from all alike to all different."""
    r, s = tables(60_000, 10_000)
    alike = pa.table({"x": np.zeros(9000, np.int32), "y": np.zeros(9000, np.int32)})
    r = pa.concat_tables([alike[:1000], r])
    s = pa.concat_tables([alike[:1000].rename_columns(["a", "b"]), s])
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=BANDS, window="ROWS 4096")
    plans = []
    with CpuDevice(threads=1).open(query) as session:
        for at in range(0, len(r), 1000):
            session.push(arrivals(query, r[at:at + 1000], s[at:at + 1000]))
            plans.append(session.plan())
    assert plans[0] == "nested loops over the keys"
    assert plans[-1].startswith("an index")


def test_the_estimate_follows_the_window() -> None:
    """Also where the engine stays, as more threads share longer windows."""
    r, s = tables(9000, 10_000)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=BANDS, window="ROWS 4096")
    search = PlanSearch(make_plan(query.predicate), "nested", True)
    with CpuSession(query, search) as session:
        session.push(arrivals(query, r.slice(0, 100), s.slice(0, 100)))
        few = search.cost(1, 0)
        for at in range(100, 9000, 890):
            session.push(arrivals(query, r.slice(at, 890), s.slice(at, 890)))
    assert 20 < search.cost(1, 0) / few < 60


def test_levels_are_no_finer_than_the_intervals() -> None:
    plan = plan_of(BANDS)
    wide = levels_for(plan, Selectivity({0: 0.5, 1: 0.001}), (1, 0), 1 << 15)
    assert wide == (512, 2)
    assert levels_for(plan, Selectivity({0: 0.001, 1: 0.001}), (0, 1), 1 << 15) == (32, 32)


def test_nothing_is_known_without_tuples() -> None:
    job = SessionJob(plan_of(BANDS), Selectivity({0: float("nan"), 1: float("nan")}), 1)
    assert choose(job, "index").engine == "nested"


@pytest.mark.parametrize(("on", "said"), [
    ("r.x = s.a AND r.y < s.b", "an index by T0 (hash), T1 (range), or nested loops, whichever is cheaper"),
    ("r.x BETWEEN s.a AND s.b", "an index by T0 (range), T1 (range), sorted runs, or nested loops, whichever is"),
    ("r.x = s.a OR r.y = s.b", "nested loops; no index, as no test must hold for every match"),
])
def test_explain_says_what_can_run(on: str, said: str) -> None:
    schemas = [Schema.from_table(side, table) for side, table in zip("rs", tables(1, 9), strict=True)]
    text = explain(Query.make(*schemas, on=on, window="ROWS 9"))
    assert f"cpu         yes: {said}" in text
    assert f"up to {processors()} threads" in text


@pytest.mark.parametrize(("options", "said"), [
    ({"engine": "fast"}, "engine must be 'auto', 'index', 'sorted', 'nested', 'sliding', 'key-oij', 'scale-oij' "
                         "or 'threads', not 'fast'"),
    ({"threads": 0}, "threads must be a number from 1 to 256, or 'auto' for as many as pay, not 0"),
    ({"threads": True}, "not True"), ({"threads": 2.0}, "not 2.0"),
    ({"engine": "threads", "architecture": "ring"}, "architecture must be 'splitjoin', 'celljoin', 'scalejoin', "),
    ({"architecture": "celljoin"}, "architecture='celljoin' is of engine='threads', but the engine is 'auto'; give "),
    ({"prefilter": 1}, "prefilter must be True or False, not 1"),
])
def test_wrong_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DeviceError, match=re.escape(said)):
        CpuDevice(**options)


def test_batches_are_as_long_as_the_index_can_number() -> None:
    """Rows of a batch have 20 bits (`note_cells` of ``grid.hpp``); threads lost matches of longer ones."""
    for kind in (Tuning, GpuTuning):
        assert kind(batch=MOST_ARRIVALS).batch == 1 << 20
        with pytest.raises(DeviceError, match=r"must be a whole number from 1 to 1,048,576, not 1048577"):
            kind(batch=MOST_ARRIVALS + 1)


def test_the_result_tells_what_ran() -> None:
    r, s = tables(50, 9)
    assert splitjoin.join(r, s, on=BANDS, window="ROWS 9").plan.startswith("nested loops")
    assert splitjoin.join(r, s, on=BANDS, window="ROWS 9", device="golden").plan == ""


def test_example_of_the_guide() -> None:
    text = (Path(__file__).parents[4] / "docs" / "cpu.md").read_text()
    r, s = tables(50, 9)
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        names: dict[str, Any] = {"r": r, "s": s}
        exec(compile(code, "cpu.md", "exec"), names)
        assert "CpuDevice" in names


def test_the_page_of_algorithms_has_a_line_for_each() -> None:
    page = (Path(algorithm.__file__).parent / "README.md").read_text(encoding="utf-8").splitlines()
    for kind in (*TABLE_ALGORITHMS, *SESSION_ALGORITHMS):
        (line,) = [line for line in page if line.startswith(f"| `{kind.__name__}` |")]
        assert f"| `{kind.__module__.rpartition('.')[2]}.py` |" in line
