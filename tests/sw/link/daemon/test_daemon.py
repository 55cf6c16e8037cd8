"""Queries through the daemon: the golden answers, errors as they were, waiting, coming back."""

from __future__ import annotations

import os
import pickle
import socket as sockets
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import CapacityError, DeviceError, InputError, SplitJoinError, WindowOverflow
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.device import ITEM, Device, Items, Session
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.link.daemon import client, protocol, server as servers
from splitjoin.link.daemon.client import DaemonDevice, DaemonSession, daemon_addresses, daemon_status, stop_daemon
from splitjoin.link.daemon.server import Server
from splitjoin_sim import SimDevice

from ....support.conformance import assert_conforms, run
from ....support.lagging import LaggingDevice
from ....support.patience import SOON, until
from ....support.scenarios import SCENARIOS, Scenario, arrivals_of
from .conftest import counts, serving, states

NAMED = {scenario.name: scenario for scenario in SCENARIOS}
BAND = NAMED["band-rows-17"]


@pytest.mark.parametrize(("name", "order"), [
    ("band-rows-and-range", "none"), ("string-literal", "total"), ("date-and-timestamp", "outer(3)"),
    ("float-band-special", "inner(2)"), ("one-sided", "total"), ("clocks", "outer(3)"), ("all-match", "inner(2)"),
    ("empty-both", "none")])
def test_answers_are_golden(golden: DaemonDevice, name: str, order: str) -> None:
    scenario = NAMED[name]
    query = scenario.query(order)
    expected = run(GoldenDevice(cores=2), query, scenario.r, scenario.s)
    assert_conforms(run(golden, query, scenario.r, scenario.s, (0, 5, 40)), expected, order)


def test_a_simulated_circuit(tmp_path: Path) -> None:
    query = BAND.query()
    local = SimDevice(cores=2, capacity=32, region_counters=True)
    with serving(tmp_path, [local, local]) as server:
        remote = DaemonDevice(socket=server.path, device="sim", address="sim:1")
        with local.open(query) as ours, remote.open(query) as theirs:
            for session in (ours, theirs):
                session.push(arrivals_of(BAND))
            assert_conforms(theirs.settle(), ours.settle(), "total")
            assert not len(theirs.flush()) and not len(ours.flush())
            assert theirs.row_limit == ours.row_limit
            assert isinstance(theirs, DaemonSession) and theirs.address == "sim:1"
            a, b, c, d = ours.latencies(), theirs.latencies(), ours.region_counters(), theirs.region_counters()
            assert a is not None and b is not None and c is not None and d is not None
            assert a.tolist() == b.tolist()
            assert {name: v.tolist() for name, v in c.items()} == {name: v.tolist() for name, v in d.items()}
            assert {**ours.counters(), "cycles": 0} == {**theirs.counters(), "cycles": 0}
        with pytest.raises(splitjoin.CapacityError, match="capacity"):
            remote.open(Query.make(query.r, query.s, on="r.x = s.a", window="ROWS 1000"))
        assert states(server) == {"sim:0": "free", "sim:1": "free"}
        assert counts(server, 1)["pushes"] == 1


def test_the_counters_of_the_daemon(tmp_path: Path) -> None:
    with serving(tmp_path, [GoldenDevice()]) as server:
        items = run(DaemonDevice(socket=server.path), BAND.query(), BAND.r, BAND.s, (30,))
        found = daemon_status(server.path)
        assert (found["pid"], found["health"], found["waiting"]) == (os.getpid(), "ok", 0)
        n = found["devices"][0]["counters"]
        assert (n["leases"], n["sessions"], n["pushes"], n["tuples"], n["items"]) == (1, 1, 2, 120, len(items))
        assert n["seconds"] > 0


def test_masks_counters_and_plans_go_over_the_wire(golden: DaemonDevice) -> None:
    with golden.open(BAND.query()) as theirs, GoldenDevice(cores=2).open(BAND.query()) as ours:
        for session in (ours, theirs):
            session.mask([1])
            session.push(arrivals_of(BAND))
        assert (theirs.poll() == ours.poll()).all()
        assert (theirs.counters(), theirs.latencies(), theirs.region_counters(), theirs.plan()) == (
            ours.counters(), None, None, "")
        for cores in ([2], [True], ["1"]):
            with pytest.raises(DeviceError, match="masked cores must be numbers"):
                theirs.mask(cores)  # type: ignore[arg-type]  # the mistake
        theirs.mask([])


