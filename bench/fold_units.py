"""LUTs and stages of the units that fold: what Yosys maps them to for ECP5, beside what the cost model predicts.

A unit is a program of a user-defined aggregate: ``lift`` (``add`` to the initial state) and ``merge``, or ``add`` to
any state where there is no merge that circuits could use. Run: python -m bench.fold_units
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from amaranth.hdl import Module, Shape, Signal, Value, signed as signed_bits, unsigned as unsigned_bits
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from tests.support.user_aggregates import EXAMPLES, Smoothed

import splitjoin
from bench.place_and_route import ecp5
from bench.place_and_route.design import part_design
from bench.record import Recorder
from splitjoin import unsigned
from splitjoin.circuit.cost import Resources
from splitjoin.circuit.cost.folding import ordered_folder, pipeline_cost
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import folding_circuit
from splitjoin.circuit.wire import Configuration
from splitjoin.hls.graph import Graph, Node
from splitjoin.hls.pipeline import ScheduledGraph, scheduled
from splitjoin.hls.programs import build_graph
from splitjoin.lang.fold import Fold
from splitjoin_hw.gather.ordered_folder import OrderedFolder
from splitjoin_hw.hls.graph import combinational, pipelined

#: The clock in MHz that stages are counted for, and the LUT4 from which on a unit is shown on the page.
CLOCK, LEAST = 100.0, 16
#: Units that are routed, and the clock in MHz that they are made for.
ROUTED = {("SecondBest", "merge"): CLOCK, ("BestVolume", "merge"): CLOCK, ("Saturated", "add"): CLOCK,
          ("Crc8", "add"): 200.0, ("Top3", "merge"): CLOCK}
HOW = "Yosys, synth_lattice -family ecp5: LUT4 + 2 CCU2C of the operations between registers"


@splitjoin.aggregate
class Flags:
    """A bit for each of 32 classes that has occurred."""

    seen: unsigned(32)

    def add(self, x: unsigned(32)):
        self.seen |= x

    def merge(self, other):
        self.seen |= other.seen

    def result(self) -> unsigned(32):
        return self.seen


@splitjoin.aggregate
class Crc8:
    """The CRC of bytes, polynomial x^8 + x^2 + x + 1."""

    crc: unsigned(8)

    def add(self, x: unsigned(8)):
        crc = self.crc ^ x
        for _ in range(8):
            crc = ((crc << 1) ^ (7 if crc & 128 != 0 else 0)) & 255
        self.crc = crc

    def result(self) -> unsigned(8):
        return self.crc


@splitjoin.aggregate
class Top3:
    """The three greatest values."""

    values: (unsigned(16),) * 3

    def add(self, x: unsigned(16)):
        for n in range(3):
            self.values[n], x = max(self.values[n], x), min(self.values[n], x)

    def merge(self, other):
        for m in range(3):
            x = other.values[m]
            for n in range(3):
                self.values[n], x = max(self.values[n], x), min(self.values[n], x)

    def result(self) -> unsigned(18):
        return sum(self.values)


@splitjoin.aggregate
class LongestRise:
    """The most values in a row each of which is greater than the one before."""

    last: unsigned(16)
    run: unsigned(16)
    best: unsigned(16)

    def add(self, x: unsigned(16)):
        self.run = self.run + 1 if x > self.last else 1
        self.best = max(self.best, self.run)
        self.last = x

    def result(self) -> unsigned(16):
        return self.best


@splitjoin.aggregate
class Bits:
    """The bits that are set in all values, in an odd number of them, and how many values have each of four kinds."""

    every: unsigned(16)
    odd: unsigned(16)
    kinds: (unsigned(16),) * 4

    def init(self):
        self.every = 65535

    def add(self, x: unsigned(16)):
        self.every &= x
        self.odd ^= x
        self.kinds[x & 3] += 1

    def merge(self, other):
        self.every &= other.every
        self.odd ^= other.odd
        for n in range(4):
            self.kinds[n] += other.kinds[n]

    def result(self) -> unsigned(16):
        return self.every ^ self.odd


CLASSES: tuple[Any, ...] = (*(c for c, *_ in EXAMPLES), Flags, Crc8, Top3, LongestRise, Bits)


def units() -> Iterator[tuple[str, str, Graph]]:
    """The name of each class, of a program, and its operations."""
    for of in CLASSES:
        fold: Fold = of.fold
        if fold.merge is None or fold.ordered:
            yield fold.name, "add", build_graph(fold.add)
        else:
            init = dict(zip((s.name for s in fold.slots), fold.init, strict=True))
            yield fold.name, "lift", build_graph(fold.add, init)
            yield fold.name, "merge", build_graph(fold.merge)


def ordered_units() -> Iterator[tuple[str, Configuration]]:
    """The name of a class, and the configuration of a circuit whose unit behind the gather trees folds it in order."""
    r, s = (pa.schema([pa.field("ts", pa.int64(), False), pa.field("x", pa.uint16(), False)]) for _ in "rs")
    for name, of, clock in (("LongestRise", LongestRise, CLOCK), ("Smoothed", Smoothed, 2 * CLOCK)):
        query = splitjoin.query(r, s, on="r.x = s.x", how="left", window="RANGE 50", time="ts",
                                aggregate={"a": of("s.x"), "n": "count(*)"})
        yield name, folding_circuit(query, CircuitParameters(cores=2, capacity=64, fold="always", clock=clock)).config


def predicted(graph: Graph) -> Resources:
    """The cost of ``graph`` with registers for its outputs."""
    return pipeline_cost("ecp5", ScheduledGraph(graph, (0,) * len(graph.nodes)), alone=True)


class Unit(wiring.Component):
    """``graph`` with registers for its outputs alone. Ports: its inputs and outputs, in its order."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self._inputs = {n: f"in{i}" for i, n in enumerate(graph.nodes) if n.kind == "input"}
        super().__init__({**{name: In(_shape(n)) for n, name in self._inputs.items()},
                          **{f"out{i}": Out(_shape(graph.nodes[n])) for i, n in enumerate(graph.outputs)}})

    def elaborate(self, platform: object) -> Module:
        m = Module()

        def column(node: Node) -> Value:
            port: Value = getattr(self, self._inputs[node])
            return port

        for i, value in enumerate(combinational(m, "unit", self.graph, column)):
            m.d.sync += getattr(self, f"out{i}").eq(value)
        return m


