"""Kang's procedure as a circuit: golden's answer to every scenario under random stalls, and a tuple at a time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from splitjoin.base.errors import DeviceError, UnsupportedError
from splitjoin.circuit.tuner.speed import cycles_a_tuple
from splitjoin.circuit.tuner.workload import Workload
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import PAIR
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.registry import device
from splitjoin.joins.circuit_component import component
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin_hw.baseline import kang
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, run, slices
from ..support.links import plant
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario

NAMED = {scenario.name: scenario for scenario in SCENARIOS}
#: RANGE windows, in which tuples of a quiet stream may outlive their time.
TIMED = [case for case in SCENARIOS if case.name in ("band-range", "band-range-different", "band-rows-and-range")]


def printed(scenario: Scenario) -> set[tuple[int, int]]:
    """The pairs of the printed procedure: a tuple leaves when the next one of its own stream finds it too old."""
    query = scenario.query()
    whole = arrivals(query, scenario.r, scenario.s)
    assert whole.ts is not None
    tables, stored, found = {"r": scenario.r, "s": scenario.s}, {"r": [], "s": []}, set()
    condition = compile_condition(query.predicate)
    rows = {side: tables[side].to_pylist() for side in "rs"}
    for number, ts in zip(whole.stream.tolist(), whole.ts.tolist(), strict=True):
        side, other = "rs"[number], "sr"[number]
        probe = sum(n is not None for n in stored[side])
        for n in [n for n, then in stored[other] if then is not None]:
            r, s = (probe, n) if side == "r" else (n, probe)
            if condition(rows["r"][r], rows["s"][s]) is True:
                found.add((r, s))
        extent = query.window(side)
        stored[side] = [(n, None if then is None or (extent.length is not None and ts - then > extent.length)
                         or (extent.rows is not None and n <= probe - extent.rows) else then)
                        for n, then in [*stored[side], (probe, ts)]]
    return found


@pytest.mark.parametrize("scenario", [
    at_length(case) if case.name == "band-rows-and-range" else case for case in TIMED], ids=str)
def test_the_printed_procedure_adds_exactly_the_stale_pairs(scenario: Scenario) -> None:
    query = scenario.query("total")
    ours, own = (run(GoldenDevice(expire=expire), query, scenario.r, scenario.s) for expire in ("opposite", "own"))
    pairs = [{(int(i["r"]), int(i["s"])) for i in items if i["kind"] == PAIR} for items in (ours, own)]
    assert pairs[1] == printed(scenario)
    assert pairs[0] < pairs[1]
    for make in (PysimDevice, SimDevice) if scenario is TIMED[-1] else (SimDevice,):
        kang = make(capacity=64, seed=1, stall_in=0.3, stall_out=0.3, architecture="kang", expire="own")
        assert_conforms(run(kang, query, scenario.r, scenario.s, [30]), own, "total")


def test_a_stream_may_be_quiet_for_longer_than_the_counter_of_time() -> None:
    """A tuple outlives its time by any number of tuples of the other stream, and meets them all."""
    ts = pa.array(range(0, 3 * 2**33, 2**32), pa.int64())
    r = pa.table({"ts": ts.slice(0, 1), "x": pa.array([1], pa.int32())})
    s = pa.table({"ts": ts, "a": pa.array([1] * len(ts), pa.int32())})
    query = Scenario("quiet", r, s, "r.x = s.a", "RANGE 5", 0, "ts").query("total")
    own = run(GoldenDevice(expire="own"), query, r, s)
    assert sum(own["kind"] == PAIR) == len(ts)
    assert_conforms(run(PysimDevice(capacity=16, architecture="kang", expire="own"), query, r, s), own, "total")


FAULTS = {"later results of a probe are left out": ("take & ends", "take"),
          "stars come a probe late": ("Array(since_star)[own] + 1 == settings.r.precision",
                                      "Array(since_star)[own] == settings.r.precision")}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = NAMED["all-match"]
    scenario = Scenario("few", scenario.r.slice(0, 10), scenario.s.slice(0, 10), "TRUE", "ROWS 4", 0)
    query = scenario.query("outer(1)")
    expected = run(GoldenDevice(), query, scenario.r, scenario.s)
    plant(monkeypatch, kang.Kang, *FAULTS[fault])
    with pytest.raises((AssertionError, DeviceError)):
        assert_conforms(run(PysimDevice(capacity=16, architecture="kang", patience=1500), query, scenario.r,
                            scenario.s), expected, "outer(1)")


def test_masks_settling_and_counters() -> None:
    scenario = NAMED["band-rows-17"]
    query = scenario.query("total")
    parts = list(slices(arrivals(query, scenario.r.slice(0, 20), scenario.s.slice(0, 20)), [10, 20, 30]))
    with (device("pysim", capacity=32, architecture="kang").open(query) as kang,
          device("golden").open(query) as golden):
        for core, part in zip(([], [0], [0], []), parts, strict=True):
            for session in (kang, golden):
                session.mask(core)
                session.push(part)
            assert_conforms(kang.settle(), golden.settle(), "total")
        kang.flush()
        ours, expected = kang.counters(), golden.counters()
        assert {name: ours[name] for name in ("tuples_r", "tuples_s", "matches")} == {
            name: expected[name] for name in ("tuples_r", "tuples_s", "matches")}


@pytest.mark.long  # `bench.evaluation` counts the same cycles
def test_its_speed_is_predicted() -> None:
    scenario = NAMED["all-match"]
    query = Scenario("none", scenario.r, scenario.s, "r.x > s.a + 100", "ROWS 16", 0).query("total")
    kang = PysimDevice(capacity=16, architecture="kang")
    with kang.open(query) as session:
        session.push(arrivals(query, scenario.r, scenario.s))
        session.flush()
        counters = session.counters()
    tuples = counters["tuples_r"] + counters["tuples_s"]
    assert counters["comparisons"] / tuples == pytest.approx(14, abs=2)
    assert counters["cycles"] / tuples == pytest.approx(
        cycles_a_tuple(kang.configuration(query), Workload(16, 16, 0.0)), rel=0.15)


@pytest.mark.parametrize(("options", "message"), [
    ({"cores": 2}, "cores of Kang's circuit must be 1, not 2"), ({"probes": 2}, "probes of Kang's circuit must be 1"),
    ({"expire": "both"}, "expire must be opposite or own, not 'both'"),
    ({"core": "hash"}, "core of Kang's circuit must be auto or scan"), ({"small": True}, "must be False, not True")])
def test_wrong_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        PysimDevice(architecture="kang", **options)


def test_only_kang_expires_the_own_window() -> None:
    with pytest.raises(UnsupportedError, match="expire of a SplitJoin circuit must be opposite, not 'own'"):
        PysimDevice(expire="own")
    with pytest.raises(DeviceError, match="expire must be 'opposite' or 'own', not 'both'"):
        GoldenDevice(expire="both")


def test_only_simulations_take_it() -> None:
    with pytest.raises(UnsupportedError, match=r"a baseline.*use device='sim', device='pysim' or `splitjoin verilog`"):
        device("uart:/dev/null", architecture="kang")
    with pytest.raises(DeviceError, match="architecture='kang' is of engine='threads'"):
        device("cpu", architecture="kang")
    scenario = NAMED["short-r"]
    with pytest.raises(UnsupportedError, match=r"Kang's circuit is a baseline"):
        component(scenario.query(), architecture="kang")
