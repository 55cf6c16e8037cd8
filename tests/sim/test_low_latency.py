"""Low-latency handshake join as a circuit: golden's pairs, each met once, under stalls and slow links."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.sim import Simulator

from splitjoin.base.errors import DeviceError, UnsupportedError
from splitjoin.circuit.wire import ItemKind
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.golden import GoldenDevice
from splitjoin_hw.baseline import handshake, low_latency
from splitjoin_hw.baseline.ends import CoreMessage
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, conforms, slices
from ..support.links import SlowLink, plant
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario

NAME = "low-latency-handshake"
NAMED = {scenario.name: scenario for scenario in SCENARIOS}
FULL = Scenario("full", NAMED["all-match"].r.slice(0, 24), NAMED["all-match"].s.slice(0, 24), "TRUE", "ROWS 8", 0)
FEW = Scenario("few", FULL.r.slice(0, 10), FULL.s.slice(0, 10), "TRUE", "ROWS 4", 0)
SHORT = Scenario("short", FEW.r, FEW.s, "TRUE", "ROWS 1", 0)


@pytest.mark.parametrize(("scenario", "stall_out"), [
    at_length(SHORT, 0.5), (FEW, 0.0), at_length(FULL, 0.5)], ids=str)  # faults are planted in the second
def test_slow_links_and_full_windows(scenario: Scenario, stall_out: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "Link", SlowLink)
    conforms(PysimDevice(cores=4, capacity=2, architecture=NAME, stall_out=stall_out, seed=1), scenario)


def test_settling() -> None:
    """All pairs of the tuples so far have met when an END has passed the chain, and later tuples go on."""
    query = FULL.query("none")
    with PysimDevice(cores=2, capacity=8, architecture=NAME).open(query) as circuit, GoldenDevice().open(
            query) as golden:
        for part in slices(arrivals(query, FULL.r, FULL.s), [7, 20]):
            circuit.push(part)
            golden.push(part)
            assert_conforms(circuit.settle(), golden.settle(), "none")


FAULTS = {"a pair in flight is lost": ("stored_left & (Cat(result.probe[:bits], 0) >= self.index)", "0"),
          "a pair in flight is met twice": ("stored_left & (Cat(result.probe[:bits], 0) >= self.index)", "1"),
          "all stored tuples are seen": ("Mux(passed_home, stored_before, r.end)", "r.end"),
          "off by one": ("Cat(before[:bits], 0) > self.index", "Cat(before[:bits], 0) >= self.index"),
          "no ACK rule": ("does['ack']", "f.length != 0")}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, low_latency.LowLatencyCore, *FAULTS[fault])
    monkeypatch.setattr(handshake, "Link", SlowLink)
    with pytest.raises((AssertionError, DeviceError, IndexError)):
        conforms(PysimDevice(cores=4, capacity=2, architecture=NAME, seed=2, patience=1500), FEW)


def late_pairs(side: str) -> int:
    """The number of pairs that the far core of stream ``side`` finds where EXPIRE and two tuples that must not meet a
    tuple of that stream have come long before it, which a slow link may hold up that long.
    """
    config = PysimDevice(cores=2, capacity=2, architecture=NAME).configuration(FEW.query("none"))
    core, found = low_latency.LowLatencyCore(config), 0
    early, late = (core.i_r, core.i_s) if side == "s" else (core.i_s, core.i_r)

    async def send(ctx: Any, port: Any, cycle: int, kinds: list[CoreMessage]) -> None:
        await ctx.tick().repeat(cycle)
        for kind in kinds:
            ctx.set(port.payload.kind, kind)
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)

    async def others(ctx: Any) -> None:
        for port, value in ((core.first, side == "s"), (core.last, side == "r"), (core.index, side == "r")):
            ctx.set(port, value)
        for port in (core.o_r, core.o_s, *core.o):
            ctx.set(port.ready, 1)
        await send(ctx, early, 1, [CoreMessage.EXPIRE, CoreMessage.TUPLE, CoreMessage.TUPLE])

    async def held_up(ctx: Any) -> None:
        await send(ctx, late, 30, [CoreMessage.TUPLE])

    async def results(ctx: Any) -> None:
        nonlocal found
        for _ in range(80):
            await ctx.tick()
            found += sum(ctx.get(port.valid) and ctx.get(port.payload.kind) == ItemKind.PAIR for port in core.o)

    simulator = Simulator(core)
    simulator.add_clock(1e-6)
    simulator.add_testbench(others, background=True)
    simulator.add_testbench(held_up, background=True)
    simulator.add_testbench(results)
    simulator.run()
    return found


WAITING = {"s": ("~self.first | (came['s'] != went['s'])", "Value.cast(1)"),
           "r": ("~self.last | (came['r'] != went['r'])", "Value.cast(1)")}


@pytest.mark.parametrize("side", WAITING)
def test_expiry_waits_for_its_tuple_at_the_far_end(side: str) -> None:
    assert late_pairs(side) == 0


@pytest.mark.long
@pytest.mark.parametrize("side", WAITING)
def test_expiry_that_does_not_wait_is_found(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, low_latency.LowLatencyCore, *WAITING[side])
    assert late_pairs(side) > 0


@pytest.mark.parametrize(("options", "message"), [
    ({"cores": 3}, "cores of low-latency handshake join must be a power of two"),
    ({"probes": 2}, "probes of low-latency handshake join must be 1"),
    ({"queue": 16}, "queue of low-latency handshake join must be 0, not 16")])
def test_wrong_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        PysimDevice(architecture=NAME, **options)
