"""The input of one source of the gate: a skid buffer, and the state of the source."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import Configuration, Op

from ..layouts import input_layout
from ..network.skid_buffer import SkidBuffer


class SourceInput(wiring.Component):
    """Passes on a source's tuples and heartbeats, and absorbs its FLUSH, which closes the source.

    Ports: ``i``: the source. ``active``: 1 if the source takes part; else nothing is accepted from it. ``hold``: accept
    nothing. ``reopen``: with ``hold``; a source that was closed by its FLUSH is open again. ``o``: its tuples and
    heartbeats. ``open``: 1 if it may deliver more records than the one offered at ``o``. ``flushed``: a FLUSH is
    accepted in this cycle. Latency 1 cycle, 1 record per cycle.
    """

    def __init__(self, config: Configuration):
        self._layout = input_layout(config)
        super().__init__({
            "i": In(stream.Signature(self._layout)),
            "active": In(1),
            "hold": In(1),
            "reopen": In(1),
            "o": Out(stream.Signature(self._layout)),
            "open": Out(1),
            "flushed": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        # A record once accepted must leave even if the source is removed meanwhile, hence the skid buffer.
        m.submodules.buffer = buffer = SkidBuffer(self._layout)
        wiring.connect(m, buffer.o, wiring.flipped(self.o))
        closed = Signal()
        is_flush = Signal()
        accepting = Signal()
        m.d.comb += [
            self.open.eq(self.active & ~closed),
            is_flush.eq(self.i.payload.op == Op.FLUSH),
            accepting.eq(self.open & ~self.hold),
            buffer.i.payload.eq(self.i.payload),
            buffer.i.valid.eq(self.i.valid & accepting & ~is_flush),
            self.i.ready.eq(accepting & buffer.i.ready),
            self.flushed.eq(self.i.valid & self.i.ready & is_flush),
        ]
        m.d.sync += closed.eq((closed | self.flushed) & self.active & ~self.reopen)
        return m
