"""Two-entry elastic buffer: a register stage of a stream whose ``ready`` is a register too."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Buffer"]


class Buffer(wiring.Component):
    """Cuts every combinational path of a stream at full rate, at the cost of two payload registers.

    Ports: ``i``, ``o``: streams of ``shape``. Latency 1 cycle, throughput 1 item a cycle.
    """

    def __init__(self, shape):
        self._shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    @property
    def shape(self):
        """Shape of the payload."""
        return self._shape

    def elaborate(self, platform) -> Module:
        m = Module()
        slots = [Signal(self._shape, name=f"slot{n}") for n in range(2)]
        level = Signal(range(3))
        head = Signal()
        push, pop = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(level != 2),
            self.o.valid.eq(level != 0),
            self.o.payload.eq(Array(slots)[head]),
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
        ]
        m.d.sync += [level.eq(level + push - pop), head.eq(head ^ pop)]
        tail = Signal()
        m.d.sync += tail.eq(tail ^ push)
        with m.If(push):
            for n, slot in enumerate(slots):
                with m.If(tail == n):
                    m.d.sync += slot.eq(self.i.payload)
        return m
