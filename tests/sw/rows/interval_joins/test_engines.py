"""Engines that fold without pairs give the reference's rows, whatever the keys, windows, values and aggregates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import InputError, UnsupportedError
from splitjoin.base.processors import processors
from splitjoin.engines.cpu.device import INTERVAL_ENGINES, CpuDevice
from splitjoin.engines.device import PAIR
from splitjoin.engines.tuning import Tuning
from splitjoin.rows.interval_joins.baseline.key_oij import _divided
from splitjoin.rows.interval_joins.sliding import _operations

from ....support.aggregates import FUNCTIONS
from ....support.oracle import integers
from ....support.sampling import at_length, examples
from ....support.statements import exactly
from ....support.strategies import TIME_TYPES, RandomWindows, tables, windows

KEYS = (pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.bool_(), pa.date32(),
        pa.decimal128(9, 2), pa.decimal128(38, 2), pa.timestamp("ms"), pa.binary())
VALUES = (pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), pa.timestamp("ms"), pa.decimal128(9, 2),
          pa.duration("ms"))
#: Conditions over the keys ``x0`` and ``a0``, and columns ``y0`` (int8) and ``b0``.
CONDITIONS = ("r.x0 = s.a0", "TRUE", "r.x0 = s.a0 AND s.c0 > 0", "r.x0 = s.a0 AND r.y0 = s.c0", "s.c0 = r.y0 + 1",
              "r.y0 > 0 AND s.c0 = r.y0")
PAST, BOTH = {"r": "RANGE 0", "s": "RANGE 300"}, {"r": "RANGE 40", "s": "RANGE 5"}
AGGREGATES = [text.replace("a0", "b0").replace("r.x0", "s.ts") for text in FUNCTIONS]


def plain(table: pa.Table) -> list[list[Any]]:
    return [[exactly(v) for v in column.to_pylist()] for column in integers(table).columns]


def found(device: str | CpuDevice, r: pa.Table, s: pa.Table, **how: Any) -> Any:
    try:
        return splitjoin.join(r, s, by="r", device=device, select=["y0"], **how)
    except InputError as error:
        return str(error)


@settings(max_examples=examples(30))
@given(data=st.data())
def test_keys_are_divided_among_workers(data: st.DataObject) -> None:
    """Each worker has its keys' places in order, and, of the operations, those of its keys: in blocks of any size."""
    workers = data.draw(st.integers(1, 5))
    chance = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n, bases = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 30))
    keys, of = (chance.integers(-1, 7, size) for size in (n, bases))
    for without in (-1, 0):
        mine = _divided(keys, workers, without)
        assert [places.tolist() for places in mine] == [
            [at for at, key in enumerate(keys) if (key % workers if key >= 0 else without) == w]
            for w in range(workers)]
    low = np.minimum(np.sort(chance.integers(0, n + 1, bases)), n)
    high = np.maximum(np.sort(chance.integers(0, n + 1, bases)), low)
    ring, mask = np.zeros(64, np.int64), 63
    ring[:n] = keys

    def operations(workers: int, room: int) -> list[list[tuple[int, int]]]:
        found: list[list[tuple[int, int]]] = [[] for _ in range(workers)]
        ops, slots = (np.empty((workers, room), np.int64) for _ in range(2))
        fronts, numbers, done, turns = np.zeros(2, np.int64), np.zeros(workers, np.int64), 0, 0
        while done < bases:
            done = int(_operations(of, low, high, done, ring, mask, fronts, ops, slots, numbers))
            for w in range(workers):
                found[w] += zip(ops[w, :numbers[w]].tolist(), slots[w, :numbers[w]].tolist(), strict=True)
            assert (turns := turns + 1) < 200
        return found

    (every,) = operations(1, 1000)
    assert operations(workers, data.draw(st.integers(1, 9))) == [
        [(op, slot) for op, slot in every if (slot % workers if slot >= 0 else 0) == w] for w in range(workers)]


@settings(max_examples=examples(40))
@given(data=st.data())
def test_random_joins_equal_the_reference(data: st.DataObject) -> None:
    key, value = data.draw(st.sampled_from(KEYS)), data.draw(st.sampled_from(VALUES))
    times = data.draw(st.sampled_from(TIME_TYPES))
    r = data.draw(tables({"x0": key, "y0": pa.int8()}, time=("ts", times[0]), max_rows=10))
    s = data.draw(tables({"a0": key, "b0": value, "c0": pa.int8()}, time=("ts", times[1]), max_rows=14))
    window: RandomWindows = data.draw(windows(times[0]))
    numeric = not pa.types.is_temporal(value)
    texts = [t for t in AGGREGATES if numeric or not t.startswith(("sum", "avg"))]
    how: dict[str, Any] = {"on": data.draw(st.sampled_from(CONDITIONS)), "window": window.spec, "time": "ts",
                           "how": data.draw(st.sampled_from(["left", "inner"])),
                           "aggregate": {f"v{n}": text for n, text in enumerate(texts)}}
    expected = found("golden", r, s, **how)
    alone = window.r[0] is None and window.s[0] is None and None not in (window.r[1], window.s[1])
    engines: list[tuple[Any, int]] = [("sliding", 1), ("sliding", 3)]
    for engine, threads in engines + [("key-oij", 2), ("scale-oij", 1), ("scale-oij", 3)] * alone:
        ours = found(CpuDevice(engine=engine, threads=threads), r, s, **how)
        if isinstance(expected, str):
            assert ours == expected
            continue
        assert ours.table.schema == expected.table.schema
        assert plain(ours.table) == plain(expected.table)
        assert ours.items.tolist() == expected.items[expected.items["kind"] == PAIR].tolist()


