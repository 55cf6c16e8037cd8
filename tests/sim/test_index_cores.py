"""Circuits whose cores have an index give the golden model's answer: scenarios and random joins, with stalls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings

import splitjoin
from splitjoin import UnsupportedError, join
from splitjoin.engines.device import Device
from splitjoin.engines.golden import GoldenDevice
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, conforms
from ..support.sampling import at_length, examples
from ..support.scenarios import SCENARIOS
from .test_conformance import ORDERS, STALLS
from .test_mask import masked_run
from .test_random import check, joins
from .test_sources import CUT, golden, pushed

NAMED = {s.name: s for s in SCENARIOS}
#: Scenarios in which every result satisfies an equality, or a band; the others are refused.
EQUAL = ("equal-rows-different", "string-equal")
BANDS = ("band-rows-64", "equal-range-0", "band-range", "band-range-different", "band-rows-and-range", "null-band",
         "float-band", "string-not-equal", "date-and-timestamp", "int64-band", "burst", "clocks", "empty-s", "short-r",
         "band-rows-17", "band-rows-1", "band-rows-3", "empty-r", "empty-both")

#: Those in which every result satisfies a comparison.
RANGES = ("rows-and-range-different", "less-than", "not", "one-sided", "scaled", "float-greater", "string-literal",
          "int64-extremes", "ties", "single-pair", "zero-matches")


@pytest.mark.parametrize("core", ["bucket", "ordered"])
def test_scenarios_on_sim(core: str) -> None:
    """One circuit, compiled once, in all windows and orders."""
    for name in ("band-range", "band-rows-and-range", "band-range-different"):
        for seed, order in enumerate(ORDERS):
            conforms(SimDevice(cores=2, capacity=64, core=core, seed=seed, **STALLS), NAMED[name], order)


@pytest.mark.parametrize("core", ["hash", "bucket", "ordered"])
def test_every_other_scenario_is_refused(core: str) -> None:
    fit = {"hash": EQUAL, "bucket": (*EQUAL, *BANDS), "ordered": (*EQUAL, *BANDS, *RANGES)}[core]
    for scenario in SCENARIOS:
        device = PysimDevice(cores=1, capacity=64, core=core)
        if scenario.name in fit:
            assert device.configuration(scenario.query()).core == core
        else:
            with pytest.raises(UnsupportedError, match=f"^core {core} needs .*this condition has none; use core='"):
                device.configuration(scenario.query())


@pytest.mark.parametrize(("core", "on", "circuit"), [("hash", "r.x = s.a", (2, 8, 2, 2, 1, 1)),
                                                     ("bucket", "abs(r.x - s.a) <= 2", (3, 4, 2, 2, 1, 1)),
                                                     ("ordered", "r.x < s.a", (3, 8, 2, 2, 1, 1))])
def test_compiled_circuit(core: str, on: str, circuit: Any) -> None:
    @given(joins(circuit, timed=True, max_rows=100 + 10 * circuit[1]))
    @settings(max_examples=examples(40))
    def same_answer(join: Any) -> None:
        check(circuit, SimDevice, replace(join, on=on), core=core)

    same_answer()


@pytest.mark.parametrize("name", ["float-greater", *map(at_length, RANGES)])
def test_an_ordered_core_of_any_comparison(name: str) -> None:
    for order in ("total", "inner(3)"):
        conforms(SimDevice(cores=2, capacity=64, core="ordered", seed=3, **STALLS), NAMED[name], order)


def test_an_ordered_core_in_a_session_with_masks_and_snapshots() -> None:
    """The circuit of `test_scenarios_on_sim`; the snapshots go from it to another one, to the CPU, and back."""
    scenario, circuit = NAMED["band-range"], SimDevice(cores=2, capacity=64, core="ordered", **STALLS)
    steps = [(20, {1}), (50, {0}), (51, {0, 1}), (70, set()), (90, {1})]
    assert_conforms(masked_run(circuit, scenario, "total", steps),
                    masked_run(GoldenDevice(cores=2), scenario, "total", steps), "total")

    def fed(devices: Sequence[str | Device]) -> list[dict[str, Any]]:
        saved, rows = None, list[dict[str, Any]]()
        for n, device in enumerate(devices):
            with splitjoin.open(scenario.query("total"), device) as session:
                if saved is not None:
                    session.restore(saved)
                session.mask([n % 3], of=3)
                for table, push in ((scenario.r, session.push_r), (scenario.s, session.push_s)):
                    push(table.slice(12 * n, 12 if n < len(devices) - 1 else None))
                rows += (session.poll() if n < len(devices) - 1 else session.flush()).to_pylist()
                saved = session.snapshot() if n < len(devices) - 1 else None
        return rows

    found = fed([circuit, circuit, "cpu", circuit])
    assert len(found) > 20
    assert found == fed(["golden"] * 4)


@pytest.mark.parametrize("order", ["total", at_length("none")])
def test_an_ordered_core_of_several_sources(order: str) -> None:
    assert_conforms(pushed(PysimDevice, CUT, order, 3, cores=1, core="ordered", sources=3, stall_in=0.5),
                    golden(CUT, order), order)


@cache
def compared(name: str, core: str) -> tuple[int, int]:
    """Comparisons, and probes that read the whole sub-window."""
    scenario = NAMED[name]
    result = join(scenario.r, scenario.s, on=scenario.on, window=scenario.window, time=scenario.time,
                     device=PysimDevice(cores=1, capacity=64, core=core, region_counters=True))
    assert result.region_counters is not None
    assert result.region_counters["comparisons"].sum() == result.counters["comparisons"]
    return result.counters["comparisons"], int(result.region_counters["spills"].sum())


@pytest.mark.parametrize(("core", "name", "share"),
                         [at_length("hash", "string-equal", 0.5), at_length("bucket", "band-rows-17", 0.6),
                          ("ordered", "band-rows-17", 0.6)])
def test_candidates_are_compared_only(core: str, name: str, share: float) -> None:
    """The share of tuples compared: one of six words with a hash; of 21 by 21 values, one or two cells of 4 by one or
    two of 10 with buckets.
    """
    all_, _ = compared(name, "scan")
    some, spills = compared(name, core)
    assert some < share * all_
    assert spills == 0
