"""Random conditions of every kind on circuits of every kind: Amaranth's simulator gives the golden model's answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.base.errors import SplitJoinError
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import Device, Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_sim.pysim import PysimDevice
from tests.support.conformance import assert_conforms, slices
from tests.support.sampling import at_length, examples
from tests.support.strategies import Scenario, scenario

#: Tuples a stream at most. All cores together hold them, as a window may have as many.
_ROWS = 8
#: Lanes and capacities that go together, and numbers of cores and probes: of any circuits, and of those that the
#: simulator prepares in a fraction of a second.
_RINGS = [(1, 8), (1, 8), (2, 8), (4, 8), (4, 16)], [(1, 8), (1, 4), (2, 4)]
_CORES, _PROBES = ([1, 2, 3], [1, 1, 1, 1, 2]), ([1, 2, 3, 5], [1, 1, 2, 3])


@st.composite
def options(draw: st.DrawFn, *, tiny: bool) -> dict[str, Any]:
    """Options of a circuit: its shape, trees, tables, clock, queues, kind of core, and stalls at its ports."""
    lanes, capacity = draw(st.sampled_from(_RINGS[tiny]))
    stalls = draw(st.sampled_from([0.0, 0.0, 0.5]))
    cores = draw(st.sampled_from(_CORES[tiny]))
    return {
        "cores": cores, "capacity": _ROWS if cores * capacity < _ROWS else capacity, "lanes": lanes,
        "probes": draw(st.sampled_from(_PROBES[tiny])), "fanout": draw(st.integers(2, 4)),
        "fanin": draw(st.integers(2, 4)), "tables": draw(st.booleans()), "queue": draw(st.sampled_from([0, 0, 16])),
        "clock": draw(st.sampled_from([None, None, 80.0, 160.0])), "core": draw(st.sampled_from(["scan", "auto"])),
        "region_counters": draw(st.booleans()), "stall_in": stalls, "stall_out": stalls,
        "seed": draw(st.integers(0, 9)),
    }


def _device(query: Query, wanted: dict[str, Any]) -> PysimDevice:
    """A device with the options that ``query`` can have: tables need a test for them, an index takes no lanes."""
    for changed in ({}, {"tables": False}, {"core": "scan"}, {"core": "scan", "tables": False}):
        try:
            device = PysimDevice(**wanted | changed)
            device.configuration(query)
        except SplitJoinError:
            continue
        return device
    return PysimDevice(cores=wanted["cores"], capacity=8)  # refuses it, as it should


def _run(device: Device, query: Query, case: Scenario, masked: int | None) -> Items:
    """The items of a run in two halves; ``masked``: a core that is masked in the second one."""
    with device.open(query) as session:
        found = []
        for n, part in enumerate(slices(arrivals(query, case.r, case.s), [(len(case.r) + len(case.s)) // 2])):
            if n == 1 and masked is not None:
                session.mask({masked})
            session.push(part)
            found.append(session.poll())
        found.append(session.flush())
    return np.concatenate(found)


@pytest.mark.parametrize(("count", "tiny"), [(10, True), at_length(100, True), at_length(100, False)])
def test_random_conditions_on_random_circuits(count: int, tiny: bool) -> None:
    """`make test-long` draws 500 more of them, and 500 circuits of any size."""
    @settings(max_examples=examples(count))
    @given(scenario(max_rows=_ROWS), options(tiny=tiny), st.booleans())
    def same_answer(case: Scenario, wanted: dict[str, Any], masks: bool) -> None:
        query = Query.make(Schema.from_table("r", case.r), Schema.from_table("s", case.s), on=case.on.sql,
                           window=case.windows.spec, time=case.time, order=case.order)
        device = _device(query, wanted)
        masked = wanted["seed"] % wanted["cores"] if masks else None
        items = _run(device, query, case, masked)
        assert_conforms(items, _run(GoldenDevice(cores=device.cores), query, case, masked), case.order)

    same_answer()
