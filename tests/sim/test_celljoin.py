"""CellJoin as a circuit: golden's answer in its orders, by either merger, and what partitioning anew costs."""

from __future__ import annotations

import pytest

from splitjoin.base.errors import DeviceError, OrderError
from splitjoin.circuit.tuner.speed import cycles_a_tuple
from splitjoin.circuit.tuner.workload import Workload
from splitjoin.engines.arrival import arrivals
from splitjoin_hw.baseline import celljoin
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import conforms
from ..support.links import plant
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario

ORDERS = ("total", "none", "outer(1)", "total", "outer(3)")
NAMED = {scenario.name: scenario for scenario in SCENARIOS}
FEW = Scenario("few", NAMED["all-match"].r.slice(0, 24), NAMED["all-match"].s.slice(0, 24), "TRUE", "ROWS 8", 0)


def test_every_order_on_sim() -> None:
    for seed, order in enumerate(ORDERS):
        for name in ("band-range", "band-rows-and-range"):
            conforms(SimDevice(cores=4, capacity=64, seed=seed, stall_in=0.3, stall_out=0.3, architecture="celljoin"),
                     NAMED[name], order)


@pytest.mark.parametrize("merger", [at_length("ready"), "fixed"])
def test_full_windows(merger: str) -> None:
    """Each core has as many tuples as it can hold, and results come in the order of their age by either merger."""
    conforms(PysimDevice(cores=4, capacity=2, architecture="celljoin", stall_out=0.5, merger=merger), FEW, "total")


FAULTS = {"a tuple that moves is lost": ("older.append.eq(moves)", "older.append.eq(0)"),
          "the youngest core comes first": ("tree.i[n]", "tree.i[-1 - n]")}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, celljoin.CellJoin, *FAULTS[fault])
    with pytest.raises((AssertionError, DeviceError, IndexError)):
        conforms(PysimDevice(cores=3, capacity=16, architecture="celljoin", merger="fixed", patience=1500), FEW,
                 "total")


@pytest.mark.parametrize("cores", [2, at_length(8)])
def test_a_probe_waits_until_the_partition_has_settled(cores: int) -> None:
    """A full window of cores tuples: each arrival expires one, and both moves pass all cores before the next scan."""
    scenario = Scenario("moves", FEW.r, FEW.s, "r.x > s.a + 1000", f"ROWS {cores}", 0)
    query = scenario.query("total")
    device = PysimDevice(cores=cores, capacity=2, architecture="celljoin")
    with device.open(query) as session:
        session.push(arrivals(query, scenario.r, scenario.s))
        session.flush()
        counters = session.counters()
    assert counters["cycles"] / 48 == pytest.approx(
        cycles_a_tuple(device.configuration(query), Workload(cores, cores, 0.0)), rel=0.3)


def test_orders_that_it_does_not_keep() -> None:
    for order, merger, message in (("inner(1)", "ready", "CellJoin keeps the order none or outer or total, not inner"),
                                   ("none", "fixed", r"merger='fixed' keeps the order outer\(1\) or total")):
        with pytest.raises(OrderError, match=message):
            PysimDevice(cores=2, capacity=16, architecture="celljoin", merger=merger).open(FEW.query(order))
