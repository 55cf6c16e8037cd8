"""A masked core costs exactly the pairs stored in it, from a known row id on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pytest

from splitjoin import DeviceError
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import PAIR, STAR, Device, Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, run, slices
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario

CORES = 3
BAND = next(s for s in SCENARIOS if s.name == "band-rows-17")
RANGE = next(s for s in SCENARIOS if s.name == "band-range")


def masked_run(device: Device, scenario: Scenario, order: str, steps: Sequence[tuple[int, Collection[int]]]) -> Items:
    """The items of a run; ``steps``: masks, each with the number of arrivals after which it is set."""
    query = scenario.query(order)
    with device.open(query) as session:
        found = []
        parts = slices(arrivals(query, scenario.r, scenario.s), [at for at, _ in steps])
        for n, part in enumerate(parts):
            session.push(part)
            if n < len(steps):
                session.mask(steps[n][1])
            found.append(session.poll())
        found.append(session.flush())
    return np.concatenate(found)


WAYS = [(BAND, "total"), (BAND, "inner(2)"), (BAND, "outer(3)"), (BAND, "none"), (RANGE, "total"), (RANGE, "inner(2)"),
        (RANGE, "outer(3)"), (RANGE, "none")]


@pytest.mark.parametrize(("make", "scenario", "order"), [
    *((SimDevice, *way) for way in WAYS), *(at_length(PysimDevice, *way) for way in WAYS)],
    ids=lambda v: getattr(v, "name", v))
def test_masks_come_and_go_between_two_tuples(make: Any, scenario: Scenario, order: str) -> None:
    steps = [(20, {1}), (50, {0, 2}), (51, {0, 1, 2}), (70, set()), (90, {2})]
    golden = masked_run(GoldenDevice(cores=CORES), scenario, order, steps)
    slow = make is PysimDevice  # so it gets a small circuit
    for seed, stalls in enumerate((0.6,) if slow else (0.0, 0.6)):
        device = make(cores=CORES, capacity=64, fanin=3, lanes=2 - slow, probes=4 - 2 * slow, stall_in=stalls,
                      stall_out=stalls, seed=seed)  # the circuit of `test_conformance`
        assert_conforms(masked_run(device, scenario, order, steps), golden, order)


@pytest.mark.parametrize("core", range(CORES))
def test_exactly_the_pairs_stored_in_the_core_are_lost(core: int) -> None:
    whole = run(GoldenDevice(), BAND.query("total"), BAND.r, BAND.s)
    stored = np.where(whole["side"] == 0, whole["s"], whole["r"])
    left = whole[(whole["kind"] == STAR) | (stored % CORES != core)]
    lost = int((whole["kind"] == PAIR).sum() - (left["kind"] == PAIR).sum())
    assert lost > 20
    device = SimDevice(cores=CORES, capacity=64, fanin=3, lanes=2, probes=4, masked=(core,))
    assert_conforms(run(device, BAND.query("total"), BAND.r, BAND.s), left, "total")
    golden = run(GoldenDevice(cores=CORES, masked={core}), BAND.query("total"), BAND.r, BAND.s)
    assert_conforms(golden, left, "total")


@pytest.mark.parametrize("device", [PysimDevice(cores=1, capacity=64), GoldenDevice(cores=1)])
def test_wrong_cores(device: Device) -> None:
    with device.open(BAND.query()) as session:
        for core in (1, -1, True, 1.0, "1"):
            wrong = f"masked cores must be numbers from 0 to 0, not {core!r}"
            with pytest.raises(DeviceError, match=wrong):
                session.mask([0, core])  # type: ignore[list-item]  # wrong on purpose
            with pytest.raises(DeviceError, match=wrong):
                type(device)(cores=1, masked=(core,))  # type: ignore[call-arg]  # only circuits take it


def test_no_mask_after_the_end_nor_without_cores() -> None:
    with PysimDevice(cores=1, capacity=64).open(BAND.query()) as session:
        session.flush()
        with pytest.raises(DeviceError, match="has been flushed"):
            session.mask([0])
    with CpuDevice().open(BAND.query()) as session, pytest.raises(DeviceError, match="has no cores to mask"):
        session.mask([1])
