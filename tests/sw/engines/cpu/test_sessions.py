"""Sessions that live long, change their data, stand still on one side, or are stopped in the middle."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import DeviceError
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.compiled import helpers
from splitjoin.engines.cpu import CpuDevice, fused_batch, session as cpu_session
from splitjoin.engines.cpu.grid_index import IndexFinder
from splitjoin.engines.cpu.search import PlanSearch
from splitjoin.engines.cpu.session import CpuSession
from splitjoin.engines.device import PAIR
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.tuning import Tuning
from splitjoin.lang.query import Query
from splitjoin.plan.keys import Texts

R, S = pa.schema([("ts", pa.int64()), ("x", pa.int32())]), pa.schema([("ts", pa.int64()), ("a", pa.int32())])


def batch(query: Query, first: int, n: int, *, silent: str = "") -> Arrivals:
    """``n`` tuples of each stream from time ``first`` on, keys equal to times; none of a ``silent`` stream."""
    times = np.arange(first, first + n)
    r, s = (pa.table({"ts": times, name: times.astype(np.int32)}, schema=schema)
            for name, schema in (("x", R), ("a", S)))
    return arrivals(query, r.slice(0, 0) if silent == "r" else r, s.slice(0, 0) if silent == "s" else s)


@pytest.mark.parametrize("silent", ["r", "s"])
def test_a_silent_stream(silent: str) -> None:
    """Times of tuples that ROWS has pushed out are forgotten, though nobody looked since."""
    device = CpuDevice(threads=1, tuning=Tuning(slack=16))
    query = splitjoin.query(R, S, on="r.x = s.a", window="ROWS 10 RANGE 1000000", time="ts")
    with device.open(query) as session, GoldenDevice().open(query) as golden:
        for at in range(0, 3000, 100):
            for one in (session, golden):
                one.push(batch(query, at, 100, silent=silent))
        for one in (session, golden):
            one.push(batch(query, 3000, 50))
        assert session.flush().tolist() == golden.flush().tolist()
        assert isinstance(session, CpuSession)
        assert all(times.end - times.base < 400 for times in session._timeline.times.values())


@pytest.mark.parametrize("threads", [1, 3])
def test_nested_loops_count_by_threads(threads: int) -> None:
    """What the threads have compared and found, in R and in S, is what the windows hold and what came out."""
    query = splitjoin.query(R, S, on="abs(r.x - s.a) <= 3", window="ROWS 700")
    device = CpuDevice(engine="nested", threads=threads)
    with device.open(query) as session:
        for at in range(0, 6000, 1500):
            session.push(batch(query, at, 1500))
        found = session.poll()
        counted, counters = session.region_counters(), session.counters()
    assert counted is not None
    assert {name: array.shape for name, array in counted.items()} == {
        "comparisons": (threads, 2), "matches": (threads, 2)}
    assert counted["comparisons"].sum() == counters["comparisons"]
    assert counted["matches"].sum() == counters["matches"]
    sides = found["side"][found["kind"] == PAIR]  # a probe of R looks in S
    assert counted["matches"].sum(axis=0).tolist() == [(sides == 1).sum(), (sides == 0).sum()]
    with CpuDevice(engine="index").open(query) as session:
        session.push(batch(query, 0, 100))
        assert session.region_counters() is None


@pytest.mark.parametrize("step", [1, -3, 40_000])
def test_keys_that_grow_stay_in_the_index(step: int) -> None:
    """Levels recur: those learnt before fit the next batches."""
    query = splitjoin.query(R, S, on=f"abs(r.x - s.a) <= {3 * abs(step)}", window="ROWS 4096")
    keys = np.arange(30_000, dtype=np.int64) * step + (1 << 31) // 3 * (-1 if step > 0 else 1)
    keys = (keys + (1 << 31)) % (1 << 32) - (1 << 31)
    r, s = (pa.table({"ts": np.arange(30_000), name: keys.astype(np.int32)}, schema=schema)
            for name, schema in (("x", R), ("a", S)))
    incoming = arrivals(query, r, s)
    with CpuDevice(threads=1).open(query) as session, CpuDevice(engine="nested").open(query) as other:
        for at in range(0, 60_000, 2000):
            rows = slice(at // 2, at // 2 + 1000)
            part = Arrivals(incoming.stream[at:at + 2000], None, incoming.r[rows], incoming.s[rows])
            for one in (session, other):
                one.push(part)
            assert session.plan().startswith("an index")
        assert session.flush().tolist() == other.flush().tolist()
        assert session.counters()["candidates"] < 60_000 * 400


def test_keys_that_jump_leave_the_index() -> None:
    """Learnt levels never fit the next batch: after two attempts nested loops take over."""
    query = splitjoin.query(R, S, on="abs(r.x - s.a) <= 3", window="ROWS 16384")
    plans = []
    with CpuDevice(threads=1).open(query) as session:
        for n in range(12):
            session.push(batch(query, n * 5 % 12 * 100_000 + (n * 3 % 4) * 10_000_000, 8192))
            plans.append(session.plan())
    assert plans[0].startswith("an index")
    assert plans[-1].startswith("nested loops")


def test_candidates_are_verified_before_they_pile_up() -> None:
    device = CpuDevice(engine="index", threads=1, tuning=Tuning(room=1000))
    random = np.random.default_rng(2)
    r, s = (pa.table({"ts": np.arange(4000), name: random.integers(0, 4, 4000).astype(np.int32)}, schema=schema)
            for name, schema in (("x", R), ("a", S)))
    query = splitjoin.query(R, S, on="r.x = s.a AND r.ts = s.ts", window="ROWS 2000")
    incoming = arrivals(query, r, s)
    with device.open(query) as session, CpuDevice(engine="nested").open(query) as other:
        for one in (session, other):
            one.push(incoming)
        assert session.flush().tolist() == other.flush().tolist()
        assert isinstance(session, CpuSession)
        assert isinstance(session._search, PlanSearch)
        finder = session._search._finder
        assert isinstance(finder, IndexFinder)
        assert max(len(room.found) for room in finder._rooms) < 30_000 < session.counters()["candidates"]


@pytest.mark.parametrize("there", [1, 2, 300])
def test_the_plan_says_how_many_threads_run(there: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "processors", lambda: there)
    query = splitjoin.query(R, S, on="abs(r.x - s.a) <= 3", window="ROWS 500")
    for tuning in (Tuning(), Tuning(share=1e-3)):
        with CpuDevice(engine="nested", threads=256, tuning=tuning).open(query) as session:
            session.push(batch(query, 0, 100))
            size = 256 if tuning.share < 1 else 1
            few = f", {there} at a time" if there < size else ""
            assert ("; one of 256 threads, as there is one processor" if there == 1 else
                    f"; {size} of 256 threads{few}, as a batch takes about 0.0 ms of one") in session.plan()


def test_stopped_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    query = splitjoin.query(R, S, on="abs(r.x - s.a) <= 3", window="ROWS 500")
    calls = []

    def stop(*arguments: object, **more: object) -> None:
        calls.append(1)
        raise KeyboardInterrupt

    with CpuDevice(threads=1).open(query) as session:
        session.push(batch(query, 0, 100))
        with monkeypatch.context() as patch:
            for module, name in ((cpu_session, "gather"), (fused_batch, "write_items")):
                patch.setattr(module, name, stop)
            with pytest.raises(KeyboardInterrupt):
                session.push(batch(query, 100, 100))
        for use in (lambda: session.push(batch(query, 100, 100)), session.poll, session.flush):
            with pytest.raises(DeviceError, match="stopped in the middle of a push or a flush, and part of its"):
                use()
    assert calls


def test_a_streaming_session_goes_on_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    query = splitjoin.query(R, S, on="abs(r.x - s.a) <= 3", window="ROWS 500")
    tables = [{"r": pa.table({"ts": t, "x": t.astype(np.int32)}, schema=R),
               "s": pa.table({"ts": t, "a": t.astype(np.int32)}, schema=S)}
              for t in (np.arange(k, k + 100) for k in (0, 100, 200))]

    def stop(*arguments: object, **more: object) -> None:
        raise KeyboardInterrupt

    expected = splitjoin.open(query, "golden")
    for part in tables:
        expected.push_r(part["r"])
        expected.push_s(part["s"])
    session = splitjoin.open(query)
    session.push_r(tables[0]["r"])
    session.push_s(tables[0]["s"])
    with monkeypatch.context() as patch:
        for module, name in ((cpu_session, "gather"), (fused_batch, "write_items")):
            patch.setattr(module, name, stop)
        with pytest.raises(KeyboardInterrupt):
            session.push_r(tables[1]["r"])
    session.restart(CpuDevice())
    session.push_s(tables[1]["s"])
    session.push_r(tables[2]["r"])
    session.push_s(tables[2]["s"])
    assert session.flush() == expected.flush()


def test_closed() -> None:
    query = splitjoin.query(R, S, on="r.x = s.a", window="ROWS 9")
    for threads in (1, 2):
        session = CpuDevice(threads=threads).open(query)
        session.close()
        with pytest.raises(DeviceError, match="the session is closed"):
            session.push(batch(query, 0, 9))


def test_texts_keep_their_numbers() -> None:
    texts = Texts()
    first = texts.codes(pa.chunked_array([["a", None, "b"], ["a"]], pa.large_string()))
    assert first.tolist() == [1, 0, 2, 1]
    assert texts.codes(pa.chunked_array([["c", "b", None]], pa.large_string())).tolist() == [3, 2, 0]
    assert texts.codes(pa.chunked_array([[]], pa.large_string())).tolist() == []


def test_a_forked_process_needs_its_own() -> None:
    query = splitjoin.query(R, S, on="r.x = s.a", window="ROWS 5")
    with CpuDevice(threads=2).open(query) as session:
        session.push(batch(query, 0, 10))
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                session.push(batch(query, 10, 10))
            except DeviceError as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as said:
            assert said.read() == ("the session was opened before this process was forked, and its threads are not "
                                   "here; open a new one")
        os.waitpid(child, 0)  # no other child, whose status others wait for
