"""The output side of a region: what a pass found, probe by probe, with stars between them."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.device.wire import ROW_BITS, Configuration, ItemKind

from ..layouts import result_layout, window_layout
from ..network.buffer import Buffer
from ..network.queue import Queue
from ..tech.ram import Ram
from .layouts import STORES, batch_layout, found_layout, groups_bits

__all__ = ["ITEMS", "Emitter"]

#: Items between the list and the output.
ITEMS = 16


class Emitter(wiring.Component):
    """Lists the reads of a pass that found something, and goes through the list once for each probe of the batch.

    A pass of the whole ring fits into the list, so that no scan ever waits for its own results: only for those of the
    batch before, which the host has not read. The oldest probe's results leave while its pass is under way. A result
    takes one cycle, a probe's end two, and so does each result where there are inner stars.

    Ports:
        ``batch``: a batch, when its pass begins. ``found``, ``found_valid``: the outcome of each read of its pass.
        ``room``: the list takes as many outcomes as are under way, and one more.
        ``index``: the core's number. ``window``: settings; ``precision`` is probes between stars, and ``slice``, if not
        0, tuples between the inner stars of a probe. ``o``: results and stars, as `result_layout`. ``matched``: a
        result leaves. ``stall_output``, ``list_high``: for `RegionCounters`.
    """

    def __init__(self, config: Configuration, *, latency: int):
        """``latency``: cycles from a read, which is issued where there is room, to its outcome."""
        self._config, self._latency = config, latency
        super().__init__({
            "batch": In(stream.Signature(batch_layout(config))),
            "found": In(found_layout(config)),
            "found_valid": In(1),
            "room": Out(1),
            "index": In(range(max(2, config.cores))),
            "window": In(window_layout(config)),
            "o": Out(stream.Signature(result_layout())),
            "matched": Out(1),
            "stall_output": Out(1),
            "list_high": Out(8 + config.capacity.bit_length()),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        item = data.StructLayout({"end": 1, "flush": 1, "group": groups_bits(config), "lanes": config.lanes})
        m.submodules.items = items = Queue(item, ITEMS)
        batch = Signal(batch_layout(config))
        accept = Signal()
        m.d.comb += accept.eq(self.batch.valid & self.batch.ready)
        with m.If(accept):
            m.d.sync += batch.eq(self.batch.payload)
        busy = Signal()  # an item is on its way out
        self._walk(m, items, batch, accept, busy)
        self._express(m, items, batch, accept, busy)
        return m

    def _walk(self, m: Module, items: Queue, batch, accept, busy) -> None:
        """The list, and the way through it."""
        config = self._config
        probes, lanes = config.probes, config.lanes
        # As many reads as the longest pass has, and those under way on top, are less than this.
        under_way = self._latency + 6  # outcomes that may come after there is room no more, and is known not to be
        depth = 64
        while depth < max(2 * (config.capacity // lanes), (config.capacity + STORES) // lanes + under_way + 1):
            depth *= 2
        pointer = range(2 * depth)
        entry = data.StructLayout({"group": groups_bits(config), "hits": probes * lanes})
        m.submodules.list = found_list = Ram(entry, depth)

        top, begin = Signal(pointer), Signal(pointer)  # end of the list; its first entry of the batch that leaves
        level = Signal(pointer)
        m.d.sync += [level.eq(top - begin), self.room.eq(level < depth - under_way)]
        m.d.comb += self.list_high.eq(level)

        # An outcome, and then whether it is for the list.
        group = Signal(groups_bits(config))
        hits = self.found.hits
        valid, last_read = Signal(name="valid"), Signal(name="last_read")
        some = Signal(probes)  # probes that this read found something for
        so_far = Signal(probes)
        write = Signal()
        m.d.sync += [
            valid.eq(self.found_valid), last_read.eq(self.found.last),
            some.eq(Cat(hits[n * lanes:(n + 1) * lanes].any() for n in range(probes))),
            found_list.w_data.hits.eq(hits),
        ]
        m.d.comb += [
            found_list.w_addr.eq(top[:-1]), found_list.w_data.group.eq(group),
            found_list.w_en.eq(write), write.eq(valid & some.any()),
        ]
        # A pass that has ended: up to where its entries go, less one, and which probes have any.
        past = Signal(data.StructLayout({"end": top.shape(), "before": top.shape(), "some": probes}))
        past_valid = Signal()
        leaving = Signal.like(past)  # the same for the batch that leaves
        leaving_valid = Signal()
        ended, starts = Signal(), Signal(init=1)  # the last read was a pass's last; so the next is one's first
        # The end as far as one may look ahead of that, as the next pass may have begun; and less one.
        shown, before_shown = Signal(pointer), Signal(pointer)
        m.d.sync += [ended.eq(valid & last_read), shown.eq(top), before_shown.eq(top - 1)]
        with m.If(write):
            m.d.sync += top.eq(top + 1)
        with m.If(valid):
            m.d.sync += [group.eq(Mux(last_read, 0, group + 1)), starts.eq(last_read),
                         so_far.eq(Mux(starts, 0, so_far) | some)]

        active = Signal()
        cursor = Signal(pointer)
        probe = Signal(range(max(2, probes)))
        room = Signal()
        # Whether the cursor has come to either end; of the second, and of a new place, that is known a cycle late.
        at_end, at_shown = Signal(), Signal()
        known, settled = Signal(), Signal()
        finished, finish, look, last = (Signal(name=name) for name in ("finished", "finish", "look", "last"))
        m.d.comb += [
            finished.eq(at_end | ~leaving.some[0]),
            finish.eq(active & room & settled & known & finished),
            look.eq(active & room & settled & Mux(known, ~finished, ~at_shown)),
            found_list.r_addr.eq(cursor[:-1]),
        ]
        m.d.sync += [
            room.eq(items.level < ITEMS - 6),
            known.eq(leaving_valid & ~(finish & last)), settled.eq(~finish),
            at_end.eq(Mux(look, cursor == leaving.before, cursor == leaving.end)),
            at_shown.eq(Mux(look, cursor == before_shown, cursor == shown)),
        ]
        with m.If(active & ~leaving_valid):
            m.d.sync += [leaving.eq(past), leaving_valid.eq(past_valid), past_valid.eq(0)]
        with m.If(ended):
            m.d.sync += [past_valid.eq(1), past.end.eq(top), past.before.eq(top - 1), past.some.eq(so_far)]
        with m.If(look):
            m.d.sync += cursor.eq(cursor + 1)
        with m.If(finish):
            m.d.sync += [cursor.eq(Mux(last, leaving.end, begin)), probe.eq(Mux(last, 0, probe + 1)),
                         leaving.some.eq(leaving.some >> 1)]
            with m.If(last):
                m.d.sync += [active.eq(0), leaving_valid.eq(0), begin.eq(leaving.end)]
        with m.If(accept):
            m.d.sync += active.eq(1)
        m.d.sync += last.eq(probe == batch.probes)

        token = Cat(look, finish, last & batch.flush, probe)
        looking = Signal.like(token)
        looked = Signal.like(token)
        m.d.sync += [looking.eq(token), looked.eq(looking)]
        entry_read = found_list.r_data
        read, end = Signal(name="read"), Signal(name="end")  # an entry was read; a probe ends
        m.d.sync += [
            read.eq(looked[0]), end.eq(looked[1]), items.i.payload.flush.eq(looked[2]),
            items.i.payload.group.eq(entry_read.group),
            items.i.payload.lanes.eq(Array(entry_read.hits[n * lanes:(n + 1) * lanes]
                                           for n in range(probes))[looked[3:]]),
        ]
        m.d.comb += [items.i.payload.end.eq(end), items.i.valid.eq((read & items.i.payload.lanes.any()) | end)]
        # A batch follows when nothing of the one before is left, as results are made from what is known of it.
        idle = Signal()
        m.d.sync += idle.eq(~active & ~looking[:2].any() & ~looked[:2].any() & ~read & ~end & ~items.o.valid & ~busy)
        m.d.comb += self.batch.ready.eq(idle & ~active)

    def _express(self, m: Module, items: Queue, batch, accept, busy) -> None:
        """Items into results and stars.

        The item at hand gives its tuples one by one, oldest first. Each is looked at in one cycle, for an inner star
        before it, or as a probe's end for a star behind, and leaves in the next; where no inner stars are asked for,
        tuples need not be looked at.
        """
        config, window = self._config, self.window
        lanes, lane_bits = config.lanes, config.lanes.bit_length() - 1
        probe = Signal(ROW_BITS)  # row id of the probe whose results leave
        nth_probe = Signal(32, init=1)  # of this probe, since the last star
        some_since = Signal()  # there were probes since
        stars, slices = Signal(name="stars"), Signal(name="slices")  # there are stars at all, and inner ones
        starred = Signal()  # the star of a flush has left
        offset_bits = groups_bits(config) + lane_bits

        # The item at hand, its lanes in the order of their tuples' age: the batch tells in which one a read begins.
        hand = Signal(data.StructLayout({"valid": 1, "end": 1, "flush": 1, "group": groups_bits(config), "due": lanes}))
        first, nth = Signal(lanes), Signal(range(max(2, lanes)))
        # What is taken from it goes through a buffer: the host's readiness would otherwise reach back to the list.
        m.submodules.steps = steps = Buffer(data.StructLayout({"end": 1, "flush": 1, "offset": offset_bits}))
        step = steps.o.payload
        lone = Signal()
        m.d.comb += [
            first.eq(Cat(hand.due[n] & ~hand.due[:n].any() for n in range(lanes))),
            lone.eq(~(hand.due & ~first).any()),
            nth.eq(Cat(Cat(first[n] for n in range(lanes) if n >> bit & 1).any() for bit in range(lane_bits))),
            steps.i.valid.eq(hand.valid), steps.i.payload.end.eq(hand.end), steps.i.payload.flush.eq(hand.flush),
            steps.i.payload.offset.eq(Cat(nth[:lane_bits], hand.group)),
            items.o.ready.eq(~hand.valid | (steps.i.ready & lone)),
        ]
        due = Cat(Array(items.o.payload.lanes[(n + begin) % lanes] for begin in range(lanes))[batch.lane]
                  for n in range(lanes))
        with m.If(items.o.ready):
            m.d.sync += [hand.valid.eq(items.o.valid), hand.end.eq(items.o.payload.end),
                         hand.flush.eq(items.o.payload.flush), hand.group.eq(items.o.payload.group),
                         hand.due.eq(Mux(items.o.payload.end, 0, due))]
        with m.Elif(steps.i.ready):
            m.d.sync += hand.due.eq(hand.due & ~first)

        border = Signal(offset_bits + 1)  # the next inner star stands before the tuple of this offset
        seen, slice_, star = (Signal(name=name) for name in ("seen", "slice_", "star"))
        kind = Signal(ItemKind)
        make, free, act = (Signal(name=name) for name in ("make", "free", "act"))
        m.d.sync += [
            seen.eq(steps.o.valid & ~act),
            slices.eq(window.slice != 0),
            slice_.eq(slices & Mux(step.end, ~step.flush & (border < batch.count), step.offset >= border)),
            stars.eq(window.precision != 0),
            star.eq(stars & ~starred & Mux(step.flush, some_since, nth_probe == window.precision)),
        ]
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            act.eq(steps.o.valid & free & (seen | (~step.end & ~slices))),
            steps.o.ready.eq(act & ~(seen & slice_) & ~(step.end & step.flush & star)),
            self.matched.eq(steps.o.ready & ~step.end),
            self.stall_output.eq(self.o.valid & ~self.o.ready),
            busy.eq(hand.valid | steps.o.valid),
        ]
        with m.If(act):
            m.d.comb += make.eq(1)
            with m.If(seen & slice_):
                m.d.comb += kind.eq(ItemKind.SLICE)
                m.d.sync += border.eq(border + window.slice)
            with m.Elif(~step.end):
                m.d.comb += kind.eq(ItemKind.PAIR)
            with m.Elif(step.flush):
                m.d.comb += kind.eq(Mux(star, ItemKind.STAR, ItemKind.END))
                m.d.sync += [starred.eq(star), nth_probe.eq(1), some_since.eq(0)]
            with m.Else():
                m.d.comb += [kind.eq(ItemKind.STAR), make.eq(star)]
                m.d.sync += [probe.eq(probe + 1), nth_probe.eq(Mux(star, 1, nth_probe + 1)), some_since.eq(~star)]
        with m.If(accept):
            m.d.sync += border.eq(window.slice)

        # Row id less the batch's first: a multiple of the number of cores, and the index.
        if config.cores & (config.cores - 1):
            row = step.offset * config.cores + self.index
        else:
            row = Cat(self.index[:config.cores.bit_length() - 1], step.offset)
        with m.If(free):
            m.d.sync += [
                self.o.valid.eq(make),
                self.o.payload.kind.eq(kind),
                self.o.payload.probe.eq(probe - (step.end & step.flush)),
                self.o.payload.stored.eq(batch.row + row),
            ]
