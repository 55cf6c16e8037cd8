"""Sessions whose circuit folds all partners of a base tuple: however they are fed, moved, restored and interrupted,
they give the golden model's rows, and as soon as event time decides them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin.base.errors import DeviceLost
from splitjoin.circuit.driver import CircuitSession, Transport
from splitjoin.circuit.encode import Words
from splitjoin.circuit.wire import Configuration
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import PAIR, Device, Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin.rows.aggregates import reference_aggregates
from splitjoin.sessions import StreamJoin
from splitjoin_sim.device import SimDevice

from ..support.feeding import Feed, feed, feeds, whole
from ..support.sampling import at_length, examples
from ..sw.sessions.test_feeding import rows_of
from .test_folding import STALLS, query, tables

#: One circuit for each of these: what the states hold depends on the windows, of the last one earlier partners alone.
WINDOWS: list[Any] = ["RANGE 6", {"r": "ROWS 4 RANGE 7", "s": "RANGE 9"}, {"r": "RANGE 0", "s": "RANGE 10"}]
SHAPE: dict[str, Any] = {"cores": 2, "capacity": 64, "lanes": 2, "probes": 3, "fold": "always"}
SOME = {"n": "count(*)", "prices": "sum(s.p)", "low": "min(s.p)"}
R, S = tables(24, 5)


@dataclass(frozen=True, kw_only=True)
class Losing(SimDevice):
    """Loses its session in the transfers to any session of this device whose numbers, from 0, are in ``losses``; with
    ``late``, after the transfer, and half of what it gave comes nevertheless.
    """

    losses: frozenset[int] = frozenset()
    late: bool = False
    transfers: list[int] = field(default_factory=list, compare=False)

    def _connect(self, config: Configuration) -> Transport:
        return _Lossy(super()._connect(config), self)


class _Lossy(Transport):
    def __init__(self, transport: Transport, device: Losing):
        self._transport, self._device = transport, device
        self._received = super().received()

    def read(self, address: int) -> int:
        return self._transport.read(address)

    def write(self, address: int, word: int) -> None:
        self._transport.write(address, word)

    def counters(self) -> dict[str, int]:
        return self._transport.counters()

    def close(self) -> None:
        self._transport.close()

    def transfer(self, records: Words, *, until_end: bool) -> Items:
        self._device.transfers.append(len(records))
        if len(self._device.transfers) - 1 not in self._device.losses:
            return self._transport.transfer(records, until_end=until_end)
        if self._device.late:
            found = self._transport.transfer(records, until_end=until_end)
            self._received = found[:len(found) // 2]
        raise DeviceLost("it has lost its session")

    def received(self) -> Items:
        return self._received


def next_time(at: int) -> int:
    """The earliest event time of tuples number ``at``, or the last one of all."""
    return min(table["ts"][at].as_py() for table in (R, S)) if at < 24 else max(t["ts"][23].as_py() for t in (R, S))


def check(made: splitjoin.Query, devices: list[Device], how: Feed) -> int:
    """Feed sessions, and compare rows and items with the reference; returns the number of restarts."""
    makers = [lambda d=d: StreamJoin(made, d, punctuation=True) for d in devices]
    with feed(how, makers, R, S, "ts") as session:
        arrived = whole(made, how, R, S)
        with GoldenDevice().open(made.pairs) as golden:
            golden.push(arrived)
            items, values = reference_aggregates(made, arrived, golden.flush())
        expected = arrived.r.take(pa.array(items["r"][items["kind"] == PAIR]))
        for column, found in zip(list(session.schema)[-len(values):], values, strict=True):
            expected = expected.append_column(column, found)
        assert rows_of(pa.Table.from_batches(how.rows, session.schema)) == rows_of(expected)
        assert np.concatenate(how.items).tolist() == items.tolist()
        return session.counters()["restarts"]


@pytest.mark.parametrize("window", [WINDOWS[0], at_length(WINDOWS[1]), WINDOWS[2]], ids=str)
def test_any_cut_into_pushes(window: Any) -> None:
    """With snapshots that go from device to device, heartbeats and restarts in between."""
    circuit = SimDevice(seed=3, **SHAPE, **STALLS)

    @settings(max_examples=examples(10))
    @given(st.data())
    def run(data: st.DataObject) -> None:
        made = query(R, S, SOME, window=window, how=data.draw(st.sampled_from(["left", "inner"])))
        assert circuit.circuit(made).folding.whole == (window != WINDOWS[-1])
        others: list[Device] = [CpuDevice(threads=1), SimDevice(**{**SHAPE, "fold": "never"}), circuit]
        check(made, [circuit, data.draw(st.sampled_from(others))], data.draw(feeds(len(R), len(S))))

    run()


@settings(max_examples=examples(12))
@given(data=st.data())
def test_a_device_that_loses_its_session(data: st.DataObject) -> None:
    """In a push, in a barrier after a heartbeat, in a replay, or in the flush."""
    losses = data.draw(st.frozensets(st.integers(0, 40), min_size=1, max_size=3))  # more in a row are a failure
    how = data.draw(feeds(len(R), len(S)))
    how.turns = [(*turn[:2], turn[2].replace("restart", "poll")) for turn in how.turns]  # that tells of a loss
    device = Losing(losses=losses, late=data.draw(st.booleans()), seed=3, **SHAPE, **STALLS)
    restarts = check(query(R, S, SOME, window=WINDOWS[0]), [device], how)
    assert restarts == 0 or device.losses & set(range(len(device.transfers)))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("lost", range(1, 12))
def test_each_transfer_may_be_the_last_one_of_a_device(lost: int, late: bool) -> None:
    made = query(R, S, SOME, window=WINDOWS[0])
    device = Losing(losses=frozenset({lost}), late=late, seed=3, **SHAPE, **STALLS)
    rows = []
    with splitjoin.open(made, device=device, select=["ts", "x"]) as session:
        for at in range(0, 24, 6):
            session.push_r(R.slice(at, 6))
            session.push_s(S.slice(at, 6))
            session.heartbeat(next_time(at + 6))
            rows.append(session.poll())
        rows.append(session.flush())
        assert session.counters()["restarts"] == (lost < len(device.transfers))
        assert lost < len(device.transfers)
    of = {"on": "abs(r.x - s.a) <= 6", "time": "ts", "window": WINDOWS[0], "how": "left", "aggregate": SOME}
    expected = splitjoin.join(R, S, select=["ts", "x"], device="golden", **of).table
    assert pa.Table.from_batches(rows).to_pylist() == expected.to_pylist()


def test_a_session_outlives_the_row_numbers_of_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh device session folds the tuples of the windows again, whose row ids begin at others than 0."""
    monkeypatch.setattr(CircuitSession, "row_limit", 16)
    made = query(R, S, SOME, window="RANGE 1")
    rows = []
    device = SimDevice(seed=3, **SHAPE, **STALLS)
    with splitjoin.open(made, device=device, select=["ts", "x"]) as session:
        for at in range(0, 24, 2):
            session.push_r(R.slice(at, 2))
            session.push_s(S.slice(at, 2))
            rows.append(session.poll())
        rows.append(session.flush())
        assert session.counters()["restarts"] >= 1
    of = {"on": "abs(r.x - s.a) <= 6", "time": "ts", "window": "RANGE 1", "how": "left", "aggregate": SOME}
    expected = splitjoin.join(R, S, select=["ts", "x"], device="golden", **of).table
    assert pa.Table.from_batches(rows).to_pylist() == expected.to_pylist()


