"""Proofs of the parts of a wide root: the row queue, the splitter and the combiner of rows.

The FIFOs in block RAM inside them have proofs of their own; short queues with the same ports take their places here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value
from amaranth.lib import data

from splitjoin.circuit.wire import NO_ITEM, ItemKind
from splitjoin_hw.gather.root import RowCombiner
from splitjoin_hw.gather.rows import RowQueue, row_layout
from splitjoin_hw.gather.ways import WaySplitter
from splitjoin_hw.network.queue import Queue

from .harness import Harness
from .monitors import Follower, assume_stable_offers, follow, prove_stable_offers
from .network import sound_queue
from .proofs import Fault, Proof

#: Bits of row ids, and places of the queues, in these proofs.
_ROW, DEPTH = 2, 4


def _short(shape: Any, depth: int) -> Queue:
    """A queue in the place of a `BlockFifo`."""
    return Queue(shape, DEPTH)


@contextmanager
def short_queues() -> Iterator[None]:
    """Context manager: queues of ``DEPTH`` take the places of the FIFOs in block RAM."""
    with (patch("splitjoin_hw.gather.rows.BlockFifo", _short), patch("splitjoin_hw.gather.ways.BlockFifo", _short)):
        yield


@contextmanager
def _narrow() -> Iterator[None]:
    with short_queues(), patch("splitjoin_hw.layouts.ROW_BITS", _ROW), patch("splitjoin.circuit.wire.ROW_BITS", _ROW):
        yield


def _taken(port: Any) -> Value:
    return port.valid & port.ready


def _size(row: Any) -> Value:
    """Items of a row; an END is one, though it has no place."""
    return sum((item.kind != NO_ITEM for item in row["items"]), Const(0)) + row.end


def _row_shape(row: Any, width: int) -> Value:
    """True if ``row`` is as `row_layout` says, and not empty: items at the lowest places, a barrier only as the last
    of them, and flags that agree.
    """
    kinds = [item.kind for item in row["items"]]
    used = [kind != NO_ITEM for kind in kinds]
    count = sum(used)
    # Stars between slices count as results of a probe; so a star may be either.
    return (Cat(~behind | before for before, behind in pairwise(used)).all()
            & Cat(~u | (kind != ItemKind.END) for u, kind in zip(used, kinds, strict=True)).all()
            & ((count + row.end) != 0) & ~(row.star & row.end)
            & (~row.star | Cat((count == n + 1) & (kind == ItemKind.STAR) for n, kind in enumerate(kinds)).any())
            & (row.lone == Mux(row.end, count == 0, row.star & (count == 1)))
            & ((count + row.end) <= width))


@_narrow()
def row_queue(width: int) -> Harness:
    """The harness of a row queue. An END is followed as an item of its row, behind the others."""
    dut = RowQueue(width)
    h = Harness(dut)
    m = h.m
    layout = row_layout(width)
    prove_stable_offers(h, "o", dut.o)
    kind = dut.i.payload.kind
    entering = Cat(Mux(kind == ItemKind.SLICE, ItemKind.STAR, kind)[:2], dut.i.payload.probe, dut.i.payload.stored)
    entered, left, row_out = _taken(dut.i), _taken(dut.o), dut.o.payload
    mark, picked = h.free("mark"), Signal(name="picked")
    bits = 5
    inside, ahead, token = Signal(bits, name="inside"), Signal(bits, name="ahead"), Signal(len(entering), name="token")
    star = Signal(name="star_picked")  # the picked item is a star, and not between slices
    leaving = Mux(left, _size(row_out), 0)
    m.d.sync += inside.eq(inside + entered - leaving)
    with m.If(picked & left):
        m.d.sync += [ahead.eq(ahead - _size(row_out)), picked.eq(ahead >= _size(row_out))]
    with m.Elif(~picked & entered & mark):
        m.d.sync += [picked.eq(1), ahead.eq(inside - leaving), token.eq(entering), star.eq(kind == ItemKind.STAR)]

    def fits(row: Any, position: Value) -> Value:
        """The picked item is at ``position`` of ``row``."""
        items = Array(Value.cast(item) for item in row["items"])
        last = position == _size(row) - 1
        is_end = token[:2] == ItemKind.END
        # Row ids of an END do not matter.
        return Mux(is_end, row.end & last, (items[position[:(width - 1).bit_length()]] == token)
                   & ~(row.end & last) & (star == (row.star & last)))

    h.prove("a row has items at its lowest places, and a barrier at most as the last one",
            ~dut.o.valid | _row_shape(row_out, width))
    h.prove("nothing leaves that did not enter", ~dut.o.valid | (inside >= _size(row_out)))
    h.prove("items leave unchanged and in order",
            ~(picked & dut.o.valid & (ahead < _size(row_out))) | fits(row_out, ahead))
    h.prove("the picked item is inside", ~picked | (ahead < inside))

    level, head = h.inner("rows.level"), h.inner("rows.head")
    collected = data.View(layout, h.inner("row"))
    count, complete = h.inner("count"), h.inner("complete")
    h.prove("pointers, flags and level of its queue agree", sound_queue(h, "rows", DEPTH))
    held = [(level > n, data.View(layout, h.look("rows.rows", (head + n)[:len(head)]))) for n in range(DEPTH)]
    some = count != 0
    h.prove("rows and items inside are counted",
            (h.inner("inside") == level) & (inside == sum(
                (Mux(there, _size(row), 0) for there, row in [*held, (some, collected)]), Const(0))))
    h.prove("rows inside are well formed", Cat(
        ~some | _row_shape(collected, width), some | (sum(item.kind != NO_ITEM for item in collected["items"]) == 0),
        count == Mux(some, _size(collected), 0), some | ~complete, h.inner("idle") <= (level == 0),
        complete == (some & (collected.star | collected.end | (count == width))),
        *(~there | _row_shape(row, width) for there, row in held)).all())
    before: Value = Const(0)
    places = []
    for there, row in [*held, (some, collected)]:
        at = (ahead - before)[:bits]
        places.append(there & (ahead >= before) & (at < _size(row)) & fits(row, at))
        before = before + Mux(there, _size(row), 0)
    h.prove("the picked item is in its place", ~picked | Cat(places).any())
    waited = Signal(2, name="waited")
    m.d.sync += waited.eq(Mux((inside == 0) | dut.o.valid, 0, waited + 1))
    h.prove("an item is offered within three cycles when no row is in the queue", dut.o.valid | (waited == 0) | (
        (waited == 1) & (complete | h.inner("idle"))))
    return h


@_narrow()
def splitter() -> Harness:
    """The harness of the splitter: each way is followed."""
    dut = WaySplitter()
    h = Harness(dut)
    m = h.m
    spread = h.constant("spread_results", 1)
    h.assume("the setting is constant", dut.spread == spread)
    kind = dut.i.payload.kind
    both, turn = (kind == ItemKind.END) | (spread & (kind == ItemKind.STAR)), Signal(name="turn")
    with m.If(_taken(dut.i) & ~both & (spread | (kind == ItemKind.STAR))):
        m.d.sync += turn.eq(~turn)
    prove_stable_offers(h, "o", *dut.o)
    followers, counted, placed, sound = [], [], [], []
    for n, way in enumerate(dut.o):
        f = Follower(h, f"item{n}", entered=_taken(dut.i) & (both | (turn == n)), entering=dut.i.payload, port=way,
                     capacity=DEPTH)
        level, head = h.inner(f"queue{n}.level"), h.inner(f"queue{n}.head")
        followers.append(f)
        sound.append(sound_queue(h, f"queue{n}", DEPTH))
        counted.append(f.inside == level)
        placed.append(~f.picked | (h.look(f"queue{n}.rows", (head + f.ahead)[:len(head)]) == f.token))
    follow(h, *followers)
    h.prove("pointers, flags and levels of its queues agree", Cat(sound).all())
    h.prove("the items inside are counted", Cat(counted).all())
    h.prove("the picked item is in its place", Cat(placed).all())
    h.prove("the ways take turns, and probes stay whole", h.inner("way") == turn)
    h.prove("an item is taken as soon as its ways have room", ~dut.i.valid | (dut.i.ready == Mux(
        both, ~h.inner("queue0.full") & ~h.inner("queue1.full"), ~Mux(turn, h.inner("queue1.full"), h.inner(
            "queue0.full")))))
    return h


@_narrow()
def row_combiner(width: int, ways: int) -> Harness:
    """The harness of the combiner of rows; the solver chooses rows, turns and settings."""
    dut = RowCombiner(width, ways)
    h = Harness(dut)
    m = h.m
    total, spread = h.constant("total_order", 1), h.constant("spread_results", 1)
    h.assume("settings are constant, and without spread in total order",
             (dut.total == total) & (dut.spread == spread) & ~(total & spread))
    h.assume("one way takes all results", ~spread | Const(ways > 1))
    assume_stable_offers(h, "i", *dut.i)
    assume_stable_offers(h, "sequence", dut.sequence)
    h.assume("rows are as a row queue makes them",
             Cat(~port.valid | _row_shape(port.payload, width) for port in dut.i).all())
    h.assume("results that are spread have no stars between slices", ~spread | Cat(
        ~port.valid | port.payload.star | ~Cat(item.kind == ItemKind.STAR for item in port.payload["items"]).any()
        for port in dut.i).all())
    prove_stable_offers(h, "o", dut.o)
    pops = [_taken(port) for port in dut.i]
    barren = [port.payload.end & port.payload.lone for port in dut.i]  # nothing but an END
    moves = [pop & ~none for pop, none in zip(pops, barren, strict=True)]
    h.prove("at most one row leaves in a cycle", sum(moves) <= 1)

    # The record that a row becomes.
    stars = [pop & port.payload.star for pop, port in zip(pops, dut.i, strict=True)]
    sides = [[side * ways + way for way in range(ways)] for side in (0, 1)]
    # With spread: the way waits for the star of the other one.
    at_star = [Signal(name=f"way{n}_at_star") for n in range(2 * ways)]
    expected, wanted = Signal(dut.o.payload.shape(), name="expected"), Signal(name="wanted")
    m.d.sync += wanted.eq(0)
    for side, own in enumerate(sides):
        for n in own:
            row = dut.i[n].payload
            hidden = row.star & spread & ~Cat(at_star[k] for k in own if k != n).any()
            with m.If(stars[n] & spread):
                m.d.sync += [at_star[k].eq(hidden & (k == n)) for k in own]
            with m.If(moves[n]):
                m.d.sync += wanted.eq(~(row.lone & hidden))
                for item, result in zip(expected, row["items"], strict=True):
                    gone = hidden & (result.kind == ItemKind.STAR)
                    m.d.sync += [item.kind.eq(Mux(gone, NO_ITEM, result.kind)), item.side.eq(side),
                                 item.r.eq(result.stored if side else result.probe),
                                 item.s.eq(result.probe if side else result.stored)]
    kinds = [item.kind for item in dut.o.payload]
    sends_end = kinds[0] == ItemKind.END
    h.prove("a row becomes the next record, without its star if the other way has not shown it yet",
            ~wanted | (dut.o.valid & (Value.cast(dut.o.payload) == Value.cast(expected))))
    moved = h.past(Cat(moves).any(), "moved")
    new = dut.o.valid & ~h.past(dut.o.valid & ~dut.o.ready, "kept")
    h.prove("nothing leaves that did not enter", ~new | Mux(moved, wanted, sends_end))

    # ENDs.
    ended = [Signal(name=f"way{n}_ended") for n in range(2 * ways)]
    all_ended = Cat(ended).all()
    for n, end in enumerate(ended):
        with m.If(pops[n] & dut.i[n].payload.end):
            m.d.sync += end.eq(1)
    loads = ~dut.o.valid | dut.o.ready
    with m.If(all_ended & loads):
        m.d.sync += [end.eq(0) for end in ended]
    h.prove("one END leaves when all ways have come to theirs", ~h.past(all_ended & loads, "all_ended") | (
        dut.o.valid & sends_end & Cat(kind == NO_ITEM for kind in kinds[1:]).all()))
    h.prove("no END leaves before all ways have come to theirs",
            ~(new & sends_end & ~moved) | h.past(all_ended, "had_ended"))
    h.prove("a way whose END has come waits until those of the others have", ~Cat(
        pop & end for pop, end in zip(pops, ended, strict=True)).any())
    h.prove("registers tell which ways have come to their END", h.inner("at_end") == Cat(ended))

    # Turns of the ways of a side, and of the sides.
    in_turn = []
    for side, own in enumerate(sides):
        if ways > 1:
            way = Signal(name=f"own_way{side}")
            for n, k in enumerate(own):
                with m.If(stars[k] & ~spread):
                    m.d.sync += way.eq(1 - n)
                in_turn.append(~moves[k] | Mux(spread, ~at_star[k], way == n))
            in_turn.append(spread | (h.inner(f"way{side}") == way))
            in_turn.append(h.inner(f"at_star{side}") == Cat(at_star[k] for k in own))
            in_turn.append(~Cat(at_star[k] for k in own).all() & (spread | ~Cat(at_star[k] for k in own).any()))
    if ways > 1:
        h.prove("the ways of a side take turns with each star", Cat(in_turn).all())
    side_moves = [Cat(moves[k] for k in own).any() for own in sides]
    star_leaves = Cat(moves[k] & dut.i[k].payload.star for own in sides for k in own).any()
    has_turn, turn_side = Signal(name="has_turn"), Signal(name="turn_side")
    with m.If(_taken(dut.sequence)):
        m.d.sync += [has_turn.eq(1), turn_side.eq(dut.sequence.payload)]
    with m.Elif(star_leaves):
        m.d.sync += has_turn.eq(0)
    h.prove("in total order rows are of the side whose turn it is", ~total | ~(side_moves[0] | side_moves[1]) | (
        has_turn & (side_moves[0] == ~turn_side) & (side_moves[1] == turn_side)))
    h.prove("a turn ends with its star, and only then",
            ~_taken(dut.sequence) | (total & (~has_turn | star_leaves)))
    h.prove("the allowed sides follow from the turn", ~h.started() | (
        h.inner("allowed") == Mux(total, Cat(has_turn & ~turn_side, has_turn & turn_side), 0b11)))
    h.prove("there is no turn in the first cycle",
            (h.started() | ~has_turn) & (h.inner("was_total") == (total & h.started())))
    ready_rows = []
    for side, own in enumerate(sides):
        for n, k in enumerate(own):
            turn_of = Const(1) if ways == 1 else Mux(spread, ~at_star[k], h.inner(f"way{side}") == n)
            ready_rows.append(dut.i[k].valid & ~barren[k] & ~ended[k] & turn_of)
    h.prove("without total, no row waits while records leave",
            total | ~loads | ~h.started() | ~Cat(ready_rows).any() | Cat(moves).any() | all_ended)
    return h


_STALE = 'm.d.sync += item.kind.eq(NO_ITEM)', "m.d.sync += item.kind.eq(item.kind)"
_CHANGED = "item.stored.eq(arriving.stored)", "item.stored.eq(arriving.probe)"
_QUEUE_OFFERS = Fault("offers at o are stable", Queue, "self.o.valid.eq(not_empty)",
                      "self.o.valid.eq(not_empty & self.i.valid)")
_QUEUE_POINTERS = Queue, "push & (tail_next == head)", "push & (tail == head)"
_ROW_FAULTS = (
    _QUEUE_OFFERS,
    Fault("a row has items at its lowest places, and a barrier at most as the last one", RowQueue, *_STALE),
    Fault("nothing leaves that did not enter", RowQueue, *_STALE),
    Fault("items leave unchanged and in order", RowQueue, *_CHANGED),
    Fault("the picked item is inside", RowQueue, *_STALE),
    Fault("pointers, flags and level of its queue agree", *_QUEUE_POINTERS),
    Fault("rows and items inside are counted", RowQueue, "inside + push", "inside"),
    Fault("rows inside are well formed", RowQueue, *_STALE),
    Fault("the picked item is in its place", RowQueue, *_CHANGED),
    Fault("an item is offered within three cycles when no row is in the queue", RowQueue,
          "idle.eq((inside == 0) & ~push)", "idle.eq(0)"),
)
_SPLITTER_FAULTS = (
    _QUEUE_OFFERS,
    Fault("nothing leaves that did not enter", Queue, "self.o.valid.eq(not_empty)", "self.o.valid.eq(1)"),
    Fault("items leave unchanged and in order", Queue, "write.addr.eq(tail)", "write.addr.eq(head)"),
    Fault("the picked item is inside", Queue, "self.i.ready.eq(~full)", "self.i.ready.eq(1)"),
    Fault("pointers, flags and levels of its queues agree", *_QUEUE_POINTERS),
    Fault("the items inside are counted", WaySplitter, "Mux(both, ready[1 - n], way == n)",
          "Mux(both, 1, way == n)"),
    Fault("the picked item is in its place", Queue, "write.en.eq(~full)", "write.en.eq(1)"),
    Fault("the ways take turns, and probes stay whole", WaySplitter, "self.i.valid & self.i.ready & ~both",
          "self.i.valid & self.i.ready"),
    Fault("an item is taken as soon as its ways have room", WaySplitter, "ready[0] & ready[1]",
          "ready[0] & ready[1] & ~self.o[0].valid"),
)
_COMBINER_FAULTS = (
    Fault("offers at o are stable", RowCombiner, "load.eq(~self.o.valid | self.o.ready)", "load.eq(1)"),
    Fault("at most one row leaves in a cycle", RowCombiner, "able[STREAM_R] & ~(able[STREAM_S] & turn)",
          "able[STREAM_R]"),
    Fault("a row becomes the next record, without its star if the other way has not shown it yet", RowCombiner,
          "Mux(side, result.probe, result.stored)", "Mux(side, result.stored, result.stored)"),
    Fault("nothing leaves that did not enter", RowCombiner, "send_end | grant.any() & ~(row.lone & hidden)",
          "1 | grant.any() & ~(row.lone & hidden)"),
    Fault("one END leaves when all ways have come to theirs", RowCombiner, "at_end.all()", "0"),
    Fault("no END leaves before all ways have come to theirs", RowCombiner, "at_end.all", "at_end.any"),
    Fault("a way whose END has come waits until those of the others have", RowCombiner,
          "Cat((port.valid & ~(port.payload.end & port.payload.lone) for port in mine)) & ~ended",
          "Cat((port.valid & ~(port.payload.end & port.payload.lone) for port in mine))"),
    Fault("registers tell which ways have come to their END", RowCombiner, "pop & port.payload.end",
          "pop & port.payload.lone"),
    Fault("in total order rows are of the side whose turn it is", RowCombiner, "allowed[side] & offers.any()",
          "offers.any()"),
    Fault("a turn ends with its star, and only then", RowCombiner, "load & grant.any() & row.star",
          "load & grant.any()"),
    Fault("the allowed sides follow from the turn", RowCombiner,
          "due.valid.replicate(2) & Cat(~due.payload, due.payload)", "Cat(~due.payload, due.payload)"),
    Fault("there is no turn in the first cycle", RowCombiner, "was_total.eq(self.total)", "was_total.eq(1)"),
    Fault("without total, no row waits while records leave", RowCombiner, "~(able[STREAM_R] & ~turn)",
          "~able[STREAM_R] & turn"),
)
_WAYS_FAULT = Fault("the ways of a side take turns with each star", RowCombiner, "way.eq(~pick)", "way.eq(pick)")

PROOFS = (
    *(Proof(f"row queue of {n}", partial(row_queue, n), 2, faults=_ROW_FAULTS if n == 2 else (),
            quick=n == 2) for n in (2, 4)),
    Proof("splitter of two ways", splitter, 2, faults=_SPLITTER_FAULTS),
    Proof("combiner of rows of two, a way each", partial(row_combiner, 2, 1), 2, faults=_COMBINER_FAULTS, search=8),
    Proof("combiner of rows of four, two ways each", partial(row_combiner, 4, 2), 2, faults=(_WAYS_FAULT,), search=8),
)