def test_the_registry_the_api_and_streams(golden: DaemonDevice) -> None:
    made = device("daemon", socket=golden.socket, wait=3, holder="a test")
    assert isinstance(made, DaemonDevice)
    assert pickle.loads(pickle.dumps(made)) == made
    found = splitjoin.join(BAND.r, BAND.s, on=BAND.on, window=BAND.window, device=made)
    assert found == splitjoin.join(BAND.r, BAND.s, on=BAND.on, window=BAND.window, device="cpu")
    query = splitjoin.query(BAND.r.schema, BAND.s.schema, on="r.x = s.a", window="RANGE 9", time="ts", order="outer(2)")
    with splitjoin.open(query, device=made) as session, splitjoin.open(query, device="cpu") as other:
        for s in (session, other):
            s.push_r(BAND.r)
            s.push_s(BAND.s)
        session.restart()
        assert session.flush() == other.flush()


def test_long_slices_and_answers_go_in_parts(tmp_path: Path) -> None:
    query = BAND.query()
    with (serving(tmp_path, [GoldenDevice()], max_items=7) as server,
          DaemonDevice(socket=server.path).open(query) as session):
        session.max_tuples, session.max_bytes = 50, 1500
        session.push(arrivals_of(BAND))
        items = session.poll()
        assert len(items) > 7
        assert_conforms(np.concatenate([items, session.flush()]), run(GoldenDevice(), query, BAND.r, BAND.s), "total")


