"""Every other circuit than SplitJoin's gives golden's answer to all scenarios, each in one order, under stalls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from splitjoin.circuit.architectures import ARCHITECTURES
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import conforms
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario
from .test_conformance import ORDERS, STALLS


class Circuit(NamedTuple):
    """A circuit's orders, the options of the ``n``-th scenario in an order, and the scenarios that always run: none of
    a circuit whose own tests run scenarios in all orders.
    """

    orders: tuple[str, ...]
    options: Callable[[int, str], dict[str, Any]]
    chosen: tuple[str, ...] = ()


CIRCUITS = {
    "cascade": Circuit(("none",), lambda n, _: {"block": n % 4 + 1, "threshold": n % 4 + 1 + n % 2},
                       ("rows-and-range-different",)),
    "celljoin": Circuit(("total", "none", "outer(1)", "total", "outer(3)"), lambda _, order: {
        "merger": "fixed" if order == "total" else "ready"}),
    "chain": Circuit(ORDERS, lambda n, _: {"probes": n % 2 + 1}),
    "handshake": Circuit(("none",), lambda n, _: {"stall_in": 0.3 * (n % 2)}),
    "kang": Circuit(ORDERS, lambda *_: {"cores": 1}, ("short-r",)),
    "low-latency-handshake": Circuit(("none",), lambda n, _: {"cores": (1, 2, 4)[n % 3], "stall_in": 0.3 * (n % 2)},
                                     ("rows-and-range-different",)),
    # One datapath and two, event times and none, several tests.
    "small": Circuit(ORDERS, lambda *_: {"cores": 1, "row_bits": 8}, ("band-range", "equal-rows-different")),
}


@pytest.mark.parametrize(("name", "scenario"), [
    (name, case) if case.name in CIRCUITS[name].chosen else at_length(name, case)
    for name in ARCHITECTURES if name != "splitjoin" for case in SCENARIOS], ids=str)
def test_scenarios(name: str, scenario: Scenario) -> None:
    n, circuit = SCENARIOS.index(scenario), CIRCUITS[name]
    order = circuit.orders[n % len(circuit.orders)]
    options = {"architecture": name, "cores": n % 3 + 1, "capacity": 64, "seed": n} | STALLS | circuit.options(n, order)
    conforms(PysimDevice(**options), scenario, order)
