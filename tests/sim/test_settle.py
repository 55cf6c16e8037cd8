"""`Session.settle`: after it no result of the tuples pushed before is missing, and the session goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from splitjoin import DeviceError, OrderError
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import PAIR, Device, Items, Session
from splitjoin.engines.golden import GoldenDevice
from splitjoin.plan.passes.compiler import make_plan
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, slices
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario

NAMED = {s.name: s for s in SCENARIOS}
BAND, RANGE = NAMED["band-rows-17"], NAMED["band-range"]
#: A part without tuples, parts of one tuple, and parts that end within a batch of probes.
CUTS = (0, 1, 2, 21, 21, 50, 97)
ORDERS = ("none", "total", "inner(2)", "outer(1)")


def settled(device: Device, scenario: Scenario, order: str) -> list[Items]:
    """The items of each part of the arrivals, by `settle`, and those of the flush."""
    query = scenario.query(order)
    found = []
    with device.open(query) as session:
        for part in slices(arrivals(query, scenario.r, scenario.s), CUTS):
            session.push(part)
            found.append(session.settle())
            assert not len(session.settle())
        return [*found, session.flush()]


def pair_set(items: Items) -> set[tuple[int, int]]:
    return {(int(i["r"]), int(i["s"])) for i in items[items["kind"] == PAIR]}


WAYS = [(scenario, order) for scenario in (BAND, RANGE) for order in ORDERS]


@pytest.mark.parametrize(("make", "scenario", "order"), [
    *((SimDevice, *way) for way in WAYS), *(at_length(PysimDevice, *way) for way in WAYS)],
    ids=lambda v: getattr(v, "name", v))
def test_every_part_has_its_results_when_settled(make: Any, scenario: Scenario, order: str) -> None:
    slow = make is PysimDevice  # so it gets a small circuit
    golden = settled(GoldenDevice(cores=3 - slow), scenario, order)
    for seed, stalls in enumerate((0.6,) if slow else (0.0, 0.6)):
        device = make(cores=3 - slow, capacity=64, fanin=3, lanes=2 - slow, probes=4 - 2 * slow, stall_in=stalls,
                      stall_out=stalls, seed=seed)  # the circuit of `test_conformance`
        found = settled(device, scenario, order)
        assert list(map(pair_set, found)) == list(map(pair_set, golden))
        assert_conforms(np.concatenate(found), np.concatenate(golden), order)


@pytest.mark.parametrize(("core", "name"), [("hash", "string-equal"), ("bucket", "band-range")])
def test_index_cores_settle(core: str, name: str) -> None:
    golden = settled(GoldenDevice(cores=2), NAMED[name], "none")
    device = SimDevice(cores=2, capacity=64, core=core, stall_in=0.3, stall_out=0.3)
    assert list(map(pair_set, settled(device, NAMED[name], "none"))) == list(map(pair_set, golden))
    assert pair_set(np.concatenate(golden))


def test_candidates_are_verified_before_a_session_is_settled() -> None:
    whole = Scenario("verified", *(pa.table({a: [n * k % 11 for n in range(60)], b: [float(n % k) for n in range(60)]})
                                   for a, b, k in (("x", "y", 7), ("a", "b", 5))),
                     "abs(r.x - s.a) <= 3 AND r.y - s.b <= r.x", "ROWS 8", 0)
    assert make_plan(whole.query().predicate).residual is not None
    golden = settled(GoldenDevice(), whole, "none")
    assert list(map(pair_set, settled(SimDevice(cores=2, capacity=4), whole, "none"))) == list(map(pair_set, golden))


def test_a_session_outlives_a_younger_one_of_the_same_model() -> None:
    """Verilator's library has a pointer to the context of the model that was made last, even if that is deleted."""
    query = RANGE.query("none")
    first, rest = arrivals(query, RANGE.r, RANGE.s).split(30)
    assert rest is not None
    device = SimDevice(cores=3, capacity=64, fanin=3, lanes=2, probes=4)
    with device.open(query) as older:
        older.push(first)
        for _ in range(3):
            with device.open(query) as younger:
                younger.push(first)
        older.push(rest)
        found = older.settle()
    with GoldenDevice().open(query) as golden:
        golden.push(first)
        golden.push(rest)
        assert pair_set(found) == pair_set(golden.poll())


def test_orders_whose_groups_would_be_closed_are_refused() -> None:
    device: Device = PysimDevice(cores=2, capacity=64)
    with device.open(BAND.query("outer(3)")) as session, pytest.raises(OrderError, match=r"than outer\(3\); use"):
        session.settle()


def test_a_device_without_a_barrier_says_so() -> None:
    class Plain(Session):
        push = poll = flush = lambda self: np.empty(0)

    with pytest.raises(DeviceError, match="a session of Plain cannot tell when"):
        Plain().settle()