class Pipe(Unit):
    """``pipeline`` behind registers for its inputs."""

    def __init__(self, pipeline: ScheduledGraph):
        super().__init__(pipeline.graph)
        self._pipeline = pipeline

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held: dict[Node, Signal] = {}

        def column(node: Node) -> Value:
            port = getattr(self, self._inputs[node])
            if node not in held:
                held[node] = Signal(port.shape(), reset_less=True)
                m.d.sync += held[node].eq(port)
            return held[node]

        for i, value in enumerate(pipelined(m, "unit", self._pipeline, column)):
            m.d.comb += getattr(self, f"out{i}").eq(value)
        return m


def _shape(node: Node) -> Shape:
    return signed_bits(node.width) if node.low < 0 else unsigned_bits(node.width)


def main() -> None:
    """All figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without routing, beside the committed figures")
    parser.add_argument("--only", nargs="*", help="aggregates that are measured; the figures of others stay")
    options = parser.parse_args()
    out = Recorder("fold_units", quick=options.quick)

    def chosen(name: str) -> bool:
        return not options.only or name in options.only

    for name, config in ordered_units():
        if not chosen(name):
            continue
        found, model = ecp5.utilization(part_design(OrderedFolder(config), "ecp5"))["part"], ordered_folder(config,
                                                                                                           "ecp5")
        for metric, value, guess in (("lut4", found.lut4, model.lut), ("ff", found.ff, model.ff),
                                     ("dsp", found.dsp, model.dsp)):
            out.add(f"ecp5_{metric}_in_order", value, metric, {"aggregate": name, "predicted": guess}, HOW)
    for name, program, graph in units():
        if not chosen(name):
            continue
        found, model = ecp5.utilization(part_design(Unit(graph), "ecp5"))["part"], predicted(graph)
        out.add("ecp5_lut4", found.lut4, "LUT4", {
            "aggregate": name, "program": program, "predicted": model.lut, "dsp": found.dsp, "dsp_predicted": model.dsp,
            "shown": found.lut4 >= LEAST}, HOW)
        out.add("stages", scheduled(graph, CLOCK).ahead, "cycles", {
            "aggregate": name, "program": program, "clock": CLOCK, "shown": found.lut4 >= LEAST},
            "splitjoin.hls.pipeline")
        clock = ROUTED.get((name, program))
        if clock is not None and not options.quick:
            pipeline = scheduled(graph, clock)
            routed = ecp5.route(part_design(Pipe(pipeline), "ecp5"), device="LFE5U-25F")
            out.add("ecp5_mhz", routed.mhz, "MHz", {
                "aggregate": name, "program": program, "clock": clock, "stages": pipeline.ahead},
                f"nextpnr-ecp5, LFE5U-25F of speed grade 6; {ecp5.versions()}")
    if options.only:
        out.keep_others()
    print(out.write())


if __name__ == "__main__":
    main()
