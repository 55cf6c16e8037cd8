"""Circuits have equal values in every cycle with the tests' faster simulator methods and with Amaranth's own."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.sim import pysim
from hypothesis import given, settings, strategies as st

from splitjoin.engines.arrival import arrivals
from splitjoin_sim.pysim import PysimDevice

from ..support.quick_pysim import MEMORY_WRITE, SIGNAL_UPDATE, quicken
from ..support.sampling import examples
from ..support.scenarios import SCENARIOS


@given(st.integers(0, 255), st.lists(st.tuples(st.integers(0, 255), st.sampled_from([~0, 0, 15, 240])), max_size=6))
@settings(max_examples=examples(50))
def test_signals_have_the_same_next_values(first: int, updates: list[tuple[int, int]]) -> None:
    class Slot:
        next = first

        def __init__(self) -> None:
            self.pending: set[Any] = set()

    quicken()
    one, other = Slot(), Slot()
    for value, mask in updates:
        pysim._PySignalState.update(one, value, mask)
        SIGNAL_UPDATE(other, value, mask)
        assert (one.next, len(one.pending)) == (other.next, len(other.pending))


def test_a_circuit_with_memories_takes_the_same_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = next(case for case in SCENARIOS if case.name == "single-pair")
    runs = []
    for own in (False, True):
        if own:
            monkeypatch.setattr(pysim._PySignalState, "update", SIGNAL_UPDATE)
            monkeypatch.setattr(pysim._PyMemoryState, "write", MEMORY_WRITE)
        query = scenario.query()
        with PysimDevice(cores=1, capacity=8, stall_in=0.3, stall_out=0.3).open(query) as session:
            session.push(arrivals(query, scenario.r, scenario.s))
            runs.append((session.flush().tolist(), session.counters()))
    assert runs[0] == runs[1]
