"""Every circuit device gives the golden model's answer to every scenario, under random stalls at both ports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import conforms
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario

ORDERS = ("total", "none", "outer(1)", "inner(3)", "outer(3)", "inner(1)")
STALLS = {"stall_in": 0.3, "stall_out": 0.3}
#: Scenarios that run on a compiled circuit, in all orders: seven circuits, with the narrowest and the widest keys, one
#: test and five, NULL, event times and none. The others run on the other simulator, in one order each.
COMPILED = {"band-rows-17", "band-rows-1", "band-rows-3", "band-rows-64", "empty-r", "empty-both", "band-range",
            "band-range-different", "band-rows-and-range", "clocks", "empty-s", "rows-and-range-different", "ties",
            "less-than", "float-band", "single-pair", "zero-matches", "equal-rows-different", "string-equal", "not",
            "int64-extremes"}
#: Scenarios that run on both.
ON_BOTH = {"band-range"}
#: Scenarios that at length only run, as their circuits are made of what those of others have.
ALIKE = {"all-match", "burst", "equal-range-0", "float-band", "float-greater", "int64-band", "is-null", "less-than",
         "not-equal", "null-band", "scaled", "short-r", "string-literal"}


def some(chosen: set[str]) -> list[Any]:
    """All scenarios, those that are not ``chosen`` or are like others at length only."""
    return [case if case.name in chosen - ALIKE else at_length(case) for case in SCENARIOS]


def test_every_scenario_runs_on_a_circuit() -> None:
    names = {case.name for case in SCENARIOS}
    assert ON_BOTH < COMPILED < names


@pytest.mark.parametrize("scenario", some({case.name for case in SCENARIOS} - COMPILED | ON_BOTH), ids=str)
def test_scenarios_on_pysim(scenario: Scenario) -> None:
    n = SCENARIOS.index(scenario)  # one of the orders each, and a small circuit: it is slow
    device = PysimDevice(cores=n % 2 + 1, capacity=64, lanes=(n + 1) % 2 + 1, probes=n // 2 % 2 + 1, seed=n, **STALLS)
    conforms(device, scenario, ORDERS[n % len(ORDERS)])


@pytest.mark.parametrize("scenario", some(COMPILED), ids=str)
def test_scenarios_on_sim(scenario: Scenario) -> None:
    for seed, order in enumerate(ORDERS):
        conforms(SimDevice(cores=3, capacity=64, fanin=3, lanes=2, probes=4, seed=seed, **STALLS), scenario, order)


@pytest.mark.parametrize("stall_in", [0.0, 0.9])
@pytest.mark.parametrize("stall_out", [0.0, 0.9])
def test_stalls_do_not_change_the_answer(stall_in: float, stall_out: float) -> None:
    for order in ORDERS:
        conforms(SimDevice(cores=3, capacity=64, fanin=3, lanes=2, probes=4, stall_in=stall_in, stall_out=stall_out),
                 SCENARIOS[0], order)


def test_long_pauses_are_no_stall() -> None:
    """The input pauses for longer than any scan takes, many times."""
    few = replace(SCENARIOS[0], r=SCENARIOS[0].r[:8], s=SCENARIOS[0].s[:8])
    conforms(SimDevice(cores=3, capacity=64, fanin=3, lanes=2, probes=4, stall_in=0.9999), few, "total")
