"""FIFOs in block RAM: `BlockFifo` passes an item in each cycle, `HalfRateFifo` one in two cycles with less logic."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Shape, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..tech.ram import Ram
from .queue import Queue


class _Fifo(wiring.Component):
    """The arguments and ports of both FIFOs."""

    def __init__(self, shape, depth: int):
        if not (isinstance(depth, int) and depth >= 4 and depth & (depth - 1) == 0):
            raise ValueError(f"Depth must be a power of two of at least 4, not {depth!r}")
        self.shape, self.depth = shape, depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def _memory(self, m: Module) -> tuple[Ram, Signal, Signal]:
        """The memory, with its write side; ``tail``, a bit wider than addresses; and the cycles of writes."""
        m.submodules.rows = rows = Ram(Shape.cast(self.shape).width, self.depth)
        tail, push = Signal(range(2 * self.depth), name="tail"), Signal(name="push")
        m.d.comb += [push.eq(self.i.valid & self.i.ready),
                     # The row at the tail is not read before it holds an item, so it may be written in any cycle.
                     rows.w_en.eq(self.i.ready), rows.w_addr.eq(tail[:-1]), rows.w_data.eq(Cat(self.i.payload))]
        with m.If(push):
            m.d.sync += tail.eq(tail + 1)
        return rows, tail, push

    def _room(self, m: Module, push: Signal, left: Signal) -> None:
        """``i.ready``: there is a row beyond that of an item in the same cycle; ``left``: an item leaves its row."""
        level, room = Signal(range(self.depth + 1), name="level"), Signal(init=1, name="room")
        m.d.sync += [level.eq(level + push - left), room.eq(level < self.depth - 1)]
        m.d.comb += self.i.ready.eq(room)


class HalfRateFifo(_Fifo):
    """A FIFO in block RAM for a consumer that takes an item in two cycles at the least.

    It holds ``depth`` − 1 items, or one more, in the memory, a power of two of at least 4, and one in a register, which
    ``o`` shows. An item is offered four cycles after it arrived, and in the second cycle after an offer was taken if
    not in the first.
    """

    def elaborate(self, platform) -> Module:
        m = Module()
        rows, tail, push = self._memory(m)
        head, head_next = (Signal(range(2 * self.depth), init=n, name=name)
                           for n, name in enumerate(("head", "head_next")))
        load = Signal()  # the item at the head moves into the register
        self._room(m, push, load)
        # The address is that of the head, ``head_next`` in the cycle of a load. ``due``: the row at the last cycle's
        # address held an item; ``shown``: the memory shows the item at the head.
        due, shown, held = (Signal(name=name) for name in ("due", "shown", "held"))
        item = Signal(Shape.cast(self.shape).width, reset_less=True)
        m.d.comb += [load.eq(shown & (~held | self.o.ready)),
                     rows.r_addr.eq(Mux(load, head_next, head)[:-1]),
                     self.o.valid.eq(held), Cat(self.o.payload).eq(item)]
        m.d.sync += [due.eq(Mux(load, head_next != tail, head != tail)), shown.eq(due & ~load),
                     held.eq(load | (held & ~self.o.ready))]
        with m.If(load):
            m.d.sync += [head.eq(head_next), head_next.eq(head_next + 1)]
        # The enable of these registers is early: an unused register may load anything.
        with m.If(~held | self.o.ready):
            m.d.sync += item.eq(rows.r_data)
        return m


#: Items in the queue behind the memory of a `BlockFifo`, in LUT RAM.
_OFFERED = 16


class BlockFifo(_Fifo):
    """A FIFO in block RAM, 1 item per cycle.

    It holds ``depth`` − 1 items, or one more, in the memory, a power of two of at least 4, and 16 in a queue behind it
    in LUT RAM. An item is offered four cycles after it arrived.
    """

    def elaborate(self, platform) -> Module:
        m = Module()
        rows, tail, push = self._memory(m)
        m.submodules.offered = offered = Queue(Shape.cast(self.shape).width, _OFFERED)
        head = Signal(range(2 * self.depth))
        read = Signal()  # the item at the head is read
        self._room(m, push, read)
        # Items that were read and have not left: the queue has a place for each of them.
        claimed, place = Signal(range(_OFFERED + 1), name="claimed"), Signal(init=1, name="place")
        pop = Signal()
        reads = [Signal(name=f"read{n}") for n in range(Ram.latency)]
        m.d.comb += [pop.eq(self.o.valid & self.o.ready), read.eq((head != tail) & place), rows.r_addr.eq(head[:-1]),
                     offered.i.valid.eq(reads[-1]), offered.i.payload.eq(rows.r_data),
                     self.o.valid.eq(offered.o.valid), Cat(self.o.payload).eq(offered.o.payload),
                     offered.o.ready.eq(self.o.ready)]
        # A cycle late: a read and an item that was just read are not in ``claimed`` yet.
        m.d.sync += [claimed.eq(claimed + read - pop), place.eq(claimed < _OFFERED - 1),
                     *(later.eq(earlier) for earlier, later in zip((read, *reads), reads, strict=False))]
        with m.If(read):
            m.d.sync += head.eq(head + 1)
        return m