@pytest.mark.parametrize(("window", "engine", "threads", "incremental"), [
    (PAST, "sliding", 2, True), (PAST, "key-oij", 2, True), (PAST, "scale-oij", 3, True), (BOTH, "sliding", 2, True),
    (BOTH, "scale-oij", 1, True), *(at_length(window, "scale-oij", 3, False) for window in (PAST, BOTH)),
    at_length(PAST, "scale-oij", 1, True), at_length(BOTH, "key-oij", 2, True), at_length(BOTH, "scale-oij", 3, True)])
def test_long_streams_in_small_slices(monkeypatch: pytest.MonkeyPatch, engine: Any, threads: int,
                                      incremental: bool, window: Any) -> None:
    """Rings go round, buffers move, old tuples are evicted, teams grow; the rows stay those folded from pairs."""
    from splitjoin.rows.interval_joins.baseline.scale_oij import ScaleOijEngine

    monkeypatch.setattr(ScaleOijEngine, "incremental", incremental)
    if threads > 1:  # fewer operations at once than a base tuple has
        monkeypatch.setattr(ScaleOijEngine, "block", 4)
    random, n = np.random.default_rng(7), 6000
    skewed = np.minimum(random.geometric(0.3, n), 9)
    r = pa.table({"ts": np.sort(random.integers(0, 8000, n)), "x": random.permutation(skewed)})
    values = random.choice([0.1, -0.0, 3.5, 1e300, -1e300, 5e-324, np.nan, np.inf], n,
                           p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.06, 0.02, 0.02])
    s = pa.table({"ts": np.sort(random.integers(0, 8000, n)), "a": skewed, "i": random.integers(-2**62, 2**62, n),
                  "v": pa.array(values, mask=random.random(n) < 0.1)})
    how: dict[str, Any] = {"on": "r.x = s.a", "window": window, "time": "ts", "how": "left", "select": ["ts"],
                           "aggregate": {"n": "count(*)", "d": "count(DISTINCT s.v)", "t": "sum(s.v)", "m": "avg(s.i)",
                                         "low": "min(s.v)", "high": "argmax(s.i, s.v)", "f": "first(s.v)",
                                         "l": "last(s.i)"}}
    expected = splitjoin.join(r, s, **how, device=CpuDevice(engine="index", threads=1))
    made = splitjoin.join(r, s, **how, device=CpuDevice(engine=engine, threads=threads, tuning=Tuning(batch=700,
                                                                                                          schedule_arrivals=1000)))
    assert plain(made.to_arrow()) == plain(expected.to_arrow())


R = pa.table({"ts": [1, 4], "x": [1, 2], "t": ["a", "b"]})
S = pa.table({"ts": [2, 4], "a": [1, 2], "t": ["a", "b"]})


@pytest.mark.parametrize(("how", "reason"), [
    ({"on": "r.x < s.a"}, "(r.x < s.a) is neither an equality between r and s nor a condition on one of them"),
    ({"aggregate": {"n": "sum(s.a * r.x)"}}, "'sum(s.a * r.x)' reads columns of r"),
    ({"aggregate": {"n": "max(s.t)"}}, "'max(s.t)' needs values that fit 64 bits, but these are string"),
    ({"aggregate": {"n": "sum(s.a * s.a * s.a)"}},
     "'sum(s.a * s.a * s.a)' needs values that fit 64 bits, but these are exact"),
])
def test_what_no_engine_runs_is_refused_and_auto_folds_pairs(how: dict[str, Any], reason: str) -> None:
    whole: dict[str, Any] = {"on": "r.x = s.a", "window": "RANGE 5", "time": "ts", "aggregate": {"n": "count(*)"},
                             "how": "left"} | how
    for engine in INTERVAL_ENGINES:
        with pytest.raises(UnsupportedError) as raised:
            splitjoin.join(R, S, **whole, device=CpuDevice(engine=engine))
        assert reason in str(raised.value)
        assert "use engine='auto'" in str(raised.value)
    assert splitjoin.join(R, S, **whole) == splitjoin.join(R, S, **whole, device="golden")


def test_pairs_are_not_folded() -> None:
    with pytest.raises(UnsupportedError, match="engine='sliding' folds aggregates, but the query gives pairs"):
        splitjoin.join(R, S, on="r.x = s.a", window="ROWS 5", device=CpuDevice(engine="sliding"))


def test_counters_and_the_plan() -> None:
    made = splitjoin.join(R, S, on="r.x = s.a", window="RANGE 5", time="ts", aggregate={"n": "max(s.a)"},
                             device=CpuDevice(threads=2, engine="sliding"))
    assert made.counters == {"tuples_r": 2, "tuples_s": 2, "comparisons": 4, "matches": 2}
    assert made.plan == "sliding: 2 workers by key; least and greatest values by two stacks"
    made = splitjoin.join(R, S, on="r.x = s.a", window="RANGE 5", time="ts",
                          aggregate={"n": "count(*)", "total": "sum(s.a)"},
                          device=CpuDevice(threads=2, engine="sliding"))
    assert made.plan is not None
    assert made.plan.startswith("sliding: 1 worker by key")  # several take longer
    workers = f"{processors()} workers" if processors() > 1 else "1 worker"
    made = splitjoin.join(R, S, on="r.x = s.a", window="RANGE 5", time="ts", aggregate={"n": "max(s.a)"},
                          device=CpuDevice(engine="key-oij", threads=256))
    assert made.plan is not None
    assert made.plan.startswith(f"key-oij: {workers} by key")  # each goes past all rows
