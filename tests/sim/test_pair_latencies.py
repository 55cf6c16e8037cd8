"""The latency of pairs in simulation: from accepting the later tuple until the pair leaves."""

from __future__ import annotations

import pytest

from splitjoin.circuit.driver import CircuitSession
from splitjoin.engines.arrival import arrivals
from splitjoin_sim.pysim import PysimDevice

from ..support.scenarios import SCENARIOS, Scenario

ALL = next(case for case in SCENARIOS if case.name == "all-match")
FEW = Scenario("few", ALL.r.slice(0, 6), ALL.s.slice(0, 6), "TRUE", "ROWS 3", 0)


@pytest.mark.parametrize("architecture", ["splitjoin", "kang"])
def test_a_pair_leaves_after_its_later_tuple_and_before_that_ones_star(architecture: str) -> None:
    query = FEW.query("total")
    with PysimDevice(cores=1, capacity=8, architecture=architecture).open(query) as session:
        assert isinstance(session, CircuitSession)
        session.push(arrivals(query, FEW.r, FEW.s))
        session.flush()
        found, probes = session.pair_latencies(), session.latencies()
    assert found is not None
    assert probes is not None
    pairs, cycles = found
    assert len(pairs) == len(cycles) == 27
    for (r, s), latency in zip(pairs.tolist(), cycles.tolist(), strict=True):
        assert 0 < latency < probes[2 * s + 1 if s >= r else 2 * r]  # R and S come by turns


def test_circuits_with_narrow_row_ids_do_not_know_it() -> None:
    query = FEW.query("total")
    with PysimDevice(cores=1, capacity=8, row_bits=16).open(query) as session:
        assert isinstance(session, CircuitSession)
        assert session.pair_latencies() is None
