"""Conditions in generated code: every pair as the golden model sees it, nothing that wraps, and the ways around."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin.engines.arrival
from splitjoin.engines.compiled.atoms import AtomLanes
from splitjoin.engines.compiled.exact_source import NotCompiled, TooWide
from splitjoin.engines.compiled.expression_source import compile_pair
from splitjoin.engines.cpu import CpuDevice, residual as expression_kernel, residual as verified
from splitjoin.engines.cpu.finder import Batch
from splitjoin.engines.cpu.grid_index import IndexFinder
from splitjoin.engines.cpu.residual import slice_of
from splitjoin.engines.cpu.search import ExpressionSearch, Search, VerifiedSearch, make_search
from splitjoin.engines.cpu.session import CpuSession
from splitjoin.engines.golden import GoldenDevice, tuples_of
from splitjoin.engines.tuning import Tuning
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin.lang.ir import columns, walk
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.lang.types import Float, is_text
from tests.support.compiled_conditions import holds, lanes_of
from tests.support.conformance import run, slices
from tests.support.sampling import at_length, examples
from tests.support.strategies import Scenario, scenario

INF, NAN = float("inf"), float("nan")
ROWS = 40


def query_of(r: pa.Table, s: pa.Table, on: str, window: Any = "ROWS 17", order: str = "total") -> Query:
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=window, order=order)


@settings(max_examples=examples(150))
@given(scenario(max_rows=6))
def test_lines_of_random_conditions(case: Scenario) -> None:
    query = query_of(case.r, case.s, case.on.sql)
    lanes = AtomLanes(query.predicate)
    arrays = {"r": lanes.encode("r", case.r), "s": lanes.encode("s", case.s)}
    golden, named = compile_condition(query.predicate), columns(query.predicate)
    rows = {"r": tuples_of(case.r, "r", named), "s": tuples_of(case.s, "s", named)}
    exact = not any(isinstance(e.type, Float) for e in walk(query.predicate))
    for width in (32, 64):
        try:
            code = compile_pair(query.predicate, lanes.atoms, lanes.ranges({"r": 0, "s": 0}), width)
        except TooWide:
            continue
        except NotCompiled:
            assert any(is_text(e.type) for e in walk(query.predicate))
            return
        with np.errstate(all="ignore", over="raise" if exact else "ignore"):
            for i, r in enumerate(rows["r"]):
                for j, s in enumerate(rows["s"]):
                    row = lanes_of(lanes.atoms, "r", arrays["r"], i) | lanes_of(lanes.atoms, "s", arrays["s"], j)
                    with np.errstate(all="ignore"):
                        expected = golden(r, s) is True
                    assert holds(code, row) == expected, (str(query.predicate), r, s, code)


def column(random: Random, type_: pa.DataType, values: list[Any], nulls: float) -> pa.Array:
    chosen = [None if random.random() < nulls else random.choice(values) for _ in range(ROWS)]
    return pa.array(chosen, type_)


def tables(seed: int, nulls: float = 0.1) -> tuple[pa.Table, pa.Table]:
    """Columns of each kind, with what is hard for it; ``near`` and ``big`` come close to 32 and to 64 bits."""
    made = []
    for n in range(2):
        random = Random(seed + n)
        made.append(pa.table({
            "x": column(random, pa.int32(), list(range(-5, 6)), nulls),
            "y": column(random, pa.int32(), list(range(-5, 6)), nulls),
            "near": column(random, pa.int32(), [-(2**31), 2**31 - 1, 2**30, -(2**30), 0, 3], nulls),
            "big": column(random, pa.int64(), [100 - 2**62, 2**62 - 100, 2**61, 0, 3], nulls),
            "most": column(random, pa.int64(), [-(2**63), 2**63 - 1, 0, 3], nulls),
            "f": column(random, pa.float32(), [NAN, INF, -INF, -0.0, 0.0, 0.1, 1.5, -2.25, 3e38], nulls),
            "g": column(random, pa.float64(), [NAN, INF, -0.0, 0.1, 1.5, -2.25, 1e308], nulls),
            "u": column(random, pa.uint64(), [0, 2**64 - 1, 2**63, 77], nulls),
            "d": column(random, pa.decimal128(9, 2), [Decimal(n) / 100 for n in range(-300, 300, 37)], nulls),
            "t": column(random, pa.string(), ["", "a", "b"], nulls),
            "ok": column(random, pa.bool_(), [True, False], nulls),
        }))
    return made[0], made[1]


#: Condition → the width of its whole numbers with the tables above, 0 where NumPy is left.
CONDITIONS = {
    "(r.x - s.x) * (r.x - s.x) + (r.y - s.y) * (r.y - s.y) <= 9 OR r.ok = s.ok AND r.x % s.y = 1": 32,
    "r.near * s.near + r.x * s.x > 0": 64,
    "r.big - s.big + r.x * s.x > 0": 64,
    "r.near * s.near + r.near * s.x * 65536 > 3 * r.y": 64,
    "r.big - s.big + r.big * s.x > 0": 0,
    "r.most * s.x > s.most": 0,
    "r.f * s.f - s.f >= r.f OR r.f * s.f <> r.f + s.f AND r.f - s.f < r.x": 32,
    "r.g * s.f > s.g - r.x OR r.g / s.g = 1.5 OR mod(r.f, s.f) > 0.1": 32,
    "CASE WHEN r.x > s.x THEN r.x * s.y WHEN r.ok THEN s.d ELSE 2.5 END <= greatest(r.d - s.d, r.x * s.x)": 32,
    "least(r.f, s.f) * 2 >= greatest(r.f - s.f, s.f) OR (r.x * s.x) IS NULL": 32,
    "bit_count(r.u ^ s.u) + (r.x // (s.x - r.y)) <= mod(r.y + s.y, s.x) + 20": 32,
    "r.t = s.t OR r.x * s.x + r.y * s.y > 5": 0,
}


#: Compile at once, and cross every boundary.
TINY = Tuning(interpreted_pairs=0, room=1, share=1.0, step=1.0, slack=4, verified_first=7, verified=20)


def compare(query: Query, search: Search, r: pa.Table, s: pa.Table, cuts: list[int]) -> CpuSession:
    """The items are golden's."""
    found = []
    with CpuSession(query, search, 3, TINY) as session:
        for part in slices(splitjoin.engines.arrival.arrivals(query, r, s), cuts):
            session.push(part)
            found.append(session.poll())
        found.append(session.flush())
    expected = run(GoldenDevice(), query, r, s)
    assert np.concatenate(found).tolist() == expected.tolist()
    assert 10 < session.counters()["matches"] < session.counters()["comparisons"]
    return session


