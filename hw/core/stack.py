"""The output side of a region with an index, whose passes find the youngest tuples first."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data

from ..network.queue import Queue
from ..tech.ram import Ram
from .emitter import ITEMS, LISTED, Emitter
from .layouts import PASSES, groups_bits

__all__ = ["StackEmitter"]


class StackEmitter(Emitter):
    """An `Emitter` for batches of one probe and reads of one tuple: what a pass found leaves in the opposite order.

    A probe's results leave when its pass has ended, while the next ones are under way: `PASSES` at most may have begun
    whose batches were not taken yet.
    """

    def _walk(self, m: Module, items: Queue, batch, start, busy) -> None:
        config = self._config
        under_way = self._latency + 4  # outcomes that may come after there is room no more, and is known not to be
        depth = LISTED  # room for as many as a pass can find, and for those
        while depth < config.capacity + under_way + 4:
            depth *= 2
        pointer = range(2 * depth)
        m.submodules.list = found_list = Ram(groups_bits(config), depth)

        top, begin = Signal(pointer), Signal(pointer)  # end of the list; the first entry of the probe that leaves
        level = Signal(pointer)
        write, some = Signal(), Signal()  # the pass under way found something; it did so before
        m.d.comb += [
            self.list_high.eq(level), write.eq(self.found_valid & self.found.hits[0]),
            found_list.w_addr.eq(top[:-1]), found_list.w_data.eq(self.found.group), found_list.w_en.eq(write),
        ]
        m.d.sync += [level.eq(top - begin), self.room.eq(level < depth - under_way), top.eq(top + write)]

        # Passes that have ended: up to where their entries go, and whether they have any.
        m.submodules.ends = ends = Queue(data.StructLayout({"end": top.shape(), "some": 1}), PASSES)
        end = ends.i.payload
        m.d.sync += [ends.i.valid.eq(self.found_valid & self.found.last), end.end.eq(top + write),
                     end.some.eq(some | write)]
        with m.If(self.found_valid):
            m.d.sync += some.eq(~self.found.last & (some | write))

        leaving, done = Signal(), Signal()  # a probe's results leave; all of them have been looked at
        cursor, border = Signal(pointer), Signal(pointer)  # the next one to be, and the first one of the next probe
        room, finish, look = Signal(), Signal(), Signal()
        m.d.comb += [
            finish.eq(leaving & room & done), look.eq(leaving & room & ~done),
            found_list.r_addr.eq(cursor[:-1]), ends.o.ready.eq(start),
        ]
        m.d.sync += room.eq(items.level < ITEMS - 4)
        with m.If(look):
            m.d.sync += [cursor.eq(cursor - 1), done.eq(cursor == begin)]
        with m.If(finish):
            m.d.sync += [leaving.eq(0), begin.eq(border)]
        with m.If(start):
            m.d.sync += [batch.eq(self.batch.payload), leaving.eq(1), done.eq(~ends.o.payload.some),
                         border.eq(ends.o.payload.end), cursor.eq(ends.o.payload.end - 1)]

        token = Cat(look, finish, batch.flush)
        looking, looked = Signal.like(token), Signal.like(token)
        m.d.sync += [looking.eq(token), looked.eq(looking)]
        m.d.comb += [
            items.i.payload.end.eq(looked[1]), items.i.payload.flush.eq(looked[2]),
            *self._read(items.i.payload, found_list.r_data), items.i.payload.lanes.eq(1),
            items.i.valid.eq(looked[0] | looked[1]),
        ]
        # A batch follows when nothing of the one before is left, as results are made from what is known of it.
        idle = Signal()
        m.d.sync += idle.eq(~leaving & ~looking[:2].any() & ~looked[:2].any() & ~items.o.valid & ~busy)
        m.d.comb += [self.batch.ready.eq(idle & ~leaving & ends.o.valid),
                     start.eq(self.batch.valid & self.batch.ready)]
