"""The CPU engine gives the golden model's items, one for one, in every order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
import splitjoin.engines.arrival
from splitjoin.base.errors import DeviceError, InputError, UnsupportedError
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.cpu import CpuDevice, session as cpu_session
from splitjoin.engines.cpu.search import ExpressionSearch
from splitjoin.engines.device import Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.tuning import DEFAULTS, Tuning
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.plan import leading_tests
from tests.support.conformance import assert_conforms, run, slices
from tests.support.sampling import at_length, examples
from tests.support.scenarios import SCENARIOS, Scenario, arrivals_of
from tests.support.strategies import Scenario as RandomScenario, scenario

#: Every way in which the engine can run a query.
WAYS = {"auto": CpuDevice(threads=1), "index": CpuDevice(engine="index", threads=1),
        "nested": CpuDevice(engine="nested", threads=1),
        "exact": CpuDevice(engine="nested", threads=1, prefilter=False),
        "five threads": CpuDevice(threads=5), "threads, index": CpuDevice(engine="index", threads=5),
        "sorted": CpuDevice(engine="sorted", threads=1), "threads, sorted": CpuDevice(engine="sorted", threads=5)}
#: Scenarios of sorted runs, each of which compiles for two seconds: guards, factors and floats. `test_sorted` has more.
IN_RUNS = {"one-sided", "scaled", "float-greater"}
#: Those that look for keys.
SEEKING = ("index", "threads, index", "sorted", "threads, sorted")
#: How results are put in order does not depend on how they were found, but on the number of threads: one way goes
#: through two orders of each scenario, others of the next one, another through stars as well.
ORDERS = ["total", "none", "outer(1)", "outer(3)", "inner(1)", "inner(2)"]


#: Small inputs in one batch, and cut so small that every boundary is crossed and memory is given back.
BATCHES = {"whole": DEFAULTS, "tiny": Tuning(
    batch=7, share=1.0, choice_arrivals=5, step=1.0, slack=4, room=1, part_probes=1, grid_spare=0, shared_arrivals=3,
    part_arrivals=1, grid_tuples=60, trend_sample=2, run_tuples=1)}


@cache
def golden(name: str, order: str) -> Items:
    """The golden model's answer to a scenario: one for all ways and batches."""
    case = next(case for case in SCENARIOS if case.name == name)
    return run(GoldenDevice(), case.query(order), case.r, case.s)


#: Indexes of kinds that others have too, of keys with NULL and of 64 bits; nested loops run them as well.
ALIKE = {"null-band", "not", "string-not-equal", "int64-band", "int64-extremes", "float-greater", "one-sided",
         "date-and-timestamp"}


def needed(case: Scenario, way: str, order: str, batches: str) -> bool:
    """True unless `make test-long` is soon enough. Only `auto` and threads look at how large a batch is."""
    if "sorted" in way:
        return case.name in IN_RUNS and (order, batches) == ("total", "tiny")
    if way in SEEKING and case.name in ALIKE:
        return False
    if batches == "whole":
        return order == "total" and way in ("auto", "five threads")
    turn = (SCENARIOS.index(case) + ORDERS.index(order)) % 3
    return order == "total" or (way, turn) == ("five threads", 0) or (way, order) == ("auto", "inner(2)")


def cases() -> Iterator[Any]:
    """Each scenario in each way with the orders that are needed, and at length with the others."""
    for case, way, batches in product(SCENARIOS, WAYS, BATCHES):
        soon = [order for order in ORDERS if needed(case, way, order, batches)]
        if soon:
            yield pytest.param(case, way, batches, soon, id=f"{case}-{way}-{batches}")
        if others := [order for order in ORDERS if order not in soon]:
            yield pytest.param(case, way, batches, others, id=f"{case}-{way}-{batches}, further orders",
                               marks=pytest.mark.long)


@pytest.mark.parametrize(("case", "way", "batches", "orders"), [*cases()])
def test_scenarios(case: Scenario, way: str, batches: str, orders: list[str]) -> None:
    for order in orders:
        conforms(case, way, order, batches)


def conforms(case: Scenario, way: str, order: str, batches: str) -> None:
    query, device = case.query(order), replace(WAYS[way], tuning=BATCHES[batches])
    if way in SEEKING and not leading_tests(make_plan(query.predicate)):
        with pytest.raises(UnsupportedError, match=r"an index needs|sorted runs need"):
            device.open(query)
        return
    got, expected = run(device, query, case.r, case.s, [5, 50]), golden(case.name, order)
    assert_conforms(got, expected, order)
    if order != "none":
        assert got.tolist() == expected.tolist()


def expressions(query: Query) -> cpu_session.CpuSession:
    """A session that evaluates the whole expression: a kernel for each random condition would take a second."""
    return cpu_session.CpuSession(query, ExpressionSearch(query.predicate), 2)


@settings(max_examples=examples(60))
@given(scenario(), st.lists(st.integers(0, 20), max_size=3))
def test_random(case: RandomScenario, cuts: list[int]) -> None:
    query = Query.make(Schema.from_table("r", case.r), Schema.from_table("s", case.s), on=case.on.sql,
                       window=case.windows.spec, time=case.time, order=case.order)
    found = []
    with expressions(query) as session:
        for part in slices(splitjoin.engines.arrival.arrivals(query, case.r, case.s), cuts):
            session.push(part)
            found.append(session.poll())
        found.append(session.flush())
    assert_conforms(np.concatenate(found), run(GoldenDevice(), query, case.r, case.s), case.order)


