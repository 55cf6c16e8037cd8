"""Proofs of the emitters: an offered result remains until taken, nothing overflows, and each hit becomes a result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Array, Cat, Mux, Signal, Value, signed
from splitjoin.circuit.geometry import PASSES
from splitjoin.circuit.wire import Configuration, ItemKind
from splitjoin.hw.core.emitter import Emitter
from splitjoin.hw.core.stack import StackEmitter
from splitjoin.hw.network.queue import Queue
from splitjoin.hw.network.skid_buffer import SkidBuffer

from .harness import Harness
from .monitors import Follower, assume_stable_offers, follow, prove_stable_offers
from .network import buffered, sound_queue
from .proofs import Fault, Proof

__all__ = ["PROOFS"]

#: Cycles from a read to its outcome, in these proofs.
_LATENCY = 2
#: Items between the list and the output, and the least number of entries of the list, in these proofs.
_ITEMS, _LISTED = 8, 8
#: Bits of row ids in these proofs: enough for all row ids within the bound.
_ROW = 5
#: Hits that are followed, in a proof from power-up.
_HITS = 30


@contextmanager
def _narrow() -> Iterator[None]:
    with (patch("splitjoin.hw.layouts.ROW_BITS", _ROW), patch("splitjoin.hw.core.layouts.ROW_BITS", _ROW),
          patch("splitjoin.hw.core.emitter.ROW_BITS", _ROW), patch("splitjoin.circuit.geometry.STORES", 2),
          patch("splitjoin.circuit.geometry.LISTED", _LISTED),
          patch("splitjoin.circuit.geometry.EMITTER_ITEMS", _ITEMS)):
        yield


def _outcomes(h: Harness) -> list[Any]:
    """Assume of outcomes what `tests.formal.probe` proves. Returns ``room`` of this cycle, of the previous one, and so
    on.
    """
    dut = h.dut
    assume_stable_offers(h, "batch", dut.batch)
    room = [dut.room]
    for n in range(_LATENCY):
        room.append(h.past(room[-1], f"room{n}"))
    h.assume("an outcome belongs to a read for which there was room", ~dut.found_valid | room[-1])
    return room


def _sound_items(h: Harness) -> Value:
    """The invariant of the queue of items, and of the buffer behind it."""
    return sound_queue(h, "items", _ITEMS) & buffered(h, "out")[2]


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


@_narrow()
def emitter() -> Harness:
    """The harness of an emitter for two probes and two lanes; the solver chooses outcomes, their cycles and batches."""
    dut = Emitter(_config(lanes=2, probes=2), latency=_LATENCY)
    h = Harness(dut)
    room = _outcomes(h)
    prove_stable_offers(h, "o", dut.o)
    h.prove("pointers, flags and levels of its queue and its buffer agree", _sound_items(h))

    # The list: what is in it, what is being written, and what may yet come.
    begin, valid = h.inner("head"), h.inner("valid")
    leaving_valid, past_valid, known = (h.inner(name) for name in (
        "output_pass_valid", "ended_pass_valid", "end_known"))
    leaving, past = (h.inner(name) for name in ("output_pass", "ended_pass"))
    bits = len(begin)
    leaving_end, past_end = leaving[:bits], past[:bits]
    top, inside, level, depth = _list(h, begin)
    h.prove("only written entries leave the list", _within(begin, begin, Mux(leaving_valid, leaving_end, begin),
                                                        Mux(past_valid, past_end, top), top)
            & (~known | leaving_valid))
    most = depth - (_LATENCY + 6)  # there is room below it
    h.prove("the list has room for everything in flight",
            (inside + valid + sum(room) <= most + _LATENCY + 4) & (~room[0] | (inside <= most + 1))
            & (~room[0] | (level <= most)))

    # The queue: of each step before it, whether an item is there.
    looking, read, end, may, items = (h.inner(name) for name in (
        "fetching", "read", "end", "may_advance", "items.level"))
    looked = h.inner("fetched", bits=len(looking))
    under_way = looking[:2].any() + looked[:2].any() + (read | end)
    h.prove("the queue has room for everything in flight",
            (items + under_way + may <= _ITEMS - 2) & (~may | (items <= _ITEMS - 6)))
    return h


@_narrow()
def stack() -> Harness:
    """The harness of the emitter for an index."""
    dut = StackEmitter(_config(core="hash", index=(0,), capacity=2), latency=_LATENCY)
    h = Harness(dut)
    room = _outcomes(h)
    prove_stable_offers(h, "o", dut.o)
    h.prove("pointers, flags and levels of its queue and its buffer agree", _sound_items(h))

    # Passes that have ended, and what the list has of each.
    waiting, written = (h.inner(f"ends.{name}") for name in ("level", "i__valid"))
    h.prove("pointers, flags and level of the queue of passes agree", sound_queue(h, "ends", PASSES))
    passes = Signal(signed(5), name="passes")  # that ended, and whose batches were not taken
    h.m.d.sync += passes.eq(passes + (dut.found_valid & dut.found.last) - (dut.batch.valid & dut.batch.ready))
    h.assume("ended passes whose batches were not taken fit the queue", ~dut.found_valid | (passes < PASSES))
    h.prove("each ended pass waits for its batch", passes == waiting + written)
    begin = h.inner("head")
    bits = len(begin)
    top, inside, level, depth = _list(h, begin)
    ends = [Mux(written, h.inner("ends.i__payload")[:bits], top)]
    for n in reversed(range(PASSES)):
        place = (h.inner("ends.head") + n)[:PASSES.bit_length() - 1]
        ends.insert(0, Mux(waiting > n, h.look("ends.rows", place)[:bits], ends[0]))
    h.prove("only written entries leave the list", _within(begin, begin, h.inner("next_head", bits=bits), *ends, top))
    most = depth - (_LATENCY + 4)  # there is room below it
    h.prove("the list has room for everything in flight",
            (inside + sum(room) <= most + _LATENCY + 2) & (~room[0] | ((inside <= most + 1) & (level <= most))))

    # Whether there is room for an item, of which one may come two cycles later.
    items = h.inner("items.level")
    may = [h.past(items < _ITEMS - 4, "may")]
    for n in range(2):
        may.append(h.past(may[-1], f"may{n}"))
    h.prove("the queue has room for everything in flight",
            (items + sum(may) <= _ITEMS - 1) & (~may[0] | (items <= _ITEMS - 4))
            & (~h.inner("items.i__valid") | may[-1]))
    return h


@_narrow()
def results() -> Harness:
    """The harness of an emitter from power-up, with two probes a batch. The hits of one of them are followed."""
    dut = Emitter(_config(probes=2, cores=2), latency=_LATENCY)
    h = Harness(dut)
    _outcomes(h)
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
_EMITTER_FAULTS = (
    *_SHARED_FAULTS,
    Fault("the list's registered level is right, a cycle late",
          Emitter, "level.eq(tail - head)", "level.eq(tail)", "_walk"),
    Fault("only written entries leave the list", Emitter, "ended_pass.end.eq(tail),", "ended_pass.end.eq(tail + 1),",
          "_walk"),
    Fault("the list has room for everything in flight", Emitter, "level < depth - under_way", "level < depth", "_walk"),
    Fault("the queue has room for everything in flight", Emitter, "(items.level < geometry.EMITTER_ITEMS - 6)", "1",
          "_walk"),
)
_STACK_FAULTS = (
    *_SHARED_FAULTS,
    Fault("pointers, flags and level of the queue of passes agree",
          Queue, "push & (tail_next == head)", "push & (tail == head)"),
    Fault("each ended pass waits for its batch", StackEmitter, "self.found_valid & self.found.last)",
          "self.found_valid)", "_walk"),
    Fault("the list's registered level is right, a cycle late",
          StackEmitter, "level.eq(tail - head)", "level.eq(tail)", "_walk"),
    Fault("only written entries leave the list", StackEmitter, "next_head.eq(ends.o.payload.end)",
          "next_head.eq(ends.o.payload.end + 1)", "_walk"),
    Fault("the list has room for everything in flight", StackEmitter, "level < depth - under_way", "level < depth",
          "_walk"),
    Fault("the queue has room for everything in flight", StackEmitter, "items.level < geometry.EMITTER_ITEMS - 4", "1",
          "_walk"),
)
_RESULT_FAULTS = (
    Fault("nothing leaves that did not enter", Emitter, "w_data.hits.eq(hits)", "w_data.hits.eq(~hits)", "_walk"),
    Fault("items leave unchanged and in order", Emitter, "Mux(last_read, 0, group + 1)", "0", "_walk"),
    Fault("the picked item is inside", Emitter, "cursor.eq(cursor + 1)", "cursor.eq(cursor)", "_walk"),
    Fault("results leave probe by probe", Emitter, "Mux(last, before, probe)", "before", "_express"),
)

PROOFS = (
    Proof("emitter", emitter, 2, faults=_EMITTER_FAULTS, search=24, first=20),
    Proof("stack emitter", stack, 3, faults=_STACK_FAULTS, search=34, first=20, quick=False),
    Proof("results of two probes a batch", results, 17, inductive=False, faults=_RESULT_FAULTS, search=22, first=17),
)
