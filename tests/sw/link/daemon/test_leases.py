"""Leases: each device has one client, the first who waits is served first, and detached sessions wait for theirs."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from splitjoin.base.errors import DeviceError
from splitjoin.engines.device import Session
from splitjoin.engines.golden import GoldenDevice
from splitjoin.link.daemon.leases import ClientDisconnected, Holder, Lease, LeasedDevice, Leases, Wanted

from ....support.patience import SOON, until

ME, OTHER = Holder(1), Holder(2, "task 7")
ANY = Wanted()


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Closing(Session):
    """A session of which only `close` matters."""

    def __init__(self, fails: bool = False) -> None:
        self.closed, self._fails = 0, fails

    def push(self, arrivals: Any) -> None:
        raise NotImplementedError

    poll = flush = push  # type: ignore[assignment]  # not called either

    def close(self) -> None:
        self.closed += 1
        if self._fails:
            raise ValueError("broken")


def make(n: int = 1, **options: Any) -> tuple[Leases, Clock]:
    clock = Clock()
    units = [LeasedDevice(f"golden:{i}", GoldenDevice()) for i in range(n)]
    return Leases(units, **{"idle_timeout": 10.0, "clock": clock} | options), clock


def taken(leases: Leases, key: str | None = None, wanted: Wanted = ANY, query: object = "q") -> Lease:
    lease = leases.acquire(wanted, ME, wait=0, key=key)
    lease.session, lease.query = Closing(), query
    return lease


def state(leases: Leases) -> list[str]:
    return [unit["state"] for unit in leases.status()["devices"]]


def waiting(leases: Leases, run: Callable[[], Any]) -> tuple[Thread, list[Any]]:
    """``run`` in a thread, once it waits; its result or error will be in the list."""
    found: list[Any] = []

    def caught() -> None:
        try:
            found.append(run())
        except Exception as error:
            found.append(error)

    n = leases.status()["waiting"]
    thread = Thread(target=caught)
    thread.start()
    until(lambda: leases.status()["waiting"] > n)
    return thread, found


def test_each_device_is_leased_once() -> None:
    leases, _ = make(2)
    a, b = taken(leases), taken(leases)
    assert [lease.unit.address for lease in (a, b)] == ["golden:0", "golden:1"]
    with pytest.raises(DeviceError, match=r"a device of the daemon must become free within 0 s, but all are leased: "
                                          r"golden:0 by process 1 for 0 s, golden:1 by process 1 for 0 s; close"):
        taken(leases)
    assert leases.status()["waiting"] == 0
    leases.release(a)
    assert taken(leases).unit is a.unit
    assert state(leases) == ["leased", "leased"]


def test_one_device_by_its_address_or_name() -> None:
    leases, _ = make(2)
    assert taken(leases, wanted=Wanted(address="golden:1")).unit.address == "golden:1"
    with pytest.raises(DeviceError, match="a golden:1 of the daemon must become free"):
        taken(leases, wanted=Wanted(address="golden:1"))
    for wanted in (Wanted(address="golden:2"), Wanted("sim"), Wanted("sim", "golden:0")):
        with pytest.raises(DeviceError, match=f"the daemon has no {wanted}; its devices are golden:0, golden:1"):
            taken(leases, wanted=wanted)
    assert taken(leases, wanted=Wanted("golden")).unit.address == "golden:0"


def test_who_waits_first_is_served_first() -> None:
    leases, _ = make()
    lease = taken(leases)
    first, found = waiting(leases, lambda: leases.acquire(ANY, ME, wait=SOON))
    second, later = waiting(leases, lambda: leases.acquire(ANY, OTHER, wait=SOON))
    leases.release(lease)
    first.join()
    assert found[0].holder is ME
    assert later == []
    leases.release(found[0])
    second.join()
    assert later[0].holder is OTHER
    unit = leases.status()["devices"][0]
    assert (unit["counters"]["leases"], unit["counters"]["waits"]) == (3, 2)
    assert unit["session"]["holder"] == "process 2 (task 7)"


def test_who_waits_for_another_device_is_not_in_the_way() -> None:
    leases, _ = make(2)
    a, b = taken(leases), taken(leases)
    first, found = waiting(leases, lambda: leases.acquire(Wanted(address="golden:0"), ME, wait=SOON))
    second, later = waiting(leases, lambda: leases.acquire(ANY, ME, wait=SOON))
    leases.release(b)
    second.join()
    assert later[0].unit is b.unit
    leases.release(a)
    first.join()
    assert found[0].unit is a.unit


def test_who_is_gone_waits_no_more() -> None:
    leases, _ = make()
    taken(leases)
    here = [True]
    thread, found = waiting(leases, lambda: leases.acquire(ANY, ME, wait=SOON, alive=lambda: here[0]))
    here.clear()
    here.append(False)
    thread.join()
    assert isinstance(found[0], ClientDisconnected)
    assert leases.status()["waiting"] == 0


def test_who_waits_when_the_daemon_stops() -> None:
    leases, _ = make()
    taken(leases)
    thread, found = waiting(leases, lambda: leases.acquire(ANY, ME, wait=SOON))
    leases.stop()
    thread.join()
    assert "the daemon is about to end" in str(found[0])


def test_a_detached_session_is_found_again() -> None:
    leases, clock = make()
    lease = taken(leases, "k")
    session = lease.session
    leases.detach(lease, "7")
    clock.now += 9
    leases.expire()
    assert leases.status()["devices"][0]["session"] == {"holder": "process 1", "key": "k", "token": "7", "seconds": 9.0}
    found = leases.attach(ANY, OTHER, key="k", token="7", query="q")
    assert found is not None
    assert (found.session, found.holder, found.token) == (session, OTHER, None)
    assert state(leases) == ["leased"]
    assert leases.attach(ANY, OTHER, key="k", token="7", query="q") is None  # someone has it
    leases.detach(found, "8")
    assert leases.attach(ANY, ME, key="other", token="8", query="q") is None
    assert leases.attach(Wanted("sim"), ME, key="k", token="8", query="q") is None
    assert state(leases) == ["detached"]


@pytest.mark.parametrize("changed", [{"token": "6"}, {"query": "p"}], ids=str)
def test_a_session_in_another_state_or_of_another_query_ends(changed: dict[str, str]) -> None:
    leases, _ = make()
    lease = taken(leases, "k")
    session = lease.session
    leases.detach(lease, "7")
    assert leases.attach(ANY, ME, **{"key": "k", "token": "7", "query": "q"} | changed) is None  # type: ignore[arg-type]  # texts
    assert isinstance(session, Closing)
    assert session.closed == 1
    assert state(leases) == ["free"]
    assert leases.status()["devices"][0]["counters"]["discarded"] == 1


def test_idle_sessions_end() -> None:
    leases, clock = make(2)
    lease, kept = taken(leases, "k"), taken(leases)
    session = lease.session
    leases.detach(lease, "7")
    clock.now += 9.5
    leases.expire()
    assert state(leases) == ["detached", "leased"]
    clock.now += 0.5
    leases.expire()
    assert state(leases) == ["free", "leased"]
    assert isinstance(session, Closing) and isinstance(kept.session, Closing)
    assert (session.closed, kept.session.closed) == (1, 0)
    assert leases.status()["devices"][0]["counters"]["expired"] == 1


def test_the_longest_detached_session_makes_room() -> None:
    leases, clock = make(3)
    found = [taken(leases, str(i)) for i in range(3)]
    for i in (1, 0, 2):
        leases.detach(found[i], "t")
        clock.now += 1
    assert taken(leases).unit.address == "golden:1"
    assert taken(leases).unit.address == "golden:0"
    assert state(leases) == ["leased", "leased", "detached"]
    assert [unit["counters"]["taken"] for unit in leases.status()["devices"]] == [1, 1, 0]


def test_one_who_waits_gets_the_device_of_a_session_that_is_detached() -> None:
    leases, _ = make()
    lease = taken(leases, "k")
    thread, found = waiting(leases, lambda: leases.acquire(ANY, OTHER, wait=SOON))
    leases.detach(lease, "7")
    thread.join()
    assert found[0].holder is OTHER
    assert leases.attach(ANY, ME, key="k", token="7", query="q") is None


def test_a_new_session_of_a_key_replaces_the_detached_one() -> None:
    leases, _ = make(2)
    lease = taken(leases, "k")
    leases.detach(lease, "7")
    again = taken(leases, "k", Wanted(address="golden:1"))
    assert state(leases) == ["free", "leased"]
    other = taken(leases, "k")
    leases.detach(again, "8")
    leases.detach(other, "9")
    assert state(leases) == ["detached", "free"]
    assert leases.attach(ANY, ME, key="k", token="9", query="q") is other


def test_only_sessions_with_a_key_can_be_detached() -> None:
    leases, _ = make()
    with pytest.raises(DeviceError, match="a session must have a key to be detached"):
        leases.detach(taken(leases), "7")
    assert state(leases) == ["leased"]


def test_a_device_that_cannot_close_is_free_and_has_failed() -> None:
    leases, _ = make()
    lease = taken(leases)
    lease.session = Closing(fails=True)
    leases.release(lease)
    unit = leases.status()["devices"][0]
    assert (unit["state"], unit["health"]) == ("free", "failed: ValueError: broken")
