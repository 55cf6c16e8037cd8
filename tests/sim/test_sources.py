"""Circuits with several sources: golden's answer from any division of the tuples, by SG_out's rule, in simulation and
through AXI ports.
"""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from amaranth.sim import Simulator

from splitjoin.base.errors import CapacityError, DeviceError, UnsupportedError
from splitjoin.circuit.axi import AxiShape
from splitjoin.circuit.driver import CircuitSession, Transport
from splitjoin.circuit.encode import decode, single_items
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import pairs_circuit
from splitjoin.circuit.registers import register
from splitjoin.circuit.sources import SourceQueues
from splitjoin.circuit.wire import ItemKind, Op
from splitjoin.cli import DONE, main
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import PAIR
from splitjoin.engines.golden import GoldenDevice
from splitjoin.engines.registry import device
from splitjoin_hw.gate import merger
from splitjoin_hw.link.axi import AxiJoin
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

from ..support.conformance import assert_conforms, run
from ..support.icarus import needs_icarus
from ..support.links import plant
from ..support.sampling import at_length
from ..support.scenarios import SCENARIOS, Scenario

TIMED = [scenario for scenario in SCENARIOS if scenario.query().time is not None]
BAND = next(scenario for scenario in TIMED if scenario.name == "band-range")
CUT = replace(BAND, name="cut", r=BAND.r.slice(0, 20), s=BAND.s.slice(0, 20))
ORDERS = ("total", "none", "outer(1)", "inner(3)", "outer(3)")


def golden(scenario: Scenario, order: str, cores: int = 1) -> Any:
    return run(GoldenDevice(cores=cores), scenario.query(order), scenario.r, scenario.s)


def pushed(make: Any, scenario: Scenario, order: str, seed: int, **options: Any) -> Any:
    """The items, with tuples dealt to the sources at random, in parts, settled between two of them."""
    query, rng = scenario.query(order), np.random.default_rng(seed)
    whole = arrivals(query, scenario.r, scenario.s)
    items = []
    with make(capacity=64, seed=seed, **options).open(query) as session:
        assert isinstance(session, CircuitSession)
        cuts = [0, *sorted(rng.integers(0, len(whole), 3).tolist()), len(whole)]
        last = 0
        for n, (begin, end) in enumerate(pairwise(cuts)):
            r, s = (np.cumsum(whole.stream == number) for number in (0, 1))
            (r0, r1), (s0, s1) = ([int(rows[at - 1]) if at else 0 for at in (begin, end)] for rows in (r, s))
            part = arrivals(query, scenario.r.slice(r0, r1 - r0), scenario.s.slice(s0, s1 - s0))
            sources = rng.integers(0, session.config.sources, len(part))
            for at in range(1, len(part)):  # ties must not fall
                if part.ts[at] == part.ts[at - 1] and part.stream[at] == part.stream[at - 1]:
                    sources[at] = max(sources[at], sources[at - 1])
            if n and len(part) and len(whole) and begin and whole.ts[begin] == whole.ts[begin - 1]:
                sources[:] = np.maximum(sources, last)
            session.push_from(part, sources)
            last = int(sources[-1]) if len(sources) else last
            items.append(session.settle() if n == 1 and not order.startswith("outer(3") else session.poll())
        items.append(session.flush())
    return np.concatenate(items)


@pytest.mark.parametrize("scenario", [case if case.name == "band-rows-and-range" else at_length(case)
                                      for case in TIMED], ids=str)
