"""Sessions whose sources are late, idle, closed and new, and that move to another device after every action: the rows
are those of a join of the tuples that are not late, in total order.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import splitjoin
from splitjoin import StreamJoin
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import Device
from splitjoin.engines.golden import GoldenDevice

from ...support.gate_model import Model, ModelSource
from ...support.lagging import LaggingDevice
from ...support.sampling import at_length

R = pa.schema([("ts", pa.int64()), ("x", pa.int32()), ("id", pa.int64())])
S = pa.schema([("ts", pa.int64()), ("a", pa.int32()), ("jd", pa.int64())])
#: Event time, number of the source, place among all tuples, and the row.
Taken = list[tuple[int, int, int, tuple[int, int, int]]]

BATCH = st.lists(st.tuples(st.integers(-5, 4), st.integers(0, 2)), max_size=4)
STEPS = st.lists(st.tuples(st.sampled_from(["push"] * 6 + ["beat", "idle", "wait", "add", "close"]), st.integers(0, 5),
                           st.integers(0, 5), BATCH), max_size=16)
QUERIES: list[dict[str, Any]] = [
    {}, {"how": "left"}, {"how": "full"}, {"how": "semi"}, {"how": "anti"}, {"window": ("ROWS 3", "ROWS 2 RANGE 5")},
    {"how": "full", "window": ("ROWS 2 RANGE 6", "RANGE 3")},
    *({"how": "asof_left", "direction": direction} for direction in ("backward", "forward", "nearest")),
    {"how": "left", "aggregate": {"n": "count(*)", "last": "last(s.jd)"}},
]
#: Without a window, which circuits and their like refuse.
UNBOUNDED: list[dict[str, Any]] = [{"how": "asof_left", "on": "r.x = s.a AND s.a > 0", "window": None, "allow_exact": e}
                                   for e in (True, False)]


class Feeding:
    """A session and the gate's definition, fed side by side."""

    def __init__(self, query: splitjoin.Query, model: Model, devices: list[Device], **options: Any):
        self.query, self.model, self.devices, self.options = query, model, devices, options
        self.session = self._opened()
        self.sources: list[ModelSource] = []
        self.taken: tuple[Taken, Taken] = ([], [])
        self.rows: list[Any] = []
        self.count = 0
        self.add(0)
        self.add(1)

    def add(self, side: int) -> None:
        self.session.source("rs"[side])
        self.sources.append(self.model.add(side))

    def push(self, source: ModelSource, rows: list[tuple[int, int]]) -> None:
        numbered = [(*row, self.count + n) for n, row in enumerate(rows)]
        self.count += len(rows)
        handle = self.session.source_at("rs"[source.number], source.index)
        handle.push(pa.table([list(column) for column in zip(*numbered, strict=True)] or [[], [], []],
                             schema=S if source.number else R))
        self.model.speak(source)
        late = self.session.late_s() if source.number else self.session.late_r()
        expected = len(self.model.late)
        for row in numbered:
            before = len(self.model.late)
            self.model.push(source, row[0], str(row[2]))
            if len(self.model.late) == before:
                self.taken[source.number].append((row[0], source.index, row[2], row))
        assert sorted(map(str, late.column(2).to_pylist())) == sorted(self.model.late[expected:])

    def moved(self) -> None:
        saved = self.session.snapshot()
        self.session.close()
        self.devices.append(self.devices.pop(0))
        self.session = self._opened()
        self.session.restore(saved)

    def answer(self, made: dict[str, Any]) -> list[Any]:
        tables = [pa.table([list(column) for column in zip(*(t[3] for t in sorted(taken)), strict=True)]
                           or [[], [], []], schema=schema) for taken, schema in zip(self.taken, (R, S), strict=True)]
        found: list[Any] = splitjoin.join(*tables, **made, device="golden").to_pylist()
        return found

    def _opened(self) -> StreamJoin:
        return StreamJoin(self.query, self.devices[0], clock=lambda: self.model.now, **self.options)


@pytest.mark.parametrize("devices", [at_length((GoldenDevice(), CpuDevice())), (LaggingDevice(4), CpuDevice())],
                         ids=["golden-cpu", "lagging-cpu"])
