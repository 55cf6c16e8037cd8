"""Order "none" and RANGE windows: a pair comes with its second tuple, a row of NULL when its tuple is decided, one of
an as-of join when S has passed what it may choose.

Against their definitions, after every step, on every device and through every restart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import StreamJoin
from splitjoin.engines.device import Device, pairs
from splitjoin.engines.golden import GoldenDevice

from ...support.gate_model import Model, ModelSource
from ...support.lagging import LaggingDevice

R = pa.schema([("ts", pa.int64()), ("x", pa.int32()), ("id", pa.int64())])
S = pa.schema([("ts", pa.int64()), ("a", pa.int32()), ("jd", pa.int64())])
LENGTHS = (4, 7)
Row = tuple[int, int, int, int]
Rows = set[tuple[int | None, int | None]]


def query(how: str = "inner", **more: Any) -> splitjoin.Query:
    return splitjoin.query(R, S, on="abs(r.x - s.a) <= 1", window=tuple(f"RANGE {n}" for n in LENGTHS), time="ts",
                           how=how, order="none", **more)


class Definition:
    """The rows of a kind, from its definition: of the tuples that are not late, and how far both streams have got.

    ``taken``: the tuples of each stream: time, value, number in the order of delivery, and source.
    """

    def __init__(self, how: str, **kind: Any):
        self.how = how
        self.direction, self.exact = kind.get("direction", "backward"), kind.get("allow_exact", True)
        self.taken: tuple[list[Row], list[Row]] = ([], [])

    def pairs(self) -> set[tuple[int, int]]:
        return {(i, j) for t, x, i, _ in self.taken[0] for u, a, j, _ in self.taken[1] if self.meet(t, x, u, a)}

    @staticmethod
    def meet(t: int, x: int, u: int, a: int) -> bool:
        return -LENGTHS[1] <= u - t <= LENGTHS[0] and abs(x - a) <= 1

    def as_of(self, passed: float) -> Rows:
        """The rows of tuples of R that no tuple of S from time ``passed`` on can change."""
        rows: Rows = set()
        for t, x, i, _ in self.taken[0]:
            found = sorted((u, source, j) for u, a, j, source in self.taken[1]
                           if self.meet(t, x, u, a) and (self.exact or u != t))
            back = max((one for one in found if one[0] <= t and self.direction != "forward"), default=None)
            fore = min((one for one in found if self.is_fore(one[0], t)), default=None)
            best = back or fore
            last: float = t + LENGTHS[0]
            if self.direction == "backward":
                last = t - (not self.exact)
            elif fore is not None:
                last = fore[0]
            if self.direction == "nearest" and back is not None:
                last = min(last, max(t, 2 * t - back[0] - 1))
                best = fore if fore is not None and fore[0] - t < t - back[0] else back
            if last < passed and (best is not None or self.how == "asof_left"):
                rows.add((i, None if best is None else best[2]))
        return rows

    def is_fore(self, u: int, t: int) -> bool:
        return u > t if self.direction == "nearest" else self.direction == "forward" and u >= t

    def rows(self, passed: tuple[float, float]) -> Rows:
        if self.how.startswith("asof"):
            return self.as_of(passed[1])
        found = self.pairs()
        rows: Rows = set(found) if self.how in ("inner", "left", "right", "full") else set()
        met_r, met_s = {i for i, _ in found}, {j for _, j in found}
        if self.how == "semi":
            rows |= {(i, None) for i in met_r}
        if self.how in ("left", "full", "anti"):
            rows |= {(i, None) for t, _, i, _ in self.taken[0] if i not in met_r and t + LENGTHS[0] < passed[1]}
        if self.how in ("right", "full"):
            rows |= {(None, j) for u, _, j, _ in self.taken[1] if j not in met_s and u + LENGTHS[1] < passed[0]}
        return rows


class Feeding:
    """A session that is fed step by step, its rows so far, and the tuples that it has not called late."""

    def __init__(self, how: str, devices: list[Device], sources: tuple[int, int], kind: Any = None, **options: Any):
        self.made, self.devices, self.options = query(how, **kind or {}), devices, options
        self.definition = Definition(how, **kind or {})
        self.session = self._opened()
        self.keys = [(side, index) for side in (0, 1) for index in range(sources[side])]
        for side, _ in self.keys:
            self.session.source("rs"[side])
        self.rows: list[tuple[int | None, int | None]] = []
        self.count = 0

    def push(self, key: tuple[int, int], rows: list[tuple[int, int]]) -> list[bool]:
        """Push rows of event time and value, and return whether each was late."""
        side, index = key
        numbered = [(*row, self.count + n) for n, row in enumerate(rows)]
        self.count += len(rows)
        schema = S if side else R
        self.session.source_at("rs"[side], index).push(
            pa.table([list(column) for column in zip(*numbered, strict=True)] or [[], [], []], schema=schema))
        late = self.session.late_s() if side else self.session.late_r()
        ids = set(late.column(2).to_pylist())
        self.definition.taken[side].extend((*row, index) for row in numbered if row[2] not in ids)
        return [row[2] in ids for row in numbered]

    def act(self, action: str) -> None:
        if action == "restart":
            self.session.restart()
        elif action == "move":
            self.devices.append(self.devices.pop(0))
            self.session.restart(self.devices[0])
        elif action == "snapshot":
            saved = self.session.snapshot()
            self.session.close()
            self.devices.append(self.devices.pop(0))
            self.session = self._opened()
            self.session.restore(saved)

    def poll(self, batch: pa.RecordBatch | None = None) -> Rows:
        """All rows so far, none of which came twice."""
        batch = self.session.poll() if batch is None else batch
        columns = [batch.column(name).to_pylist() if name in batch.schema.names else [None] * len(batch)
                   for name in ("id", "jd")]
        self.rows += list(zip(*columns, strict=True))
        assert len(set(self.rows)) == len(self.rows)
        return set(self.rows)

    def _opened(self) -> StreamJoin:
        return StreamJoin(self.made, self.devices[0], **self.options)


HOW = st.sampled_from(["inner", "left", "right", "full", "semi", "anti"])
KIND = st.fixed_dictionaries({"direction": st.sampled_from(["backward", "forward", "nearest"]),
                              "allow_exact": st.booleans()})
AS_OF = st.sampled_from(["asof", "asof_left"])
BATCHES = st.lists(st.tuples(st.integers(-4, 3), st.integers(0, 3)), max_size=4)
ACTIONS = st.sampled_from(["", "", "", "snapshot", "restart", "move"])
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), BATCHES, st.booleans(), ACTIONS), max_size=14)


def delays(draw: st.DrawFn) -> tuple[int | None, int | None]:
    r, s = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    return draw(st.sampled_from([(r, s), (r, s), (r, None), (None, s)]))


def check(data: st.DataObject, devices: Callable[[], list[Device]], *, at_once: bool, as_of: bool = False) -> None:
    """``at_once``: True if rows must come in the step that decides them. As-of rows may come sooner than their bound:
    with the place of a source of S among those of the same time.
    """
    rule = data.draw(st.sampled_from(["source", "min", "max", "spark"]))
    given_delays = data.draw(st.composite(delays)()) if rule != "source" else data.draw(
        st.tuples(st.integers(0, 4), st.integers(0, 4)))
    sources = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    feeding = Feeding(data.draw(AS_OF if as_of else HOW), devices(), sources, data.draw(KIND) if as_of else None,
                      lateness=given_delays, watermark=rule)
    model = Model(given_delays, rule)
    twins = {key: model.add(key[0]) for key in feeding.keys}
    clock = dict.fromkeys(feeding.keys, 0)
    for which, ahead, batch, beats, action in data.draw(STEPS):
        key = feeding.keys[which % len(feeding.keys)]
        clock[key] += ahead
        rows = [(clock[key] + t, x) for t, x in batch]
        late = feeding.push(key, rows)
        if beats:
            feeding.session.source_at("rs"[key[0]], key[1]).heartbeat(clock[key] - 4)
        assert late == [pushed_late(model, twins[key], t) for t, _ in rows]
        if beats:
            twins[key].promise = max(twins[key].promise, clock[key] - 4)
        feeding.act(action)
        expected = feeding.definition.rows(passed(model))
        found = feeding.poll()
        if as_of:
            assert not at_once or found >= expected
        else:
            assert found == expected if at_once else found <= expected
    with feeding.session:
        assert feeding.poll(feeding.session.flush()) == feeding.definition.rows((float("inf"), float("inf")))
        counters = feeding.session.counters()
        assert (counters["rows"], counters["waiting"]) == (len(feeding.rows), 0)


def pushed_late(model: Model, source: ModelSource, ts: int) -> bool:
    before = len(model.late)
    model.push(source, ts, "")
    return len(model.late) > before


def passed(model: Model) -> tuple[float, float]:
    """The event times below which no tuple of R and of S can come, by definition."""
    marks = [[model._mark(source) for source in model.sources if source.number == side] for side in (0, 1)]
    return min(marks[0]), min(marks[1])


@given(data=st.data())
def test_rows_come_as_soon_as_they_are_known(data: st.DataObject) -> None:
    check(data, lambda: [GoldenDevice()], at_once=True)


@given(data=st.data())
def test_devices_that_change_and_lag(data: st.DataObject) -> None:
    lag = data.draw(st.integers(0, 9))
    check(data, lambda: [LaggingDevice(lag), GoldenDevice()], at_once=False)


@pytest.mark.parametrize("at_once", [True, False], ids=["golden", "lagging"])
@given(data=st.data())
def test_as_of_rows_wait_for_s_alone(at_once: bool, data: st.DataObject) -> None:
    lag = 0 if at_once else data.draw(st.integers(0, 9))
    check(data, lambda: [GoldenDevice() if at_once else LaggingDevice(lag), GoldenDevice()], at_once=at_once,
          as_of=True)


@pytest.mark.parametrize(("direction", "partner"), [("backward", 1), ("forward", 0), ("nearest", 1)])
@pytest.mark.parametrize("device", ["golden", "cpu"])
def test_of_equal_times_of_s_the_order_of_its_sources_decides(direction: str, partner: int, device: str) -> None:
    """Not the order in which they deliver."""
    with splitjoin.open(query("asof", direction=direction), device) as session:
        first, second = (session.source("s") for _ in range(2))

        def push(source: splitjoin.sessions.Source, ts: int, jd: int) -> None:
            source.push(pa.table({"ts": [ts], "a": [0], "jd": [jd]}, schema=S))

        session.push_r(pa.table({"ts": [5], "x": [0], "id": [0]}, schema=R))
        push(first, 5, 0)
        push(second, 5, 1)
        push(first, 5, 2)  # precedes the tuple of the second source, which is the last one
        push(first, 9, 3)
        if direction == "forward":  # the first partner is known as such
            assert session.poll()["jd"].to_pylist() == [partner]
        push(second, 6, 4)
        session.heartbeat(5, "s")
        assert direction == "forward" or session.poll()["jd"].to_pylist() == [partner]


@given(data=st.data())
def test_the_cpu(data: st.DataObject) -> None:
    from splitjoin.engines.cpu import CpuDevice

    check(data, lambda: [CpuDevice(), GoldenDevice()], at_once=True, as_of=data.draw(st.booleans()))


def test_circuits_with_stalls() -> None:
    """The circuit's windows become longer as tuples come further out of order; it is the same circuit."""
    from splitjoin_sim import SimDevice

    @settings(max_examples=6)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        seed = data.draw(st.integers(0, 99))
        circuit = SimDevice(cores=2, capacity=64, lanes=2, stall_in=0.3, stall_out=0.3, seed=seed)
        check(data, lambda: [circuit, GoldenDevice()], at_once=False, as_of=data.draw(st.booleans()))

    run()


