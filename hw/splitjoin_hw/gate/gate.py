"""ScaleGate: any number of sources, one stream of ready records in arrival order."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import levels, split
from splitjoin.circuit.wire import Configuration, Op

from ..layouts import input_layout
from ..parts import Submodules
from .merger import ReadyMerger
from .source import SourceInput

_COUNT = 32


class ScaleGate(wiring.Component):
    """Merges sources deterministically (ScaleJoin, section IV.A; here by the total order of semantics, section 1).

    A tournament tree of `ReadyMerger` nodes: one record per cycle at the root, ``latency`` cycles from a source to the
    output when nothing waits.

    Each source delivers its records in arrival order: event time never falls, and at equal times R precedes S (always
    true for a source of one stream). A TICK is a heartbeat: it promises that the source will deliver no record that
    precedes it in arrival order. With R in its stream field that means "nothing below ``ts``"; a source of S alone may
    set S. A FLUSH closes the source. When every source is closed or inactive, and there was a FLUSH, one FLUSH leaves
    after all records, and the closed sources are open again. Where states leave whole, it demands the last ones if one
    of theirs did. TICKs leave in their order too.

    Sources are added and removed by ``active``. A source that is added holds back the output, from ``latency`` cycles
    later at the latest until its first record. That record must not precede any record that another source delivered
    before, or it may be too late. Records accepted from a source before it is removed still leave in order. A tuple
    that is too late, or out of its source's order, is dropped and counted in ``refused``.

    Ports: ``i``: ``sources`` streams of input records. ``active``: one bit per source, 1 if it takes part; may change
    in any cycle. ``o``: input records. ``refused``: number of tuples dropped so far, modulo 2³². All event times in the
    gate must lie within half the counter's range.
    """

    def __init__(self, config: Configuration, sources: int, *, parts: Submodules | None = None):
        if not (isinstance(sources, int) and sources >= 1):
            raise ValueError(f"Sources must be a positive integer, not {sources!r}")
        if not config.time_bits:
            raise ValueError("A gate merges by event time, so time_bits must be from 2 to 64, not 0; "
                             "without a time column arrival order is the order in which tuples are handed over")
        self.config, self.sources = config, sources
        self._parts = parts or Submodules()
        record = stream.Signature(input_layout(config))
        super().__init__({
            "i": In(record).array(sources),
            "active": In(sources),
            "o": Out(record),
            "refused": Out(_COUNT),
        })

    @property
    def latency(self) -> int:
        """Cycles from a source to the output, when nothing waits."""
        return 1 + max(1, levels(self.sources, 2))

    def elaborate(self, platform) -> Module:
        m = Module()
        flushed = Signal()  # a source was closed by a FLUSH in this round
        flush_offer = Signal()  # the FLUSH is offered; until it is taken, no record of the next round is accepted
        reopen = Signal()
        drains = Signal()  # a FLUSH of this round demands the states that are left
        entries = []
        for n, source in enumerate(self.i):
            entry = SourceInput(self.config)
            m.submodules[f"source{n}"] = entry
            wiring.connect(m, wiring.flipped(source), entry.i)
            m.d.comb += [entry.active.eq(self.active[n]), entry.hold.eq(flush_offer), entry.reopen.eq(reopen)]
            entries.append(entry)

        mergers: list[Any] = []

        def node(name: str, inputs: list[tuple[Any, Any]]) -> tuple[Any, Any]:
            """A merger of one or two streams; returns its output stream, and a flag that this is open."""
            merger = self._parts.add(m, name, "ready_merger", lambda: ReadyMerger(self.config))
            mergers.append(merger)
            for n, (source, is_open) in enumerate(inputs):
                wiring.connect(m, source, merger.i[n])
                m.d.comb += merger.i_open[n].eq(is_open)
            return merger.o, merger.o_open

        def grow(first: int, count: int, name: str) -> tuple[Any, Any]:
            if count == 1:
                return entries[first].o, entries[first].open
            left, right = split(count, 2)
            return node(name, [grow(first, left, f"{name}_0"), grow(first + left, right, f"{name}_1")])

        # A single source has a node too, as the nodes check the order; its second input is never open.
        merged, _ = grow(0, self.sources, "node") if self.sources > 1 else node("node", [grow(0, 1, "")])

        # `o_open` of all nodes, as that of the root rises some cycles after a source has opened.
        drained = Signal()
        m.d.comb += [
            drained.eq(~Cat(*(entry.open | entry.o.valid for entry in entries), *(n.o_open for n in mergers)).any()),
            self.o.valid.eq(merged.valid | flush_offer),
            self.o.payload.eq(merged.payload),
            merged.ready.eq(self.o.ready & ~flush_offer),
            reopen.eq(flush_offer & self.o.ready),
        ]
        with m.If(flush_offer):
            m.d.comb += [Value.cast(self.o.payload).eq(0), self.o.payload.op.eq(Op.FLUSH),
                         self.o.payload.stream.eq(drains)]
        if self.config.whole_states:
            m.d.sync += drains.eq((drains & ~reopen) | Cat(
                entry.flushed & source.payload.stream for entry, source in zip(entries, self.i, strict=True)).any())
        m.d.sync += [
            flush_offer.eq(Mux(flush_offer, ~self.o.ready, flushed & drained)),
            flushed.eq((flushed & ~reopen) | Cat(entry.flushed for entry in entries).any()),
        ]

        refused_pulses = Signal(2 * len(mergers))
        m.d.sync += [refused_pulses.eq(Cat(node.refused for node in mergers)),
                     self.refused.eq(self.refused + _sum(refused_pulses))]
        return m


def _sum(bits: Any) -> Any:
    """The number of ``bits`` that are set, by a balanced tree of adders."""
    if len(bits) == 1:
        return bits[0]
    half = len(bits) // 2
    return _sum(bits[:half]) + _sum(bits[half:])