#: Those of which others have every operation and every width; kernels of each take seconds to compile.
ALIKE = {"r.near * s.near + r.x * s.x > 0", "r.big - s.big + r.x * s.x > 0",
         "least(r.f, s.f) * 2 >= greatest(r.f - s.f, s.f) OR (r.x * s.x) IS NULL",
         "r.g * s.f > s.g - r.x OR r.g / s.g = 1.5 OR mod(r.f, s.f) > 0.1",
         "r.near * s.near + r.near * s.x * 65536 > 3 * r.y"}


@pytest.mark.parametrize("on", [at_length(on) if on in ALIKE else on for on in CONDITIONS])
def test_compiled_conditions(on: str) -> None:
    r, s = tables(1)
    query = query_of(r, s, on)
    session = compare(query, ExpressionSearch(query.predicate, TINY), r, s, [30, 50])
    width = CONDITIONS[on]
    assert (f"in {width} bits" if width else "by NumPy, as there is no compiled code for") in session.plan()


@settings(max_examples=examples(25))
@given(st.data())
def test_random_data(data: st.DataObject) -> None:
    """One kernel with all the kinds of numbers, over what Hypothesis finds, NULL and extremes among it."""
    some = {"x": st.integers(-(2**31), 2**31 - 1), "f": st.floats(width=32), "g": st.floats()}
    types = {"x": pa.int32(), "f": pa.float32(), "g": pa.float64()}
    # NULL and an end of the range from the start, so that it is one kernel.
    first = {"x": [None, 2**31 - 1], "f": [None, 1], "g": [None, 1]}
    r, s = (pa.table({name: pa.array(first[name] + data.draw(st.lists(st.none() | values, min_size=4, max_size=4)),
                                     types[name]) for name, values in some.items()}) for _ in "rs")
    query = query_of(r, s, "r.x * s.x + r.x < s.x OR r.f * s.f <= s.f - r.f OR r.g + s.x > s.g * r.f", "ROWS 3")
    found = []
    with CpuSession(query, ExpressionSearch(query.predicate, TINY), tuning=TINY) as session:
        session.push(splitjoin.engines.arrival.arrivals(query, r, s))
        found.append(session.flush())
    assert np.concatenate(found).tolist() == run(GoldenDevice(), query, r, s).tolist()


