"""Handshake join as a circuit: golden's pairs under random stalls at the ports and on the links between cores."""

from __future__ import annotations

import pytest

from splitjoin.base.errors import DeviceError, OrderError, UnsupportedError, WindowOverflow
from splitjoin_hw.baseline import handshake
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import conforms, run
from ..support.links import SlowLink, plant
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario

NAMED = {scenario.name: scenario for scenario in SCENARIOS}


FULL = Scenario("full", NAMED["all-match"].r.slice(0, 18), NAMED["all-match"].s.slice(0, 18), "TRUE", "ROWS 8", 0)
SHORT = Scenario("short", FULL.r, FULL.s, "TRUE", "ROWS 1", 0)


@pytest.mark.parametrize("cores", [2, at_length(4)])
def test_slow_links(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "Link", SlowLink)
    for scenario in (FULL, SHORT):
        conforms(PysimDevice(cores=cores, capacity=16, architecture="handshake", seed=1), scenario)


@pytest.mark.parametrize("links", [at_length("quick"), "slow"])
def test_full_windows_do_not_block(links: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both windows fill every segment, all pairs match, and the output seldom takes one."""
    if links == "slow":
        monkeypatch.setattr(handshake, "Link", SlowLink)
    conforms(PysimDevice(cores=4, capacity=2, architecture="handshake", stall_out=0.7, seed=3), FULL)


FAULTS = {"no ACK rule": ("(deleting != 0) | does['expire_s']", "does['send_s'] | does['expire_s']"),
          "an expiry that does not wait": ("(kinds['s'] == CoreMessage.EXPIRE) & (r.length != 0)",
                                           "kinds['s'] == CoreMessage.EXPIRE")}


@pytest.mark.parametrize("fault", [fault if "ACK" in fault else at_length(fault) for fault in FAULTS])
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, handshake.HandshakeCore, *FAULTS[fault])
    monkeypatch.setattr(handshake, "Link", SlowLink)
    with pytest.raises((AssertionError, DeviceError, IndexError)):
        conforms(PysimDevice(cores=3, capacity=16, architecture="handshake", seed=2, patience=1500),
                 FULL if "ACK" in fault else SHORT)


@pytest.mark.parametrize(("architecture", "cores", "capacity"), [
    at_length("handshake", 2, 8), at_length("low-latency-handshake", 2, 8), ("kang", 1, 16)])
def test_the_first_tuple_without_room_is_named(architecture: str, cores: int, capacity: int) -> None:
    scenario = NAMED["short-r"]
    query = Scenario("overflow", scenario.r, scenario.s, scenario.on, "RANGE 1000000", 0, "ts").query("none")
    with pytest.raises(WindowOverflow) as caught:
        run(PysimDevice(cores=cores, capacity=capacity, architecture=architecture, patience=1500), query, scenario.r,
            scenario.s)
    assert (caught.value.stream, caught.value.row) == ("s", 16)


def test_what_it_refuses() -> None:
    query = NAMED["band-rows-3"].query("none")
    device = PysimDevice(cores=2, capacity=16, architecture="handshake")
    with pytest.raises(OrderError, match="handshake join keeps the order none, not total"):
        device.open(NAMED["band-rows-3"].query("total"))
    with device.open(query) as session:
        with pytest.raises(UnsupportedError, match="cannot settle before; use flush"):
            session.settle()
        with pytest.raises(UnsupportedError, match="has no tuples of its own, so none can be masked"):
            session.mask([1])
    for name, value in (("queue", 16), ("root_width", 2), ("row_bits", 16), ("core", "hash"), ("tables", True)):
        with pytest.raises(UnsupportedError, match=f"{name} of handshake join must be"):
            PysimDevice(architecture="handshake", **{name: value})
