"""The GPU engine gives the golden model's items: on a GPU, or in numba's simulator where NUMBA_ENABLE_CUDASIM is 1.

`test_gpu` runs this file in the simulator. On a machine with a GPU: python -m pytest tests/sw/engines/gpu/suite.py
"""

from __future__ import annotations

import importlib
import sys
import time
from functools import cache
from threading import Lock, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.base.errors import CapacityError, DeviceError, InputError, UnsupportedError
from splitjoin.engines.compiled.jit import load
from splitjoin.engines.device import Items, Session
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.gpu import GpuDevice, work
from splitjoin.engines.gpu.comparison import KernelComparison
from splitjoin.engines.gpu.driver import Gpu, is_simulated, open_gpu
from splitjoin.engines.gpu.finder import SHAPE
from splitjoin.engines.gpu.kernel_source import KernelShape, kernel_source
from splitjoin.engines.gpu.order import order_source, pieces, sort_many
from splitjoin.engines.gpu.suits import why_not
from splitjoin.engines.gpu.tuning import DEFAULTS, GpuTuning
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.compiler import make_plan
from tests.support.conformance import assert_conforms, run, slices
from tests.support.sampling import at_length, examples
from tests.support.scenarios import SCENARIOS, Scenario, arrivals_of
from tests.support.strategies import Scenario as RandomScenario, scenario

#: What the simulator runs in the default tests: conditions of each kind, in ROWS and RANGE windows.
QUICK = {"band-rows-17", "rows-and-range-different", "not", "null-band", "one-sided", "float-band-special",
         "string-not-equal", "empty-r", "single-pair"}
#: Those that also run so that every boundary is crossed.
CROSSED = {"band-range-different", "or", "int64-extremes", "all-match"}


#: Batches, rings and room so small that rings grow and wrap, and that most results are dense.
CROSSING = GpuTuning(batch=24, places=2, room=4, most_room=16, written=8)


if is_simulated():
    open_gpu(0)  # which imports the simulator

    def is_alive(thread: Any) -> bool:
        """As that of the simulator's threads, for which another waits in a loop: in this loop, it lets them run."""
        time.sleep(0)
        return Thread.is_alive(thread)

    importlib.import_module("numba.cuda.simulator.kernel").BlockThread.is_alive = is_alive

    kernelapi = importlib.import_module("numba.cuda.simulator.kernelapi")
    allocating = Lock()

    def shared_array(self: Any, shape: int, dtype: Any) -> Any:
        """As the simulator's, by the line that asks. There, threads of a block that ask at the same time may have
        arrays of their own, and then no result is right; a GPU has one.
        """
        caller = sys._getframe(1)
        with allocating:
            at = caller.f_code.co_filename, caller.f_lineno
            if at not in self._allocations:
                self._allocations[at] = np.empty(shape, kernelapi.numpy_support.as_dtype(dtype))
            return self._allocations[at]

    kernelapi.FakeCUDAShared.array = shared_array


@cache
def golden(name: str, order: str) -> Items:
    """The golden model's answer to a scenario."""
    case = next(case for case in SCENARIOS if case.name == name)
    return run(GoldenDevice(), case.query(order), case.r, case.s)


@pytest.mark.parametrize("case", [c if c.name in QUICK or not is_simulated() else at_length(c) for c in SCENARIOS],
                         ids=str)
def test_scenarios(case: Scenario) -> None:
    got = run(GpuDevice(threads=1), case.query("total"), case.r, case.s, [5, 50])
    assert got.tolist() == golden(case.name, "total").tolist()


@pytest.mark.parametrize("case", [c if c.name in CROSSED or not is_simulated() else at_length(c) for c in SCENARIOS],
                         ids=str)
def test_every_boundary(case: Scenario) -> None:
    got = run(GpuDevice(threads=2, tuning=CROSSING), case.query("total"), case.r, case.s, [5, 50])
    assert got.tolist() == golden(case.name, "total").tolist()


#: Faults in the text of kernels: what is replaced, and by what.
FAULTS = [("<= width", "< width"), ("<= row < uint32s", "<= row <= uint32s"), ("<= row < uint32s", "< row < uint32s"),
          ("np.uint64(row)", "np.uint64(row ^ 1)"),
          ("min(until - at, ", "min(until - at - 1, "), ("(shift + ", "(shift + 1 + ")]
DENSE_FAULTS = [("(row < end_", "(row <= end_"), ("(row >= start_", "(row > start_"), ("] = found_", "] = 1 + found_")]


