"""ESJ's cascade as a circuit: golden's pairs with any block and threshold, and the imbalance that blocks cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from splitjoin.base.errors import DeviceError, UnsupportedError
from splitjoin.engines.arrival import arrivals
from splitjoin_hw.baseline import handshake
from splitjoin_sim.pysim import PysimDevice, PysimTransport

from ..support.conformance import conforms
from ..support.links import SlowLink, plant
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario

NAMED = {scenario.name: scenario for scenario in SCENARIOS}
FULL = Scenario("full", NAMED["all-match"].r.slice(0, 14), NAMED["all-match"].s.slice(0, 14), "TRUE", "ROWS 8", 0)
SHORT = Scenario("short", FULL.r, FULL.s, "TRUE", "ROWS 1", 0)


def cascade(**options: Any) -> PysimDevice:
    return PysimDevice(architecture="cascade", **options)


@pytest.mark.parametrize(("scenario", "capacity", "block"), [at_length(FULL, 2, 2), at_length(SHORT, 16, 4)])
def test_slow_links_and_full_windows(scenario: Scenario, capacity: int, block: int,
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples that differ by less than the threshold still go on where a core is full, or an EXPIRE waits for them."""
    monkeypatch.setattr(handshake, "Link", SlowLink)
    conforms(cascade(cores=4, capacity=capacity, stall_out=0.5, block=block, threshold=block), scenario)


def loads(monkeypatch: pytest.MonkeyPatch, block: int, threshold: int) -> np.ndarray:
    """The number of R's tuples in each core, (cycles, cores), while windows of 24 tuples go through three cores."""
    found: list[list[int]] = []

    async def sampling_sink(self: PysimTransport, ctx: Any) -> None:
        port, cycle = self._top.o, 0
        counts = [core.load[0] for core in self._top.cores]
        ctx.set(port.ready, 1)
        while True:
            _, _, valid, payload, *now = await ctx.tick().sample(port.valid, port.payload, *counts)
            found.append(now)
            cycle += 1
            if valid:
                self._items.append((payload, cycle - 1))
                self._moved = cycle

    monkeypatch.setattr(PysimTransport, "_sink", sampling_sink)
    scenario = Scenario("loads", NAMED["band-rows-3"].r.slice(0, 60), NAMED["band-rows-3"].s.slice(0, 60),
                        "r.x > s.a + 1000", "ROWS 24", 0)
    query = scenario.query("none")
    with cascade(cores=3, capacity=32, block=block, threshold=threshold).open(query) as session:
        session.push(arrivals(query, scenario.r, scenario.s))
        session.counters()  # some cycles in which all tuples that must go on do so
        for _ in range(3):
            session.counters()
    return np.array(found)


def imbalance(found: np.ndarray) -> float:
    """ESJ's imbalance factor, (ω_max − ω_avg) / ω_avg, on average while windows are full."""
    full = found[found.sum(axis=1) >= 23]
    return float(np.mean(full.max(axis=1) / full.mean(axis=1) - 1))


@pytest.mark.long  # bench/blocks.py has the figures
def test_blocks_cost_imbalance(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {block: loads(monkeypatch, block, block) for block in (1, 4)}
    for block, counts in found.items():
        assert max(-np.diff(counts[-1])) < block  # at rest no core has so many more than the next
    factors = {block: imbalance(counts) for block, counts in found.items()}
    assert factors[1] < factors[4]


FAULTS = {"the threshold is off by one": ("region.unsent >= occupied + config.threshold",
                                          "region.unsent > occupied + config.threshold"),
          "an ACK of a tuple too few": ("Mux(does['tell_s'], s.left, received + 1)",
                                        "Mux(does['tell_s'], s.left, received)"),
          "a block does not hold up R": ("r.oldest_valid & ~self.last & self.o_r.ready & (received == 0)",
                                         "r.oldest_valid & ~self.last & self.o_r.ready")}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "threshold" in fault:
        plant(monkeypatch, handshake, *FAULTS[fault], name="_sends")
        with pytest.raises(AssertionError):
            assert max(-np.diff(loads(monkeypatch, 4, 4)[-1])) < 4
        return
    plant(monkeypatch, handshake.HandshakeCore, *FAULTS[fault])
    monkeypatch.setattr(handshake, "Link", SlowLink)

    def conforms_with_every_seed() -> None:
        for seed in range(4):
            conforms(cascade(cores=3, capacity=16, block=3, threshold=3, seed=seed, stall_out=0.3 * (seed % 2),
                             patience=1500), FULL)

    with pytest.raises((AssertionError, DeviceError, IndexError)):
        conforms_with_every_seed()


@pytest.mark.parametrize(("options", "message"), [
    ({"architecture": "handshake", "block": 2}, "block of handshake join must be 1, as tuples go one at a time, not 2"),
    ({"architecture": "cascade", "block": 4, "threshold": 2}, "threshold with blocks of 4 must be 4 or more"),
    ({"architecture": "cascade", "capacity": 16, "threshold": 32}, "threshold with a capacity of 16 must be 16")])
def test_wrong_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        PysimDevice(**options)
