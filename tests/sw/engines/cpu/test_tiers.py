"""Tiered execution: the same answer whenever the change to compiled loops comes, and a change that does come."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import DeviceError, InputError, ToolError
from splitjoin.base import cache
from splitjoin.base.cache import cache_folder, place
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.cpu import CpuDevice, compilation, tiered
from splitjoin.engines.cpu.compilation import Compilation, compile_sample
from splitjoin.engines.cpu.numpy_session import NumpySession, Zones
from splitjoin.engines.cpu.session import BatchSession
from splitjoin.engines.cpu.tiered import TieredSession
from splitjoin.engines.device import ITEM, Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.tuning import DEFAULTS, Tuning
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from tests.support.conformance import assert_conforms, run, slices
from tests.support.sampling import examples
from tests.support.scenarios import SCENARIOS, Scenario, arrivals_of
from tests.support.strategies import Scenario as RandomScenario, scenario

PARTS = 6


class After:
    """A compilation that is done after so many batches."""

    is_known, is_loaded = False, True

    def __init__(self, batches: int):
        self.left = batches

    def is_done(self, coming: Arrivals) -> bool:
        self.left -= 1
        return self.left < 0


def tiers(query: Query, change: int, compiled: Any = None, tuning: Tuning = DEFAULTS) -> TieredSession:
    opens = compiled or CpuDevice(threads=1).open_compiled
    return TieredSession(query, lambda: opens(query), After(change),  # type: ignore[arg-type]  # for a Compilation
                         tuning)


def answer(session: TieredSession, parts: list[Arrivals]) -> Items:
    found = [np.empty(0, ITEM)]
    with session:
        for n, part in enumerate(parts):
            session.push(part)
            if n % 2:
                found.append(session.poll())
        return np.concatenate([*found, session.flush()])


@pytest.mark.parametrize("case", SCENARIOS, ids=str)
def test_the_change_may_come_before_every_batch(case: Scenario) -> None:
    """The other tier by NumPy too, and once in compiled loops."""
    whole = arrivals_of(case)
    cuts = [n * len(whole) // PARTS for n in range(1, PARTS)]
    for order in ("total", "outer(3)"):
        query = case.query(order)
        golden = GoldenDevice().open(query)
        golden.push(whole)
        expected, counters = golden.flush().tolist(), golden.counters()
        for change in range(PARTS + 1) if order == "total" else (1, 4):
            session = tiers(query, change, None if (order, change) == ("total", 3) else NumpySession)
            assert answer(session, slices(whole, cuts)).tolist() == expected
            assert {n: session.counters()[n] for n in counters} == counters


def test_a_last_star_may_close_probes_from_before_the_change() -> None:
    r, s = pa.table({"ts": [0], "x": [1]}), pa.table({"ts": [0, 0, 0, 0, 1], "a": [2] * 5})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window="RANGE 0",
                       time="ts", order="outer(2)")
    found = answer(tiers(query, 4, NumpySession), slices(arrivals(query, r, s), [0, 0, 1, 6]))
    assert found.tolist() == run(GoldenDevice(), query, r, s).tolist()


@settings(max_examples=examples(60))
@given(scenario(), st.lists(st.integers(0, 20), max_size=4), st.integers(0, 5), st.sampled_from([3, 1 << 18]),
       st.sampled_from([0, 64]))
def test_random(case: RandomScenario, cuts: list[int], change: int, block: int, zoned: int) -> None:
    """Both tiers by NumPy, in blocks of few pairs or of many, with zone maps or without."""
    if str(case.order).startswith("inner"):
        return
    query = Query.make(Schema.from_table("r", case.r), Schema.from_table("s", case.s), on=case.on.sql,
                       window=case.windows.spec, time=case.time, order=case.order)
    tuning = Tuning(numpy_pairs=block, zone_candidates=zoned)
    found = answer(tiers(query, change, lambda query: NumpySession(query, tuning), tuning),
                   slices(arrivals(query, case.r, case.s), cuts))
    assert_conforms(found, run(GoldenDevice(), query, case.r, case.s), case.order)


@pytest.mark.parametrize("window", ["ROWS 20000", "ROWS 2000"])
def test_few_pairs_of_a_between_are_compared(window: str) -> None:
    """Before its loops are compiled, a join by two inequalities does not look at half of all pairs."""
    random, n = np.random.default_rng(5), 20_000
    low = random.uniform(0, 1e6, n)
    r, s = pa.table({"x": random.uniform(0, 1e6, n)}), pa.table({"lo": low, "hi": low + random.uniform(0, 500, n)})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x BETWEEN s.lo AND s.hi",
                       window=window)
    with tiers(query, 1000, NumpySession) as session:
        session.push(arrivals(query, r, s))
        found, counters = session.flush(), session.counters()
    pairs = found[found["kind"] == 0]
    x, (lo, hi) = r["x"].to_numpy()[pairs["r"]], (s[name].to_numpy()[pairs["s"]] for name in ("lo", "hi"))
    assert ((lo <= x) & (x <= hi)).all()
    if window == "ROWS 20000":  # all pairs are in the window
        values, (lows, highs) = np.sort(r["x"].to_numpy()), (s[name].to_numpy() for name in ("lo", "hi"))
        expected = np.searchsorted(values, highs, side="right") - np.searchsorted(values, lows)
        assert len(pairs) == expected.sum()
    assert counters["candidates"] < 100 * 2 * n < counters["comparisons"] / 10


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=700), st.integers(1, 3000),
       st.integers(0, 2**32))
@settings(max_examples=examples(40))
def test_zone_maps_leave_no_pair_out(keys: list[tuple[int, int]], most: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    columns = [np.array(key, np.uint32) for key in zip(*keys, strict=True)]
    first = random.integers(0, len(keys), 20)
    count = random.integers(0, len(keys) - first + 1)
    bounds = [(low, low + random.integers(0, 3, 20).astype(np.uint32))
              for low in random.integers(0, 10, (2, 20)).astype(np.uint32)]
    found: list[tuple[int, int]] = []
    for probe, at in Zones(columns).pairs(first, count, bounds, most):
        assert not found or found[-1][0] < probe[0]  # whole probes
        assert len(probe) <= max(most, int(count[probe].max()))
        found += zip(probe.tolist(), at.tolist(), strict=True)
    assert sorted(found) == found
    for p in range(20):
        met = [first[p] + n for n in range(count[p]) if all(
            low[p] <= column[first[p] + n] <= high[p] for column, (low, high) in zip(columns, bounds, strict=True))]
        looked = [at for probe, at in found if probe == p]
        assert set(met) <= set(looked)
        assert all(first[p] <= at < first[p] + count[p] for at in looked)


def tables(n: int) -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(3)
    ts = np.sort(random.integers(0, n, n))
    x, a = random.integers(0, 500, n), random.integers(0, 500, n)
    return pa.table({"ts": ts, "x": x}), pa.table({"ts": ts, "a": a})


@pytest.mark.parametrize("window", ["ROWS 3000", "RANGE 2000", ("ROWS 5", "RANGE 4000")])
@pytest.mark.parametrize("on", ["abs(r.x - s.a) <= 1", "r.x = s.a AND r.ts < s.ts", "r.x * s.a = 1200"])
def test_larger_batches(on: str, window: Any) -> None:
    r, s = tables(4_000)
    expected = splitjoin.join(r, s, on=on, window=window, time="ts", device=CpuDevice(compiling="first"))
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=window, time="ts")
    for change in (0, 3, 1000):
        session = tiers(query, change, tuning=Tuning(first_batch=700))
        assert np.array_equal(answer(session, [arrivals(query, r, s)]), expected.items)
        assert session.counters()["comparisons"] == expected.counters["comparisons"]
        assert session._kept == tiered.deque() or change == 1000
        assert session.plan().startswith("NumPy") == (change == 1000)


def test_times_must_not_decrease_across_the_change() -> None:
    r = pa.table({"ts": [5], "x": [1]})
    schemas = Schema.from_table("r", r), Schema.from_table("s", r)
    query = Query.make(*schemas, on="r.x = s.x", window="RANGE 0", time="ts")
    late = pa.table({"ts": [3], "x": [1]})
    with tiers(query, 2, NumpySession) as session:
        session.push(arrivals(query, r, r))
        session.push(arrivals(query, r.slice(1), r.set_column(0, "ts", pa.array([9]))))
        with pytest.raises(InputError, match="event time must not decrease"):
            session.push(arrivals(query, late, r.slice(1)))


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, in which no query is compiled; what all queries share has been compiled by other tests."""
    shared = Path(cache_folder()) / "kernels"
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    own = place("kernels/x").parent
    for code in shared.glob("*.code"):
        if not code.name.startswith(("region-", "find-", "verify-")):
            shutil.copy(code, own)
    monkeypatch.setenv("SPLITJOIN_COMPILE", "background")
    return tmp_path