@pytest.mark.skipif(not is_simulated(), reason="a fault may write anywhere")
@pytest.mark.parametrize(("old", "new"), [*FAULTS[:1], *(at_length(*fault) for fault in FAULTS[1:])])
def test_planted_faults_are_found(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    plant(monkeypatch, old, new, "band-rows-17")


@pytest.mark.skipif(not is_simulated(), reason="a fault may write anywhere")
@pytest.mark.parametrize(("old", "new"), [*DENSE_FAULTS[:1], *(at_length(*fault) for fault in DENSE_FAULTS[1:])])
def test_faults_planted_where_results_are_dense(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    plant(monkeypatch, old, new, "all-match", CROSSING)


def plant(monkeypatch: pytest.MonkeyPatch, old: str, new: str, name: str, tuning: GpuTuning = DEFAULTS) -> None:
    def faulty(comparison: KernelComparison, shape: KernelShape) -> str:
        text = kernel_source(comparison, shape)
        assert old in text
        return text.replace(old, new)

    monkeypatch.setattr(work, "kernel_source", faulty)
    case = next(case for case in SCENARIOS if case.name == name)
    try:
        got = run(GpuDevice(threads=1, tuning=tuning), case.query("total"), case.r, case.s)
    except (IndexError, ValueError):  # a place or a number of matches that cannot be
        return
    assert got.tolist() != golden(name, "total").tolist()


@pytest.mark.parametrize("order", ["none", "outer(3)", "inner(2)"])
def test_orders(order: str) -> None:
    case = next(case for case in SCENARIOS if case.name == "band-rows-and-range")
    got = run(GpuDevice(), case.query(order), case.r, case.s, [5])
    assert_conforms(got, golden(case.name, order), order)


@settings(max_examples=examples(4 if is_simulated() else 40))
@given(scenario(), st.lists(st.integers(0, 20), max_size=2))
def test_random_joins(case: RandomScenario, cuts: list[int]) -> None:
    query = Query.make(Schema.from_table("r", case.r), Schema.from_table("s", case.s), on=case.on.sql,
                       window=case.windows.spec, time=case.time, order=case.order)
    if why_not(make_plan(query.predicate)):
        with pytest.raises(UnsupportedError, match="the device 'gpu' has no code for"):
            GpuDevice().open(query)
        return
    got = run(GpuDevice(threads=1), query, case.r, case.s, cuts)
    assert_conforms(got, run(GoldenDevice(), query, case.r, case.s), case.order)


def test_candidates_are_verified_on_the_host() -> None:
    r, s = pa.table({"x": list(range(40)), "y": [1.5] * 40}), pa.table({"a": list(range(0, 80, 2)), "b": [0.5] * 40})
    on = "abs(r.x - s.a) <= 6 AND (r.x * s.a) % 3 = 1 AND r.y * s.b < 1.0"
    found = splitjoin.join(r, s, on=on, window="ROWS 16", device="gpu")
    assert found.to_pydict() == splitjoin.join(r, s, on=on, window="ROWS 16", device="golden").to_pydict()
    assert found.num_rows > 5
    assert found.plan.startswith("nested loops over the keys, on the GPU; candidates verified")


def test_kinds_and_aggregates() -> None:
    r, s = pa.table({"x": list(range(20))}), pa.table({"a": list(range(0, 60, 3))})
    for more in ({"how": "left"}, {"how": "anti"}, {"aggregate": {"n": "count(*)", "m": "max(s.a)"}}):
        ours, golden = (splitjoin.join(r, s, on="abs(r.x - s.a) <= 2", window="ROWS 8", device=name, **more)
                        for name in ("gpu", "golden"))
        assert ours.to_pydict() == golden.to_pydict()


def test_snapshots() -> None:
    r, s = pa.schema([("x", pa.int32())]), pa.schema([("a", pa.int32())])
    query = splitjoin.query(r, s, on="abs(r.x - s.a) <= 1", window="ROWS 4")

    def push(session: splitjoin.StreamJoin, numbers: range) -> None:
        for n in numbers:
            session.push_r(pa.table({"x": [n]}, schema=r))
            session.push_s(pa.table({"a": [n]}, schema=s))

    with splitjoin.open(query, "golden") as whole:
        push(whole, range(8))
        expected = whole.flush().to_pylist()
    with splitjoin.open(query, "gpu") as first:
        push(first, range(4))
        before, taken = first.poll().to_pylist(), first.snapshot()
    with splitjoin.open(query, "gpu") as second:
        second.restore(taken)
        push(second, range(4, 8))
        assert before + second.flush().to_pylist() == expected


def opened(case: str) -> Session:
    found = next(c for c in SCENARIOS if c.name == case)
    session = GpuDevice(threads=1).open(found.query())
    for part in slices(arrivals_of(found), [30]):
        session.push(part)
    return session


def test_counters_and_plan() -> None:
    with opened("null-band") as session:
        counters = session.counters()
        assert counters["candidates"] == counters["comparisons"]
        # A key of 33 bits, as of NULL, and one of 32; two bounds on each; the two ends of a window.
        assert counters["bytes_sent"] == (counters["tuples_r"] + counters["tuples_s"]) * (12 + 24 + 8)
        assert counters["bytes_received"] >= 8 * counters["matches"]
        assert session.plan().startswith("nested loops over the keys, on the GPU")


def test_a_closed_session_has_no_memory_of_the_gpu() -> None:
    with opened("band-rows-17") as session:
        pass
    assert not session._finder.works  # type: ignore[attr-defined]  # a GpuSession
    assert session.counters()["bytes_sent"] > 0
    with pytest.raises(DeviceError, match="the session is closed"):
        session.poll()


def test_windows_beyond_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gpu, "memory", (float(1 << 20), float(1 << 20)))
    case = next(c for c in SCENARIOS if c.name == "band-rows-17")
    query = Query.make(Schema.from_table("r", case.r), Schema.from_table("s", case.s), on=case.on,
                       window="ROWS 1000000")
    with pytest.raises(CapacityError, match=r"1,000,000 rows of R and 1,000,000 of S take 16 MiB of the GPU's memory, "
                                            r"which has 1 MiB; give shorter windows, or use device='cpu'"):
        GpuDevice().open(query)
    monkeypatch.setattr(Gpu, "memory", (float(1 << 30), float(1 << 30)))
    with GpuDevice(threads=1, tuning=GpuTuning(places=2)).open(case.query()) as session:
        session.push(arrivals_of(case).split(8)[0])
        monkeypatch.setattr(Gpu, "memory", (100.0, float(1 << 30)))
        with pytest.raises(CapacityError, match=r"take .* of the GPU's memory, but 100 bytes of 1.0 GiB are free; "
                                                r"give a shorter window, or use device='cpu'"):
            session.push(arrivals_of(case))


@pytest.mark.parametrize(("on", "how"), [
    ("abs(r.y - s.c) + abs(r.x - s.a) <= 10", "on the GPU, whole numbers in 32 bits"),
    ("(r.x * s.a) % 3 = 1 OR r.flag AND NOT s.sign", "on the GPU, whole numbers in 32 bits"),
    ("r.n * s.m % 7 > coalesce(r.n, s.m, 3) % 5", "on the GPU, whole numbers in 64 bits"),
    ("bit_count(r.x ^ s.a) <= 2", "on the GPU, whole numbers in 32 bits"),
    ("floor(r.y + s.c) = 10.0 OR sqrt(r.y + s.c) < 2.5", "on the GPU, whole numbers in 32 bits"),
    ("(r.x + (1 << 40)) * (s.a + (1 << 40)) % 3 = 1", "by NumPy, as there is no code for")])
def test_expressions(on: str, how: str) -> None:
    random, n = np.random.default_rng(1), 30
    r = pa.table({"x": pa.array(random.integers(0, 50, n), pa.int32()), "y": pa.array(random.random(n) * 20),
                  "n": [None if i % 5 == 0 else i << 30 for i in range(n)],
                  "flag": [None if i % 7 == 0 else bool(i % 2) for i in range(n)]})
    s = pa.table({"a": pa.array(random.integers(0, 50, n), pa.int32()), "c": pa.array(random.random(n) * 20),
                  "m": [2 * i for i in range(n)], "sign": [bool(i % 3) for i in range(n)]})
    found, expected = (splitjoin.join(r, s, on=on, window="ROWS 12", device=name) for name in ("gpu", "golden"))
    assert found.to_pydict() == expected.to_pydict()
    assert 0 < found.num_rows < 600
    assert found.plan.startswith(f"nested loops over the expression, {how}")


def test_conditions_without_code_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"the device 'gpu' has no code for '\(r.y \* s.c\)', as a GPU rounds it "
                                               r"otherwise, and .* compares no keys of both streams; use device='cpu'"):
        splitjoin.join(pa.table({"y": [1.0]}), pa.table({"c": [1.0]}), on="r.y * s.c > 1.0", window="ROWS 4",
                       device="gpu")


