"""Proofs of the emitters: an offered result remains until taken, nothing overflows, and each hit becomes a result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Array, Cat, Mux, Signal, Value, signed
from amaranth.lib import data

from splitjoin.circuit.geometry import PASSES
from splitjoin.circuit.wire import Configuration, ItemKind
from splitjoin_hw.core.emitter import Emitter
from splitjoin_hw.core.listing import ListEmitter, Listing
from splitjoin_hw.core.sorter import SortingEmitter
from splitjoin_hw.core.stack import StackEmitter
from splitjoin_hw.network.queue import Queue
from splitjoin_hw.network.skid_buffer import SkidBuffer

from .harness import Harness
from .monitors import Follower, assume_stable_offers, follow, prove_stable_offers
from .network import buffered, sound_queue
from .progress import LIST_FAULTS, STACK_FAULTS, prove_list_progress, prove_stack_progress
from .proofs import Fault, Proof

#: Cycles from a read to its outcome, in these proofs.
LATENCY = 2
#: Items between the list and the output, and the least number of entries of the list, in these proofs.
_ITEMS, _LISTED = 8, 8
#: Bits of row ids in these proofs: enough for all row ids within the bound.
_ROW = 5
#: Hits that are followed, in a proof from power-up.
_HITS = 30


@contextmanager
def narrow(items: int = _ITEMS) -> Iterator[None]:
    with (patch("splitjoin_hw.layouts.ROW_BITS", _ROW), patch("splitjoin_hw.core.layouts.ROW_BITS", _ROW),
          patch("splitjoin_hw.core.emitter.ROW_BITS", _ROW), patch("splitjoin.circuit.geometry.STORES", 2),
          patch("splitjoin.circuit.geometry.LISTED", _LISTED),
          patch("splitjoin.circuit.geometry.SORTED", 2), patch("splitjoin.circuit.geometry.QUOTA", 2),
          patch("splitjoin.circuit.geometry.EMITTER_ITEMS", items)):
        yield


def outcomes(h: Harness) -> list[Any]:
    """Assume of outcomes what `tests.formal.probe` proves. Returns ``room`` of this cycle, of the previous one, and so
    on.
    """
    dut = h.dut
    assume_stable_offers(h, "batch", dut.batch)
    room = [dut.room]
    for n in range(LATENCY):
        room.append(h.past(room[-1], f"room{n}"))
    h.assume("an outcome belongs to a read for which there was room", ~dut.found_valid | room[-1])
    return room


def _sound_items(h: Harness, depth: int = _ITEMS) -> Value:
    """The invariant of the queue of items, and of the buffer behind it."""
    return sound_queue(h, "items", depth) & buffered(h, "out")[2]


def _list(h: Harness, begin: Signal) -> tuple[Value, Value, Signal, int]:
    """The end of the list, its entries, its registered level, and its depth."""
    bits = len(begin)
    level, end = h.inner("level", bits=bits, domain="sync"), Signal(bits, name="list_end")
    h.m.d.sync += end.eq(end + h.inner("list.w_en"))
    inside = (end - begin)[:bits]
    h.prove("the list's registered level is right, a cycle late",
            (level == h.past(inside, "inside")) & (level <= 2**(bits - 1)))
    return end, inside, level, 2**(bits - 1)


def _within(first: Value, *rest: Value) -> Value:
    """True if pointers into the list come in this order, from the first one on."""
    steps = [(pointer - first)[:len(first)] for pointer in rest]
    return Cat(a <= b for a, b in pairwise(steps)).all()


@narrow()
def listing() -> Harness:
    """The harness of the emitter for batches of one probe, and two lanes; the solver chooses outcomes and batches."""
    dut = ListEmitter(_config(lanes=2), latency=LATENCY)
    h = Harness(dut)
    room = outcomes(h)
    prove_stable_offers(h, "o", dut.o)
    h.prove("pointers, flags and levels of its queue and its buffer agree", _sound_items(h))
    begin, cursor, may, ended, items = (h.inner(name) for name in (
        "head", "cursor", "may_fetch", "ended", "items.level"))
    bits = len(begin)
    fetching, fetched = ((token[0], token[1:]) for token in (h.inner(name) for name in ("fetching", "fetched")))
    top, inside, level, depth = _list(h, begin)
    h.prove("entries leave the list in order, once they are written",
            (cursor == (begin + fetching[0] + fetched[0])[:bits]) & _within(begin, cursor, top)
            & (~fetched[0] | (fetched[1] == (begin + 1)[:bits]))
            & (~fetching[0] | (fetching[1] == (begin + 1 + fetched[0])[:bits])))
    _prove_room(h, room, inside, level, depth)
    under_way = fetching[0] + fetched[0] + (fetching[0] | fetched[0]) + ended
    h.prove("the queue has room for everything in flight",
            (items + under_way + may <= _ITEMS - 2) & (~may | (items <= _ITEMS - 6))
            & ~(ended & (fetching[0] | fetched[0])))
    prove_list_progress(h)
    return h


def _prove_room(h: Harness, room: list[Any], inside: Value, level: Value, depth: int) -> None:
    """Prove that outcomes that may yet come fit into the list."""
    most = depth - (LATENCY + 6)  # there is room below it
    h.prove("the list has room for everything in flight",
            (inside + h.inner("valid") + sum(room) <= most + LATENCY + 4) & (~room[0] | (inside <= most + 1))
            & (~room[0] | (level <= most)))


@narrow(items=16)
def sorting() -> Harness:
    """The harness of the emitter for two probes and two lanes, with two rows for each probe of a batch."""
    dut = SortingEmitter(_config(lanes=2, probes=2), latency=LATENCY)
    h = Harness(dut)
    room = outcomes(h)
    prove_stable_offers(h, "o", dut.o)
    h.prove("pointers, flags and levels of its queue and its buffer agree", _sound_items(h, 16))
    sorter_state(h, room)
    return h


def sorter_state(h: Harness, room: list[Any]) -> SimpleNamespace:
    """Prove the invariants of a `SortingEmitter`'s list, places and walk, and that nothing overflows.

    Returns ``begin``, ``cursor``, ``top``: pointers into the list, of ``bits`` bits: its begin, the next entry to be
    taken, its end. ``looking``, ``looked``, ``taken``: reads from it, and flags that they are of a batch and no walk.
    ``steps``: the steps to the places. ``walks``: flags of a walk's reads, from the youngest on. ``is_sorted``,
    ``busy``, ``clearing``, ``filling``, ``leaving``: of the places; ``first``, ``second``: the ends of the batches that
    their halves hold. ``fetching``, ``fetched``, ``item_valid``: items under way to the queue.
    """
    begin, cursor = h.inner("head"), h.inner("cursor")
    bits = len(begin)
    top, inside, level, depth = _list(h, begin)

    # The reads under way from the list, and what becomes of them; those of a batch, and those of one probe's walk.
    under_way = data.StructLayout({"valid": 1, "walk": 1, "at": bits, "next": bits})
    looking, looked = (data.View(under_way, h.inner(name)) for name in ("looking", "looked"))
    steps = [data.View(layout, h.inner(name)) for name, layout in _steps(bits).items()]
    inner = steps[0]
    walking, may_walk, known, more, continued = (h.inner(name) for name in (
        "walking", "may_walk", "known", "more", "continued"))
    there = [step.valid if n < 1 else step.valid | step.last for n, step in enumerate(steps)]
    walks = [looking.valid & looking.walk, looked.valid & looked.walk,
             *(some & step.walk for some, step in zip(there, steps, strict=True))]
    ends = [some & ~step.walk & step.last for some, step in zip(there, steps, strict=True)]
    taken = [looking.valid & ~looking.walk, looked.valid & ~looked.walk]

    # The halves of the places: what they hold, and whose turn it is.
    is_sorted, busy, clearing = h.inner("is_sorted"), h.inner("busy"), h.inner("clearing")
    filling, leaving, taking, may = (h.inner(name) for name in ("filling", "leaving", "taking", "may_advance"))
    full = [h.inner("end0"), h.inner("end1")]
    first, second = Mux(leaving, full[1], full[0]), Mux(leaving, full[0], full[1])
    h.prove("the halves of the places take turns",
            ((is_sorted & ~busy) == 0) & (taking == (leaving ^ busy.xor())) & (filling == (leaving ^ is_sorted.xor()))
            & (~busy.xor() | busy.bit_select(leaving, 1)) & (~is_sorted.xor() | is_sorted.bit_select(leaving, 1))
            & (~may | (is_sorted.bit_select(leaving, 1) & ~clearing))
            & (~Cat(*taken).any() | ~busy.bit_select(taking, 1)))
    h.prove("each batch whose last read was taken becomes sorted",
            (busy[0] + busy[1] == is_sorted[0] + is_sorted[1] + sum(ends))
            & (~clearing | ((is_sorted == 3) & ~Cat(*taken, *walks, *there).any())))
    h.prove("only written entries leave the list", clearing & (cursor == begin) & (begin == 0) | ~clearing & _within(
        begin, begin, Mux(busy.bit_select(leaving, 1), first, begin),
        Mux(busy.all(), second, Mux(busy.any(), first, begin)), (cursor - taken[0] - taken[1])[:bits], cursor, top)
        & (~taken[0] | (looking.next == cursor)) & (~taken[1] | (looked.next == (cursor - taken[0])[:bits])))
    _prove_room(h, room, inside, level, depth)

    # Items under way to the queue: from the places, or of a walk, never both.
    fetching = h.inner("fetching", bits=5)
    fetched = h.inner("fetched", bits=5)
    from_places = [fetching[:2].any(), fetched[:2].any()]
    marks = [fetching[2], fetched[2]]
    items, valid = h.inner("items.level"), h.inner("item_valid")
    lasts = [walk & step.last for walk, step in zip(walks[2:], steps, strict=True)]
    count, at = h.inner("in_place"), h.inner("row")
    h.prove("a place is read to its end", ~known | ((count != 3) & (at <= count) & (~more | (continued == count[1]))))
    h.prove("a walk begins when the rest of the place is in the queue, and ends before the next probe",
            (~Cat(*walks, *marks, walking).any() | (continued & known & ~more))
            & (~Cat(*walks, walking).any() | ~Cat(*from_places).any()) & (~marks[1] | ~from_places[0])
            & ~(marks[0] & marks[1]) & (~marks[0] | fetching[0]) & (~marks[1] | fetched[0])
            & Cat(~last | ~Cat(*walks[:n + 2], walking).any() for n, last in enumerate(lasts)).all())
    wanted = h.inner("wanted")
    h.prove("a read of a walk is for one probe",
            ((wanted & (wanted - 1))[:len(wanted)] == 0)
            & (~walks[2] | (inner.lone & ((inner.probes & (inner.probes - 1))[:4] == 0))))
    moving = sum(from_places) + sum(walks) + valid
    h.prove("the queue has room for everything in flight",
            (items + moving <= 15) & (~may | (items <= 10)) & (~may_walk | (items <= 6)))
    return SimpleNamespace(
        begin=begin, cursor=cursor, top=top, bits=bits, looking=looking, looked=looked, taken=taken, steps=steps,
        walks=walks, is_sorted=is_sorted, busy=busy, clearing=clearing, filling=filling, leaving=leaving, first=first,
        second=second, fetching=fetching, fetched=fetched, item_valid=valid)


def _steps(bits: int) -> dict[str, data.StructLayout]:
    """The registers that a read passes on its way to the places, for two probes and two lanes."""
    common = {"valid": 1, "walk": 1, "last": 1, "at": bits, "lone": 1}
    hit = {"valid": 1, "walk": 1, "last": 1, "probe": 1, "at": bits}
    return {"inner": data.StructLayout({**common, "group": 1, "probes": 4}),
            "hit1": data.StructLayout(hit), "hit2": data.StructLayout(hit),
            "placing": data.StructLayout({**hit, "group": 3, "lanes": 2})}


@narrow()
def stack() -> Harness:
    """The harness of the emitter for an index."""
    dut = StackEmitter(_config(core="hash", index=(0,), capacity=2), latency=LATENCY)
    h = Harness(dut)
    room = outcomes(h)
    prove_stable_offers(h, "o", dut.o)
    h.prove("pointers, flags and levels of its queue and its buffer agree", _sound_items(h))

    # Passes that have ended, and what the list has of each.
    waiting, written = (h.inner(f"ends.{name}") for name in ("level", "i__valid"))
    h.prove("pointers, flags and level of the queue of passes agree", sound_queue(h, "ends", 2 * PASSES))
    passes = Signal(signed(5), name="passes")  # that ended, and whose batches were not taken
    h.m.d.sync += passes.eq(passes + (dut.found_valid & dut.found.last) - (dut.batch.valid & dut.batch.ready))
    h.assume("ended passes whose batches were not taken fit the queue", ~dut.found_valid | (passes < PASSES))
    h.prove("each ended pass waits for its batch",
            (waiting + written == passes + h.inner("waits") + (h.inner("entering") & ~h.inner("active")))
            & (~h.inner("active") | h.inner("entering")))
    begin = h.inner("head")
    bits = len(begin)
    top, inside, level, depth = _list(h, begin)
    ends = [Mux(written, h.inner("ends.i__payload")[:bits], top)]
    for n in reversed(range(2 * PASSES)):
        place = (h.inner("ends.head") + n)[:PASSES.bit_length()]
        ends.insert(0, Mux(waiting > n, h.look("ends.rows", place)[:bits], ends[0]))
    h.prove("only written entries leave the list", _within(begin, begin, h.inner("next_head", bits=bits), *ends, top))
    most = depth - (LATENCY + 4)  # there is room below it
    h.prove("the list has room for everything in flight",
            (inside + sum(room) <= most + LATENCY + 2) & (~room[0] | ((inside <= most + 1) & (level <= most))))

    # Whether there is room for an item, of which one may come two cycles later.
    items = h.inner("items.level")
    may = [h.past(items < _ITEMS - 4, "may")]
    for n in range(2):
        may.append(h.past(may[-1], f"may{n}"))
    h.prove("the queue has room for everything in flight",
            (items + sum(may) <= _ITEMS - 1) & (~may[0] | (items <= _ITEMS - 4))
            & (~h.inner("items.i__valid") | may[-1]))
    prove_stack_progress(h)
    return h


@narrow()
def results() -> Harness:
    """The harness of an emitter from power-up, with two probes a batch. The hits of one of them are followed."""
    dut = SortingEmitter(_config(probes=2, cores=2), latency=LATENCY)
    h = Harness(dut)
    outcomes(h)
    batch = dut.batch.payload
    window = h.constant("settings", dut.window.shape())
    row, which, index = h.constant("row", _ROW), h.constant("which", 1), h.constant("number", 1)
    h.assume("settings are constant", Value.cast(dut.window) == Value.cast(window))
    h.assume("batches begin with the same row, and are of two probes", (batch.row == row) & (batch.probes == 1)
             & ~batch.flush & (dut.index == index))
    pairs, ended = _passes(h)
    entering = Cat(ended[:_ROW - 1], _group(h)[:_ROW - 1])
    stored = (dut.o.payload.stored - row - index)[1:_ROW]
    port = SimpleNamespace(valid=pairs & (dut.o.payload.probe[0] == which), ready=dut.o.ready)
    f = Follower(h, "hit", entered=dut.found_valid & Array(dut.found.hits)[which], entering=entering, port=port,
                 leaving=Cat(dut.o.payload.probe[1:_ROW], stored), capacity=_HITS)
    follow(h, f)
    left = Signal(_ROW, name="left")  # the probe whose results leave
    with h.m.If(pairs & dut.o.ready):
        h.m.d.sync += left.eq(dut.o.payload.probe)
    h.prove("results leave probe by probe", ~pairs | (dut.o.payload.probe >= left))
    return h


def _passes(h: Harness) -> tuple[Value, Signal]:
    """A flag that a result is offered, and the number of passes ended. Assumes that passes and batches alternate."""
    dut = h.dut
    taken, ended = Signal(8, name="batches_taken"), Signal(8, name="passes_ended")
    h.m.d.sync += [taken.eq(taken + (dut.batch.valid & dut.batch.ready)),
                   ended.eq(ended + (dut.found_valid & dut.found.last))]
    h.assume("a pass has outcomes only after it began and the previous batch was taken",
             ~dut.found_valid | ((ended <= taken) & (ended < taken + dut.batch.valid)))
    return dut.o.valid & (dut.o.payload.kind == ItemKind.PAIR), ended


def _group(h: Harness) -> Signal:
    """Reads of the pass under way so far."""
    dut = h.dut
    group = Signal(8, name="reads")
    with h.m.If(dut.found_valid):
        h.m.d.sync += group.eq(Mux(dut.found.last, 0, group + 1))
    return group


def _config(*, capacity: int = 4, **options: Any) -> Configuration:
    return Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, capacity=capacity, **options)


_SHARED_FAULTS = (
    Fault("offers at o are stable", SkidBuffer, "full | (not_empty & (heads[0] == n))", "full"),
    Fault("pointers, flags and levels of its queue and its buffer agree",
          Queue, "push & (tail_next == head)", "push & (tail == head)"),
)
_LISTED_FAULTS = (
    Fault("the list's registered level is right, a cycle late",
          Listing, "level.eq(self.tail - self.head)", "level.eq(self.tail)", "__init__"),
    Fault("the list has room for everything in flight", Listing, "level < self.depth - under_way", "level < self.depth",
          "__init__"),
)
_LIST_FAULTS = (
    *_SHARED_FAULTS, *_LISTED_FAULTS,
    Fault("entries leave the list in order, once they are written",
          ListEmitter, "fetching.valid.eq(fetch & ~last)", "fetching.valid.eq(fetch)", "_walk"),
    Fault("the queue has room for everything in flight",
          ListEmitter, "(items.level < geometry.EMITTER_ITEMS - 6)", "1", "_walk"),
    *LIST_FAULTS,
)
_SORTING_FAULTS = (
    *_SHARED_FAULTS, *_LISTED_FAULTS,
    Fault("the halves of the places take turns", SortingEmitter, "filling.eq(~filling)", "filling.eq(filling)",
          "_walk"),
    Fault("each batch whose last read was taken becomes sorted",
          SortingEmitter, "outer.last & outer.lone", "outer.last & 0", "_take_reads"),
    Fault("only written entries leave the list", SortingEmitter, "end.eq(looked.next)", "end.eq(looked.next + 1)",
          "_take_reads"),
    Fault("a place is read to its end", SortingEmitter, "continued.eq(places.count[-1])", "continued.eq(0)", "_walk"),
    Fault("a walk begins when the rest of the place is in the queue, and ends before the next probe",
          SortingEmitter, "may_advance & known & ~more & ~continued", "may_advance & known & ~more", "_walk"),
    Fault("a read of a walk is for one probe", SortingEmitter, "wanted.eq(1 << probe[:2])", "wanted.eq(-1)",
          "_take_reads"),
    Fault("the queue has room for everything in flight",
          SortingEmitter, "fetched[1] | fetched[0] & ~fetched[2]", "1 | fetched[0] & ~fetched[2]", "_walk"),
)
_STACK_FAULTS = (
    *_SHARED_FAULTS,
    Fault("pointers, flags and level of the queue of passes agree",
          Queue, "push & (tail_next == head)", "push & (tail == head)"),
    Fault("each ended pass waits for its batch", StackEmitter, "ends.i.valid.eq(self.found_valid & self.found.last)",
          "ends.i.valid.eq(self.found_valid)", "_walk"),
    Fault("the list's registered level is right, a cycle late",
          StackEmitter, "level.eq(tail - head)", "level.eq(tail)", "_walk"),
    Fault("only written entries leave the list", StackEmitter, "next_head.eq(ends.o.payload.end)",
          "next_head.eq(ends.o.payload.end + 1)", "_walk"),
    Fault("the list has room for everything in flight", StackEmitter, "level < depth - under_way", "level < depth",
          "_walk"),
    Fault("the queue has room for everything in flight", StackEmitter, "items.level < geometry.EMITTER_ITEMS - 4", "1",
          "_walk"),
    *STACK_FAULTS,
)
_RESULT_FAULTS = (
    Fault("nothing leaves that did not enter", Listing,
          "Cat((found.hits[n * lanes:(n + 1) * lanes].any() for n in range(probes)))",
          "~Cat((found.hits[n * lanes:(n + 1) * lanes].any() for n in range(probes)))", "__init__"),
    Fault("items leave unchanged and in order", Listing, "(self.group + 1)", "(self.group + 0)", "__init__"),
    Fault("the picked item is inside", Listing,
          "Cat((found.hits[n * lanes:(n + 1) * lanes].any() for n in range(probes)))",
          "~Cat((found.hits[n * lanes:(n + 1) * lanes].any() for n in range(probes)))", "__init__"),
    Fault("results leave probe by probe", Emitter, "probe.eq(probe + 1)", "probe.eq(probe - 1)", "_express"),
)

PROOFS = (
    Proof("emitter of one probe", listing, 3, faults=_LIST_FAULTS, search=24, first=20),
    Proof("emitter of several probes", sorting, 3, faults=_SORTING_FAULTS, search=30, first=28, quick=False),
    Proof("stack emitter", stack, 3, faults=_STACK_FAULTS, search=34, first=20, quick=False),
    Proof("results of two probes a batch", results, 24, inductive=False, faults=_RESULT_FAULTS, search=28, first=26,
          quick=False),
)
