"""Proof of the last part of all emitters: items become results and stars, in order, with the row ids of their batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from splitjoin.circuit.geometry import group_bits
from splitjoin.circuit.wire import Configuration, ItemKind
from splitjoin_hw.core.emitter import Emitter, at_most_one, times
from splitjoin_hw.layouts import result_layout
from splitjoin_hw.network.queue import Queue
from splitjoin_hw.network.skid_buffer import SkidBuffer

from .harness import Harness
from .monitors import prove_stable_offers
from .network import buffered, sound_queue
from .proofs import Fault, Proof

#: Items in the queue, and bits of row ids, in these proofs.
_ITEMS, _ROW = 4, 5


class _Items(Emitter):
    """An emitter whose items come from outside: ``item``, ``item_valid``, and ``finished``, which ends a batch."""

    def __init__(self, config: Configuration):
        super().__init__(config, latency=2)
        self.item = Signal(self._item_layout(), name="free_item")
        self.item_valid, self.finished = Signal(name="free_item_valid"), Signal(name="free_finish")

    def _walk(self, m: Module, items: Queue, taken: data.View, due: Signal, finish: Signal) -> None:
        m.d.comb += [items.i.payload.eq(self.item), items.i.valid.eq(self.item_valid), finish.eq(self.finished)]


@contextmanager
def _narrow() -> Iterator[None]:
    with (patch("splitjoin_hw.layouts.ROW_BITS", _ROW), patch("splitjoin_hw.core.layouts.ROW_BITS", _ROW),
          patch("splitjoin_hw.core.emitter.ROW_BITS", _ROW), patch("splitjoin.circuit.geometry.STORES", 2),
          patch("splitjoin.circuit.geometry.EMITTER_ITEMS", _ITEMS)):
        yield


class _Batches:
    """The batches under way: ``of``, the records of the last two by the parity of their number.

    ``taken``, ``pushed``: the parity of the number of batches that were taken, and of those whose last item entered
    the queue. ``open``: their difference.
    """

    def __init__(self, h: Harness, last: Value):
        self._h = h
        m, dut = h.m, h.dut
        self.taken, self.pushed = Signal(name="batches_taken"), Signal(name="batches_pushed")
        self.open, finished = Signal(2, name="batches_open"), Signal(2, name="batches_finished")
        self.due, self.held = h.inner("entering"), h.inner("held")
        layout = dut.batch.payload.shape()
        records = [Signal(layout, name=f"record{n}") for n in range(2)]
        take = h.inner("take")
        m.d.sync += [self.taken.eq(self.taken ^ take), self.pushed.eq(self.pushed ^ last),
                     self.open.eq(self.open + take - last), finished.eq(finished + dut.finished - last)]
        for n, record in enumerate(records):
            with m.If(take & (self.taken == n)):
                m.d.sync += record.eq(h.inner("waiting"))
        self._records = [Value.cast(record) for record in records]
        self.shape = layout
        # What the sorter, the list and the stack do: see their proofs.
        h.assume("a batch ends while its items enter the queue", ~dut.finished | self.due)
        h.assume("an item is of a batch that was taken", ~dut.item_valid | (self.open != 0))
        h.assume("a batch's last item comes after its end", ~last | (finished != 0))
        self.sound = (self.open == finished + self.due) & (self.open[0] == (self.taken ^ self.pushed))

    def of(self, number: Value) -> data.View:
        """The record of the batch with this parity."""
        return data.View(self.shape, Mux(number, *reversed(self._records)))


@_narrow()
def express(cores: int) -> Harness:
    """The harness of the way from the queue of items to the output; the solver chooses items, batches and settings."""
    config = Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, capacity=4, lanes=2, probes=2,
                           cores=cores)
    lanes = config.lanes
    dut = _Items(config)
    h = Harness(dut)
    h.expose(dut.item, dut.item_valid, dut.finished)
    m = h.m
    window, index = h.constant("settings", dut.window.shape()), h.constant("number", dut.index.shape())
    h.assume("settings are constant", (Value.cast(dut.window) == Value.cast(window)) & (dut.index == index))
    h.assume("the core has a number", index < cores)
    prove_stable_offers(h, "o", dut.o)

    # Items that enter the queue.
    item, push = dut.item, dut.item_valid
    # No item of the next probe, and of the next batch, has entered; and the ends of probes that have.
    fresh, between = Signal(name="fresh", init=1), Signal(name="between", init=1)
    ends = Signal(_ROW, name="ends_pushed")
    flushes = item.end & item.flush
    last = push & item.end & item.lanes[0]
    with m.If(push):
        m.d.sync += [fresh.eq(item.end), between.eq(last), ends.eq(ends + (item.end & ~item.flush))]
    level, head = h.inner("items.level"), h.inner("items.head")
    h.assume("the queue has a place for each item", ~push | (level < _ITEMS))
    h.assume("an item has hits, or ends a probe", ~push | item.end | item.lanes.any())
    h.assume("a FLUSH ends its batch, and has no results", ~push | ~flushes | (item.lanes[0] & fresh))
    if "scaled" in item.shape().members:
        h.assume("the scaled number is right", item.scaled == times(item.group, cores)[:len(item.scaled)])
    batches = _Batches(h, last)

    # What is in the queue, with the parity of its batch and the number of its probe.
    slots = []
    number, batch_of = ends, batches.pushed
    for n in reversed(range(_ITEMS)):
        view = data.View(item.shape(), h.look("items.rows", (head + n)[:len(head)]))
        some = level > n
        number = (number - (some & view.end & ~view.flush))[:_ROW]
        batch_of = batch_of ^ (some & view.end & view.lanes[0])
        slots.insert(0, (some, view, number, batches.of(batch_of)))
    current, step = (data.View(layout, h.inner(name)) for name, layout in _registers(config).items())
    number = (number - (current.valid & current.end & ~current.flush))[:_ROW]
    loaded, begins, probe, batch = h.inner("loaded"), h.inner("begins"), h.inner("probe"), h.inner("batch")
    batch = data.View(batches.shape, batch)

    def result(number: Value, of: Any, group: Value, place: Any) -> Value:
        offset = times(Cat(Const(0, lanes.bit_length() - 1), group) + place, cores)
        return Cat(number, (of.row + offset + index)[:_ROW])

    held, holds, buffer_sound = buffered(h, "out")
    places: list[tuple[Value, Value]] = []  # of the results inside, in order: whether there is one, and which
    for n in range(2):
        view = data.View(result_layout(), holds(n))
        places.append(((held > n) & (view.kind == ItemKind.PAIR), Cat(view.probe, view.stored)))
    in_buffer = sum(some for some, _ in places)
    row = step.first_row + step.rest if "first_row" in step.shape().members else batch.row + Cat(
        index[:(cores - 1).bit_length()], step.offset)
    places.append((step.valid & ~step.end, Cat(probe, row[:_ROW])))
    places += [(current.valid & ~current.end & current.due[n], result(number, batch, current.group, n))
               for n in range(lanes)]
    for some, view, of_probe, of in slots:
        places += [(some & ~view.end & view.lanes.bit_select((of.lane + n)[:lanes.bit_length() - 1], 1),
                    result(of_probe, of, view.group, n)) for n in range(lanes)]

    # The picked result.
    mark, place = h.free("mark"), h.free("mark_place", range(lanes))
    own = batches.of(batches.pushed)
    due = Cat(item.lanes.bit_select((own.lane + n)[:lanes.bit_length() - 1], 1) for n in range(lanes))
    entered = Mux(push & ~item.end, sum(due), 0)
    leaves = dut.o.valid & (dut.o.payload.kind == ItemKind.PAIR)
    left = leaves & dut.o.ready
    inside, ahead, picked = Signal(5, name="inside"), Signal(5, name="ahead"), Signal(name="picked")
    token = Signal(2 * _ROW, name="token")
    m.d.sync += inside.eq(inside + entered - left)
    with m.If(picked & left):
        m.d.sync += [ahead.eq(ahead - 1), picked.eq(ahead != 0)]
    with m.Elif(~picked & push & ~item.end & mark & due.bit_select(place, 1)):
        before = sum((due[n] & (place > n) for n in range(lanes)), Const(0))
        m.d.sync += [picked.eq(1), ahead.eq(inside - left + before), token.eq(result(ends, own, item.group, place))]
    h.prove("nothing leaves that did not enter", ~leaves | (inside != 0))
    h.prove("items leave unchanged and in order",
            ~(picked & leaves & (ahead == 0)) | (Cat(dut.o.payload.probe, dut.o.payload.stored) == token))
    h.prove("the picked item is inside", ~picked | (ahead < inside))
    counts = list(accumulate((some for some, _ in places), initial=Const(0)))
    h.prove("the items inside are counted", inside == counts[-1])
    h.prove("the picked item is in its place", ~picked | Cat(
        some & (count == ahead) & (of == token)
        for (some, of), count in zip(places, counts, strict=False)).any())

    # The end of each probe, and its star.
    own_item, checked, out_valid = (h.inner(name) for name in ("own_item", "checked", "out_valid"))
    ends_now = h.inner("leave") & step.end & ~step.flush
    h.prove("the end of a probe is behind its results",
            ~(ends_now & picked & (ahead >= in_buffer)) | (probe != token[:_ROW]))
    stars = window.precision != 0
    since = Signal(32, name="since", init=1)  # probes since the last star, with this one
    with m.If(h.inner("leave") & step.end):
        m.d.sync += since.eq(Mux(step.flush | (stars & (since == window.precision)), 1, since + 1))
    with m.Elif(h.inner("inner_star") & ~h.inner("slice_")):
        m.d.sync += since.eq(1)
    h.prove("a star leaves after as many probes as the precision says",
            ~ends_now | (out_valid == (stars & (since == window.precision))))

    h.prove("a star leaves before an END if there were probes since the last star",
            ~(own_item & step.end & step.flush) | ~stars | (since == 1))
    h.prove("pointers, flags and levels of its queue and its buffer agree",
            sound_queue(h, "items", _ITEMS) & buffer_sound)
    whole: Value = Const(1)  # the last item in the queue is its batch's last
    for some, view, *_ in slots:
        whole = Mux(some, view.end & view.lanes[0], whole)
    queued_lasts = sum(some & view.end & view.lanes[0] for some, view, *_ in slots)
    h.prove("batches take turns",
            batches.sound & ((batches.open != 0) | between) & ((level == 0) | (between == whole))
            & (batches.open + queued_lasts == loaded + batches.held)
            & (~batches.held | (h.inner("taken") == Value.cast(batches.of(~batches.taken))))
            & (~(loaded | current.valid | step.valid)
               | (Value.cast(batch) == Value.cast(batches.of(batches.taken ^ ~batches.held)))))
    ended = [begins, Mux(current.valid, current.end, begins)]
    for some, view, *_ in slots:
        ended.append(Mux(some, view.end, ended[-1]))
    h.prove("probes are numbered", (probe == (number - begins)[:_ROW]) & (fresh == ended[-1])
            & (~(current.valid & current.end & current.flush) | begins)
            & Cat(~(some & view.end & view.flush) | (before & view.lanes[0])
                  for (some, view, *_), before in zip(slots, ended[1:], strict=False)).all())
    sound = [
        ~current.valid | current.end | current.due.any(),
        ~current.valid | (current.lone == (current.end | at_most_one(current.due))),
        ~(own_item | checked) | step.valid,
        ~own_item | step.end | out_valid,
        own_item | (out_valid == checked),
        ~step.valid | (begins == step.end),
        # An inner star is one between slices, or precedes an END.
        ~(checked & ~own_item) | h.inner("slice_") | (step.end & step.flush),
    ]
    for some, view, *_ in slots:
        sound.append(~some | view.end | view.lanes.any())
    if "first_row" in step.shape().members:
        first = (batch.row + times(Cat(Const(0, lanes.bit_length() - 1), current.group), cores))[:_ROW]
        sound.append(~current.valid | current.end | (current.first_row == first))
        sound += [~some | view.end | (view.scaled == times(view.group, cores)[:len(view.scaled)])
                  for some, view, *_ in slots]
    h.prove("the state of the item that leaves is consistent", Cat(sound).all())
    h.prove("probes since the last star are counted",
            (h.inner("nth_next") == (since + 1)[:32]) & (
                ~stars | ((h.inner("probes_since_star") == (since != 1)) & (since != 0) & (since <= window.precision)))
            & (~h.inner("flush_star_sent") | ((since == 1) & step.valid & step.end & step.flush))
            & ((since == 1) | (h.inner("star_due") == (since == window.precision)))
            & (~(own_item & step.end & ~step.flush) | (
                (h.inner("star") == out_valid) & (out_valid == (stars & (since == window.precision)))))
            & (h.started() | ~(current.valid | step.valid | loaded | batches.held))
            & (~h.started() | ((h.inner("stars") == stars) & (h.inner("due_first") == (window.precision == 1)))))

    # Progress: while the output is taken, what is inside moves in one cycle of two.
    ready, leave, check, load = h.inner("out.i__ready"), *(h.inner(name) for name in ("leave", "check", "load"))
    start, refill = h.inner("start"), h.inner("refill")
    inside_now = step.valid | current.valid | (loaded & (level != 0)) | (batches.held & ~loaded)
    moves = leave | check | load | start | (refill & loaded & (level != 0)) | h.inner("inner_star")
    waited = Signal(2, name="waited")
    m.d.sync += waited.eq(Mux(~inside_now | moves | ~dut.o.ready, 0, waited + 1))
    h.prove("while its output is taken, it makes progress at least every second cycle", (waited == 0) | (
        (waited == 1) & (~inside_now | ((ready | ~(own_item | checked)) & ~h.inner("border_pending")))))
    return h


def _registers(config: Configuration) -> dict[str, data.StructLayout]:
    """The registers of the item that leaves, and of its tuple."""
    group, lane_bits = group_bits(config), config.lanes.bit_length() - 1
    row = {} if not config.cores & (config.cores - 1) else {"first_row": _ROW}
    return {
        "current": data.StructLayout({"valid": 1, "end": 1, "flush": 1, "group": group, "due": config.lanes,
                                      "lone": 1, **row}),
        "step": data.StructLayout({"valid": 1, "end": 1, "flush": 1, "offset": group + lane_bits,
                                   "rest": lane_bits + (config.cores - 1).bit_length() + 1, **row}),
    }


_FAULTS = (
    Fault("offers at o are stable", SkidBuffer, "full | (not_empty & (heads[0] == n))", "full"),
    Fault("nothing leaves that did not enter", Emitter, "Mux(step.flush, ItemKind.END, ItemKind.STAR)",
          "Mux(step.flush, ItemKind.END, ItemKind.PAIR)", "_express"),
    Fault("items leave unchanged and in order", Emitter, "probe.eq(probe + 1)", "probe.eq(probe - 1)", "_express"),
    Fault("the picked item is inside", Emitter, "Mux(step.flush, ItemKind.END, ItemKind.STAR)",
          "Mux(step.flush, ItemKind.END, ItemKind.PAIR)", "_express"),
    Fault("the items inside are counted", Emitter, "load & current.lone", "load", "_express"),
    Fault("the picked item is in its place", Emitter, "probe.eq(probe + 1)", "probe.eq(probe - 1)", "_express"),
    Fault("the end of a probe is behind its results", Emitter, "load & begins", "load", "_express"),
    Fault("a star leaves after as many probes as the precision says", Emitter, "window.precision == 1",
          "window.precision == 2", "_express"),
    Fault("a star leaves before an END if there were probes since the last star", Emitter,
          "~slice_next & ~(last & star_next)", "~slice_next", "_express"),
    Fault("pointers, flags and levels of its queue and its buffer agree",
          Queue, "push & (tail_next == head)", "push & (tail == head)"),
    Fault("batches take turns", Emitter, "waits & ~held & ~due", "waits & ~due"),
    Fault("probes are numbered", Emitter, "probe.eq(probe + 1)", "probe.eq(probe - 1)", "_express"),
    Fault("the state of the item that leaves is consistent", Emitter, "current.lone.eq(at_most_one(rest))",
          "current.lone.eq(0)", "_express"),
    Fault("while its output is taken, it makes progress at least every second cycle", Emitter, "load | inner_star",
          "load | stars", "_express"),
    Fault("probes since the last star are counted", Emitter, "Mux(star | step.flush, 2, nth_next + 1)",
          "Mux(star, 2, nth_next + 1)", "_express"),
)

PROOFS = (
    Proof("results of items, 2 cores", partial(express, 2), 3, faults=_FAULTS, search=14),
    Proof("results of items, 3 cores", partial(express, 3), 3, search=14, quick=False),
)
