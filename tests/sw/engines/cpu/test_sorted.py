"""Sorted runs: their order and extremes, and joins by two inequalities, beside the golden model and beside NumPy."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.compiled.store import Store
from splitjoin.engines.cpu import CpuDevice, sorted_runs
from splitjoin.engines.cpu.codes import LaneCoder
from splitjoin.engines.cpu.search import ExpressionSearch, choose
from splitjoin.engines.cpu.selectivity import SessionJob, measure
from splitjoin.engines.cpu.session import CpuSession
from splitjoin.engines.cpu.sorted_runs import Runs
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.loops import address_of, loops
from splitjoin.engines.tuning import Tuning
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.compiler import make_plan
from tests.support.conformance import run
from tests.support.sampling import at_length, examples

SORTED = CpuDevice(engine="sorted", threads=1)
Array = np.ndarray[Any, Any]
#: Every 64 tuples become a run.
SHORT = Tuning(run_tuples=1, room=1, sorted_probes=20)
SHORT_TAILS = replace(SORTED, tuning=SHORT)
#: Spellings of a value between two columns, and other pairs of inequalities.
BETWEEN = ["r.x BETWEEN s.lo AND s.hi", "s.lo <= r.x AND r.x <= s.hi", "s.hi >= r.x AND NOT (r.x < s.lo)"]
PAIRS = ["r.x < s.hi AND r.y > s.lo", "r.x - 3 BETWEEN s.lo AND 2 * s.hi", "r.x BETWEEN s.lo AND s.hi AND r.y <> s.lo",
         "r.x BETWEEN s.lo AND s.hi AND r.y BETWEEN s.lo AND s.hi"]


def query_of(r: pa.Table, s: pa.Table, on: str, window: Any, **options: Any) -> Query:
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=window, **options)


def integers(n: int, span: int, width: int, seed: int = 0) -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(seed)
    low = random.integers(0, span, n)
    return (pa.table({"x": random.integers(0, span, n), "y": random.integers(0, span, n)}),
            pa.table({"lo": low, "hi": low + random.integers(-1, width, n)}))


def of_type(kind: str) -> tuple[pa.Table, pa.Table]:
    """Values with NULL, ties and the ends of their type; of floats also NaN, infinities and both zeros."""
    random = np.random.default_rng(len(kind))
    ends: dict[str, list[Any]] = {
        "int64": [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1],
        "uint64": [0, 1, 2**63, 2**64 - 2, 2**64 - 1],
        "float64": [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 5e-324, 1.5],
        "decimal128": [Decimal("-9999999.99"), Decimal("0.00"), Decimal("0.01"), Decimal("9999999.99")],
        "timestamp": [0, 1, 2**40, 2**50], "date32": [-1000, 0, 1, 20000], "uint8": [0, 1, 254, 255],
        "float32": [float("nan"), float("inf"), 0.0, -0.0, 1.25, -1.25]}
    types = {"decimal128": pa.decimal128(9, 2), "timestamp": pa.timestamp("us")}

    def column() -> pa.Array:
        values: list[Any] = [None, *ends[kind]]
        return pa.array([values[i] for i in random.integers(0, len(values), 150)],
                        types[kind] if kind in types else getattr(pa, kind)())

    return pa.table({"x": column(), "y": column()}), pa.table({"lo": column(), "hi": column()})


@pytest.mark.parametrize("kind", ["int64", at_length("uint64"), "float64", at_length("decimal128"), "timestamp",
                                  "date32", "uint8", "float32"])
def test_types_as_golden(kind: str) -> None:
    r, s = of_type(kind)
    for one, other, on in ((r, s, BETWEEN[0]), (s.rename_columns(["lo", "hi"]), r, "s.x BETWEEN r.lo AND r.hi"),
                           (r, s, PAIRS[0])):
        query = query_of(one, other, on, f"ROWS {len(r)}")
        found = run(SHORT_TAILS, query, one, other, [70])
        assert len(found)
        assert found.tolist() == run(GoldenDevice(), query, one, other).tolist()


@settings(max_examples=examples(12))
@given(st.integers(0, 110), st.integers(1, 60), st.integers(1, 40), st.sampled_from(BETWEEN[:1] + PAIRS[:1]),
       st.sampled_from(["ROWS 1000", "ROWS 70", "RANGE 90", "ROWS 100 RANGE 60"]),
       st.lists(st.integers(0, 400), max_size=4), st.sampled_from([1, 5]))
def test_random_joins_as_golden(n: int, span: int, width: int, on: str, window: str, cuts: list[int],
                                threads: int) -> None:
    tables = [table.append_column("ts", pa.array(np.sort(np.random.default_rng(n + i).integers(0, 2 * n + 1, n))))
              for i, table in enumerate(integers(n, span, width, n))]
    query = query_of(*tables, on, window, time="ts")
    found = run(replace(SHORT_TAILS, threads=threads), query, *tables, cuts)
    assert found.tolist() == run(GoldenDevice(), query, *tables).tolist()


@pytest.mark.parametrize("room", [1, 1 << 16])
def test_threads_share_the_probes_as_golden(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many parts of few probes each, with too little room for their matches, and with enough."""
    lacked = []
    finish = sorted_runs._Parts.finish
    monkeypatch.setattr(sorted_runs._Parts, "finish", lambda self, batch: (
        lacked.append(self.told[:, 0] == 0), finish(self, batch))[1])
    r, s = integers(300, 400, 12)
    query = query_of(r, s, BETWEEN[0], "ROWS 60")
    device = replace(SORTED, threads=5, tuning=replace(SHORT, room=room, sorted_probes=8, share=1.0))
    assert run(device, query, r, s, [70, 350]).tolist() == run(GoldenDevice(), query, r, s).tolist()
    assert any(map(np.any, lacked)) == (room == 1)


