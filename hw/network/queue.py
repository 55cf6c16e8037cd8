"""A first-word-fall-through FIFO with stream ports, in LUT RAM where the target has it."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Shape
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Queue"]


class Queue(wiring.Component):
    """Holds up to ``depth`` items; ``level`` tells how many it holds.

    ``depth`` from 2: `SyncFIFO` of depth 1 runs at half rate. A multiple of 16 fills LUT RAM without waste.
    """

    def __init__(self, shape, depth: int):
        if not (isinstance(depth, int) and depth >= 2):
            raise ValueError(f"Depth must be an integer of at least 2, not {depth!r}")
        self._shape, self._depth = shape, depth
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)),
            "level": Out(range(depth + 1)),
        })

    @property
    def shape(self):
        """Shape of the payload."""
        return self._shape

    @property
    def depth(self) -> int:
        """Items it can hold."""
        return self._depth

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = queue = fifo.SyncFIFO(width=Shape.cast(self._shape).width, depth=self._depth)
        m.d.comb += [
            queue.w_data.eq(Cat(self.i.payload)),
            queue.w_en.eq(self.i.valid),
            self.i.ready.eq(queue.w_rdy),
            Cat(self.o.payload).eq(queue.r_data),
            self.o.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o.ready),
            self.level.eq(queue.level),
        ]
        return m