def test_what_can_wrap_goes_to_numpy_only_while_it_is_there() -> None:
    on = "r.big - s.big + r.big * s.x > 0"
    x = pa.array([1, 2, -3] * 20, pa.int64())
    small = pa.array([5, 2**30, -(2**30)] * 20, pa.int64())
    big = pa.concat_arrays([small, pa.array([2**62, -(2**62)] * 10), small])
    long = pa.concat_arrays([x, x[:20], x])
    r, s = (pa.table({"big": big, "x": long}) for _ in "rs")
    query = query_of(r, s, on, "ROWS 4")
    found, words = [], []
    with CpuSession(query, ExpressionSearch(query.predicate, TINY), tuning=TINY) as session:
        for part in slices(splitjoin.engines.arrival.arrivals(query, r, s), range(10, 280, 10)):
            session.push(part)
            words.append("NumPy" in session.plan())
            found.append(session.poll())
    assert np.concatenate(found).tolist() == run(GoldenDevice(), query, r, s).tolist()
    assert [words[0], words[15], words[-1]] == [False, True, True]  # one stretch of rows has no ends within


def test_stretches_forget() -> None:
    table = pa.table({"x": pa.array([2**40] * 8 + [7] * 8 + [None] * 2 + [1] * 14, pa.int64())})
    predicate = query_of(table, table, "r.x * s.x > 3").predicate
    lanes = AtomLanes(predicate, Tuning(range_rows=8))
    for at in range(0, 32, 2):
        lanes.encode("r", table[at:at + 2])
    highs = []
    for first in (0, 7, 8, 16, 24):
        ranges = lanes.ranges({"r": first, "s": 0})
        high = next(x.high for e, x in ranges.items() if "r." in str(e))
        highs.append((high, any(x.nulls for x in ranges.values())))
    assert highs == [(2**40, True), (2**40, True), (7, True), (1, True), (1, True)]


EQUAL, NEAR = "r.x = s.x AND r.y * s.y + r.near > s.near - 3", "abs(r.x - s.x) <= 2 AND r.most - s.most > r.x * s.y"


@pytest.mark.parametrize(("on", "compiled", "engine"), [
    *((EQUAL, True, engine) for engine in ("auto", "nested")), (NEAR, False, "auto"), (NEAR, False, "nested"),
    # Indexes that no other test compiles; who verifies does not know who found.
    at_length(EQUAL, True, "index"), at_length(NEAR, False, "index")])
def test_candidates_are_verified(on: str, compiled: bool, engine: Any) -> None:
    r, s = tables(2)
    query = query_of(r, s, on, "ROWS 33")
    made = make_search(query, engine, True, TINY)
    assert isinstance(made, VerifiedSearch)
    session = compare(query, made, r, s, [3, 50])
    assert ("verified, compiled" if compiled else "verified, by NumPy") in session.plan()
    assert session.counters()["matches"] <= session.counters()["candidates"]


