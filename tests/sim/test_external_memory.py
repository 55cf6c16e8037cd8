"""Circuits whose windows lie in external memory give the golden model's answer, whatever the memory does in between."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import DeviceError, UnsupportedError, join
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_sim.device import SimDevice
from splitjoin_sim.memory import SimulatedMemory
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, conforms, run, slices
from ..support.sampling import at_length, examples
from ..support.scenarios import SCENARIOS
from .test_conformance import ORDERS, STALLS
from .test_mask import masked_run
from .test_random import SCHEMAS, check, joins

NAMED = {s.name: s for s in SCENARIOS}
MEMORIES = st.builds(SimulatedMemory, latency=st.sampled_from([1, 5, 45]), interval=st.sampled_from([1, 4]),
                     reorder=st.sampled_from([0, 30]), stall=st.sampled_from([0.0, 0.5]))
#: A memory whose answers overtake each other.
WILD = SimulatedMemory(latency=3, interval=2, reorder=25, stall=0.3)


BAND, RELATIVE = "abs(r.x - s.a) <= 2", "9 * r.x <= 10 * s.a and 10 * s.a <= 11 * r.x"


@pytest.mark.parametrize(("core", "on", "contexts", "memory", "cores", "log"), [
    ("bucket", BAND, 4, "axi", 2, 6), at_length("hash", "r.x = s.a", 16, "axi", 1, 6),
    at_length("hash", "r.x = s.a", 2, "axi", 8, 6), ("bucket", BAND, 4, "axi", 1, 6),
    ("bucket", BAND, 4, "sdram", 1, 6), at_length("hash", "r.x = s.a", 8, "sdram", 1, 6),
    at_length("bucket", RELATIVE, 16, "axi", 1, 7), at_length("hash", "r.x = s.a", 16, "axi", 4, 9),
    at_length("bucket", RELATIVE, 16, "axi", 4, 11), at_length("bucket", BAND, 8, "sdram", 1, 11)])
def test_random_joins(core: str, on: str, contexts: int, memory: str, cores: int, log: int) -> None:
    """Windows by rows and by time that fill and overflow, in all orders, under stalls at every port; with SDRAM behind
    its own controller, whose chip makes an error of a time that is not kept; with several cores each has a memory.
    """
    circuit = (1, 2**log, 2, 2, 1, 1)

    @given(joins(circuit, timed=True, max_rows=max(400, 3 * 2**log)), MEMORIES)
    @settings(max_examples=examples(10))
    def same_answer(found: Any, external: SimulatedMemory) -> None:
        def make(**options: Any) -> SimDevice:
            given = {"external": external} if memory == "axi" else {}
            return SimDevice(**{**options, "cores": cores}, memory=memory, contexts=contexts, **given)

        check(circuit, make, replace(found, on=on), core=core)

    same_answer()


@pytest.mark.parametrize(("n", "core", "name"), [
    at_length(1, "bucket", "band-rows-3"), at_length(0, "bucket", "null-band"),
    at_length(3, "hash", "equal-rows-different"),
    at_length(1, "bucket", "float-band"), at_length(2, "bucket", "int64-band"), at_length(1, "hash", "string-equal"),
    at_length(3, "bucket", "burst"), at_length(0, "bucket", "band-range-different")])
def test_scenarios_on_pysim(n: int, core: str, name: str) -> None:
    conforms(PysimDevice(capacity=64, core=core, memory="axi", contexts=4, seed=n, external=WILD, **STALLS),
             NAMED[name], ORDERS[n % len(ORDERS)])


def tables(rows: int, span: int) -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(rows)
    return (pa.table({"x": rng.integers(0, span, rows, np.int32), "y": rng.integers(0, 3, rows, np.int64)}),
            pa.table({"a": rng.integers(0, span, rows, np.int32), "b": rng.integers(0, 3, rows, np.int64)}))


def query(r: pa.Table, s: pa.Table, on: str, order: str = "total", rows: int = 64) -> Query:
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=f"ROWS {rows}", order=order)


@pytest.mark.parametrize(("on", "rows"), [
    at_length("abs(r.x - s.a) <= 2 and r.y = s.b", 8),
    at_length("abs(r.x - s.a) <= 2 and r.y = s.b and r.x * s.a % 7 < 5", 90)])
def test_four_look_ups(on: str, rows: int) -> None:
    """Two tests in the index, and a part that no interval decides."""
    r, s = tables(rows, rows // 2)
    asked = query(r, s, on)
    assert_conforms(run(PysimDevice(capacity=64, memory="axi", contexts=4, external=WILD, core="bucket"), asked, r, s),
                    run(device("golden"), asked, r, s), "total")


@pytest.mark.parametrize(("make", "fails"), [(SimDevice, 300), at_length(SimDevice, 801), at_length(PysimDevice, 400)])
def test_an_error_of_memory_is_a_fault_of_the_device(make: Any, fails: int) -> None:
    """Nothing that is wrong comes before it."""
    rows, rng = 200, np.random.default_rng(fails)
    r, s = (pa.table([np.arange(rows), rng.integers(0, 40, rows, np.int16)], schema=SCHEMAS[side]) for side in "rs")
    asked = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="abs(r.x - s.a) <= 2",
                       window="ROWS 50 RANGE 60", time="ts")
    options = {"capacity": 64, "core": "bucket", "memory": "axi", "contexts": 4, "patience": 3000, "cores": 2}
    whole = {(int(i["r"]), int(i["s"])) for i in run(device("golden"), asked, r, s)}
    with make(**options, external=SimulatedMemory(latency=5, fails=fails)).open(asked) as session:
        for part in slices(arrivals(asked, r, s), range(0, 2 * rows, 20)):
            try:
                session.push(part)
            except DeviceError as error:
                assert "external memory answered a request with an error" in str(error)
                break
            assert {(int(i["r"]), int(i["s"])) for i in session.poll()} <= whole
        else:
            pytest.fail("the error was not seen")


@pytest.mark.parametrize(("options", "message"), [
    ({"cores": 3}, "cores with memory axi must be 1, 2, 4, 8, 16 or 32, as bits of a bucket's"),
    ({"cores": 16, "capacity": 64}, "capacity with memory axi and 16 cores must be 128 or more, not 64"),
    ({"core": "scan"}, "core with memory axi must be hash or bucket, as a scan"),
    ({"capacity": 32}, "capacity with memory axi must be 64 or more, not 32"),
    ({"contexts": 3}, "contexts must be 0 or a power of two from 2 to 64, not 3"),
    ({"memory": "bram", "contexts": 2}, "contexts with memory bram must be 0, as a region follows one probe"),
    ({"memory": "bram", "capacity": 2**17}, "capacity must be a power of two from 2 to 65536, not 131072"),
    ({"fault_timeout": 2**20}, "fault_timeout with memory axi must be 0"),
    ({"sources": 2}, "sources with memory axi must be 1"),
    ({"root_width": 2}, "root_width with memory axi must be 1"),
    ({"small": True}, "architecture with memory axi must be splitjoin"),
    ({"memory": "sdram", "cores": 2}, "cores with memory sdram must be 1, as a board has one"),
    ({"memory_width": 32}, "memory_width must be 64, 128 or 256, not 32"),
    ({"memory": "sdram", "memory_width": 64}, "memory_width with memory sdram must be 128, as without an AXI4"),
    ({"memory": "ddr"}, "memory must be one of bram, axi, sdram, not 'ddr'")])
def test_parameters_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        SimDevice(**{"memory": "axi", **options})


@pytest.mark.parametrize("memory", ["axi", "sdram"])
def test_the_most_and_the_least_that_a_memory_has(memory: str) -> None:
    for capacity in 64, 2**24:
        assert CircuitParameters(memory=memory, capacity=capacity).capacity == capacity
    with pytest.raises(UnsupportedError, match="capacity must be a power of two from 2 to "):
        CircuitParameters(memory=memory, capacity=2**25)


def test_conditions_that_are_refused() -> None:
    r, s = tables(5, 9)
    with pytest.raises(UnsupportedError, match="memory='axi' needs a condition with an index"):
        join(r, s, on="r.x < s.a", window="ROWS 64", device=SimDevice(memory="axi"))
    wide = " and ".join(f"r.y = s.b and r.y + {n} <> s.b + 3 * s.a and r.x < s.a * {n + 2}" for n in range(3))
    with pytest.raises(UnsupportedError, match=r"bits of the keys of stream . that are compared, with memory axi must"):
        SimDevice(memory="axi", core="hash", verify="host").configuration(
            query(r, s, wide))
    with pytest.raises(DeviceError, match="external must be left out with memory 'sdram'"):
        SimDevice(memory="sdram", external=WILD).open(query(r, s, "r.x = s.a"))
    narrow = SimDevice(memory="axi", memory_width=64, capacity=2**20)
    with pytest.raises(UnsupportedError, match="of 64 bits; give memory_width=256"):
        narrow.configuration(query(r, s, "r.y = s.b"))
    for name, use in (("uart:none", "axi"), ("xdma:none", "sdram")):
        with pytest.raises(UnsupportedError, match=f"memory of the device {name[:4]} must be bram"):
            device(name, memory=use)
    with pytest.raises(UnsupportedError, match="memory of a circuit that folds must be bram"):
        join(r, s, on="r.x = s.a", window="ROWS 64", by="r", aggregate={"n": "count(*)"},
             device=SimDevice(memory="axi", fold="always"))


@pytest.mark.parametrize(("log", "cores"), [at_length(11, 1), at_length(17, 1), at_length(17, 4)])
def test_long_windows_beside_the_cpu_engine(log: int, cores: int) -> None:
    window = 2**log
    rng = np.random.default_rng(log)
    r, s = (pa.table({name: rng.integers(0, 64 * window, window + window // 8, np.int32)}) for name in "xa")
    asked = query(r, s, "r.x - s.a between -63 and 63", rows=window)
    assert_conforms(run(SimDevice(memory="axi", contexts=64 // cores, cores=cores), asked, r, s),
                    run(device("cpu"), asked, r, s), "total")


#: The circuit of `test_random_joins`, so that it is compiled once.
CIRCUIT: dict[str, Any] = {"memory": "axi", "core": "bucket", "capacity": 64, "contexts": 4, "external": WILD,
                           "cores": 2}
#: And that of the same test with SDRAM.
ONE_CORE: dict[str, Any] = {"memory": "sdram", "core": "bucket", "capacity": 64, "contexts": 4}


def timed(rows: int) -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(rows)
    r, s = (pa.table([np.sort(rng.integers(0, rows, rows)), rng.integers(0, 40, rows, np.int16)], schema=SCHEMAS[side])
            for side in "rs")
    return r, s


@pytest.mark.parametrize(("make", "options"), [
    *((SimDevice, options) for options in ({"how": "anti"}, {"how": "full"}, {"how": "asof", "k": 2})),
    at_length(SimDevice, {"how": "asof_left", "direction": "nearest"}), at_length(PysimDevice, {"how": "left"}),
    at_length(PysimDevice, {"how": "asof_left"})])
def test_kinds_of_joins(make: Any, options: dict[str, Any]) -> None:
    r, s = timed(60)
    asked: dict[str, Any] = {"on": BAND, "window": "ROWS 20 RANGE 25", "time": "ts", **options}
    assert join(r, s, device=make(**CIRCUIT), **asked).equals(join(r, s, device="golden", **asked))


def test_masks_and_snapshots() -> None:
    """A masked core misses what is stored meanwhile, and one of several cannot be masked; a session goes on from a
    snapshot where it ended, on a circuit with more cores.
    """
    r, s = timed(60)

    def asked(order: str) -> Query:
        return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=BAND, window="ROWS 20 RANGE 25",
                          time="ts", order=order)

    scenario: Any = SimpleNamespace(query=asked, r=r, s=s)
    steps = [(20, [0]), (50, []), (80, [0]), (100, [])]
    assert_conforms(masked_run(SimDevice(**ONE_CORE), scenario, "total", steps),
                    masked_run(device("golden"), scenario, "total", steps), "total")
    with pytest.raises(UnsupportedError, match="a circuit with 2 memories go to the core of their key; use cores=1"):
        SimDevice(**CIRCUIT, masked=[0]).open(asked("total"))
    found: list[dict[str, Any]] = []
    with splitjoin.open(asked("total"), device=SimDevice(**ONE_CORE)) as session:
        session.push_r(r.slice(0, 40))
        session.push_s(s.slice(0, 40))
        found += session.poll().to_pylist()
        snapshot = session.snapshot()
    with splitjoin.open(asked("total"), device=SimDevice(**CIRCUIT)) as session:
        session.restore(snapshot)
        session.push_r(r.slice(40))
        session.push_s(s.slice(40))
        found += session.flush().to_pylist()
    assert found == join(r, s, device="golden", on=BAND, window="ROWS 20 RANGE 25", time="ts",
                         order="total").table.to_pylist()
