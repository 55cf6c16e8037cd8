"""The gather tree of a wide root: two result streams of one side, so that two results leave in a cycle."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import RESULT_QUEUE, split
from splitjoin.circuit.wire import ROW_BITS, ItemKind

from ..layouts import result_layout
from ..network.block_fifo import BlockFifo
from ..network.pipeline import pipelined
from ..parts import Submodules
from .merger import Merger
from .tree import GatherTree


class WaySplitter(wiring.Component):
    """Deals a stream of results out to two ways, each with a queue of `RESULT_QUEUE` in block RAM.

    Whole probes take turns: each star is the last result of its way's turn. With ``spread``, for groups of any length,
    single results take turns, and every star goes to both ways. An END always does.

    Ports: ``i``: results. ``o``: the ways. ``spread``: a setting, constant while results are in flight. 1 result per
    cycle at ``i``.
    """

    def __init__(self) -> None:
        results = stream.Signature(result_layout())
        super().__init__({"i": In(results), "o": Out(results).array(2), "spread": In(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        way, both = Signal(name="way"), Signal(name="both")
        queues = [BlockFifo(result_layout(), RESULT_QUEUE) for _ in range(2)]
        kind = self.i.payload.kind
        ready = [queue.i.ready for queue in queues]
        m.d.comb += [both.eq((kind == ItemKind.END) | (self.spread & (kind == ItemKind.STAR))),
                     self.i.ready.eq(Mux(both, ready[0] & ready[1], Array(ready)[way]))]
        for n, queue in enumerate(queues):
            m.submodules[f"queue{n}"] = queue
            m.d.comb += [queue.i.payload.eq(self.i.payload),
                         queue.i.valid.eq(self.i.valid & Mux(both, ready[1 - n], way == n))]
            wiring.connect(m, queue.o, wiring.flipped(self.o[n]))
        with m.If(self.i.valid & self.i.ready & ~both & (self.spread | (kind == ItemKind.STAR))):
            m.d.sync += way.eq(~way)
        return m


class WayTree(wiring.Component):
    """A gather tree with two outputs, each of which gives a result a cycle: `GatherTree` but for its last merger.

    Each input of the last merger is dealt out by a `WaySplitter` to two such mergers, which work on different probes,
    or with ``spread`` each on a part of a group. So either way has the results of its probes in the order of a
    `GatherTree`, and the ways' probes alternate.

    Ports: ``i``: ``leaves`` streams, two or more. ``o``: the ways. ``total``: as of `Merger`. ``spread``: as of
    `WaySplitter`.
    """

    def __init__(self, *, leaves: int, fanin: int, bits: int = ROW_BITS, parts: Submodules | None = None):
        if not (isinstance(leaves, int) and leaves >= 2):
            raise ValueError(f"Leaves must be an integer of at least 2, not {leaves!r}")
        self.leaves, self._fanin, self._bits = leaves, fanin, bits
        self._parts = parts or Submodules()
        super().__init__({
            "i": In(stream.Signature(result_layout())).array(leaves),
            "o": Out(stream.Signature(result_layout())).array(2),
            "total": In(1),
            "spread": In(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        groups = split(self.leaves, self._fanin)
        inputs = len(groups)
        total = pipelined(m, self._parts, "total_here", self.total)
        mergers = []
        for way in range(2):
            merger = self._parts.add(m, f"way{way}", f"merger{inputs}", lambda: Merger(inputs, self._bits))
            m.d.comb += merger.total.eq(total)
            wiring.connect(m, merger.o, wiring.flipped(self.o[way]))
            mergers.append(merger)
        for n, size in enumerate(groups):
            m.submodules[f"tree{n}"] = tree = GatherTree(leaves=size, fanin=self._fanin, bits=self._bits,
                                                         parts=self._parts)
            m.d.comb += tree.total.eq(total)
            first = sum(groups[:n])
            for leaf in range(size):
                wiring.connect(m, wiring.flipped(self.i[first + leaf]), tree.i[leaf])
            splitter = self._parts.add(m, f"splitter{n}", "way_splitter", WaySplitter)
            m.d.comb += splitter.spread.eq(self.spread)
            wiring.connect(m, tree.o, splitter.i)
            for way, merger in enumerate(mergers):
                wiring.connect(m, splitter.o[way], merger.i[n])
        return m