@pytest.mark.parametrize(("target", "error"), [("99", "there is no GPU 99; this machine has"),
                                               ("first", "must be the number of a GPU, as in 'gpu:0', not 'first'")])
def test_targets(target: str, error: str) -> None:
    with pytest.raises(DeviceError, match=error):
        device(f"gpu:{target}").open(SCENARIOS[0].query())
    assert device("gpu:0") == GpuDevice()


def test_times_that_decrease_are_refused() -> None:
    with opened("burst") as session, pytest.raises(InputError, match="event time must not decrease"):
        session.push(arrivals_of(next(c for c in SCENARIOS if c.name == "burst")))


@pytest.mark.parametrize("full", [False, True])
def test_order(full: bool) -> None:
    """Matches as they come, of blocks of which one has none, and with ``full`` one more than there is room for."""
    random, block, few = np.random.default_rng(1), SHAPE.block, SHAPE.few
    n = 4 * block - 1
    counts = random.integers(0, few + 2, n)
    counts[2 * block:3 * block] = 0
    counts[1] = 3 * few
    rows = np.concatenate([np.sort(random.choice(1 << 13, k, replace=False)) for k in counts]).astype(np.uint64)
    probes = np.repeat(np.arange(n, dtype=np.uint64), counts)
    counters = np.add.reduceat(counts, np.arange(0, n, block)).astype(np.uint32)
    room, begin = int(counters.max()), 0
    hits = np.zeros(4 * room, np.uint64)
    for b, k in enumerate(counters.tolist()):
        hits[b * room:b * room + k] = random.permutation((probes << np.uint64(32) | rows)[begin:begin + k])
        begin += k
    if full:  # then the others' are in order all the same
        counters[3] = room + 1
        hits[3 * room + 1:] = hits[3 * room]
    with open_gpu(0) as gpu:
        out = gpu.cuda.to_device(np.zeros(4 + n + 4 * room, np.int64))
        load(order_source(SHAPE)).order[4, SHAPE.threads](
            n, 1000, room, *map(gpu.cuda.to_device, (counters, hits, np.zeros_like(hits))), out)
        found = out.copy_to_host()
    assert found[:4].tolist() == counters.tolist()
    sure = 3 * block if full else n
    assert found[4:4 + sure].tolist() == counts[:sure].tolist()
    total = int(counts[:sure].sum())
    got = found[4 + n:4 + n + total]
    sort_many(got, counts[:sure], few)
    assert got.tolist() == (rows[:total].astype(np.int64) + 1000).tolist()