@pytest.mark.parametrize("on", BETWEEN[1:] + PAIRS[1:])
def test_other_conditions_as_golden(on: str) -> None:
    r, s = integers(110, 40, 12)
    query = query_of(r, s, on, "ROWS 1000")
    assert run(SHORT_TAILS, query, r, s, [70]).tolist() == run(GoldenDevice(), query, r, s).tolist()


def test_long_runs_as_numpy() -> None:
    """Runs of three levels of blocks, found by both streams, some of whose intervals are very wide."""
    rng = np.random.default_rng(1)
    n, probes = 300_000, 300
    low = rng.integers(0, 10**6, n)
    wide = np.where(rng.random(n) < 1e-4, 10**6, rng.integers(0, 9, n))
    s = pa.table({"lo": low, "hi": low + wide})
    r = pa.table({"x": rng.integers(0, 10**6, probes), "y": np.zeros(probes, np.int64)})
    query = query_of(r, s, BETWEEN[0], f"ROWS {n}")
    with SORTED.open(query) as session:
        for at, size in ((0, 210_000), (210_000, 90_000)):  # the second run goes across a block of 64³
            session.push(Arrivals(np.ones(size, np.uint8), None, r.slice(0, 0), s.slice(at, size)))
        session.push(Arrivals(np.zeros(probes, np.uint8), None, r, s.slice(0, 0)))
        found, counters = session.flush(), session.counters()
    x, high = r["x"].to_numpy()[:, None], low + wide
    expected = np.argwhere((low <= x) & (x <= high))
    pairs = found[found["kind"] == 0]
    assert np.array_equal(np.stack([pairs["r"], pairs["s"]], axis=1), expected)
    assert counters["candidates"] < 500 * len(expected) < counters["comparisons"]


@pytest.mark.parametrize("window", ["ROWS 5000", "ROWS 20000"])
@pytest.mark.parametrize("dense", [False, True])
def test_windows_that_move_as_by_numpy(window: str, dense: bool) -> None:
    """Runs that expire, and probes that find so many rows that these are sorted by other means."""
    r, s = integers(20_000, 20_000, 2_000 if dense else 20)
    query = query_of(r, s, BETWEEN[0], window)
    with CpuSession(query, ExpressionSearch(query.predicate, compiling=False)) as session:
        session.push(arrivals(query, r.slice(0, 6_000), s.slice(0, 6_000)))
        expected = session.flush()
    assert np.array_equal(run(SORTED, query, r.slice(0, 6_000), s.slice(0, 6_000), [5_000]), expected)


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize(("window", "tail"), [(None, 100), (700, 100), (70, 1)])
def test_runs(kind: type[Any], window: int | None, tail: int) -> None:
    rng, store, top = np.random.default_rng(2), Store(), int(np.iinfo(kind).max)
    kept, whole = Runs([0, 1], 0, [1], tail), np.empty((2, 0), kind)
    for n in [3, 60, 1, 64, 700, 2, 5_000, 0, 130, *[90] * 100]:
        new = rng.integers(0, top, (2, n), dtype=kind, endpoint=True) if n % 2 else rng.integers(
            0, 5, (2, n)).astype(kind)
        store.append(list(new), n)
        whole = np.concatenate([whole, new], axis=1)
        dead = 0 if window is None else max(0, store.end - window)
        kept.update(store, dead)
        check_runs(kept, whole, dead)
    assert len(kept.bounds) <= (8 if window is None else 12)


def check_runs(kept: Runs, whole: Array, dead: int) -> None:
    assert kept.origin + kept.used == whole.shape[1]
    assert kept.origin <= dead or kept.origin == 0
    edges = [*kept.bounds[:, 0], kept.tail]
    assert edges[1:] == [*kept.bounds[:, 1]]
    for begin, end in [*kept.bounds, (kept.tail, kept.used)]:
        assert sorted(kept.order[begin:end]) == list(range(begin, end))
        for slot in (0, 1):
            assert np.array_equal(kept.keys[slot][begin:end],
                                  whole[slot][kept.origin + kept.order[begin:end].astype(np.int64)])
        assert end == kept.used or np.all(np.diff(kept.keys[0][begin:end].astype(object)) >= 0)
    for n, (least, most) in enumerate(kept.extremes[1], 1):
        for block in range(edges[0] >> 6 * n, -(-kept.tail >> 6 * n)):
            own = kept.keys[1][max(edges[0], block << 6 * n):min((block + 1) << 6 * n, kept.tail)]
            assert least[block] <= own.min()
            assert most[block] >= own.max()


