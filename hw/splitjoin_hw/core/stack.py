"""The output side of a region with an index: its passes find the youngest tuples first, and it reverses their order."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import group_bits, stack_depth

from ..network.queue import Queue
from ..tech.ram import Ram
from .emitter import Emitter


class StackEmitter(Emitter):
    """An `Emitter` for batches of one probe and reads of one tuple: it emits the hits of a pass in reverse order.

    A probe's results leave when its pass has ended, while the next passes are under way. At most
    `splitjoin.circuit.geometry.PASSES` passes may have begun whose batches were not taken yet.

    Where passes are repeated, a probe's hits may come in several parts, each youngest first, and those of older tuples
    first; hits that a pass finds before its repetition are dropped.
    """

    def _walk(self, m: Module, items: Queue, taken: data.View, due: Signal, finish: Signal) -> None:
        config = self.config
        under_way = geometry.finds_under_way(self.latency)  # outcomes that may arrive after ``room`` has fallen
        depth = stack_depth(config, self.latency)
        pointer = range(2 * depth)
        m.submodules.list = found_list = Ram(group_bits(config), depth)

        tail = Signal(pointer)  # end of the list
        head = Signal(pointer)  # the first entry of the probe whose results leave
        level = Signal(pointer)
        write = Signal()  # the pass under way has a hit in this cycle
        pass_hit = Signal()  # it had one before
        m.d.comb += [
            self.list_high.eq(level), write.eq(self.found_valid & self.found.hits[0]),
            found_list.w_addr.eq(tail[:-1]), found_list.w_data.eq(self.found.group), found_list.w_en.eq(write),
        ]
        m.d.sync += [level.eq(tail - head), self.room.eq(level < depth - under_way), tail.eq(tail + write)]

        # Passes that have ended: the end of their entries, and a flag that they have any. Of two more than the prober
        # has, the emitter has taken the batches.
        parts = geometry.repeats(config)
        more = Signal() if parts else Const(0)  # the part that leaves is not the probe's last one
        m.submodules.ends = ends = Queue(data.StructLayout(
            {"end": tail.shape(), "pass_hit": 1, **({"more": 1} if parts else {})}), 2 * geometry.PASSES)
        end = ends.i.payload
        m.d.sync += [ends.i.valid.eq(self.found_valid & self.found.last), end.end.eq(tail + write),
                     end.pass_hit.eq(pass_hit | write)]
        with m.If(self.found_valid):
            m.d.sync += pass_hit.eq(~self.found.last & (pass_hit | write))
        if parts:
            start = Signal(pointer)  # the first entry of the pass under way
            m.d.sync += end.more.eq(self.found.more)
            with m.If(self.found_valid & self.found.last):
                m.d.sync += start.eq(tail + write)
            with m.If(self.found_valid & self.found.drop):
                m.d.sync += [tail.eq(start), pass_hit.eq(0)]

        active = Signal()  # a probe's results enter the queue
        done = Signal()  # all of them have been read
        cursor = Signal(pointer)  # the entry to be read next
        next_head = Signal(pointer)  # the first entry of the next probe
        may_advance = Signal()  # the queue has space
        begin, fetch = Signal(name="begin"), Signal(name="fetch")
        ended = active & may_advance & done
        m.d.comb += [
            begin.eq(due & ~active & ends.o.valid), ends.o.ready.eq(due & ~active),
            finish.eq(ended & ~more if parts else ended), fetch.eq(active & may_advance & ~done),
            found_list.r_addr.eq(cursor[:-1]),
        ]
        m.d.sync += may_advance.eq(items.level < geometry.EMITTER_ITEMS - 4)
        with m.If(fetch):
            m.d.sync += [cursor.eq(cursor - 1), done.eq(cursor == head)]
        with m.If(ended if parts else finish):
            m.d.sync += [active.eq(0), head.eq(next_head)]
        with m.If(begin):
            m.d.sync += [active.eq(1), done.eq(~ends.o.payload.pass_hit),
                         next_head.eq(ends.o.payload.end), cursor.eq(ends.o.payload.end - 1)]
            if parts:
                m.d.sync += more.eq(ends.o.payload.more)

        token = Cat(fetch, finish, taken.flush)
        fetching = Signal.like(token)
        fetched = Signal.like(token)
        m.d.sync += [fetching.eq(token), fetched.eq(fetching)]
        m.d.comb += [
            items.i.payload.end.eq(fetched[1]), items.i.payload.flush.eq(fetched[2]),
            *self._read(items.i.payload, found_list.r_data), items.i.payload.lanes.eq(1),
            items.i.valid.eq(fetched[0] | fetched[1]),
        ]
