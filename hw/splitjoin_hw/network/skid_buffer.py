"""Skid buffer: a two-entry register stage of a stream, with a registered ``ready``."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Shape, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

#: Payload bits per select register. A single select register would drive all bits of a wide payload.
_SHARE = 64


class SkidBuffer(wiring.Component):
    """Cuts every combinational path of a stream at full rate, at the cost of two payload registers.

    Ports: ``i``, ``o``: streams of ``shape``. Latency 1 cycle, throughput 1 item per cycle. ``o.valid`` and
    ``i.ready`` are registers, and ``i.valid`` and ``o.ready`` pass one LUT4 to the next register.
    """

    def __init__(self, shape):
        self.shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform) -> Module:
        m = Module()
        width = Shape.cast(self.shape).width
        slots = [Signal(width, name=f"slot{n}", reset_less=True) for n in range(2)]
        not_empty = Signal()
        full = Signal()
        m.d.comb += [self.o.valid.eq(not_empty), self.i.ready.eq(~full)]
        m.d.sync += [
            not_empty.eq(self.i.valid | full | (not_empty & ~self.o.ready)),
            full.eq(~self.o.ready & (full | (not_empty & self.i.valid))),
        ]
        # Select of the offered slot: one register per share of the payload, kept as synthesis would merge equal ones.
        heads = [Signal(name=f"head{n}", attrs={"keep": 1}) for n in range(max(1, -(-width // _SHARE)))]
        payload = []
        for n, head in enumerate(heads):
            # An empty buffer may begin with either slot. No m.If: synthesis would infer an enable, which is slower.
            m.d.sync += head.eq(head ^ self.o.ready)
            first, second = (slot[n * _SHARE:(n + 1) * _SHARE] for slot in slots)
            payload.append(Mux(head, second, first))
        m.d.comb += Cat(self.o.payload).eq(Cat(payload))
        # An unused slot loads the input in every cycle, so that its enable depends on registers alone. Its content
        # counts only once the handshake at the input has taken place.
        for n, slot in enumerate(slots):
            with m.If(~(full | (not_empty & (heads[0] == n)))):
                m.d.sync += slot.eq(Cat(self.i.payload))
        return m