@given(data=st.data())
def test_sources_that_are_idle_close_and_come_later(data: st.DataObject) -> None:
    """The rows are those of the tuples that the session does not call late, whatever becomes of its sources."""
    as_of = data.draw(st.booleans())
    feeding = Feeding(data.draw(AS_OF if as_of else HOW), [GoldenDevice()], (1, 1), data.draw(KIND) if as_of else None,
                      lateness=data.draw(st.integers(0, 3)),
                      watermark=data.draw(st.sampled_from(["source", "min", "max", "spark"])))
    now, closed = 0, set[tuple[int, int]]()
    for which, ahead, batch, idle, action in data.draw(STEPS):
        key = feeding.keys[which % len(feeding.keys)]
        now += ahead
        if action == "move":
            side = key[0]
            feeding.keys.append((side, feeding.session.source("rs"[side]).index))
        elif key not in closed:
            feeding.push(key, [(now + t, x) for t, x in batch])
            if idle:
                feeding.session.source_at("rs"[key[0]], key[1]).idle()
            elif action == "restart":
                feeding.session.source_at("rs"[key[0]], key[1]).close()
                closed.add(key)
            else:
                feeding.act(action)
        found = feeding.poll()
        if not as_of:
            assert found <= feeding.definition.rows((float("inf"), float("inf")))
            assert feeding.definition.pairs() <= found or feeding.definition.how in ("semi", "anti")
    with feeding.session:
        assert feeding.poll(feeding.session.flush()) == feeding.definition.rows((float("inf"), float("inf")))