def tables(n: int) -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(3)
    whole = [random.integers(0, 500, n).astype(np.int32) for _ in "ra"]
    part = [(random.random(n) * 500).astype(np.float32) for _ in "yb"]
    return pa.table({"x": whole[0], "y": part[0]}), pa.table({"a": whole[1], "b": part[1]})


@pytest.mark.parametrize("way", [at_length(way) if "sorted" in way else way for way in WAYS])
@pytest.mark.parametrize("on", ["abs(r.x - s.a) <= 3 AND abs(r.y - s.b) <= 3", "r.x = s.a AND r.y < s.b",
                                at_length("r.x = s.a"), at_length("r.x < s.a AND abs(r.y - s.b) <= 3"),
                                "r.x = s.a OR r.y = s.b",
                                at_length("r.x BETWEEN 100 AND 300 AND abs(r.x - s.a) <= 3")])
def test_many_batches_and_chunks(way: str, on: str) -> None:
    """More arrivals than a batch, windows of more than a chunk; tables that are learnt, thought over and rebuilt."""
    r, s = tables(20_000)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=("ROWS 5000", "ROWS 3000"))
    with expressions(query) as session:
        session.push(splitjoin.engines.arrival.arrivals(query, r, s))
        expected, counters = session.flush(), session.counters()
    if way in SEEKING and " OR " in on:
        return
    got = splitjoin.join(r, s, on=on, window=("ROWS 5000", "ROWS 3000"), device=WAYS[way])
    assert np.array_equal(got.items, expected)
    assert {**got.counters, "candidates": 0} == {**counters, "candidates": 0}
    assert got.counters["matches"] == got.table.num_rows > 10_000
    assert got.counters["candidates"] <= got.counters["comparisons"]


def test_memory_is_bounded_by_the_window() -> None:
    r, s = tables(5_000)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window="ROWS 50")
    with CpuDevice(threads=4, tuning=Tuning(slack=64, batch=128)).open(query) as session:
        assert isinstance(session, cpu_session.CpuSession)
        session.push(splitjoin.engines.arrival.arrivals(query, r, s))
        for kept in session._search._finder.stores.values():
            assert kept.end == 5_000
            assert kept.end - kept.base < 50 + 2 * 128 + 64


def test_takes_what_circuits_refuse() -> None:
    r, s = tables(60)
    on = "abs(r.x - s.a) + abs(r.y - s.b) <= 100"
    golden = splitjoin.join(r, s, on=on, window="ROWS 9", device="golden")
    assert golden.num_rows > 0
    assert splitjoin.join(r, s, on=on, window="ROWS 9", device="cpu") == golden


def test_range_lengths_beyond_64_bits() -> None:
    ts = pa.array([-(2**63), 0, 2**63 - 1], pa.int64())
    r, s = pa.table({"ts": ts, "x": [1, 1, 1]}), pa.table({"ts": ts, "a": [1, 1, 1]})
    assert (splitjoin.join(r, s, on="r.x = s.a", window=f"ROWS {2**63}", device="cpu").num_rows
            == splitjoin.join(r, s, on="r.x = s.a", window="ROWS 9", device="golden").num_rows)
    for length in (2**63 - 1, 2**63, 2**63 + 5, 2**64):
        answers = [splitjoin.join(r, s, on="r.x = s.a", window=f"RANGE {length}", time="ts", device=device)
                   for device in ("cpu", "golden")]
        assert answers[0] == answers[1]
        assert answers[0].num_rows > 3


@pytest.mark.parametrize("way", [at_length(way) if way == "sorted" else way for way in WAYS])
def test_one_stream_after_the_other(way: str) -> None:
    """Engines take over windows of which one is still empty."""
    r, s = tables(3_000)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), window="ROWS 4000",
                       on="abs(r.x - s.a) <= 3 AND abs(r.y - s.b) <= 3")
    with WAYS[way].open(query) as session, expressions(query) as plain:
        for start, n in ((0, 2), (2, 60), (62, 600), (662, 2_338)):
            for side, table in ((0, r), (1, s)):
                part = table.slice(start, n)
                push = Arrivals(np.full(n, side, np.uint8), None, part if side == 0 else r.slice(0, 0),
                                part if side else s.slice(0, 0))
                for one in (session, plain):
                    one.push(push)
        got, expected = session.flush(), plain.flush()
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("prefilter", [True, False])
def test_few_probes_divide_the_stored_tuples(prefilter: bool) -> None:
    """Windows of many chunks, and windows that grow."""
    r, s = tables(9_000)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), window=("ROWS 7000", "ROWS 300"),
                       on="abs(r.x - s.a) <= 3 AND abs(r.y - s.b) <= 30")
    incoming, found = splitjoin.engines.arrival.arrivals(query, r, s), []
    for threads in (1, 5, 16):
        device = CpuDevice(engine="nested", threads=threads, prefilter=prefilter, tuning=Tuning(share=1.0))
        with device.open(query) as session:
            for part in slices(incoming, [3, 40, 17_000, 17_002, 17_100, 17_101]):
                session.push(part)
            found.append(session.flush())
    assert len(found[0]) > 30_000
    assert all(np.array_equal(items, found[0]) for items in found)


def test_push_after_flush() -> None:
    case = SCENARIOS[0]
    session = CpuDevice().open(case.query())
    session.flush()
    with pytest.raises(DeviceError, match="open a new session"):
        session.push(arrivals_of(case))


def test_times_must_not_decrease() -> None:
    case = next(c for c in SCENARIOS if c.name == "band-range")
    session = CpuDevice().open(case.query())
    session.push(arrivals_of(case))
    with pytest.raises(InputError, match="must not decrease"):
        session.push(arrivals_of(case))
