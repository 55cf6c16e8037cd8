"""A first-word-fall-through FIFO with stream ports, in LUT RAM where the target has it."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Shape, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out


class Queue(wiring.Component):
    """A FIFO of ``depth`` items; ``level`` is its occupancy.

    ``depth`` is at least 2. A multiple of 16 fills LUT RAM without waste. ``o.valid`` and ``i.ready`` are registers; an
    item is offered in the cycle after it arrived.
    """

    def __init__(self, shape, depth: int):
        if not (isinstance(depth, int) and depth >= 2):
            raise ValueError(f"Depth must be an integer of at least 2, not {depth!r}")
        self.shape, self.depth = shape, depth
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)),
            "level": Out(range(depth + 1)),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        depth, level = self.depth, self.level
        m.submodules.rows = items = memory.Memory(shape=Shape.cast(self.shape).width, depth=depth, init=[])
        write, read = items.write_port(), items.read_port(domain="comb")
        not_empty = Signal()
        full = Signal()
        head = Signal(range(depth))
        tail = Signal(range(depth))
        push = Signal()
        pop = Signal()
        # Registers for the addresses behind head and tail, so that no adder precedes the comparison.
        tail_next, head_next = (Signal(range(depth), name=f"{name}_next", init=1) for name in ("tail", "head"))
        m.d.comb += [
            self.i.ready.eq(~full), self.o.valid.eq(not_empty),
            push.eq(self.i.valid & ~full), pop.eq(self.o.ready & not_empty),
            # The slot at the tail is not read before it holds an item, so it may be written in any cycle.
            write.en.eq(~full), write.addr.eq(tail), write.data.eq(Cat(self.i.payload)),
            read.addr.eq(head), Cat(self.o.payload).eq(read.data),
        ]
        m.d.sync += [
            not_empty.eq(push | (not_empty & ~(pop & (head_next == tail)))),
            full.eq(~pop & (full | (push & (tail_next == head)))),
        ]
        for enable, pointer, next_ in ((push, tail, tail_next), (pop, head, head_next)):
            with m.If(enable):
                m.d.sync += [pointer.eq(next_),
                             next_.eq(next_ + 1 if depth.bit_count() == 1 else Mux(next_ == depth - 1, 0, next_ + 1))]
        # ``level`` follows from the pointers and drives no control signal here; a counter would depend on push and pop.
        distance = Signal(range(depth))
        m.d.comb += [distance.eq(tail - head + (0 if depth.bit_count() == 1 else Mux(tail < head, depth, 0))),
                     level.eq(Mux(full, depth, distance))]
        return m
