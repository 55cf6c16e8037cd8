"""The output side of a region with an index, whose passes find the youngest tuples first."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data

from ..network.queue import Queue
from ..tech.ram import Ram
from .emitter import ITEMS, Emitter
from .layouts import groups_bits

__all__ = ["StackEmitter"]


class StackEmitter(Emitter):
    """An `Emitter` for batches of one probe and reads of one tuple: what a pass found leaves in the opposite order.

    A probe's results leave when its pass has ended, while the next pass is under way.
    """

    def _walk(self, m: Module, items: Queue, batch, accept, busy) -> None:
        config = self._config
        # Room for as many as a pass can find, and for those under way.
        depth = 64
        while depth < config.capacity + self._latency + 8:
            depth *= 2
        pointer = range(2 * depth)
        m.submodules.list = found_list = Ram(groups_bits(config), depth)

        top, begin = Signal(pointer), Signal(pointer)  # end of the list; the first entry of the probe that leaves
        level = Signal(pointer)
        write = Signal()
        m.d.comb += [
            level.eq(top - begin), self.list_high.eq(level),
            write.eq(self.found_valid & self.found.hits[0]),
            found_list.w_addr.eq(top[:-1]), found_list.w_data.eq(self.found.group), found_list.w_en.eq(write),
        ]
        m.d.sync += [self.room.eq(level < depth - self._latency - 3), top.eq(top + write)]

        past = Signal(data.StructLayout({"valid": 1, "end": top.shape()}))  # a pass that has ended
        leaving = Signal()
        end, cursor = Signal(pointer), Signal(pointer)
        active = Signal()
        room, finish, look = Signal(), Signal(), Signal()
        m.d.comb += [
            room.eq(items.level < ITEMS - 3),
            finish.eq(leaving & room & (cursor == begin)),
            look.eq(leaving & room & (cursor != begin)),
            found_list.r_addr.eq((cursor - 1)[:-1]),
        ]
        with m.If(active & ~leaving & past.valid):
            m.d.sync += [leaving.eq(1), cursor.eq(past.end), end.eq(past.end), past.valid.eq(0)]
        with m.If(self.found_valid & self.found.last):
            m.d.sync += [past.valid.eq(1), past.end.eq(top + write)]
        with m.If(look):
            m.d.sync += cursor.eq(cursor - 1)
        with m.If(finish):
            m.d.sync += [leaving.eq(0), active.eq(0), begin.eq(end)]
        with m.If(accept):
            m.d.sync += active.eq(1)

        token = Cat(look, finish, batch.flush)
        under_way, looked = Signal.like(token), Signal.like(token)
        m.d.sync += [under_way.eq(token), looked.eq(under_way)]
        m.d.comb += [
            items.i.payload.end.eq(looked[1]), items.i.payload.flush.eq(looked[2]),
            items.i.payload.group.eq(found_list.r_data), items.i.payload.lanes.eq(1),
            items.i.valid.eq(looked[0] | looked[1]),
            self.batch.ready.eq(~active & ~under_way[:2].any() & ~looked[:2].any() & ~items.o.valid & ~busy),
        ]