def test_a_stream_that_is_ahead_waits_until_it_can_meet_something() -> None:
    """So that the tuples on the device are never much further apart than the windows."""
    with splitjoin.open(query(), "golden") as session:
        session.push_r(pa.table({"ts": range(0, 1000, 10), "x": [0] * 100, "id": range(100)}, schema=R))
        assert session.counters()["tuples_r"] == 0
        session.push_s(pa.table({"ts": [3], "a": [0], "jd": [0]}, schema=S))
        counters = session.counters()
        assert (counters["tuples_r"], counters["waiting"], len(session.poll())) == (2, 98, 2)
        session.push_s(pa.table({"ts": [500], "a": [0], "jd": [1]}, schema=S))
        assert [row["ts_r"] for row in session.poll().to_pylist()] == [500]
        assert session.counters()["restarts"] == 0  # nothing came out of order
        assert session.counters()["retained_r"] == 1
        session.close_s()
        assert session.counters()["waiting"] == 0


def test_row_ids_count_the_tuples_as_they_became_ready() -> None:
    with splitjoin.open(query(), "golden", lateness=5, punctuation=True) as session:
        session.push_s(pa.table({"ts": [3, 1], "a": [0, 0], "jd": [0, 1]}, schema=S))
        session.push_r(pa.table({"ts": [4], "x": [0], "id": [0]}, schema=R))
        session.push_s(pa.table({"ts": [2], "a": [0], "jd": [2]}, schema=S))
        items, rows = session.poll_items()
        assert [list(map(int, ids)) for ids in pairs(items)] == [[0, 0, 0], [0, 1, 2]]
        assert [row["ts_s"] for row in rows.to_pylist()] == [1, 3, 2]


