"""The output side of a region: it emits the hits of a batch probe by probe, with stars between them."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import group_bits
from splitjoin.circuit.wire import ROW_BITS, Configuration, ItemKind

from ..layouts import result_layout, window_layout
from ..network.queue import Queue
from ..network.skid_buffer import SkidBuffer
from .interfaces import OutcomeSignature
from .layouts import batch_layout


class Emitter(wiring.Component):
    """Turns the hits of a batch, probe by probe and oldest tuple first, into results, with stars between them.

    The base of `splitjoin_hw.core.listing.ListEmitter`, `splitjoin_hw.core.sorter.SortingEmitter` and
    `splitjoin_hw.core.stack.StackEmitter`, which differ in the way from outcomes to the queue of items. A result takes
    one cycle, or two with inner stars; the end of a probe takes two. Items of a batch enter the queue while results of
    the one before still leave.

    Ports:
        ``batch``: a batch, when its pass begins. ``found``, ``found_valid``: the outcome of each read of its pass.
        ``room``: the list has space for all outcomes under way, and for one more.
        ``index``: the core's number. ``window``: settings; ``precision`` is probes between stars, and ``slice``, if not
        0, tuples between the inner stars of a probe. ``o``: results and stars, as `result_layout`. ``matched``: a
        result leaves. ``stall_output``, ``list_high``: for `RegionCounters`. ``ended``, with a fault time-out: the end
        of a probe, or a FLUSH, leaves.
    """

    counters = ("stall_output", "list_high")

    def __init__(self, config: Configuration, *, latency: int):
        """``latency``: cycles from a read, which is issued only with ``room``, to its outcome."""
        self.config, self.latency = config, latency
        super().__init__({
            "batch": In(stream.Signature(batch_layout(config))),
            **OutcomeSignature(config).flip().members,
            "index": In(range(max(2, config.cores))),
            "window": In(window_layout(config)),
            "o": Out(stream.Signature(result_layout())),
            "matched": Out(1),
            "stall_output": Out(1),
            "list_high": Out(8 + config.capacity.bit_length()),
            **({"ended": Out(1)} if config.fault_timeout else {}),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self.config
        m.submodules.items = items = Queue(self._item_layout(), geometry.EMITTER_ITEMS)
        # Three batches wait or leave: the one offered next; the one whose items enter the queue (``due``) or have
        # entered it (``held``); and the one whose results leave.
        waiting, taken, batch = (Signal(batch_layout(config), reset_less=True, name=name)
                                 for name in ("waiting", "taken", "batch"))
        waits, held, due, take = (Signal(name=name) for name in ("waits", "held", "entering", "take"))
        start = Signal()  # the next batch moves into ``batch``
        finish = Signal()  # the last item of ``taken`` enters the queue, or will
        m.d.comb += [take.eq(waits & ~held & ~due), self.batch.ready.eq(~waits)]
        with m.If(self.batch.ready):
            m.d.sync += [waiting.eq(self.batch.payload), waits.eq(self.batch.valid)]
        with m.If(take):
            m.d.sync += [taken.eq(waiting), waits.eq(0), held.eq(1), due.eq(1)]
        with m.If(start):
            m.d.sync += [batch.eq(taken), held.eq(0)]
        with m.If(finish):
            m.d.sync += due.eq(0)
        self._walk(m, items, taken, due, finish)
        self._express(m, items, batch, held, start)
        return m

    def _item_layout(self) -> data.StructLayout:
        """One item for the output: the ``lanes`` of a read that hold hits of a probe, or the ``end`` of a probe, where
        the lowest of ``lanes`` says that it is the batch's last.

        ``scaled``: the read's number times the number of cores, if that is no power of two.
        """
        config, group = self.config, group_bits(self.config)
        scaled = {} if self._concatenated else {"scaled": group + (config.turns - 1).bit_length()}
        return data.StructLayout({"end": 1, "flush": 1, "group": group, "lanes": config.lanes, **scaled})

    @property
    def _concatenated(self) -> bool:
        """True if a row id is a tuple's offset beside the core's number; else the offset must be multiplied."""
        return not self.config.turns & (self.config.turns - 1)

    def _read(self, item: data.View, group: Value) -> list[Any]:
        """Assignments of the read ``group`` to ``item``."""
        scaled = [] if self._concatenated else [item.scaled.eq(times(group, self.config.turns))]
        return [item.group.eq(group), *scaled]

    def _walk(self, m: Module, items: Queue, taken: data.View, due: Signal, finish: Signal) -> None:
        """Takes outcomes, and puts the items of batch ``taken`` into the queue while it is ``due``, up to the cycle of
        ``finish``, which is to be driven.
        """
        raise NotImplementedError

    def _express(self, m: Module, items: Queue, batch: data.View, held: Signal, start: Signal) -> None:
        """Turns items into results and stars, as soon as their batch, which is ``held``, may ``start``.

        The current item is split into steps, one per tuple, oldest first. A tuple's step leaves in the first cycle that
        it is in its register. With inner stars each step is checked before it leaves, for an inner star in front of it;
        the end of a probe is always checked, for the star that ends it. All decisions depend on registers: the outcomes
        of the comparison with the border are used a cycle later.
        """
        config, window = self.config, self.window
        lanes, lane_bits = config.lanes, config.lanes.bit_length() - 1
        core_bits = (config.turns - 1).bit_length()
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
        loaded = Signal()  # items at the queue's head are of ``batch``
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
            items.o.ready.eq(refill & loaded),
            # Results are made from the fields of ``batch``, so the next one waits until nothing of this one is left.
            start.eq(held & ~loaded & ~current.valid & ~step.valid),
        ]
        with m.If(start):
            m.d.sync += loaded.eq(1)
        with m.If(refill & loaded & items.o.valid & item.end & item.lanes[0]):
            m.d.sync += loaded.eq(0)
        with m.If(refill):
            m.d.sync += [current.valid.eq(items.o.valid & loaded), current.end.eq(item.end),
                         current.flush.eq(item.flush), current.group.eq(item.group), current.due.eq(due),
                         current.lone.eq(item.end | at_most_one(item.lanes))]
            if not self._concatenated:
                m.d.sync += current.first_row.eq(batch.row + Cat(Const(0, lane_bits), item.scaled))
        with m.Elif(load):
            m.d.sync += [current.due.eq(rest), current.lone.eq(at_most_one(rest))]

        probe = Signal(ROW_BITS, name="probe", init=-1)  # row id of the probe whose results leave, or left last
        begins = Signal(init=1)  # the next step is the first of a probe
        nth_next = Signal(32, init=2)  # number of the next probe since the last star
        # A star is due with this probe, if it is not the first since the last star, or with the next one: compared in
        # two halves, a cycle late, which is in time as the end of a probe takes two; or with a first one.
        due, due_next, due_first = Signal(name="star_due"), Signal(2, name="due_next"), Signal(name="due_first")
        before_end = Signal()  # the border is before the window's end
        at_border = Signal()  # the step has reached the border
        border_pending = Signal()  # these two are not known yet
        probes_since_star = Signal()  # there were probes since the last star
        flush_star_sent = Signal()  # the star of a flush has left
        border = Signal(offset_bits + 1)  # the next inner star precedes the tuple of this offset
        slice_, slice_next, star, star_next, last = (
            Signal(name=name) for name in ("slice_", "slice_next", "star", "star_next", "last"))
        m.d.sync += [stars.eq(window.precision != 0), slices.eq(window.slice != 0),
                     *(due_next[n].eq(nth_next[16 * n:][:16] == window.precision[16 * n:][:16]) for n in range(2)),
                     due_first.eq(window.precision == 1),
                     before_end.eq(border < batch.count), at_border.eq(step.offset >= border),
                     border_pending.eq(slices & (load | inner_star))]
        m.d.comb += [
            slice_next.eq(slices & Mux(step.end, ~step.flush & before_end, at_border)),
            star_next.eq(stars & ~flush_star_sent & Mux(
                step.flush, probes_since_star, Mux(probes_since_star, due, due_first))),
            last.eq(step.end & step.flush),
        ]
        with m.If(load & begins & ~(current.end & current.flush)):
            m.d.sync += probe.eq(probe + 1)
        with m.If(load):
            m.d.sync += begins.eq(current.end)
            m.d.sync += [step.end.eq(current.end), step.flush.eq(current.flush),
                         *(step[name].eq(current[name]) for name in row_of),
                         step.offset.eq(Cat(oldest_number[:lane_bits], current.group)),
                         step.rest.eq(times(oldest_number[:lane_bits], config.turns) + self.index)]
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
            m.d.sync += [flush_star_sent.eq(1), nth_next.eq(2), probes_since_star.eq(0)]
        with m.If(leave & step.end):
            m.d.sync += [flush_star_sent.eq(0), due.eq(due_next.all()),
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
            out.i.payload.probe.eq(batch.probe if config.routed else probe),
            out.i.payload.stored.eq(row),
            self.matched.eq(leave & ~step.end),
            self.stall_output.eq(self.o.valid & ~self.o.ready),
        ]
        if config.fault_timeout:
            m.d.comb += self.ended.eq(leave & step.end)


def times(value: Value, factor: int) -> Value:
    """``value`` · ``factor`` by shifts and sums, for ``factor`` > 0; synthesis would make a slower multiplier of it."""
    return reduce(add, (value << n for n in range(factor.bit_length()) if factor >> n & 1))


def at_most_one(bits: Value) -> Value:
    """True if no more than one of ``bits`` is set."""
    return ~Cat(bits[n] & bits[:n].any() for n in range(1, len(bits))).any()
