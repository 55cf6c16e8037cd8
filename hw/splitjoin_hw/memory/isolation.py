"""Requests to external memory that outlive the join that made them."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.memory import id_bits
from splitjoin.circuit.wire import Configuration

from .port import MasterSignature


class Isolation(wiring.Component):
    """Keeps the rules of AXI4 at the master ``o`` while the join behind ``i`` is reset by itself.

    A request that has been taken, while ``open`` is high, is offered until memory takes it, the address and the data of
    a write together. ``idle``: nothing is offered, and every request has been answered; a join that was reset must not
    begin before, as it would take the answers to old requests for its own. Adds a cycle to each request.
    """

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__({"i": In(MasterSignature(config)), "o": Out(MasterSignature(config)), "open": In(1),
                          "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        i, o = self.i, self.o
        takes_read, takes_write, write = Signal(), Signal(), Signal()
        addressed, sent = o.aw.ready | ~o.aw.valid, o.w.ready | ~o.w.valid
        m.d.comb += [
            takes_read.eq(self.open & i.ar.valid & (~o.ar.valid | o.ar.ready)), i.ar.ready.eq(takes_read),
            takes_write.eq(self.open & i.aw.valid & i.w.valid & addressed & sent),
            i.aw.ready.eq(takes_write), i.w.ready.eq(takes_write),
            i.r.valid.eq(o.r.valid), i.r.payload.eq(o.r.payload), o.r.ready.eq(i.r.ready),
            i.b.valid.eq(o.b.valid), i.b.payload.eq(o.b.payload), o.b.ready.eq(i.b.ready),
            write.eq(o.aw.valid | o.w.valid),
        ]
        for channel, of, takes in (("ar", i.ar, takes_read), ("aw", i.aw, takes_write), ("w", i.w, takes_write)):
            out = getattr(o, channel)
            with m.If(takes):
                m.d.sync += [out.valid.eq(1), out.payload.eq(of.payload)]
            with m.Elif(out.ready):
                m.d.sync += out.valid.eq(0)
        # Each id has one request under way.
        asked = [Signal(id_bits(self._config) + 1, name=f"under_way_{name}") for name in "rw"]
        for count, takes, answer in zip(asked, (takes_read, takes_write), (o.r, o.b), strict=True):
            m.d.sync += count.eq(count + takes - (answer.valid & answer.ready))
        m.d.comb += self.idle.eq((asked[0] == 0) & (asked[1] == 0) & ~write & ~o.ar.valid)
        return m