@pytest.mark.parametrize("how", ["inner", "full"])
def test_memory_is_that_of_the_windows(how: str) -> None:
    """Rows leave when the other stream has passed them, whatever their own stream does."""
    with splitjoin.open(query(how), "golden", lateness=2) as session:
        for now in range(0, 400, 4):
            session.push_r(pa.table({"ts": [now, now - 2], "x": [0, 9], "id": [now, now + 1]}, schema=R))
            session.push_s(pa.table({"ts": [now - 1, now], "a": [0, 5], "jd": [now, now + 1]}, schema=S))
            session.poll()
            counters = session.counters()
            assert counters["retained_r"] + counters["retained_s"] <= 14
        session.heartbeat(10**6, "s")
        assert session.counters()["retained_r"] <= 6


@pytest.mark.parametrize("limit", [None, 50])
@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_stream_far_ahead_in_many_slices(how: str, limit: int | None) -> None:
    """What the gate still holds keeps the rows of the other stream that it may meet."""
    n = 2000
    r = pa.table({"ts": range(n), "x": [i % 7 for i in range(n)], "id": range(n)}, schema=R)
    s = pa.table({"ts": range(n), "a": [i % 5 for i in range(n)], "jd": range(n)}, schema=S)
    found = []
    with splitjoin.open(query(how), "golden", limit=limit, when_full="raise") as session:
        session.push_r(r)
        for start in range(0, n, 500):
            while True:
                try:
                    session.push_s(s.slice(start, 500))
                    break
                except splitjoin.BackPressure:
                    found += session.poll().to_pylist()
        while len(batch := session.poll()):
            found += batch.to_pylist()
        found += session.flush().to_pylist()
    expected = splitjoin.join(r, s, on="abs(r.x - s.a) <= 1", window=("RANGE 4", "RANGE 7"), time="ts", how=how)
    assert sorted(map(repr, found)) == sorted(map(repr, expected.to_pylist()))


def test_a_source_that_is_added_behind_a_snapshot_is_late_by_what_its_stream_has_passed() -> None:
    def opened() -> splitjoin.StreamJoin:
        return splitjoin.open(query("inner"), "golden", lateness=0)

    with opened() as session, opened() as restored:
        session.push_r(pa.table({"ts": [10], "x": [0], "id": [0]}, schema=R))
        session.push_s(pa.table({"ts": [10], "a": [0], "jd": [0]}, schema=S))
        restored.restore(session.snapshot())
        for one in session, restored:
            one.source("s").push(pa.table({"ts": [7], "a": [0], "jd": [1]}, schema=S))
            assert one.late_s()["jd"].to_pylist() == [1]