def test_candidates_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each arrival has up to 33 candidates, 20 are wanted: parts shrink; the limit holds even for the first."""
    sizes: list[int] = []

    def spy(batch: Batch, start: int, stop: int) -> Batch:
        sizes.append(stop - start)
        return slice_of(batch, start, stop)

    monkeypatch.setattr(verified, "slice_of", spy)
    r, s = tables(2, nulls=0)
    query = query_of(r, s, "r.x <= s.x + 20 AND r.most - s.most > r.x * s.y", "ROWS 33")
    for limit, first in ((1 << 27, 7), (33 * 3, 3)):
        sizes.clear()
        compare(query, make_search(query, "nested", True, replace(TINY, verified_limit=limit)), r, s, [])
        assert sizes[0] <= 7
        assert max(sizes) <= 14
        assert sizes[-2:] == [1, 1]
        assert limit > 33 * 3 or max(sizes) <= first


@pytest.mark.parametrize(("limit", "fails"), [at_length(70, False), at_length(2, True)])  # of own loops
def test_parts_of_an_index_are_as_long_as_earlier_ones_had_few_candidates(
        limit: int, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that turns out to have too many is done again, shorter; after some, the limit holds beforehand."""
    gave_up: list[dict[str, int]] = []
    take_back = IndexFinder.take_back

    def spy(finder: IndexFinder, ends: dict[str, int]) -> None:
        gave_up.append(ends)
        take_back(finder, ends)

    monkeypatch.setattr(IndexFinder, "take_back", spy)
    r, s = tables(2, nulls=0)
    query = query_of(r, s, NEAR, "ROWS 33")
    compare(query, make_search(query, "index", True, replace(TINY, verified_limit=limit)), r, s, [20, 50])
    assert bool(gave_up) == fails
    assert len(gave_up) <= 4


def test_tests_with_many_candidates_are_bypassed_for_a_while() -> None:
    r, s = tables(2)
    query = query_of(r, s, "r.x < s.x AND r.y * s.y + r.near > s.near - 3", "ROWS 2")
    made = make_search(query, "auto", True, replace(TINY, review_pairs=100, choice_arrivals=0))
    found, words = [], set()
    with CpuSession(query, made, tuning=TINY) as session:
        for part in slices(splitjoin.engines.arrival.arrivals(query, r, s), range(0, 80, 3)):
            session.push(part)
            words.add("candidates" in session.plan())
            found.append(session.poll())
        found.append(session.flush())
    assert np.concatenate(found).tolist() == run(GoldenDevice(), query, r, s).tolist()
    assert words == {True, False}


def test_few_pairs_are_left_to_numpy() -> None:
    r, s = tables(1)
    query = query_of(r, s, "r.x * s.x + r.y * s.y > 3")
    with CpuDevice(threads=1).open(query) as session:
        session.push(splitjoin.engines.arrival.arrivals(query, r, s))
        assert "few pairs" in session.plan()  # type: ignore[attr-defined]  # a CpuSession


def test_dense_and_sparse_chunks() -> None:
    """Windows of several chunks; first nothing, then nearly everything, then a little matches."""
    random, n = np.random.default_rng(7), 3000
    x = np.concatenate([random.integers(5000, 9000, n), random.integers(0, 9, n), random.integers(0, 4000, n)])
    r, s = (pa.table({"x": x.astype(np.int32)}) for _ in "rs")
    query = query_of(r, s, "r.x * s.x + r.x - s.x < 100", f"ROWS {2 * expression_kernel.CHUNK + 100}")
    answers = []
    for compiling in (True, False):
        search = ExpressionSearch(query.predicate, Tuning(interpreted_pairs=0), compiling=compiling)
        with CpuSession(query, search) as session:
            session.push(splitjoin.engines.arrival.arrivals(query, r, s))
            answers.append(session.flush())
    assert len(answers[0]) > 100_000
    assert np.array_equal(*answers)


def test_nothing_is_written_beyond_the_room() -> None:
    """A probe fills the room to the last place, and more is looked at, in words of eight, that does not match."""
    n = 70
    r, s = pa.table({"x": pa.array([1, 1, 1], pa.int32())}), pa.table({"x": pa.array([2] * n, pa.int32())})
    predicate = query_of(r, s, "r.x * s.x > 0").predicate
    lanes = AtomLanes(predicate)
    probes, stored = lanes.encode("r", r), lanes.encode("s", s)
    kernel = expression_kernel.make_kernel(predicate, lanes.atoms, lanes.ranges({"r": 0, "s": 0}))
    start, end, counts = np.zeros(3, np.int64), np.full(3, n), np.zeros(3, np.int64)
    for room in (n + 1, 2 * n, 2 * n + 1, 3 * n):
        rows, p, found = np.full(4 * n, -7), 0, []
        while p < 3:
            p, at = kernel.modules["r"].find(p, start, end, 0, n, counts, rows[:room], np.zeros((64, 3), np.bool_),
                                             np.zeros(256, np.bool_), *kernel.lanes("r", probes, stored))
            found += rows[:at].tolist()
            assert (rows[room:] == -7).all()
        assert found == 3 * list(range(n))