def compiled(cold: Path) -> Iterator[Path]:
    """The marks of queries whose loops have been compiled."""
    return (cold / "cache" / "splitjoin-cache" / "kernels").glob("*.compiled")


def left(cold: Path) -> set[str]:
    """The kinds of files in the cache."""
    return {path.suffix for path in (cold / "cache").rglob("*") if path.is_file()}


def test_another_process_compiles(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs nothing of what lies in the current folder, such as a folder of downloads, and leaves no rows behind."""
    r, s = tables(300)
    how: dict[str, Any] = {"on": "abs(r.x - s.a) <= 1", "window": "ROWS 100", "order": "outer(1)"}
    expected = splitjoin.join(r, s, **how, device="golden")
    for name in ("numba", "numpy", "splitjoin"):
        (cold / f"{name}.py").write_text("open('ran', 'w')\n")
    monkeypatch.chdir(cold)
    monkeypatch.setattr(Compilation, "is_loaded", True)  # also where no other test has loaded numba
    first = splitjoin.join(r, s, **how)
    assert (first.plan, first) == ("NumPy, by sorted keys, until the loops of the query are compiled", expected)
    deadline = time.monotonic() + 300
    while not list(compiled(cold)) and time.monotonic() < deadline:
        time.sleep(0.2)
    second = splitjoin.join(r, s, **how)
    assert second == expected
    assert "NumPy" not in second.plan
    assert not (cold / "ran").exists(), "a module of the current folder has been run"
    assert left(cold) == {".code", ".compiled", ".lock", ".TAG"}


def test_only_some_processes_compile_at_a_time(cold: Path) -> None:
    r, s = tables(10)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window="ROWS 9")
    made = Compilation(query, "auto")
    folder = place(made._marker).parent

    def session(query: Query, engine: str) -> BatchSession:
        opened.append(engine)
        return NumpySession(query)

    def compile_() -> int:
        with compilation._nameless() as file:
            compilation._write_sample(file, query, "auto", arrivals(query, r, s))
            file.seek(0)
            return compile_sample(file, made._marker, session)

    with compilation.try_lock([folder / "compiling-0.lock"]), compilation.try_lock([folder / "compiling-1.lock"]):
        opened: list[str] = []
        assert compile_() == 75
    assert (opened, made.is_known) == ([], False)
    priority = os.getpriority(os.PRIO_PROCESS, 0)
    assert compile_() == 0
    assert os.getpriority(os.PRIO_PROCESS, 0) == priority, "only the process that is started for it steps back"
    assert (opened, made.is_known) == (["auto", "index", "nested"], True)
    assert made.is_done(arrivals(query, r, s))


def test_many_queries_start_few_processes(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third query waits until the process of another one has ended, and then has its own."""
    spawn, started = os.posix_spawn, []

    def spawned(python: str, *_: Any, **__: Any) -> int:
        started.append(spawn(python, [python, "-c", "import sys, time; time.sleep(600)"], os.environ))
        return started[-1]

    monkeypatch.setattr(compilation.os, "posix_spawn", spawned)
    monkeypatch.setattr(compilation, "_children", [])
    r, s = tables(10)
    queries = [Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=f"abs(r.x - s.a) <= {n}",
                          window="ROWS 9", order=order) for n in range(3) for order in ("total", "none")]
    coming = arrivals(queries[0], r, s)
    try:
        made = [Compilation(query, "auto", retry=0.0) for query in queries]
        assert not any(one.is_done(coming) for one in made for _ in range(3))
        assert len(started) == 2
        os.kill(started[0], signal.SIGKILL)
        deadline = time.monotonic() + 60
        while len(started) == 2 and time.monotonic() < deadline:
            made[-1].is_done(coming)
            time.sleep(0.01)
        assert len(started) == 3
        assert left(cold) == {".code", ".TAG"}, "the rows of a process that was killed are not left there"
    finally:
        for child in compilation._children:
            if child.code is None:
                os.kill(child._pid, signal.SIGKILL)