def test_rows_come_as_soon_as_time_decides_them() -> None:
    """After each push and each heartbeat, as on the CPU."""
    made = query(R, S, SOME, window="RANGE 6")
    sessions = [StreamJoin(made, device) for device in (SimDevice(seed=3, **SHAPE, **STALLS), CpuDevice(threads=1))]
    polled: list[list[Any]] = [[], []]
    for session, found in zip(sessions, polled, strict=True):
        with session:
            for at in range(0, 24, 4):
                session.push_s(S.slice(at, 4))
                found.append(session.poll().to_pylist())
                session.push_r(R.slice(at, 4))
                found.append(session.poll().to_pylist())
                for later in (0, 2, 5):
                    session.heartbeat(next_time(at + 4) + (later if at == 20 else 0))
                    found.append(session.poll().to_pylist())
            session.heartbeat(10**12)
            found.append(session.poll().to_pylist())
            found.append(session.flush().to_pylist())
    assert polled[0] == polled[1]
    assert polled[0][-2]
    assert not polled[0][-1]


def test_time_goes_on_behind_heartbeats_far_apart() -> None:
    """Idle gaps are shortened for the device, whose counter of times is short."""
    r = pa.table({"ts": [0, 10, 400_000, 400_003, 10**15], "x": pa.array([1, 2, 3, 4, 5], pa.int16())})
    s = pa.table({"ts": [4, 11, 399_999, 400_001, 10**15 - 6], "a": pa.array([1, 2, 3, 4, 5], pa.int16()),
                  "p": pa.array([5, 6, None, 8, 9], pa.int16())})
    how: dict[str, Any] = {"on": "abs(r.x - s.a) <= 6", "window": "RANGE 6", "time": "ts", "how": "left",
                           "aggregate": SOME}
    rows = []
    made = splitjoin.query(r.schema, s.schema, **how)
    with splitjoin.open(made, device=SimDevice(**SHAPE), select=["ts"]) as session:
        for at in range(5):
            session.push_r(r.slice(at, 1))
            session.push_s(s.slice(at, 1))
            session.heartbeat(r["ts"][at].as_py() + (100_000 if at in (1, 3) else 0))
            rows += session.poll().to_pylist()
        rows += session.flush().to_pylist()
    assert rows == splitjoin.join(r, s, select=["ts"], device="golden", **how).to_pylist()


def test_no_pairs_and_few_records_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session on a circuit finds no pairs, and a snapshot finds those of undecided base tuples on the CPU."""
    made = query(R, S, SOME, window="RANGE 6")
    items = []
    accept = CircuitSession._accept

    def counted(self: Any, words: Words) -> None:
        items.append(len(words))
        accept(self, words)

    monkeypatch.setattr(CircuitSession, "_accept", counted)
    with splitjoin.open(made, device=SimDevice(**SHAPE), select=["ts"]) as session:
        session.push_r(R)
        session.push_s(S)
        partial = session.poll().to_pylist()
        snapshot = session.snapshot()
        rest = session.flush().to_pylist()
    with SimDevice(**SHAPE).open(made) as opened:
        assert isinstance(opened, CircuitSession)
        beats = opened.config.beats
    assert sum(items) == len(R) * (beats + 1) + 2  # and an END of a barrier, and of the flush
    assert partial
    assert rest
    with splitjoin.open(made, device="golden", select=["ts"]) as other:
        other.restore(snapshot)
        assert other.flush().to_pylist() == rest
