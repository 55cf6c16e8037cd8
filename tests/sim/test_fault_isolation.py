"""Cores that stand still are left out: the answer is the golden model's without their share, whenever they stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import splitjoin
from splitjoin.base.errors import DeviceError, DeviceLost, UnsupportedError
from splitjoin.circuit.driver import CircuitSession, Transport
from splitjoin.circuit.encode import Words
from splitjoin.circuit.wire import Configuration
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import ITEM, Fault, Items
from splitjoin.engines.golden import GoldenDevice
from splitjoin_sim.device import SimDevice

from ..support.conformance import assert_conforms, run
from ..support.frozen import Freeze, FrozenPysim, FrozenSim, PassedOn, check_isolated, session_run
from ..support.sampling import at_length, examples
from ..support.scenarios import SCENARIOS, Scenario

ROWS = next(s for s in SCENARIOS if s.name == "band-rows-17")
RANGE = next(s for s in SCENARIOS if s.name == "band-range")
ORDERS = ("none", "outer(1)", "outer(3)", "inner(1)", "inner(3)", "total")
SMALL = {"cores": 3, "capacity": 16}
#: A time-out of that circuit; twice the least one, so that stalls at ports are no matter.
TIMEOUT = 2 * SimDevice(**SMALL).configuration(ROWS.query()).longest_silence
#: Each is a model of its own, which takes seconds to compile.
CIRCUITS = [(ROWS, SMALL), *(at_length(*way) for way in (
    (ROWS, {"cores": 2, "capacity": 32}), (RANGE, {"cores": 4, "capacity": 16}),
    (ROWS, {"cores": 8, "capacity": 8, "fanin": 3, "fanout": 3}),
    (ROWS, {"cores": 5, "capacity": 16, "lanes": 2, "probes": 4}),
    (RANGE, {"cores": 4, "capacity": 32, "queue": 16, "probes": 2}),
    (ROWS, {"cores": 3, "capacity": 16, "core": "bucket"})))]


def timeout(scenario: Scenario, options: dict[str, Any]) -> int:
    """The least time-out of a circuit."""
    return SimDevice(**options).configuration(scenario.query()).longest_silence


def frozen_run(device: Any, scenario: Scenario, order: str) -> tuple[Items, tuple[Fault, ...]]:
    query = scenario.query(order)
    with device.open(query) as session:
        session.push(arrivals(query, scenario.r, scenario.s))
        return np.concatenate([session.poll(), session.flush()]), session.faults


@pytest.mark.parametrize(("scenario", "options"), CIRCUITS, ids=str)
@given(data=st.data(), order=st.sampled_from(ORDERS), seed=st.integers(0, 2**16),
       stalls=st.tuples(*[st.sampled_from([0.0, 0.3, 0.6, 0.9])] * 2))
@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
def test_the_answer_is_that_of_the_other_cores(data: Any, scenario: Scenario, options: dict[str, Any], order: str,
                                               seed: int, stalls: tuple[float, float]) -> None:
    """Any cores but one, each from any cycle on, wholly or one of its regions, for good or for some time."""
    least, cores = timeout(scenario, options), options["cores"]
    one = st.builds(Freeze, st.integers(0, cores - 1), st.integers(0, 900),
                    st.sampled_from([0, 0, least // 2, 5 * least]), st.sampled_from([1, 2, 3]))
    freezes = data.draw(st.lists(one, max_size=cores - 1, unique_by=lambda freeze: freeze.core))
    device = FrozenSim(fault_timeout=2 * least, freezes=(tuple(freezes),), seed=seed, stall_in=stalls[0],
                       stall_out=stalls[1], **options)
    items, faults = frozen_run(device, scenario, order)
    check_isolated(items, run(GoldenDevice(cores=cores), scenario.query(order), scenario.r, scenario.s), order, faults)
    assert {fault.core for fault in faults} <= {f.core for f in freezes if f.cycles == 0 or f.cycles > 2 * least}


@pytest.mark.parametrize("order", [at_length(order) for order in ORDERS])
def test_amaranth_simulates_the_same(order: str) -> None:
    device = FrozenPysim(fault_timeout=TIMEOUT, freezes=(Freeze(1, 100),), **SMALL)
    items, faults = frozen_run(device, ROWS, order)
    golden = run(GoldenDevice(cores=3), ROWS.query(order), ROWS.r, ROWS.s)
    assert [fault.core for fault in faults] == [1]
    assert check_isolated(items, golden, order, faults) > 10


def test_a_core_that_stops_for_a_shorter_time_is_not_left_out() -> None:
    golden = run(GoldenDevice(cores=3), ROWS.query(), ROWS.r, ROWS.s)
    for cycles, lost in ((TIMEOUT - 1, False), (2 * TIMEOUT + 200, True)):
        freezes = tuple(Freeze(core, 200, cycles) for core in (0, 2))
        items, faults = frozen_run(FrozenSim(fault_timeout=TIMEOUT, freezes=(freezes,), **SMALL), ROWS, "total")
        assert {fault.core for fault in faults} == ({0, 2} if lost else set())
        assert (check_isolated(items, golden, "total", faults) > 0) == lost


def test_all_cores_that_stand_still_are_an_error() -> None:
    freezes = tuple(Freeze(core, 200) for core in range(3))
    device = FrozenSim(fault_timeout=TIMEOUT, freezes=(freezes,), patience=4000, **SMALL)
    with pytest.raises(DeviceError, match=r"^all cores of the circuit stood still and were left out, so nothing comes"):
        frozen_run(device, ROWS, "total")


@pytest.mark.long
def test_faults_are_seen_beside_region_counters() -> None:
    """Both are read through one register."""
    query = ROWS.query()
    options = {**SMALL, "region_counters": True}
    device = FrozenPysim(fault_timeout=TIMEOUT, freezes=(Freeze(2, 0),), **options)
    session = device.open(query)
    assert isinstance(session, CircuitSession)
    session.push(arrivals(query, ROWS.r.slice(0, 6), ROWS.s.slice(0, 6)))
    session.settle()
    counters = session.region_counters()
    assert counters is not None
    assert counters["comparisons"][:2].all()
    session.push(arrivals(query, ROWS.r.slice(6, 3), ROWS.s.slice(6, 3)))
    session.flush()
    assert session.faults == (Fault(2, 3, 0, 0, 2, 2),)
    session.close()


@pytest.mark.parametrize("order", ["total", "none", "outer(3)", "inner(2)"])
def test_sessions_go_on_without_the_core_or_begin_anew(order: str) -> None:
    golden, _, _ = session_run(ROWS, GoldenDevice(cores=3), order)
    freezes = ((Freeze(1, 100),), (Freeze(0, 250, regions=1),))
    for on_fault in ("continue", "restart", GoldenDevice(cores=3)):
        items, faults, counters = session_run(ROWS, FrozenSim(fault_timeout=TIMEOUT, freezes=freezes, **SMALL), order,
                                              on_fault=on_fault)
        assert (faults[0].core, faults[0].lost_r, faults[0].lost_s) == (1, 1, 1)
        assert counters["faults"] == len(faults)
        if on_fault == "continue":
            assert check_isolated(items, golden, order, faults) > 0
        else:
            assert counters["restarts"] == len(faults)
            assert_conforms(items, golden, order)


class _Losing(PassedOn):
    """Loses its session at its ``at``-th transfer, of which some items have come."""

    def __init__(self, inner: Transport, at: int):
        super().__init__(inner)
        self._left, self._items = at, np.empty(0, ITEM)

    def transfer(self, records: Words, *, until_end: bool) -> Items:
        items, self._left = self._inner.transfer(records, until_end=until_end), self._left - 1
        if self._left:
            return items
        self._items = items
        raise DeviceLost("the power failed")

    def received(self) -> Items:
        return self._items


@dataclass(frozen=True, kw_only=True)
class _LosingSim(FrozenSim):
    """Its first session is lost at transfer ``at``."""

    at: int

    def _connect(self, config: Configuration) -> Transport:
        inner = super()._connect(config)
        return _Losing(inner, self.at) if len(self.sessions) == 1 else inner


@pytest.mark.parametrize(("at", "after"), [(5, 100), (7, 200)])
@pytest.mark.parametrize("on_fault", ["continue", "restart"])
def test_a_board_that_loses_its_state_before_it_has_told_of_a_core_gives_all_pairs_again(at: int, after: int,
                                                                                         on_fault: Any) -> None:
    """In the transfer that is lost, the core has stopped, and probes have come to their stars without its pairs."""
    golden, _, _ = session_run(ROWS, GoldenDevice(cores=3), "total")
    device = _LosingSim(fault_timeout=TIMEOUT, freezes=((Freeze(1, after),),), at=at, **SMALL)
    items, faults, counters = session_run(ROWS, device, "total", on_fault=on_fault)
    assert (faults, counters["restarts"]) == ((), 1)
    assert_conforms(items, golden, "total")


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("on_fault", ["continue", "restart"])
def test_shared_queries_go_on_without_the_core_or_begin_anew(common: bool, on_fault: Any) -> None:
    golden, _, _ = session_run(ROWS, GoldenDevice(cores=3), "total")
    given = {"on": ROWS.on, "window": ROWS.window}
    device = FrozenSim(fault_timeout=TIMEOUT, freezes=((Freeze(1, 100),),), **SMALL)
    with splitjoin.share(ROWS.r.schema, ROWS.s.schema) as streams:
        if common:
            join = streams.common_join(device=device, on_fault=on_fault, **given)
            query, seen = join.query(punctuation=True, **given), join
        else:
            query = seen = streams.query(device=device, on_fault=on_fault, punctuation=True, **given)
        found = []
        for at in range(0, max(len(ROWS.r), len(ROWS.s)), 10):
            streams.push_r(ROWS.r.slice(at, 10))
            streams.push_s(ROWS.s.slice(at, 10))
            found.append(query.poll_items()[0])
        streams.close_r()
        streams.close_s()
        while not query.drained:
            found.append(query.poll_items()[0])
        items = np.concatenate([*found, query.poll_items()[0]])
        assert query.faults == seen.faults
        assert [fault.core for fault in query.faults] == [1]
        if on_fault == "continue":
            assert check_isolated(items, golden, "total", query.faults) > 0
        else:
            assert_conforms(items, golden, "total")


def test_a_core_that_is_broken_for_good_ends_restarts() -> None:
    device = FrozenSim(fault_timeout=TIMEOUT, freezes=((Freeze(1, 0),),) * 9, **SMALL)
    with splitjoin.open(ROWS.query(), device, on_fault="restart") as session:
        with pytest.raises(DeviceLost, match="it was core 1 again; put the device in order, and restart"):
            session.push_r(ROWS.r)
        session.restart("golden")
        session.push_s(ROWS.s)
        found = len(session.flush())
    with splitjoin.open(ROWS.query(), "golden") as session:
        session.push_r(ROWS.r)
        session.push_s(ROWS.s)
        assert len(session.flush()) == found


@pytest.mark.parametrize(("options", "message"), [
    ({"cores": 1}, "^cores with fault_timeout must be 2 or more, so that one is left, not 1$"),
    ({"root_width": 2}, "^root_width with fault_timeout must be 1, not 2$"),
    ({"merger": "fixed"}, "^merger with fault_timeout must be 'ready', not 'fixed'$"),
    ({"sources": 2}, "^sources with fault_timeout must be 1, not 2$"),
    ({"architecture": "celljoin"}, "^fault_timeout of .* must be 0, as it has no cores"),
    ({"fault_timeout": -1}, "^fault_timeout must be 0 to 1048576, not -1$"),
    ({"fault_timeout": 100}, r"^fault_timeout with 32 tuples a core must be \d+ or more, not 100$")], ids=str)
def test_what_cannot_be_isolated_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        SimDevice(**{"fault_timeout": 5000, "cores": 3, "capacity": 32, **options}).configuration(ROWS.query())


def test_a_circuit_that_folds_is_refused_and_pairs_leave_instead() -> None:
    r = pa.table({"ts": [1], "x": [1]})
    s = pa.table({"ts": [1], "a": [1]})
    query = splitjoin.query(r.schema, s.schema, on="r.x = s.a", window="RANGE 9", time="ts", how="semi")
    with pytest.raises(UnsupportedError, match="fault_timeout of a circuit that folds must be 0"):
        SimDevice(fault_timeout=20000, fold="always", capacity=64).circuit(query)
    assert not SimDevice(fault_timeout=20000, capacity=64).configuration(query).folds