def test_a_process_that_fails_leaves_it_to_the_session(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spawn = os.posix_spawn
    monkeypatch.setattr(compilation.os, "posix_spawn", lambda python, *_, **__: spawn(
        python, [python, "-c", "import sys; sys.exit(3)"], os.environ))
    r, s = tables(10)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window="ROWS 9")
    made, coming = Compilation(query, "auto"), arrivals(query, r, s)
    deadline = time.monotonic() + 60
    while not made.is_done(coming) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert made.is_done(coming)
    assert not made.is_known


def test_a_cache_that_cannot_be_written_to(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise ToolError("no room")

    monkeypatch.setattr(compilation, "_write_sample", refused)
    r, s = tables(10)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window="ROWS 9")
    made = Compilation(query, "auto")
    assert [made.is_done(arrivals(query, r, s)) for _ in range(2)] == [True, True]


def test_joins_go_on_without_a_folder_for_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container in which nothing can be written; what has been compiled for it is found all the same."""
    r, s = tables(300)
    how: dict[str, Any] = {"on": "abs(r.x - s.a) <= 1", "window": "ROWS 100", "order": "outer(1)"}
    expected = splitjoin.join(r, s, **how, device="golden")
    given = cache._Folders(readable=(cache_folder(),), why="it is gone")
    monkeypatch.setattr(cache, "_usable_folders", lambda: given)
    monkeypatch.setenv("SPLITJOIN_COMPILE", "background")
    monkeypatch.setattr(Compilation, "is_known", False)
    cache._say.cache_clear()
    with pytest.warns(RuntimeWarning, match="compiled code stays in memory, .* as it is gone; set") as said:
        assert [splitjoin.join(r, s, **how) for _ in range(2)] == [expected] * 2
    assert len(said) == 1


def test_compiled_loops_are_loaded_when_numpy_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a short join; for a long one before its second batch, and for many short batches in the end."""
    r, s = tables(4_000)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window="ROWS 500")
    whole = arrivals(query, r, s)
    expected = run(GoldenDevice(), query, r, s)
    for first, loading, parts, plan in ((700, 1e9, [whole], "as that is done before"), (700, 1e-9, [whole], "an index"),
                                        (9_000, 1e-9, [whole], "as that is done before"),
                                        (9_000, 1e-9, slices(whole, [5, 9]), "an index")):
        session = tiers(query, 0, tuning=Tuning(first_batch=first, loading_seconds=loading))
        monkeypatch.setattr(session._compilation, "is_known", True, raising=False)
        monkeypatch.setattr(session._compilation, "is_loaded", False, raising=False)
        assert_conforms(answer(session, parts), expected, query.order)
        assert plan in session.plan()


