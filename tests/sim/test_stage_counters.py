"""Stage counters against idle stages measured one by one and against latencies under load; input at a pace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench import stages

from splitjoin.base.errors import DeviceError, OrderError, UnsupportedError
from splitjoin.circuit.driver import CircuitSession
from splitjoin.circuit.registers import STAGES
from splitjoin.engines.arrival import arrivals
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario

LESS = next(s for s in SCENARIOS if s.name == "less-than")
NONE = Scenario("none", LESS.r, LESS.s, "r.x = s.a + 1000", "ROWS 16", 0)


def opened(device: Any, scenario: Scenario, order: str) -> tuple[Any, CircuitSession]:
    query = scenario.query(order)
    session = device.open(query)
    assert isinstance(session, CircuitSession)
    return query, session


def test_an_idle_circuit_has_the_cycles_of_its_stages_one_by_one() -> None:
    query, session = opened(PysimDevice(cores=4, capacity=4, stage_counters=True), NONE, "total")
    session.push(arrivals(query, NONE.r.slice(0, 0), NONE.s.slice(0, 16)))
    session.settle()
    before = session.stage_cycles()
    session.push(arrivals(query, NONE.r.slice(0, 1), NONE.s.slice(0, 0)))
    session.settle()
    after = session.stage_cycles()
    assert before is not None
    assert after is not None
    core = stages.in_core(4, 1, 1)
    assert {name: after[name] - before[name] for name in STAGES} == {
        "distribution": 4 * stages.distribution(4), "waiting": 4 * core.waiting, "scan": 4 * core.scan,
        "emitting": 4 * core.emit, "gather": 4 * stages.gather(4), "combiner": 1}
    session.close()


@pytest.mark.parametrize(("make", "architecture", "order"), [
    at_length(PysimDevice, "splitjoin", "total"), at_length(PysimDevice, "chain", "outer(1)"),
    (SimDevice, "splitjoin", "outer(1)")])
def test_under_load_stages_add_up_to_the_latency_of_all_probes(make: Any, architecture: str, order: str) -> None:
    """Little's law: sums of numbers of probes are sums of their times, whatever stalls."""
    device = make(cores=3, capacity=16, architecture=architecture, stage_counters=True, seed=1, stall_in=0.2,
                  stall_out=0.4)
    query, session = opened(device, LESS, order)
    for part in (slice(0, 20), slice(20, 40)):
        session.push(arrivals(query, LESS.r[part], LESS.s[part]))
    session.settle()
    found, latencies = session.stage_cycles(), session.latencies()
    session.close()
    assert found is not None
    assert latencies is not None
    *parts, last = found.values()
    assert sum(parts) + 3 * last == 3 * latencies.sum()
    assert min(found.values()) > 0


@pytest.mark.parametrize(("options", "message"), [
    ({"probes": 2}, "probes with stage_counters must be 1, not 2"),
    ({"region_counters": True}, "region_counters with stage_counters must be False, not True"),
    ({"architecture": "handshake"}, "stage_counters of handshake join must be False, as its probes have other stages")])
def test_circuits_without_stages(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        PysimDevice(stage_counters=True, **options)


@pytest.mark.parametrize("order", ["none", "outer(2)", "inner(1)"])
def test_a_probe_without_one_star_is_refused(order: str) -> None:
    _, session = opened(PysimDevice(cores=1, capacity=16, stage_counters=True), NONE, order)
    with pytest.raises(OrderError, match="stages are counted by the one star of a probe"):
        session.stage_cycles()
    session.close()


@pytest.mark.parametrize("make", [at_length(PysimDevice), SimDevice])
def test_records_come_at_a_pace_and_queue_up(make: Any) -> None:
    """From one region of four tuples a probe takes four cycles: at one record in 20 none waits, at one in 2 they do."""
    waits = {}
    for pace in (0.05, 0.5):
        query, session = opened(make(cores=1, capacity=16, pace=pace), NONE, "total")
        session.push(arrivals(query, NONE.r.slice(0, 60), NONE.s.slice(0, 60)))
        session.settle()
        accepted = session.accepted()
        session.close()
        assert accepted is not None
        assert len(accepted) == 120
        waits[pace] = accepted - accepted[0] - np.arange(120) / pace
    assert abs(waits[0.05]).max() <= 20  # settings hold up the first records
    assert waits[0.5][-1] > 400


@pytest.mark.parametrize("pace", [0, 2, -0.5, True, "1"])
def test_wrong_pace(pace: Any) -> None:
    for make in (PysimDevice, SimDevice):
        with pytest.raises(DeviceError, match="pace must be a number of records a cycle, from 2\\^-32 to 1, or None"):
            make(pace=pace)
