"""One node of the distribution tree: delivers each item to every child exactly once."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .skid_buffer import SkidBuffer


class Distributor(wiring.Component):
    """Broadcasts a stream to ``children`` streams with back-pressure (SplitJoin, section 4, Algorithm 1).

    Children accept an item independently of each other; the node advances when all have accepted it. Registered:
    latency 1 cycle, 1 item per cycle while all children are ready, no combinational path from ``o`` to ``i``.
    """

    def __init__(self, shape, children: int):
        if not (isinstance(children, int) and children >= 1):
            raise ValueError(f"Children must be a positive integer, not {children!r}")
        self.shape, self.children = shape, children
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)).array(children)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.buffer = buffer = SkidBuffer(self.shape)
        wiring.connect(m, wiring.flipped(self.i), buffer.i)
        pending = Signal(self.children)  # children that have not accepted the head item yet; 0 without an item
        ready = Cat(child.ready for child in self.o)
        advance = Signal()  # the next item may become the head
        next_valid = Signal()  # there is a next item, in the skid buffer or at the input
        for n, child in enumerate(self.o):
            m.d.comb += [child.payload.eq(buffer.o.payload), child.valid.eq(pending[n])]
        m.d.comb += [
            advance.eq((~pending | ready).all()),
            next_valid.eq(~buffer.i.ready | self.i.valid),
            buffer.o.ready.eq(advance),
        ]
        m.d.sync += pending.eq((pending & ~ready) | (advance & next_valid).replicate(self.children))
        return m
