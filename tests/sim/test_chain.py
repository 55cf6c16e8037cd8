"""SplitJoin's cores on a chain, and mergers in the paper's fixed order: golden's answer under random stalls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from splitjoin.base.errors import DeviceError, OrderError, UnsupportedError
from splitjoin.circuit.architectures.splitjoin import SplitJoin
from splitjoin.circuit.tuner.speed import latency_cycles
from splitjoin.circuit.tuner.workload import Workload
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import PAIR
from splitjoin_hw.baseline import chain
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import conforms, run
from ..support.links import plant
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario

ORDERS = ("total", "none", "outer(1)", "inner(3)", "outer(3)", "inner(1)")
FIXED = ("outer(1)", "inner(3)", "inner(1)")
NAMED = {scenario.name: scenario for scenario in SCENARIOS}
#: Scenarios that are one circuit.
COMPILED = ("band-range", "band-rows-and-range")


@pytest.mark.parametrize("options", [{"architecture": "chain", "cores": 5}, at_length({"merger": "fixed", "cores": 3}),
                                     at_length({"architecture": "chain", "merger": "fixed", "cores": 3})], ids=str)
def test_every_order_on_sim(options: dict[str, Any]) -> None:
    for seed, order in enumerate(FIXED if "merger" in options else ORDERS):
        device = SimDevice(capacity=64, fanin=3, seed=seed, stall_in=0.3, stall_out=0.3, **options)
        conforms(device, NAMED[COMPILED[seed % 2]], order)


FAULTS = {"mergers do not sort": (chain.GatherChain, "node.total.eq(self.total)", "node.total.eq(0)"),
          "a core gets no records": (chain.DistributionChain, "wiring.connect(m, queue.o, wiring.flipped(self.o[n]))",
                                    "n != 1 and wiring.connect(m, queue.o, wiring.flipped(self.o[n]))")}


@pytest.mark.parametrize("fault", [fault if "sort" in fault else at_length(fault) for fault in FAULTS])
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = NAMED["all-match"]
    scenario = Scenario("few", scenario.r.slice(0, 10), scenario.s.slice(0, 10), "TRUE", "ROWS 6", 0)
    plant(monkeypatch, *FAULTS[fault])
    with pytest.raises((AssertionError, DeviceError)):
        conforms(PysimDevice(cores=3, capacity=16, architecture="chain", patience=1500), scenario, "total")


@pytest.mark.parametrize("cores", [3, at_length(7)])
def test_a_chain_has_the_latency_that_is_predicted(cores: int) -> None:
    """A core more is a node and a merger more, which records and results pass in the same cycles."""
    scenario = NAMED["zero-matches"]
    query = scenario.query("outer(1)")
    device = PysimDevice(cores=cores, capacity=16, architecture="chain")
    with device.open(query) as session:
        found = []
        for part in range(3):  # one tuple at a time, in an empty circuit
            whole = arrivals(query, scenario.r.slice(part, 1), scenario.s.slice(part, 0))
            session.push(whole)
            session.settle()
        found = session.latencies()
    assert found is not None
    predicted = latency_cycles(device.configuration(query), Workload(0, 0, 0.0))
    assert np.median(found) == pytest.approx(predicted, abs=6)


def test_fixed_order_is_not_the_order_of_stored_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The merger as printed gives younger tuples first where the oldest one is not in core 0; that with a comparison
    gives the oldest first.
    """
    scenario = NAMED["all-match"]
    scenario = Scenario("three", scenario.r.slice(0, 12), scenario.s.slice(0, 12), "TRUE", "ROWS 3", 0)
    query = scenario.query("total")
    monkeypatch.setattr(SplitJoin, "check_order", lambda self, order, parameters: None)
    items = run(PysimDevice(cores=3, capacity=16, merger="fixed"), query, scenario.r, scenario.s)
    pairs = items[(items["kind"] == PAIR) & (items["side"] == 0)]
    stored = {probe: pairs["s"][pairs["r"] == probe].tolist() for probe in range(12)}
    in_order = [probe for probe, rows in stored.items() if rows == sorted(rows)]
    assert in_order == [0, 1, 2, 3, 6, 9]  # the oldest tuple is in core 0


@pytest.mark.parametrize("order", ["none", "outer(2)", "total"])
def test_orders_that_a_fixed_order_of_inputs_does_not_keep(order: str) -> None:
    with pytest.raises(OrderError, match=r"with merger='fixed' keeps the order outer\(1\) or inner"):
        PysimDevice(cores=3, capacity=16, merger="fixed").open(NAMED["all-match"].query(order))


def test_a_wide_root_has_no_fixed_order() -> None:
    with pytest.raises(UnsupportedError, match="merger with root_width 2 must be ready, not 'fixed'"):
        PysimDevice(merger="fixed", root_width=2)
    with pytest.raises(UnsupportedError, match="root_width of a chain of SplitJoin's cores must be 1"):
        PysimDevice(architecture="chain", root_width=2)
