"""The top of a circuit with several sources: a gate ahead of the circuit for one stream of records."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import Configuration

from ..layouts import input_layout
from ..top import Top, padded, top_ports
from .gate import ScaleGate


def gated_ports(config: Configuration) -> dict[str, wiring.Member]:
    """The ports of `GatedTop`."""
    n, width = config.sources, padded(config.input_record)
    return {**top_ports(config), "refused": Out(32),
            "i": In(wiring.Signature({"payload": Out(n * width), "valid": Out(n), "ready": In(n)}))}


class GatedTop(Top):
    """A `ScaleGate` merges ``config.sources`` streams of records, and ``inner`` joins what is ready (ScaleJoin, section
    4, with the circuit's cores as the gate's readers).

    With order ``total`` results leave by max(r.ts, s.ts), as from ScaleJoin's SG_out: a pair comes with its later
    tuple, and the results of all cores are merged in the order of the ready tuples.

    Ports: as of `Top`, but ``i`` has the payloads of all sources beside each other, that of source 0 lowest, and a bit
    of ``valid`` and of ``ready`` for each. ``refused``: as of `ScaleGate`; a source that keeps its order has none.
    """

    def __init__(self, inner: Top):
        self._inner, self.config = inner, inner.config
        wiring.Component.__init__(self, gated_ports(self.config))

    def elaborate(self, platform) -> Module:
        m = Module()
        config, inner = self.config, self._inner
        m.submodules.join = inner
        m.submodules.gate = gate = ScaleGate(config, config.sources)
        layout, width = input_layout(config), padded(config.input_record)
        for n, source in enumerate(gate.i):
            record = data.View(layout, self.i.payload[n * width:][:layout.size])
            m.d.comb += [Value.cast(source.payload).eq(Value.cast(record)), source.valid.eq(self.i.valid[n])]
        m.d.comb += [
            self.i.ready.eq(Cat(source.ready for source in gate.i)), gate.active.eq(2**config.sources - 1),
            inner.i.payload.eq(Value.cast(gate.o.payload)), inner.i.valid.eq(gate.o.valid),
            gate.o.ready.eq(inner.i.ready), self.refused.eq(gate.refused),
            self.o.payload.eq(inner.o.payload), self.o.valid.eq(inner.o.valid), inner.o.ready.eq(self.o.ready),
            *inner.driven_by(self),
        ]
        return m