def test_a_tuple_that_fits_no_message_is_refused(golden: DaemonDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_PAYLOAD_BYTES", 100)
    with golden.open(BAND.query()) as session:
        session.max_bytes = 10
        with pytest.raises(CapacityError, match="a tuple must have at most 100 byte"):
            session.push(arrivals_of(BAND))


@dataclass(frozen=True)
class Failing(Device):
    """Raises ``error`` when it is opened, or else when something is pushed."""

    error: BaseException
    opens: bool = True
    name: ClassVar[str] = "failing"

    def open(self, query: Query) -> Session:
        if not self.opens:
            raise self.error
        return FailingSession(self.error)


class FailingSession(Session):
    def __init__(self, error: BaseException):
        self._error = error

    def push(self, arrivals: Arrivals) -> None:
        raise self._error

    def poll(self) -> Items:
        return np.empty(0, ITEM)

    flush = poll


@pytest.mark.parametrize("opens", [True, False])
@pytest.mark.parametrize(("error", "text"), [
    (WindowOverflow("s", 7, 64), "the window of stream s must hold at most 64 tuples"),
    (InputError("event time must not decrease"), "^event time must not decrease$"),
    (DeviceError("the cable is out"), "^the cable is out$"),
    (ZeroDivisionError("oh"), "the device failing:0 of the daemon failed: ZeroDivisionError: oh; open a new session"),
], ids=["overflow", "input", "device", "fault"])
def test_errors_are_those_of_the_device(tmp_path: Path, opens: bool, error: Exception, text: str) -> None:
    kind = type(error) if isinstance(error, SplitJoinError) else DeviceError
    with serving(tmp_path, [Failing(error, opens)]) as server:
        remote = DaemonDevice(socket=server.path, wait=0)
        if opens:
            with remote.open(BAND.query()) as session:
                with pytest.raises(kind, match=text):
                    session.push(arrivals_of(BAND))
                failed = server.status()["health"] != "ok"
                session.poll()
                assert server.status()["health"] == "ok"
        else:
            with pytest.raises(kind, match=text):
                remote.open(BAND.query())
            failed = server.status()["health"] != "ok"
        assert failed == (kind is DeviceError)
        assert states(server) == {"failing:0": "free"}
        assert counts(server)["failures"] == 1


def test_a_session_that_is_closed_takes_nothing(golden: DaemonDevice) -> None:
    session = golden.open(BAND.query())
    session.close()
    session.close()
    with pytest.raises(DeviceError, match="the session of the daemon is closed or detached; open a new one"):
        session.poll()


def test_the_second_client_waits(tmp_path: Path) -> None:
    with serving(tmp_path, [GoldenDevice()]) as server:
        session = DaemonDevice(socket=server.path, holder="task 1").open(BAND.query())
        with pytest.raises(DeviceError, match=rf"must become free within 0 s, but all are leased: golden:0 by process "
                                              rf"{os.getpid()} \(task 1\) for \d+ s; close sessions, wait longer"):
            DaemonDevice(socket=server.path, wait=0).open(BAND.query())
        found: list[Items] = []
        second = DaemonDevice(socket=server.path, wait=SOON)
        thread = Thread(target=lambda: found.append(run(second, BAND.query(), BAND.r, BAND.s)))
        thread.start()
        until(lambda: daemon_status(server.path)["waiting"] == 1)
        session.close()
        thread.join()
        assert (found[0] == run(GoldenDevice(), BAND.query(), BAND.r, BAND.s)).all()
        assert counts(server)["waits"] == 1


def test_a_client_that_goes_away_while_it_waits_leaves_the_queue(tmp_path: Path) -> None:
    with serving(tmp_path, [GoldenDevice()]) as server:
        with DaemonDevice(socket=server.path).open(BAND.query()):
            connection = client.ClientConnection(server.path)
            protocol.send(connection._socket, {"op": "open", "query": client.encode_query(BAND.query()), "wait": SOON})
            until(lambda: server.status()["waiting"] == 1)
            connection.close()
            until(lambda: server.status()["waiting"] == 0)
        assert states(server) == {"golden:0": "free"}


def halves(scenario: Scenario) -> tuple[Arrivals, Arrivals]:
    whole = arrivals(scenario.query(), scenario.r, scenario.s)
    first, second = whole.split(len(whole) // 2)
    assert second is not None
    return first, second


def test_a_session_goes_on_after_its_client_came_back(tmp_path: Path) -> None:
    query, (first, second) = BAND.query(), halves(BAND)
    expected = run(GoldenDevice(), query, BAND.r, BAND.s)
    with serving(tmp_path, [GoldenDevice(), GoldenDevice()]) as server:
        remote = DaemonDevice(socket=server.path)
        session = remote.open(query, key="q/0")
        session.push(first)
        found = [session.poll()]
        session.detach("version 1")
        with pytest.raises(DeviceError, match="closed or detached"):
            session.push(second)
        assert states(server) == {"golden:0": "detached", "golden:1": "free"}
        again = remote.attach(query, "q/0", "version 1")
        assert again is not None
        assert (again.key, again.address) == ("q/0", "golden:0")
        again.push(second)
        found.append(again.flush())
        again.close()
        assert (np.concatenate(found) == expected).all()
        assert counts(server)["attached"] == 1
        assert remote.attach(query, "q/0", "version 1") is None


def test_without_a_key_or_a_daemon(tmp_path: Path) -> None:
    with serving(tmp_path, [GoldenDevice()]) as server:
        remote = DaemonDevice(socket=server.path, wait=0)
        with remote.open(BAND.query()) as session, pytest.raises(DeviceError, match="a session must have a key"):
            session.detach("1")
        remote.open(BAND.query(), key="k").detach("1")
        with remote.open(BAND.query()):  # takes the device of the detached one
            assert counts(server)["taken"] == 1
    assert remote.attach(BAND.query(), "k", "1") is None
    with pytest.raises(DeviceError, match=r"a daemon must serve .*d\.sock, but none does .*; start one with splitjoin"):
        remote.open(BAND.query())


def test_tables_of_another_schema_are_refused_and_the_session_goes_on(golden: DaemonDevice) -> None:
    with golden.open(BAND.query()) as session:
        wrong = pa.table({"x": ["a"], "y": [1]})
        with pytest.raises(InputError, match=r"arrivals must have one column r\.x of type int32"):
            session.push(Arrivals(np.zeros(1, np.uint8), None, wrong, BAND.s.slice(0, 0)))
        session.push(arrivals_of(BAND))
        assert (session.flush() == run(GoldenDevice(), BAND.query(), BAND.r, BAND.s)).all()


def test_other_users_are_refused(golden: DaemonDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(socket: sockets.socket) -> int:
        raise DeviceError("daemon and client must be of one user")

    with monkeypatch.context() as patch:
        patch.setattr(servers, "check_peer", refuse)
        with pytest.raises(DeviceError, match="of one user"):
            golden.open(BAND.query())
    with monkeypatch.context() as patch:
        patch.setattr(client, "check_peer", refuse)
        with pytest.raises(DeviceError, match="of one user"):
            golden.open(BAND.query())
    golden.open(BAND.query()).close()


def test_too_many_connections_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path, [GoldenDevice()], max_connections=1) as server:
        with DaemonDevice(socket=server.path).open(BAND.query()), pytest.raises(
                DeviceError, match="the daemon must have at most 1 connections"):
            daemon_status(server.path)
        until(lambda: server.status()["connections"] == 0)
        assert daemon_status(server.path)["health"] == "ok"


def test_stop(tmp_path: Path) -> None:
    with serving(tmp_path, [GoldenDevice()]) as server:
        session = DaemonDevice(socket=server.path).open(BAND.query())
        stop_daemon(server.path)
        assert not server.path.exists()
        with pytest.raises(DeviceError, match=r"the daemon at .* must answer, but did not .*; open a new session"):
            session.push(arrivals_of(BAND))
        with pytest.raises(DeviceError, match=r"the daemon at .* must answer, but did not"):
            session.poll()
        session.close()


class Stuck(Device):
    """Its sessions' `push` returns when a test says so."""

    name: ClassVar[str] = "stuck"

    def __init__(self) -> None:
        self.began, self.may_end = Event(), Event()

    def open(self, query: Query) -> Session:
        return StuckSession(self)


class StuckSession(FailingSession):
    def __init__(self, device: Stuck):
        self._device = device

    def push(self, arrivals: Arrivals) -> None:
        self._device.began.set()
        assert self._device.may_end.wait(SOON)


def test_the_end_does_not_wait_for_a_device_at_work(tmp_path: Path) -> None:
    stuck = Stuck()
    server = Server([stuck], tmp_path / "d.sock", stop_seconds=0.1)
    clean: list[bool] = []
    serve = Thread(target=lambda: clean.append(server.serve()))
    serve.start()
    session = DaemonDevice(socket=server.path).open(BAND.query())
    push = Thread(target=session.push, args=(arrivals_of(BAND),))
    push.start()
    assert stuck.began.wait(SOON)
    server.stop()
    serve.join(SOON)
    assert clean == [False]
    with serving(tmp_path, [GoldenDevice()]):  # its place is free
        pass
    stuck.may_end.set()
    push.join(SOON)  # the reply still comes
    assert not push.is_alive()
    session.close()


def test_addresses(tmp_path: Path) -> None:
    with serving(tmp_path, [GoldenDevice(), LaggingDevice(), GoldenDevice()]) as server:
        assert daemon_addresses(server.path) == ["golden:0", "lagging:0", "golden:1"]
        assert daemon_addresses(server.path, "golden") == ["golden:0", "golden:1"]
        for address in ("golden:1", "lagging:0"):
            with DaemonDevice(socket=server.path, address=address).open(BAND.query()) as session:
                assert session.address == address


@pytest.mark.parametrize(("options", "message"), [
    ({"socket": 3}, "socket must be a path, or None for the default one, not 3"),
    ({"device": 3}, "device must be a text, or None for any, not 3"),
    ({"address": b""}, "address must be a text, or None for any, not b''"),
    ({"wait": -1}, "wait must be from 0 to 86400 seconds, not -1"),
    ({"wait": float("nan")}, "wait must be from 0 to 86400 seconds, not nan"),
    ({"wait": True}, "wait must be from 0 to 86400 seconds, not True"),
    ({"holder": None}, "holder must be a text, not None"),
])
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DeviceError, match=f"^{message}$"):
        DaemonDevice(**options)