def test_scenarios(scenario: Scenario) -> None:
    n = TIMED.index(scenario)
    order = ORDERS[n % len(ORDERS)]
    made = PysimDevice(cores=n % 3 + 1, capacity=64, sources=n % 3 + 2, seed=n, stall_in=0.4, stall_out=0.3)
    assert_conforms(run(made, scenario.query(order), scenario.r, scenario.s, [len(scenario.r) // 2, len(scenario.r)]),
                    golden(scenario, order, n % 3 + 1), order)


@pytest.mark.parametrize("seed", range(2))
def test_any_division_of_the_tuples(seed: int) -> None:
    for order in ORDERS[seed:seed + 2]:
        found = pushed(SimDevice, BAND, order, seed, cores=2, sources=4, stall_in=0.5, stall_out=0.2)
        assert_conforms(found, golden(BAND, order, 2), order)


def test_results_leave_by_the_rule_of_sg_out() -> None:
    """ScaleJoin, section 4: the results of all cores by max(r.ts, s.ts)."""
    found = pushed(SimDevice, BAND, "total", 7, cores=2, sources=4, stall_in=0.5)
    pairs = found[found["kind"] == PAIR]
    r, s = (np.array(table["ts"]) for table in (BAND.r, BAND.s))
    times = np.maximum(r[pairs["r"]], s[pairs["s"]])
    assert len(times) > 20
    assert (np.diff(times) >= 0).all()


def test_advance_lets_go_what_was_held_back() -> None:
    query = BAND.query("none")
    with PysimDevice(cores=1, capacity=64, sources=2).open(query) as session:
        session.push(arrivals(query, BAND.r.slice(0, 20), BAND.s.slice(0, 20)))
        ts = int(max(BAND.r["ts"][19].as_py(), BAND.s["ts"][19].as_py()))
        session.advance(ts)  # nothing new
        session.advance(ts + 1)
        assert len(session.settle()) == sum(golden(CUT, "none")["kind"] == PAIR)


FAULTS = {"no order of sources": ("~(keys[1] - keys[0])[top]", "(keys[0] - keys[1])[top]"),
          "does not wait": ("~i.valid & ~self.i_open[n]", "~i.valid")}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, merger.ReadyMerger, *FAULTS[fault])

    def conforms() -> None:
        for seed in range(4):
            found = pushed(PysimDevice, BAND, "total", seed, cores=1, sources=3, stall_in=0.5)
            assert_conforms(found, golden(BAND, "total"), "total")

    with pytest.raises((AssertionError, DeviceError, IndexError)):
        conforms()


def test_through_axi_ports() -> None:
    """Two AXI4-Streams that stall by themselves."""
    query = BAND.query("total")
    circuit = pairs_circuit(query, CircuitParameters(cores=1, capacity=64, sources=2))
    with PysimDevice(cores=1, capacity=64, sources=2).open(query) as session:
        assert isinstance(session, CircuitSession)
        encoder = session._encoder
        queues, part = SourceQueues(circuit.config), arrivals(query, BAND.r.slice(0, 20), BAND.s.slice(0, 20))
        records, of = queues.push(part, encoder.encode(part), queues.spread(part))
        more, end = queues.everywhere(encoder.flush(last=True))
    words = [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in np.concatenate([records, more])]
    waiting: list[list[int]] = [[], []]
    for word, source in zip(words, np.concatenate([of, end]).tolist(), strict=True):
        waiting[source].append(word)
    join, items = AxiJoin(circuit.config), []
    simulator = Simulator(join)
    simulator.add_clock(1e-6)

    async def source(ctx: Any, n: int) -> None:
        rng = random.Random(n)
        data, valid, ready = (getattr(join, f"s_axis_{n}_t{name}") for name in ("data", "valid", "ready"))
        await ctx.tick().repeat(60)  # after the settings
        for word in waiting[n]:
            await ctx.tick().repeat(rng.randrange(1, 4))
            ctx.set(data, word)
            ctx.set(valid, 1)
            await ctx.tick().until(ready)
            ctx.set(valid, 0)

    async def host(ctx: Any) -> None:
        ctx.set(join.aresetn, 1)
        await ctx.tick().repeat(8)
        for name, value in circuit.settings.items():
            for half in range(register(name).bits // 32):
                for port, given in (("awaddr", 4 * (register(name).address + half)), ("awvalid", 1), ("wstrb", 15),
                                    ("wdata", value >> 32 * half & 0xFFFFFFFF), ("wvalid", 1), ("bready", 1)):
                    ctx.set(getattr(join, f"s_axil_{port}"), given)
                await ctx.tick().until(join.s_axil_bvalid)
        ctx.set(join.s_axil_awvalid, 0)
        ctx.set(join.s_axil_wvalid, 0)
        ctx.set(join.m_axis_tready, 1)
        for _ in range(20_000):
            _, _, valid, item = await ctx.tick().sample(join.m_axis_tvalid, join.m_axis_tdata)
            if valid:
                items.append(item.to_bytes(AxiShape.of(circuit.config).item_bytes, "little"))
                if item & 3 == ItemKind.END:
                    return
        raise AssertionError("no END within the limit")

    for n in range(2):
        simulator.add_testbench(partial(source, n=n), background=True)
    simulator.add_testbench(host)
    simulator.run()
    out = np.frombuffer(b"".join(items), "<u4").reshape(len(items), -1).astype(np.uint32)
    found = decode(single_items(out, circuit.config)[0])
    assert_conforms(found[found["kind"] != ItemKind.END], golden(CUT, "total"), "total")


def test_tuples_far_apart() -> None:
    """Times of 64 bits, which nobody shortens."""
    ts = [0, 1, 2**61]
    far = Scenario("far", pa.table({"ts": ts, "x": [1, 1, 1]}), pa.table({"ts": ts, "a": [1, 1, 1]}), "r.x = s.a",
                   "RANGE 5", 0, "ts")
    made = PysimDevice(cores=1, capacity=8, sources=2)
    assert_conforms(run(made, far.query("total"), far.r, far.s), golden(far, "total"), "total")
    further = pa.table({"ts": [0, 2**62], "x": [1, 1]})
    with pytest.raises(CapacityError, match="must span fewer than 2\\^62 ticks"):
        run(made, far.query("total"), further, far.s.slice(0, 1))


def test_what_several_sources_refuse() -> None:
    made, query = PysimDevice(cores=2, capacity=64, sources=2), BAND.query("total")
    rows = next(scenario for scenario in SCENARIOS if scenario.query().time is None)
    with pytest.raises(UnsupportedError, match="2 sources are merged by event time, and the query has none"):
        made.open(rows.query("total"))
    with pytest.raises(UnsupportedError, match="sources of the device xdma must be 1"):
        device("xdma:/dev/null", sources=2)
    with pytest.raises(UnsupportedError, match="sources of a small circuit must be 1, not 2"):
        PysimDevice(small=True, sources=2)
    part = arrivals(query, BAND.r.slice(0, 2), BAND.s.slice(0, 2))
    with made.open(query) as session:
        assert isinstance(session, CircuitSession)
        with pytest.raises(UnsupportedError, match="a core is masked between two tuples"):
            session.mask([0])
        with pytest.raises(UnsupportedError, match="in simulations only, not by PysimTransport"):
            Transport.transfer_from(session._transport, np.zeros((0, 1), np.uint32), np.zeros(0, int), until_end=True)
        with pytest.raises(DeviceError, match="sources must be a number from 0 to 1 for each of the 4 tuples"):
            session.push_from(part, np.array([0, 1, 2, 0]))
    with PysimDevice(cores=2, capacity=64).open(query) as session:
        assert isinstance(session, CircuitSession)
        with pytest.raises(DeviceError, match="the circuit has one source"):
            session.push_from(part, np.zeros(4, np.intp))


@needs_icarus
def test_the_testbench_of_axi_ports_drives_all_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["verilog", "--on", "r.x = s.a", "--schema-r", "ts: int64, x: int8", "--schema-s", "ts: int64, a: int8",
               "--window", "RANGE 9", "--time", "ts", "--cores", "1", "--capacity", "16", "--top", "axi", "-o", "out",
               "--sources", "2", "--testbench", "verilog", "--testbench-tuples", "20"]
    assert main(command) == DONE
    text = (tmp_path / "out" / "splitjoin_axi.v").read_text()
    assert "s_axis_1_tdata" in text
    assert not (tmp_path / "out" / "component.xml").exists()
    done = subprocess.run(["make", "-s", "SIM=icarus"], cwd="out", text=True, capture_output=True, check=False)
    assert done.returncode == 0 and "PASS: 44 records, " in done.stdout, done.stdout + done.stderr


def test_ties_go_to_one_source_across_pushes() -> None:
    query = BAND.query("total")
    tied = pa.table({"ts": [1, 1, 1, 2, 2], "x": pa.array([0] * 5, BAND.r["x"].type)})
    circuit = pairs_circuit(query, CircuitParameters(cores=1, capacity=64, sources=3))
    queues = SourceQueues(circuit.config)
    none = BAND.s.slice(0, 0)
    found = []
    for begin, end in ((0, 2), (2, 4), (4, 5)):
        part = arrivals(query, tied.slice(begin, end - begin), none)
        of = queues.spread(part)
        found += of.tolist()
        records, sources = queues.push(part, np.zeros((len(part), circuit.config.input_record.words), np.uint32), of)
        assert (records[:, 0] & 3 == Op.TICK).sum() == 3
        assert sources[-3:].tolist() == [0, 1, 2]
    assert found[0] == found[1] == found[2] != found[3] == found[4]