def test_pieces() -> None:
    counters = np.array([5, 0, 9, 4])
    assert pieces(counters, 8, 30, 1, 2) == [(0, 16, 0, 5), (16, 30, 5, 18)]
    assert pieces(counters, 8, 30, 6, 8) == [(0, 8, 0, 5), (8, 16, 5, 5), (16, 30, 5, 18)]
    assert pieces(counters, 8, 30, 100, 8) == [(0, 30, 0, 18)]


def test_a_block_with_more_matches_than_room_has_room_in_the_next_batch() -> None:
    tuning = GpuTuning(batch=64, places=2, room=64, most_room=1 << 12, written=8)
    r, s = pa.table({"x": [0] * 96 + [9] * 96}), pa.table({"a": [0] * 40 + [5] * 152})
    query = splitjoin.query(r.schema, s.schema, on="r.x = s.a", window="ROWS 64")
    ours, golden = (run(device, query, r, s, [64, 128]) for device in (GpuDevice(threads=1, tuning=tuning),
                                                                       GoldenDevice()))
    assert ours.tolist() == golden.tolist() and len(ours) > 500


def test_blocks_of_empty_windows_in_different_places() -> None:
    """R before any tuple of S, and again when those have left the window."""
    n = SHAPE.block
    r = pa.table({"ts": [0] * n + [100] * n, "x": [1] * 2 * n})
    s = pa.table({"ts": [50] * 5, "a": [1] * 5})
    found = splitjoin.join(r, s, on="r.x = s.a", window="RANGE 1", time="ts", device=GpuDevice(threads=1))
    assert found.num_rows == 0
