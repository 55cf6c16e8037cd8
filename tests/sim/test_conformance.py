"""Every circuit device gives the golden model's answer to every scenario, under random stalls at both ports."""

from __future__ import annotations

import pytest
from splitjoin.circuit.driver import CircuitDevice
from splitjoin.golden import GoldenDevice
from splitjoin.sim.device import SimDevice
from splitjoin.sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, run
from ..support.scenarios import SCENARIOS, Scenario

ORDERS = ("total", "none", "outer(1)", "inner(3)", "outer(3)", "inner(1)")
STALLS = {"stall_in": 0.3, "stall_out": 0.3}
#: Scenarios that between them have ROWS, RANGE, both, and different windows per stream: run at every number of cores.
EVERY_WINDOW = [s for s in SCENARIOS if s.name in ("band-rows-17", "band-range", "band-rows-and-range")]


def conforms(device: CircuitDevice, scenario: Scenario, order: str) -> None:
    query = scenario.query(order)
    cuts = [len(scenario.r) // 2, len(scenario.r)]
    assert_conforms(run(device, query, scenario.r, scenario.s, cuts),
                    run(GoldenDevice(cores=device.cores), query, scenario.r, scenario.s), order)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_scenarios_on_pysim(scenario: Scenario) -> None:
    n = SCENARIOS.index(scenario)  # one of the orders each: it is slow
    device = PysimDevice(cores=n % 3 + 1, capacity=64, fanout=3, lanes=n % 2 + 1, probes=n % 3 + 1, seed=n, **STALLS)
    conforms(device, scenario, ORDERS[n % len(ORDERS)])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_scenarios_on_sim(scenario: Scenario) -> None:
    for seed, order in enumerate(ORDERS):
        conforms(SimDevice(cores=3, capacity=64, fanin=3, lanes=2, probes=4, seed=seed, **STALLS), scenario, order)


@pytest.mark.parametrize(("make", "cores"), [*((SimDevice, k) for k in (1, 2, 4, 8, 16)),
                                            *((PysimDevice, k) for k in (1, 2, 4, 8))])
def test_the_number_of_cores_does_not_change_the_answer(make: type[CircuitDevice], cores: int) -> None:
    """The same items in total order from 1 to 16 cores, for ROWS and RANGE."""
    assert EVERY_WINDOW
    for scenario in EVERY_WINDOW:
        conforms(make(cores=cores, capacity=64), scenario, "total")


@pytest.mark.parametrize("probes", [1, 2, 4, 8])
@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_lanes_and_probes_do_not_change_the_answer(lanes: int, probes: int) -> None:
    """The same items, whatever the number of lanes and probes; in windows that fill the ring and in others."""
    n = lanes.bit_length() + probes.bit_length()  # each with one kind of window: a circuit takes long to compile
    device = SimDevice(cores=n % 2 + 1, capacity=64, lanes=lanes, probes=probes, stall_out=0.4 * (n % 2))
    for order in ("total", "inner(2)", "outer(3)"):
        conforms(device, EVERY_WINDOW[n % len(EVERY_WINDOW)], order)


@pytest.mark.parametrize("stall_in", [0.0, 0.9])
@pytest.mark.parametrize("stall_out", [0.0, 0.9])
def test_stalls_do_not_change_the_answer(stall_in: float, stall_out: float) -> None:
    for order in ORDERS:
        conforms(SimDevice(cores=3, capacity=64, fanin=3, lanes=2, probes=4, stall_in=stall_in, stall_out=stall_out),
                 SCENARIOS[0], order)


def test_long_pauses_are_no_stall() -> None:
    """The input pauses for longer than any scan takes, many times."""
    conforms(SimDevice(cores=3, capacity=64, fanin=3, lanes=2, probes=4, stall_in=0.9999), SCENARIOS[0], "total")