def by_probe(chosen: list[Array], found: list[tuple[Array, Array]], counts: Array,
             ranges: tuple[Array, Array]) -> Array:
    """The rows of ``found``, rows and the probe of each by part, in order, as the loop of walks has it."""
    told = np.array([(1, len(rows), 0, address_of(rows), address_of(probe_of), len(rows)) for rows, probe_of in found])
    place, rows = np.cumsum(counts) - counts, np.empty(int(counts.sum()), np.int64)
    assert loops()["by_probe"](np.concatenate(chosen), *ranges, counts, told.reshape(-1), place, rows)
    return rows


@pytest.mark.parametrize("n", [0, 1, 31, 33, 400, 5_000])
@pytest.mark.parametrize("run_length", [64, 1 << 13, 1 << 22])
def test_rows_are_sorted(n: int, run_length: int) -> None:
    """By insertion, by bits, or by bytes of their numbers."""
    first, rng = 128, np.random.default_rng(n)
    rows = rng.permutation(run_length)[:n] + first
    ends = np.array([first] * 2), np.array([first + run_length] * 2)
    for probe in (0, 1):  # the other one has none
        counts, probe_of = np.array([len(rows) * (1 - probe), len(rows) * probe]), np.full(len(rows), probe, np.uint32)
        assert by_probe([np.arange(2)], [(rows, probe_of)], counts, ends).tolist() == sorted(rows)


@pytest.mark.parametrize("most", [3, 200])
def test_matches_by_probe(most: int) -> None:
    rng = np.random.default_rng(most)
    counts = rng.integers(0, most, 50)
    probe_of = rng.permutation(np.repeat(np.arange(50, dtype=np.uint32), counts))
    rows = rng.permutation(len(probe_of))
    chosen = [np.arange(0, 50, 2), np.arange(1, 50, 2)]  # of two parts
    found = [(rows[of], probe_of[of]) for of in (np.isin(probe_of, some) for some in chosen)]
    ordered = by_probe(chosen, found, counts, (np.zeros(50, np.int64), np.full(50, len(rows))))
    assert ordered.tolist() == rows[np.lexsort((rows, probe_of))].tolist()


@pytest.mark.parametrize(("on", "walks"), [(BETWEEN[0], True), (PAIRS[0], False)])
def test_many_probes_go_past_the_runs(on: str, walks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where their intervals rise together, and not where those of one key fall while those of the other rise."""
    ways = []
    walk_of = sorted_runs.SortedFinder._walk_of

    def noted(*args: Any) -> Any:
        found = walk_of(*args)
        ways.append(found is not None)
        return found

    monkeypatch.setattr(sorted_runs.SortedFinder, "_walk_of", noted)
    r, s = integers(20_000, 20_000, 20)
    query = query_of(r, s, on, "ROWS 3000")
    with CpuSession(query, ExpressionSearch(query.predicate, compiling=False)) as session:
        session.push(arrivals(query, r.slice(0, 6_000), s.slice(0, 6_000)))
        expected = session.flush()
    assert np.array_equal(run(SORTED, query, r.slice(0, 6_000), s.slice(0, 6_000), [5_000]), expected)
    assert any(ways) == walks


@pytest.mark.parametrize(("on", "engine"), [
    (BETWEEN[0], "sorted"), ("s.x BETWEEN r.lo AND r.hi", "sorted"), ("r.x < s.hi AND r.y > s.lo", "nested"),
    ("abs(r.x - s.hi) <= 2", "index"), ("r.x = s.lo AND r.y < s.hi", "index")])
def test_choice(on: str, engine: str) -> None:
    r, s = integers(20_000, 10**6, 20)
    if "s.x" in on:
        r, s = s, r
    query = query_of(r, s, on, "ROWS 9")
    plan = make_plan(query.predicate)
    coder = LaneCoder(plan)
    for live, found in ((100_000, engine), (4_000, engine), (50, "nested")):
        selectivity = measure(plan, coder.codes("r", r), coder.codes("s", s))
        assert choose(SessionJob(plan, selectivity, live), None).engine == found


def test_join_without_a_window_takes_sorted_keys() -> None:
    r, s = integers(30_000, 10**6, 20)
    found = splitjoin.join(r, s, on=BETWEEN[0], device=SORTED.__class__(threads=1))
    assert "band join" in found.plan
    assert found.counters["candidates"] < found.counters["comparisons"] // 50


