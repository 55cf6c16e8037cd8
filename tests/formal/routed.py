"""Proofs of the choice of a core where each has a memory: of two cores, one has a tuple, and every probe that reaches
the tuple's bucket visits it. So each pair is compared in one core, and in no other.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.core_kinds import Span
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.core.buckets import CellBuckets, HashBuckets
from splitjoin_hw.core.kinds import MemoryComponents
from splitjoin_hw.layouts import STREAM_R, STREAM_S, input_layout, struct, taken

from .harness import Harness
from .proofs import Fault, Proof

_ONE, _VISITED = "one core has each tuple", "a probe visits the core of each tuple whose bucket it reaches"


class _Cores(wiring.Component):
    """The decisions of both cores' regions of S. Ports: ``stored``, ``probe``: records of S and R. ``has``,
    ``visited``: a bit for each core. ``o``: offers all the time.
    """

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__({"stored": In(input_layout(config)), "probe": In(input_layout(config)),
                          "has": Out(2), "visited": Out(2), "o": Out(stream.Signature(1))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        kind = MemoryComponents(HashBuckets() if self._config.core == "hash" else CellBuckets())
        m.d.comb += self.o.valid.eq(1)
        for record, flags in ((self.stored, self.has), (self.probe, self.visited)):
            for core in (0, 1):
                storage = SimpleNamespace(index=Const(core, 1), here=flags[core])
                kind.route(m, self._config, "s", record, storage, SimpleNamespace(index=Signal(name=f"index{core}")))
        return m


def routed(config: Configuration) -> Harness:
    """The harness of two cores."""
    dut = _Cores(config)
    h = Harness(dut)
    h.assume("a tuple of S is stored", dut.stored.stream == STREAM_S)
    h.assume("a tuple of R probes", dut.probe.stream == STREAM_R)

    def view(record: Any, side: str, part: Any) -> Any:
        return data.View(struct(part), taken(config.body(side), part, record.body))

    keys, cells = (view(dut.stored, "s", part) for part in (config.keys("s"), config.cells("s")))
    bounds, reach = (view(dut.probe, "r", part) for part in (config.bounds("r"), config.reach("r")))
    if config.core == "hash":
        reached = Cat((bounds[f"lo{j}"] <= keys[f"key{config.tests[j][1]}"])
                      & (keys[f"key{config.tests[j][1]}"] <= bounds[f"hi{j}"]) for j in config.index).all()
    else:
        places = [(cells[f"cell{n}"], reach[f"first{n}"], reach[f"span{n}"]) for n in range(len(config.index))]
        reached = Cat((span != Span.NONE) & ((cell == first) | (span == Span.MANY) | (
            (span == Span.TWO) & (cell == (first + 1)[:len(first)]))) for cell, first, span in places).all()
    h.prove(_ONE, dut.has[0] ^ dut.has[1])
    h.prove(_VISITED, ~reached | ~(dut.has & ~dut.visited).any())
    return h


def _config(core: str, tests: int) -> Configuration:
    return Configuration(keys_r=(8,) * tests, keys_s=(8,) * tests, tests=tuple((n, n) for n in range(tests)),
                         tree=0 if tests == 1 else ("and", *range(tests)), cores=2, capacity=64, core=core,
                         index=tuple(range(tests)), memory="axi", contexts=2)


_FAULTS = {
    "bucket": (Fault(_ONE, MemoryComponents, "core_of(config, bucket) == storage.index",
                     "core_of(config, bucket) >= storage.index", "route"),
               Fault(_VISITED, CellBuckets, "(first + (n >> d & 1))[:len(first)]", "first", "looked_up")),
    "hash": (Fault(_VISITED, MemoryComponents, "whole | Cat(due & mine(bucket) for due, bucket in lookups).any()",
                   "mine(lookups[0][1])", "route"),),
}

PROOFS = tuple(
    Proof(f"two cores with a memory each, {core}, {tests} {'test' if tests == 1 else 'tests'}",
          lambda of=(core, tests): routed(_config(*of)), 1, search=1, first=1,
          faults=(*_FAULTS[core], *_FAULTS["bucket"][:core == "hash"]) if tests == 2 else (), quick=tests == 2)
    for core, tests in (("bucket", 1), ("bucket", 2), ("hash", 1), ("hash", 2)))