def test_loops_are_compiled_when_numpy_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks for them before; those that others have compiled are taken at once."""
    r, s = tables(1_000)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window="ROWS 500")
    parts, expected = slices(arrivals(query, r, s), [900]), run(GoldenDevice(), query, r, s)
    for seconds, known, asked, plan in ((1e9, False, 0, "until the loops"), (1e-9, False, 1, "an index"),
                                        (1e9, True, 1, "an index")):
        session = tiers(query, 0, tuning=Tuning(compiling_seconds=seconds))
        monkeypatch.setattr(session._compilation, "is_known", known, raising=False)
        assert_conforms(answer(session, parts), expected, query.order)
        assert (session._compilation.left, plan in session.plan()) == (-asked, True)


@pytest.mark.parametrize(("patience", "plan"), [(1e9, "NumPy"), (0.0, "an index")])
def test_a_long_push_does_not_wait_for_another_process(
        patience: float, plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiered, "_PATIENCE", patience)
    r, s = tables(1_000)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window="ROWS 500")
    session = tiers(query, 1 << 30, tuning=Tuning(first_batch=900))
    assert_conforms(answer(session, [arrivals(query, r, s)]), run(GoldenDevice(), query, r, s), query.order)
    assert plan in session.plan()


def test_wrong_times_of_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="compiling must be 'background' or 'first', not 'never'"):
        CpuDevice(compiling="never")  # type: ignore[arg-type]
    monkeypatch.setenv("SPLITJOIN_COMPILE", "later")
    with pytest.raises(DeviceError, match="SPLITJOIN_COMPILE must be 'background' or 'first', not 'later'"):
        splitjoin.join({"x": [1]}, {"x": [1]}, on="r.x = s.x")


def test_nothing_is_imported_before_it_is_needed(cold: Path) -> None:
    """NumPy's tier needs no numba, the package no pandas, and a join that nobody watches no progress bar: a second or
    two of the first result.
    """
    code = ("import json, sys, splitjoin, splitjoin.cli; names = ('numba', 'pandas', 'polars', 'duckdb', 'amaranth'); "
            "before = [name for name in names if name in sys.modules]; "
            "splitjoin.join({'x': [1]}, {'a': [1]}, on='r.x = s.a', order='outer(1)'); "
            "print(json.dumps([before, [name for name in ('numba', 'tqdm') if name in sys.modules]]))")
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == [[], []]
        deadline = time.monotonic() + 300  # the second time with compiled loops in the cache
        while not list(compiled(cold)) and time.monotonic() < deadline:
            time.sleep(0.2)
