"""A circuit gets the input of a join in slices, so that memory holds the records of one slice at a time."""

import pyarrow as pa

import splitjoin
from splitjoin.circuit.driver import CircuitSession
from splitjoin_sim.pysim import PysimDevice

R = pa.table({"x": [n * 7 % 10 for n in range(20)]})
S = pa.table({"a": [n * 3 % 10 for n in range(20)]})


class Sliced(PysimDevice):
    most_arrivals = 16


def test_circuit_gets_slices_and_gives_the_same_answer(monkeypatch):
    pushed, push = [], CircuitSession.push
    monkeypatch.setattr(CircuitSession, "push", lambda self, part: pushed.append(len(part)) or push(self, part))
    asked = {"on": "abs(r.x - s.a) <= 1", "window": "ROWS 8", "aggregate": {"n": "count(*)", "most": "max(s.a)"}}
    device = Sliced(core="scan", cores=1, capacity=64, seed=3, stall_in=0.2)
    found = splitjoin.join(R, S, **asked, device=device)
    assert pushed == [16, 16, 8]
    assert found.table.equals(splitjoin.join(R, S, **asked, device="golden").table)