@given(data=st.data())
def test_the_rows_are_those_of_what_is_not_late(devices: tuple[Device, ...], data: st.DataObject) -> None:
    made = {"on": "abs(r.x - s.a) <= 1", "window": ("RANGE 4", "RANGE 6"), "time": "ts",
            **data.draw(st.sampled_from(QUERIES + UNBOUNDED * all(device.immediate for device in devices)))}
    rule = data.draw(st.sampled_from(["source", "min", "max", "spark"]))
    delay = st.integers(0, 4)
    delays = data.draw(st.tuples(delay, delay) if rule == "source" else st.one_of(
        st.tuples(delay, delay), st.tuples(delay, st.none()), st.tuples(st.none(), delay)))
    model = Model(delays, rule, idle=3)
    feeding = Feeding(splitjoin.query(R, S, **made), model, list(devices), lateness=delays, watermark=rule,
                      idle="3 SECONDS")
    now = 0
    for action, which, ahead, batch in data.draw(STEPS):
        source = feeding.sources[which % len(feeding.sources)]
        now += ahead
        if action == "add":
            feeding.add(which % 2)
        elif action == "wait":
            model.now += ahead
        elif source.closed:
            continue
        elif action == "push":
            feeding.push(source, [(now + t, x) for t, x in batch])
        elif action == "beat":
            feeding.session.source_at("rs"[source.number], source.index).heartbeat(now - 4)
            source.promise = max(source.promise, now - 4)
            model.speak(source)
        elif action == "idle":
            feeding.session.source_at("rs"[source.number], source.index).idle()
            source.idle = True
        else:
            feeding.session.source_at("rs"[source.number], source.index).close()
            source.closed = True
        model.ready()
        feeding.rows += feeding.session.poll().to_pylist()
        feeding.moved()
    with feeding.session:
        feeding.rows += feeding.session.flush().to_pylist()
    assert feeding.rows == feeding.answer(made)


@pytest.mark.parametrize("kind", [{}, {"how": "left"}, {"how": "asof_left", "k": 2}],
                         ids=["inner", "left", "asof_left"])
@pytest.mark.parametrize("low", [True, False], ids=["least", "greatest"])
def test_watermarks_beyond_int64_are_saved(kind: dict[str, Any], low: bool) -> None:
    times = [-(2**63), 3 - 2**63, 9 - 2**63] if low else [2**63 - 9, 2**63 - 3, 2**63 - 1]
    r = pa.table([times, [1, 2, 3], [10, 20, 30]], schema=R)
    s = pa.table([times, [1, 2, 3], [40, 50, 60]], schema=S)
    made: dict[str, Any] = {"on": "abs(r.x - s.a) <= 1", "window": "RANGE 4", "time": "ts", **kind}
    rows = []
    session = splitjoin.open(splitjoin.query(R, S, **made), "golden", lateness=5)
    for i in range(4):
        if i < 3:
            session.push_r(r[i:i + 1])
            session.push_s(s[i:i + 1])
        else:
            session.heartbeat(-(2**64) if low else 2**64)
        rows += session.poll().to_pylist()
        saved = session.snapshot()
        session.close()
        session = splitjoin.open(splitjoin.query(R, S, **made), "cpu", lateness=5)
        session.restore(saved)
    with session:
        rows += session.flush().to_pylist()
    assert rows == splitjoin.join(r, s, **made, device="golden").to_pylist()


@pytest.mark.parametrize(("rule", "first"), [("min", 10), ("max", 10), ("source", 10), ("spark", 11)])
def test_one_rule_at_a_watermark(rule: Any, first: int) -> None:
    """``first`` is the first time that is not late, by tuples that have got to 12 with a delay of 2; a heartbeat of
    this time sets the same watermark, as it promises that nothing below it comes.
    """
    schema = pa.schema([("ts", pa.int64())])
    query = splitjoin.query(schema, schema, on="r.ts = s.ts", window="RANGE 5", time="ts")

    def late(promised: bool) -> list[int]:
        with splitjoin.open(query, "golden", lateness=2, watermark=rule) as session:
            if promised:
                session.heartbeat(first)
            else:
                session.push_r(pa.table({"ts": [12]}))
                session.push_s(pa.table({"ts": [12]}))
            for ts in range(first - 3, first + 2):
                session.push_r(pa.table({"ts": [ts]}))
            return session.late_r().column("ts").to_pylist()

    assert late(promised=False) == late(promised=True) == [first - 3, first - 2, first - 1]
