"""The output side of a region: it emits the hits of a pass probe by probe, with stars between them."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import group_bits, list_depth
from splitjoin.circuit.wire import ROW_BITS, Configuration, ItemKind

from ..layouts import result_layout, window_layout
from ..network.queue import Queue
from ..network.skid_buffer import SkidBuffer
from ..tech.ram import Ram
from .interfaces import OutcomeSignature
from .layouts import batch_layout

__all__ = ["Emitter"]


class Emitter(wiring.Component):
    """Lists the reads of a pass that have hits, and reads the list once for each probe of the batch.

    A pass of the whole ring fits into the list, so that a scan never waits for its own results, but only for those of
    the previous batch that the host has not read. The oldest probe's results leave while its pass is under way. A
    result takes one cycle, or two with inner stars; the end of a probe takes two.

    Ports:
        ``batch``: a batch, when its pass begins. ``found``, ``found_valid``: the outcome of each read of its pass.
        ``room``: the list has space for all outcomes under way, and for one more.
        ``index``: the core's number. ``window``: settings; ``precision`` is probes between stars, and ``slice``, if not
        0, tuples between the inner stars of a probe. ``o``: results and stars, as `result_layout`. ``matched``: a
        result leaves. ``stall_output``, ``list_high``: for `RegionCounters`.
    """

    counters = ("stall_output", "list_high")

    def __init__(self, config: Configuration, *, latency: int):
        """``latency``: cycles from a read, which is issued only with ``room``, to its outcome."""
        self._config, self._latency = config, latency
        super().__init__({
            "batch": In(stream.Signature(batch_layout(config))),
            **OutcomeSignature(config).flip().members,
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
        m.submodules.items = items = Queue(self._item_layout(), geometry.EMITTER_ITEMS)
        batch = Signal(batch_layout(config), reset_less=True)  # the batch whose results leave
        start = Signal()  # the next batch moves into ``batch``
        busy = Signal()  # an item is in the output pipeline
        self._walk(m, items, batch, start, busy)
        self._express(m, items, batch, start, busy)
        return m

    def _item_layout(self) -> data.StructLayout:
        """One item for the output: the ``lanes`` of a read that hold hits of a probe, or the ``end`` of a probe.

        ``scaled``: the read's number times the number of cores, if that is no power of two.
        """
        config, group = self._config, group_bits(self._config)
        scaled = {} if self._concatenated else {"scaled": group + (config.cores - 1).bit_length()}
        return data.StructLayout({"end": 1, "flush": 1, "group": group, "lanes": config.lanes, **scaled})

    @property
    def _concatenated(self) -> bool:
        """True if a row id is the concatenation of a tuple's offset and the core's number; else the offset must be
        multiplied by the number of cores.
        """
        return not self._config.cores & (self._config.cores - 1)

    def _read(self, item: data.View, group: Value) -> list[Any]:
        """Assignments of the read ``group`` to ``item``."""
        scaled = [] if self._concatenated else [item.scaled.eq(_times(group, self._config.cores))]
        return [item.group.eq(group), *scaled]

    def _walk(self, m: Module, items: Queue, batch, start, busy) -> None:
        """Writes the list of outcomes, and reads it once for each probe of a batch."""
        config = self._config
        probes, lanes = config.probes, config.lanes
        under_way = geometry.reads_under_way(self._latency)  # outcomes that may arrive after ``room`` has fallen
        depth = list_depth(config, self._latency)
        pointer = range(2 * depth)
        # With several lanes, an entry also holds a bit for each probe that has hits in it.
        entry = data.StructLayout({"group": group_bits(config), "hits": probes * lanes,
                                   **({"hit_probes": probes} if lanes > 1 else {})})
        m.submodules.list = found_list = Ram(entry, depth)

        tail = Signal(pointer)  # end of the list
        head = Signal(pointer)  # first entry of the batch whose results leave
        level = Signal(pointer)
        m.d.sync += [level.eq(tail - head), self.room.eq(level < depth - under_way)]
        m.d.comb += self.list_high.eq(level)

        # An outcome; a cycle later it is known whether it has hits and is written to the list.
        group = Signal(group_bits(config))
        hits = self.found.hits
        valid, last_read = Signal(name="valid"), Signal(name="last_read")
        hit_probes = Signal(probes)  # probes that have hits in this read
        hit_probes_next = Signal(probes)
        pass_hit_probes = Signal(probes)
        write = Signal()
        m.d.sync += [
            valid.eq(self.found_valid), last_read.eq(self.found.last),
            hit_probes.eq(hit_probes_next), found_list.w_data.hits.eq(hits),
        ]
        if lanes > 1:
            m.d.comb += found_list.w_data.hit_probes.eq(hit_probes)
        m.d.comb += [
            hit_probes_next.eq(Cat(hits[n * lanes:(n + 1) * lanes].any() for n in range(probes))),
            found_list.w_addr.eq(tail[:-1]), found_list.w_data.group.eq(group),
            found_list.w_en.eq(write), write.eq(valid & hit_probes.any()),
        ]
        # A pass that has ended: the end of its entries, that less one, and the probes that have hits.
        ended_pass = Signal(data.StructLayout({"end": tail.shape(), "before": tail.shape(), "hit_probes": probes}),
                            reset_less=True)
        ended_pass_valid = Signal()
        output_pass = Signal.like(ended_pass)  # the same for the batch whose results leave
        output_pass_valid = Signal()
        pass_ended = Signal()  # the previous read was the last of a pass
        first_read = Signal(init=1)  # the next read is the first of a pass
        # The tail a cycle ago, and that less one. It limits fetches while the pass's end is not known, as entries of
        # the next pass may already follow.
        visible_end, visible_last = (Signal(pointer, name=name, reset_less=True)
                                     for name in ("visible_end", "visible_last"))
        m.d.sync += [pass_ended.eq(valid & last_read), visible_end.eq(tail), visible_last.eq(tail - 1)]
        with m.If(write):
            m.d.sync += tail.eq(tail + 1)
        with m.If(valid):
            m.d.sync += [group.eq(Mux(last_read, 0, group + 1)), first_read.eq(last_read),
                         pass_hit_probes.eq(Mux(first_read, 0, pass_hit_probes) | hit_probes)]

        # The batch that is read out of the list (``active``), or is next (``pending``) while items of the previous one
        # are still in the output pipeline.
        taken = Signal(batch_layout(config), reset_less=True)
        pending, active = Signal(name="pending"), Signal(name="active")
        cursor = Signal(pointer)
        probe = Signal(range(max(2, probes)))
        # The cursor has reached the pass's end, or the visible end; each compared in two halves. For the second, and
        # for a new cursor, the flags are a cycle late. A probe without hits needs no entry.
        at_end, at_visible_end = Signal(2, name="at_end"), Signal(2, name="at_visible_end")
        no_hits = Signal()
        # The pass's end is known; and there is a batch, the item FIFO has space, and the flags fit the cursor.
        end_known, may_advance = Signal(name="end_known"), Signal(name="may_advance")
        finish, fetch, last = (Signal(name=name) for name in ("finish", "fetch", "last"))
        m.d.comb += [
            finish.eq(may_advance & end_known & (at_end.all() | no_hits)),
            fetch.eq(may_advance & ~Mux(end_known, at_end.all() | no_hits, at_visible_end.all())),
            found_list.r_addr.eq(cursor[:-1]),
        ]
        m.d.sync += [
            may_advance.eq(~finish & (active | start) & (items.level < geometry.EMITTER_ITEMS - 6)),
            end_known.eq(output_pass_valid & ~(finish & last)),
            no_hits.eq(~output_pass.hit_probes[0]),
        ]
        half = len(cursor) // 2
        for n, part in enumerate((slice(half), slice(half, None))):
            at = cursor[part]
            m.d.sync += [at_end[n].eq(Mux(fetch, at == output_pass.before[part], at == output_pass.end[part])),
                         at_visible_end[n].eq(Mux(fetch, at == visible_last[part], at == visible_end[part]))]
        with m.If((pending | active) & ~output_pass_valid):
            m.d.sync += [output_pass.eq(ended_pass), output_pass_valid.eq(ended_pass_valid), ended_pass_valid.eq(0)]
        with m.If(pass_ended):
            m.d.sync += [ended_pass_valid.eq(1), ended_pass.end.eq(tail), ended_pass.before.eq(tail - 1),
                         ended_pass.hit_probes.eq(pass_hit_probes)]
        with m.If(fetch):
            m.d.sync += cursor.eq(cursor + 1)
        with m.If(finish):
            m.d.sync += [cursor.eq(Mux(last, output_pass.end, head)), probe.eq(Mux(last, 0, probe + 1)),
                         output_pass.hit_probes.eq(output_pass.hit_probes >> 1)]
            with m.If(last):
                m.d.sync += [active.eq(0), output_pass_valid.eq(0), head.eq(output_pass.end)]
        with m.If(self.batch.valid & self.batch.ready):
            m.d.sync += [taken.eq(self.batch.payload), pending.eq(1)]
        with m.If(start):
            m.d.sync += [batch.eq(taken), pending.eq(0), active.eq(1)]
        m.d.sync += last.eq(probe == taken.probes)

        token = Cat(fetch, finish, last & taken.flush, probe)
        fetching = Signal.like(token)
        fetched = Signal.like(token)
        m.d.sync += [fetching.eq(token), fetched.eq(fetching)]
        entry_read = found_list.r_data
        read, end = Signal(name="read"), Signal(name="end")  # an entry was read; a probe ends
        m.d.sync += [
            read.eq(fetched[0] & (entry_read.hit_probes if lanes > 1 else entry_read.hits).bit_select(fetched[3:], 1)),
            end.eq(fetched[1]), items.i.payload.flush.eq(fetched[2]),
            *self._read(items.i.payload, entry_read.group),
            items.i.payload.lanes.eq(Array(entry_read.hits[n * lanes:(n + 1) * lanes]
                                           for n in range(probes))[fetched[3:]]),
        ]
        m.d.comb += [items.i.payload.end.eq(end), items.i.valid.eq(read | end)]
        # The list is read for a batch when no item of the previous batch is left, as results are made from the fields
        # of ``batch``. A batch is accepted as soon as the previous one has been read, so that a pass of few reads need
        # not wait for the output pipeline to drain.
        idle = Signal()
        m.d.sync += idle.eq(~active & ~fetching[:2].any() & ~fetched[:2].any() & ~read & ~end & ~items.o.valid & ~busy)
        m.d.comb += [start.eq(pending & idle), self.batch.ready.eq(~pending & ~active)]

    def _express(self, m: Module, items: Queue, batch, start, busy) -> None:
        """Turns items into results and stars.

        The current item is split into steps, one per tuple, oldest first. A tuple's step leaves in the first cycle that
        it is in its register. With inner stars each step is checked before it leaves, for an inner star in front of it;
        the end of a probe is always checked, for the star that ends it. All decisions depend on registers: the outcomes
        of the comparison with the border are used a cycle later.
        """
        config, window = self._config, self.window
        lanes, lane_bits = config.lanes, config.lanes.bit_length() - 1
        core_bits = (config.cores - 1).bit_length()
        stars, slices = Signal(name="stars"), Signal(name="slices")  # stars, and inner stars, are enabled
        offset_bits = group_bits(config) + lane_bits

        # The current item, its lanes in the order of their tuples' age: ``batch.lane`` is the one a read begins in.
        row_of = {} if self._concatenated else {"first_row": ROW_BITS}  # of the oldest tuple of the read
        current = Signal(data.StructLayout({"valid": 1, "end": 1, "flush": 1, "group": group_bits(config),
                                            "due": lanes, "lone": 1, **row_of}))
        oldest_lane = Signal(lanes)  # the lane of the oldest tuple, one bit each, and its number
        oldest_number = Signal(range(max(2, lanes)))
        step = Signal(data.StructLayout({"valid": 1, "end": 1, "flush": 1, "offset": offset_bits,
                                         "rest": lane_bits + core_bits + 1, **row_of}))
        checked, own_item, out_valid = (Signal(name=name) for name in ("checked", "own_item", "out_valid"))
        check, leave, inner_star, load, refill = (Signal(name=name) for name in (
            "check", "leave", "inner_star", "load", "refill"))
        m.submodules.out = out = SkidBuffer(result_layout())
        wiring.connect(m, out.o, wiring.flipped(self.o))
        item = items.o.payload
        due = Cat(Array(item.lanes[(n + lane) % lanes] for lane in range(lanes))[batch.lane] for n in range(lanes))
        rest = current.due & ~oldest_lane
        m.d.comb += [
            oldest_lane.eq(Cat(current.due[n] & ~current.due[:n].any() for n in range(lanes))),
            oldest_number.eq(Cat(Cat(oldest_lane[n] for n in range(lanes) if n >> bit & 1).any()
                                 for bit in range(lane_bits))),
            leave.eq(own_item & out.i.ready),
            inner_star.eq(checked & ~own_item & out.i.ready),
            load.eq(current.valid & (~step.valid | leave)),
            refill.eq(~current.valid | (load & current.lone)),
            items.o.ready.eq(refill),
        ]
        with m.If(refill):
            m.d.sync += [current.valid.eq(items.o.valid), current.end.eq(item.end), current.flush.eq(item.flush),
                         current.group.eq(item.group), current.due.eq(due),
                         current.lone.eq(item.end | _at_most_one(item.lanes))]
            if not self._concatenated:
                m.d.sync += current.first_row.eq(batch.row + Cat(Const(0, lane_bits), item.scaled))
        with m.Elif(load):
            m.d.sync += [current.due.eq(rest), current.lone.eq(_at_most_one(rest))]

        # Row id of the probe whose results leave, and of the one before.
        probe, before = Signal(ROW_BITS, name="probe"), Signal(ROW_BITS, name="before", init=-1)
        nth_probe = Signal(32, init=1)  # number of this probe since the last star, and of the next one
        nth_next = Signal(32, init=2)
        # A star is due with this probe, or with the next one: compared in two halves, a cycle late. So after the end of
        # a probe the flag of the next one is used, or, after a star, that of the first one.
        due, due_next, due_first = Signal(2, name="due"), Signal(2, name="due_next"), Signal(name="due_first")
        was_end, due_after_end = Signal(name="was_end"), Signal(name="due_after_end")
        before_end = Signal()  # the border is before the window's end
        at_border = Signal()  # the step has reached the border
        border_pending = Signal()  # these two are not known yet
        probes_since_star = Signal()  # there were probes since the last star
        flush_star_sent = Signal()  # the star of a flush has left
        border = Signal(offset_bits + 1)  # the next inner star precedes the tuple of this offset
        slice_, slice_next, star, star_next, last = (
            Signal(name=name) for name in ("slice_", "slice_next", "star", "star_next", "last"))
        m.d.sync += [stars.eq(window.precision != 0), slices.eq(window.slice != 0),
                     *(flag[n].eq(nth[16 * n:][:16] == window.precision[16 * n:][:16])
                       for flag, nth in ((due, nth_probe), (due_next, nth_next)) for n in range(2)),
                     due_first.eq(window.precision == 1), was_end.eq(leave & step.end),
                     due_after_end.eq(Mux(star | step.flush, due_first, due_next.all())),
                     before_end.eq(border < batch.count), at_border.eq(step.offset >= border),
                     border_pending.eq(slices & (load | inner_star))]
        m.d.comb += [
            slice_next.eq(slices & Mux(step.end, ~step.flush & before_end, at_border)),
            star_next.eq(stars & ~flush_star_sent & Mux(
                step.flush, probes_since_star, Mux(was_end, due_after_end, due.all()))),
            last.eq(step.end & step.flush),
        ]
        with m.If(leave & step.end & ~step.flush):
            m.d.sync += [probe.eq(probe + 1), before.eq(probe)]
        with m.If(load):
            m.d.sync += [step.end.eq(current.end), step.flush.eq(current.flush),
                         *(step[name].eq(current[name]) for name in row_of),
                         step.offset.eq(Cat(oldest_number[:lane_bits], current.group)),
                         step.rest.eq(_times(oldest_number[:lane_bits], config.cores) + self.index)]
        with m.If(check):
            m.d.sync += [slice_.eq(slice_next), star.eq(star_next)]
        quick, stays = ~current.end & ~slices, ~out.i.ready
        m.d.comb += check.eq(step.valid & ~checked & ~own_item & ~border_pending)
        m.d.sync += [
            step.valid.eq(load | (step.valid & ~leave)),
            checked.eq(check | (checked & stays)),
            own_item.eq(Mux(load, quick, Mux(check, ~slice_next & ~(last & star_next), own_item & stays))),
            out_valid.eq(Mux(load, quick, Mux(check, slice_next | ~step.end | step.flush | star_next,
                                              out_valid & stays))),
        ]

        with m.If(inner_star & slice_):
            m.d.sync += border.eq(border + window.slice)
        with m.If(start):
            m.d.sync += border.eq(window.slice)
        with m.If(inner_star & ~slice_):
            m.d.sync += [flush_star_sent.eq(1), nth_probe.eq(1), nth_next.eq(2), probes_since_star.eq(0)]
        with m.If(leave & step.end):
            m.d.sync += [flush_star_sent.eq(0), nth_probe.eq(Mux(star | step.flush, 1, nth_next)),
                         nth_next.eq(Mux(star | step.flush, 2, nth_next + 1)),
                         probes_since_star.eq(~star & ~step.flush)]

        # The row id of a tuple is the sum of that of the batch's first one, its offset times the number of cores, and
        # the core's number.
        row = (batch.row + Cat(self.index[:core_bits], step.offset) if self._concatenated
               else step.first_row + step.rest)
        m.d.comb += [
            out.i.valid.eq(out_valid),
            out.i.payload.kind.eq(Mux(~own_item, Mux(slice_, ItemKind.SLICE, ItemKind.STAR), Mux(
                ~step.end, ItemKind.PAIR, Mux(step.flush, ItemKind.END, ItemKind.STAR)))),
            out.i.payload.probe.eq(Mux(last, before, probe)),
            out.i.payload.stored.eq(row),
            self.matched.eq(leave & ~step.end),
            self.stall_output.eq(self.o.valid & ~self.o.ready),
            busy.eq(current.valid | step.valid),
        ]


def _times(value: Value, factor: int) -> Value:
    """``value`` · ``factor`` by shifts and sums, for ``factor`` > 0; synthesis would make a slower multiplier of it."""
    return reduce(add, (value << n for n in range(factor.bit_length()) if factor >> n & 1))


def _at_most_one(bits: Value) -> Value:
    """True if no more than one of ``bits`` is set."""
    return ~Cat(bits[n] & bits[:n].any() for n in range(1, len(bits))).any()
