"""Proof of the sorter by induction: each hit of a batch becomes one item, probe by probe and in the order of the reads.

The solver picks an entry of the list as it is written, and a probe. Entries are known by their pointer into the list,
which reads under way and the rows of the places carry with them.
"""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from splitjoin.circuit.wire import Configuration
from splitjoin_hw.core.listing import Listing
from splitjoin_hw.core.sorter import Places, SortingEmitter
from splitjoin_hw.network.queue import Queue

from .harness import Harness
from .network import sound_queue
from .progress import SORTER_FAULTS, prove_sorter_progress
from .proofs import Fault, Proof
from .results import LATENCY, narrow, outcomes, sorter_state

_LANES, _PROBES, _QUOTA = 2, 2, 2


class _Sorter(SortingEmitter):
    """A `SortingEmitter` whose queue anything may empty (``pop``), and whose batches may begin to leave at any time."""

    def __init__(self, config: Configuration):
        super().__init__(config, latency=LATENCY)
        self.pop, self.begins = Signal(name="free_pop"), Signal(name="free_begin")

    def _express(self, m: Module, items: Queue, batch: data.View, held: Signal, start: Signal) -> None:
        m.d.comb += [items.o.ready.eq(self.pop), start.eq(held & self.begins)]


class _Rows:
    """The rows in use of the place of ``probe`` in each half, and what is under way to them."""

    def __init__(self, h: Harness, probe: Signal, bits: int):
        self._h, self._probe = h, probe
        self.item = data.StructLayout({"at": bits, "group": 3, "lanes": _LANES})
        self._write = [h.inner(f"places.entries.{name}") for name in ("w_en", "w_addr", "w_data")]

    def count(self, half: int, probe: Any = None) -> Value:
        raw = self._h.look(f"places.counts{half}", self._probe if probe is None else probe)
        return Cat(raw[0] & ~raw[1], raw[1])

    def row(self, half: int, n: int) -> data.View:
        """Row ``n``, which may be on its way to the memory."""
        address = Cat(Const(n, 1), self._probe, Const(half, 1))
        enable, at, write = self._write
        return data.View(self.item, Mux(enable & (at == address), Value.cast(write),
                                        self._h.look("places.entries", address)))


@narrow(items=16)
def sorted_items() -> Harness:
    """The harness of list, places and walk, for batches of two probes or of one; the queue's level is what matters of
    the rest.
    """
    config = Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, capacity=4, lanes=_LANES, probes=_PROBES)
    dut = _Sorter(config)
    h = Harness(dut)
    h.expose(dut.pop, dut.begins)
    m = h.m
    room = outcomes(h)
    h.prove("pointers, flags and level of its queue agree", sound_queue(h, "items", 16))
    s = sorter_state(h, room)
    begin, bits = s.begin, s.bits
    h.output = SimpleNamespace(valid=h.inner("items.i__valid"), ready=Const(1))

    which, most = h.constant("which", 1), h.constant("most", 1)
    h.assume("batches have as many probes", dut.batch.payload.probes == most)
    h.assume("the picked probe is one of them", which <= most)

    # What enters the list.
    number = Signal(3, name="number")  # of the outcome in its pass
    with m.If(dut.found_valid):
        m.d.sync += number.eq(Mux(dut.found.last, 0, number + 1))
    valid, written, tail = h.inner("valid"), h.inner("written"), h.inner("tail")
    hits, group, last = h.inner("hits", bits=_LANES * _PROBES, domain="sync"), h.inner("group"), h.inner("last_read")
    some = Cat(hits[n * _LANES:(n + 1) * _LANES].any() for n in range(_PROBES))
    was_found, was_last, was_number = (h.past(value, name) for value, name in (
        (dut.found_valid, "was_found"), (dut.found.last, "was_last"), (number, "was_number")))
    h.prove("an entry is an outcome with hits, or the last of its pass, and has the outcome's number", (tail == s.top)
            & (valid == was_found) & (written == (valid & (last | some.any())))
            & (number == Mux(was_found, Mux(was_last, 0, (was_number + 1)[:3]), was_number))
            & (group == Mux(valid, was_number, number)) & (~valid | (
                (hits == h.past(dut.found.hits, "were_hits")) & (last == was_last) & (h.inner("hit_probes") == some))))

    # The picked entry: its pointer, its fields, and whether its batch has left the list.
    mark, picked, gone, pushed = h.free("mark"), Signal(name="picked"), Signal(name="gone"), Signal(name="pushed")
    pointer = Signal(bits, name="pointer")
    entry = Signal(data.StructLayout({"last": 1, "probes": _PROBES, "group": 3, "hits": _LANES * _PROBES}),
                   name="entry")
    has = entry.probes.bit_select(which, 1)
    lanes = Mux(which, entry.hits[_LANES:], entry.hits[:_LANES])

    def rel(x: Any) -> Value:
        return (x - begin)[:bits]

    # Of each half of the places: its end in the list, if all its reads were taken.
    is_sorted, busy, leaving, filling = s.is_sorted, s.busy, s.leaving, s.filling
    first, second = s.first, s.second
    consumed = (s.cursor - s.taken[0] - s.taken[1])[:bits]
    leads = busy.bit_select(leaving, 1)
    in_list = picked & ~gone
    own_batch_leaves = in_list & leads & (rel(pointer) < rel(first))  # all reads of its batch were taken
    half = leaving ^ (leads & (rel(pointer) >= rel(first)))
    consumes = in_list & (rel(pointer) < rel(consumed))

    # Items under way to the queue, with their probe and their pointer.
    fetching, fetched, probe = s.fetching, s.fetched, h.inner("probe", domain="sync")
    put, item_valid, payload = s.steps[3], s.item_valid, data.View(dut._item_layout(), h.inner("payload"))
    rows = _Rows(h, which, bits)
    row_fetching = data.View(rows.item, h.inner("places.entries.read__data"))
    row_fetched = data.View(rows.item, h.inner("places.entries.r_data", domain="sync"))
    finish = h.inner("finish")
    probes = [Signal(name=f"probe_of_item{n}") for n in range(3)]
    at = Signal(bits, name="at_of_item")
    from_list = put.valid & put.walk
    m.d.sync += [probes[0].eq(probe), probes[1].eq(probes[0]), probes[2].eq(Mux(from_list, put.probe, probes[1])),
                 at.eq(Mux(from_list, put.at, row_fetched.at))]
    ended, batch_ended = item_valid & payload.end, item_valid & payload.end & payload.lanes[0]
    draining = Cat(fetching[4], fetched[4], batch_ended).any()
    base, limit = Signal(bits, name="base"), Signal(bits, name="limit")  # the batch that is leaving, or left last
    with m.If(finish):
        m.d.sync += [base.eq(begin), limit.eq(first)]
    of_which = item_valid & ~payload.end & (probes[2] == which)
    is_picked = of_which & picked & (at == pointer)
    m.d.sync += pushed.eq(picked & (pushed | is_picked))
    with m.If(written & mark & ~picked):
        m.d.sync += [picked.eq(1), pointer.eq(tail), entry.last.eq(last), entry.group.eq(group), entry.hits.eq(hits),
                     entry.probes.eq(h.inner("hit_probes"))]
    with m.If(finish & own_batch_leaves):
        m.d.sync += gone.eq(1)
    with m.If(gone & batch_ended):
        m.d.sync += [gone.eq(0), picked.eq(0), pushed.eq(0)]

    # What leaves: items of the probes in turn, each with an end.
    turn = Signal(name="turn")
    with m.If(ended):
        m.d.sync += turn.eq(~batch_ended)
    flush = Signal(name="flush")  # of the batch that is leaving, or left last
    with m.If(finish):
        m.d.sync += flush.eq(data.View(dut.batch.payload.shape(), h.inner("taken")).flush)
    h.prove("items leave probe by probe, and each probe ends",
            ~item_valid | ((probes[2] == turn) & (~payload.end | (
                (payload.lanes[0] == (turn == most)) & (payload.flush == (payload.lanes[0] & flush))))))
    due = h.inner("entering")
    h.prove("items are of a batch that was taken, and its last item comes after its end",
            (~item_valid | due | draining) & (~finish | due))
    start, stop = Mux(draining, base, begin), Mux(draining, limit, first)

    def rank(x: Any) -> Value:
        return (x - start)[:bits]

    h.prove("nothing leaves that did not enter",
            (~of_which | (rank(at) < rank(stop))) & (~is_picked | (has & ~pushed)))
    last_at, some_left = Signal(bits, name="last_at"), Signal(name="some_left")
    with m.If(ended & (probes[2] == which)):
        m.d.sync += some_left.eq(0)
    with m.Elif(of_which):
        m.d.sync += [some_left.eq(1), last_at.eq(at)]
    h.prove("items leave unchanged and in order", (~of_which | ~some_left | (rank(last_at) < rank(at))) & (
        ~is_picked | ((payload.group == entry.group) & (payload.lanes == lanes))))
    mine = picked & (gone | (own_batch_leaves & is_sorted.bit_select(leaving, 1) & ~draining))
    h.prove("each hit leaves before the end of its probe",
            ~(ended & (probes[2] == which) & mine & has) | pushed)

    # The invariants. The list, and reads of it.
    first_half = Cat(entry.last, entry.probes)
    second_half = Cat(entry.group, entry.hits)
    place = pointer[:-1]
    h.prove("the picked entry is in the list", (~gone | (picked & draining)) & (~pushed | picked) & (~in_list | (
        (rel(pointer) < rel(s.top)) & (h.look("list", place) == first_half) & (h.look("reads", place) == second_half)
        & (entry.probes == Cat(entry.hits[:_LANES].any(), entry.hits[_LANES:].any()))
        & (entry.last | entry.probes.any()))))
    inner, hit1, hit2 = s.steps[:3]
    def of_picked(step: Any) -> Value:
        """A read under way is of the picked entry, if it counts at all."""
        return step.valid & in_list & (step.at == pointer) & (~step.walk | own_batch_leaves)

    h.prove("reads of the picked entry find it", Cat(
        ~of_picked(s.looking) | (h.inner("list.read__data") == first_half),
        ~of_picked(s.looked) | (h.inner("list.r_data", domain="sync") == first_half),
        ~of_picked(inner) | (((inner.probes & ~entry.probes) == 0) & (inner.last == entry.last)),
        ~of_picked(hit1) | ((h.inner("reads.read__data") == second_half) & entry.probes.bit_select(hit1.probe, 1)),
        ~of_picked(hit2) | ((h.inner("reads.r_data", domain="sync") == second_half)
                            & entry.probes.bit_select(hit2.probe, 1)),
        ~of_picked(put) | ((put.group == entry.group) & entry.probes.bit_select(put.probe, 1)
                           & (put.lanes == Mux(put.probe, entry.hits[_LANES:], entry.hits[:_LANES]))),
        ~s.looking.valid | (s.looking.next == (s.looking.at + 1)[:bits]),
        ~s.looked.valid | (s.looked.next == (s.looked.at + 1)[:bits])).all())

    # The places, and reads under way to them, from the last step on.
    low = [Mux(half_ == leaving, begin, first) for half_ in (0, 1)]
    high = [Mux(busy[half_], (h.inner(f"end{half_}")), consumed) for half_ in (0, 1)]
    pending = [(put.valid & ~put.walk & (put.probe == which), put.at), (hit2.valid & ~hit2.walk & (hit2.probe == which),
               hit2.at), (hit1.valid & ~hit1.walk & (hit1.probe == which), hit1.at),
               (inner.valid & ~inner.walk & inner.probes.bit_select(which, 1), inner.at)]
    halves, lasts = [filling], [put, hit2, hit1]
    for step in lasts:
        halves.append(halves[-1] ^ (step.last & ~step.walk))
    placed = []
    for step, of in zip((put, hit2, hit1, inner), halves, strict=True):
        lowest, highest = Mux(of, low[1], low[0]), Mux(of, high[1], high[0])
        placed.append(~(step.valid & ~step.walk) | ((rel(lowest) <= rel(step.at)) & (rel(step.at) < rel(highest))))
    # A batch is sorted when its last read is: behind it only reads of another half are under way.
    whole_batches: Value = is_sorted[0] + is_sorted[1]
    for step, is_there in ((put, put.valid), (hit2, hit2.valid), (hit1, hit1.valid), (inner, inner.valid)):
        ends_batch = step.last & ~step.walk & (inner.valid if step is inner else Const(1))
        placed.append(~((is_there & ~step.walk) | ends_batch) | (whole_batches <= 1))
        whole_batches = whole_batches + ends_batch
    placed.append(~inner.valid | (inner.probes[_PROBES:] == 0))
    for (there_a, a), (there_b, b) in combinations(pending, 2):
        placed.append(~(there_a & there_b) | (rel(a) < rel(b)))
    for n in range(2):
        count, used = rows.count(n), [rows.count(n) > k for k in range(_QUOTA)]
        at_rows = [rows.row(n, k).at for k in range(_QUOTA)]
        placed += [~u | ((rel(low[n]) <= rel(a)) & (rel(a) < rel(high[n]))) for u, a in zip(used, at_rows, strict=True)]
        placed.append(~used[1] | (rel(at_rows[0]) < rel(at_rows[1])))
        for (is_there, where), of in zip(pending, halves, strict=True):
            placed += [~(is_there & (of == n) & u) | (rel(a) < rel(where)) for u, a in zip(used, at_rows, strict=True)]
        placed += [~(u & in_list & (half == n) & (a == pointer)) | (
            has & (Cat(rows.row(n, k).group, rows.row(n, k).lanes) == Cat(entry.group, lanes)))
            for k, (u, a) in enumerate(zip(used, at_rows, strict=True))]
        # A half that is neither filled nor read is empty, and so are places that have been read.
        free = ~is_sorted.bit_select(leaving, 1) & (leaving != n)
        read = is_sorted.bit_select(leaving, 1) & (leaving == n) & (probe > which) & ~s.clearing
        placed.append(~(free | read | s.clearing) | (count == 0))
    h.prove("places hold the entries of their batch, in order", Cat(placed).all())
    ends_of_steps = []
    for step, of, is_there in zip((put, hit2, hit1, inner), halves, (1, 1, 1, inner.valid), strict=True):
        ends_of_steps.append(~(step.last & ~step.walk & is_there) | ((step.at + 1)[:bits] == Mux(of, *[
            h.inner(f"end{n}") for n in (1, 0)])))
    h.prove("the last read of a batch is the one before its end", Cat(ends_of_steps).all())

    # Where the picked hit is.
    count = Mux(half, rows.count(1), rows.count(0))
    ats = [Mux(half, rows.row(1, k).at, rows.row(0, k).at) for k in range(_QUOTA)]
    in_row = [(count > k) & (ats[k] == pointer) for k in range(_QUOTA)]
    behind = (count == _QUOTA) & (rel(ats[-1]) <= rel(pointer))  # of the place: the list is read for it once more
    waiting = Cat(is_there & (where == pointer) for is_there, where in pending).any()
    # The places of its batch are read.
    reading = is_sorted.bit_select(leaving, 1) & ~s.clearing & (half == leaving) & consumes
    passed = reading & (probe > which)
    walked_on = [(step.valid & step.walk & (step.probe == which) & (step.at == pointer)) for step in (put, hit2, hit1)]
    walked_on.append(inner.valid & inner.walk & inner.probes.bit_select(which, 1) & (inner.at == pointer))
    on_the_way = Cat(fetching[0] & ~fetching[2] & (probes[0] == which) & (row_fetching.at == pointer),
                     fetched[0] & ~fetched[2] & (probes[1] == which) & (row_fetched.at == pointer), is_picked).any()
    h.prove("a hit whose read was taken is on its way to its place or in it, or its place is full",
            ~(consumes & has & ~passed) | waiting | Cat(in_row).any() | behind)
    known, row, continued, walking = (h.inner(name) for name in ("known", "row", "continued", "walking"))
    fetched_rows = Mux(known, row, 0)
    some_on_the_way = pushed | on_the_way
    walk_reads = Cat(*s.walks, walking, put.walk & put.last).any()
    walk_cursor = h.inner("walk_cursor")
    walk_looking, walk_looked = s.looking.valid & s.looking.walk, s.looked.valid & s.looked.walk
    walked = Mux(walking, (walk_cursor - walk_looking - walk_looked)[:bits], first)  # reads before it were taken again
    walks = Cat(walked_on).any()
    walk_ends = Cat(inner.valid & inner.walk & inner.last, *(step.walk & step.last for step in (hit1, hit2, put))).any()
    own_turn = reading & (probe == which)
    emitted = [~(own_turn & here & ~(behind if k == _QUOTA - 1 else Const(0)))
               | ((some_on_the_way == (fetched_rows > k)) & ~walks) for k, here in enumerate(in_row)]
    h.prove("the picked item is inside", ~(picked & has) | Cat(
        ~(in_list & ~(reading & (probe >= which))) | ~(some_on_the_way | walks),
        ~(gone | passed) | (some_on_the_way & ~walks), *emitted,
        ~(own_turn & behind) | Mux(known & ~continued, some_on_the_way & ~walks, Mux(
            walk_reads, (some_on_the_way | walks) == (rel(pointer) < rel(walked)), ~(some_on_the_way | walks))),
        ~(some_on_the_way & walks), ~pushed | ~on_the_way).all())

    # Items under way to the queue, in their order.
    current = is_sorted.bit_select(leaving, 1) & ~s.clearing & (probe == which)  # the places of ``which`` are read
    counted = Mux(leaving, rows.count(1), rows.count(0))
    here = [Mux(leaving, rows.row(1, k).at, rows.row(0, k).at) for k in range(_QUOTA)]
    repeats = (counted == _QUOTA) & ~(known & ~continued) & ~walk_reads  # the list has yet to be read again
    left_rows = [(counted > k) & ((fetched_rows <= k) | (repeats if k == _QUOTA - 1 else Const(0))) & ~(
        walk_reads if k == _QUOTA - 1 else Const(0)) for k in range(_QUOTA)]
    again = [(step.valid & step.walk & (step.probe == which), step.at) for step in (put, hit2, hit1)]
    again.append((inner.valid & inner.walk & inner.probes.bit_select(which, 1), inner.at))
    line = [(some_left, last_at), (of_which, at),
            (fetched[0] & ~fetched[2] & (probes[1] == which), row_fetched.at),
            (fetching[0] & ~fetching[2] & (probes[0] == which), row_fetching.at)]
    later = [*((current & there, x) for there, x in zip(left_rows, here, strict=True)), *again,
             (current & walk_reads & (rel(walked) < rel(first)), walked)]
    ordered = [~(a_there & b_there) | (rank(a) < rank(b)) for (a_there, a), (b_there, b) in combinations(line, 2)]
    ordered += [~(a_there & b_there) | (rank(a) < rank(b)) for a_there, a in line for b_there, b in later]
    ordered += [~(a_there & b_there) | (rank(a) < rank(b)) for (a_there, a), (b_there, b) in combinations(again, 2)]
    ordered += [~there | (rank(x) < rank(stop)) for there, x in line]
    ordered += [~there | ((rel(here[-1]) <= rel(x)) & (rel(x) < rel(first)) & (rel(x) < rel(walked))
                          & (counted == _QUOTA) & current) for there, x in again]
    ordered.append(~(current & walk_reads) | (
        (counted == _QUOTA) & (rel(here[-1]) <= rel(walked)) & (rel(walked) <= rel(first))
        & (~walking | (rel(walked) < rel(first)))))
    ordered += [~(put.walk & put.valid) | (put.probe == probe), ~(hit2.walk & hit2.valid) | (hit2.probe == probe),
                ~(hit1.walk & hit1.valid) | (hit1.probe == probe),
                ~(inner.walk & inner.valid) | ((inner.probes & ~(1 << probe)[:4]) == 0)]
    ordered += [~(fetching[2] & (probes[0] == which)) | (row_fetching.at == here[-1]),
                ~(fetched[2] & (probes[1] == which)) | (row_fetched.at == here[-1]),
                ~Cat(*s.walks).any() | (walking ^ walk_ends), ~(walk_looking | walk_looked) | walking,
                ~walk_looking | (s.looking.next == walk_cursor),
                ~walk_looked | (s.looked.next == (walk_cursor - walk_looking)[:bits])]
    h.prove("items under way are in order", Cat(ordered).all())
    h.prove("items under way are those of the picked entry", Cat(
        ~(token[0] & ~token[2] & (own == which) & picked & (shown.at == pointer))
        | (has & ~pushed & (Cat(shown.group, shown.lanes) == Cat(entry.group, lanes)))
        for token, own, shown in ((fetching, probes[0], row_fetching), (fetched, probes[1], row_fetched))).all())
    write, address = h.inner("places.entries.w_en"), h.inner("places.entries.w_addr")
    h.prove("a place is written before it is read", ~(known | h.inner("may_advance")) | ~write
            | (address[-1] != leaving))
    h.prove("a walk reads for the probe whose place is full", Cat(
        ~known | (h.inner("in_place") == Mux(leaving, rows.count(1, probe), rows.count(0, probe))),
        ~(known & continued) | (h.inner("in_place") == _QUOTA), ~known | (h.inner("wanted") == (1 << probe)[:4]),
        ~known | is_sorted.bit_select(leaving, 1)).all())

    h.prove("a full place is followed by a walk", ~(known & continued & ~h.inner("more")) | Cat(
        fetching[2], fetched[2], walking, walk_ends).any())

    # A batch in the list ends with the only entry that is the last of its pass.
    whole, both = [], busy.all()
    for x in range(1 << (bits - 1)):
        is_last, offset = h.look("list", Const(x, bits - 1))[0], (Const(x, bits - 1) - begin[:-1])[:bits - 1]
        ends_here = (leads & (offset + 1 == rel(first))) | (both & (offset + 1 == rel(second)))
        whole.append(~(offset < rel(consumed)) | (is_last == ends_here))
    whole += [~leads | (first != begin) | s.clearing, ~both | (second != first) | s.clearing,
              ~both | (consumed == second) | s.clearing]
    h.prove("a batch ends with the last read of its pass", s.clearing | Cat(whole).all())
    shown = [(s.looking, h.inner("list.read__data")), (s.looked, h.inner("list.r_data", domain="sync"))]
    h.prove("reads show what the list holds", Cat(
        ~(read.valid & (~read.walk | (rel(read.at) < rel(first)))) | (h.look("list", read.at[:-1]) == value)
        for read, value in shown).all())

    # The turns of probes, and of batches.
    turns = [turn]
    for is_end, is_batch_end in ((ended, batch_ended), (fetched[1], fetched[4]), (fetching[1], fetching[4])):
        turns.append(Mux(is_end, ~is_batch_end & ~turns[-1], turns[-1]))
    stages = ((item_valid, item_valid & payload.end, payload.lanes[0], payload.flush),
              *((token[:2].any(), token[1], token[4], token[3]) for token in (fetched, fetching)))
    in_turn = [Mux(s.clearing, turn == 0, turns[-1] == probe)]
    for (there, is_end, is_batch_end, is_flush), own, now in zip(stages, reversed(probes), turns, strict=False):
        in_turn += [~there | (own == now),
                    ~is_end | ((is_batch_end == (now == most)) & (is_flush == (is_batch_end & flush)))]
    waits, taken = h.inner("waits"), data.View(dut.batch.payload.shape(), h.inner("taken"))
    sorted_and_due = due & is_sorted.bit_select(leaving, 1) & ~s.clearing
    in_turn += [~((fetching[:2] | fetched[:2]).any() | item_valid) | draining | sorted_and_due,
                ~(known | h.inner("may_advance") | Cat(*s.walks).any()) | sorted_and_due,
                ~fetched[4] | ~fetching[:2].any(), ~batch_ended | ~(fetching[:2] | fetched[:2]).any(),
                ~draining | ((limit == begin) & ((begin - base)[:bits] <= 1 << (bits - 1))),
                ~fetching[4] | ~due, ~(fetching[4] | fetched[4]) | ~h.inner("may_advance"),
                ~fetching[0] | known, ~fetched[0] | known | fetching[1], ~fetching[:2].all(), ~fetched[:2].all(),
                ~fetching[4] | fetching[1], ~fetched[4] | fetched[1], ~draining | ~known, turn <= most,
                s.clearing | (probe <= most),
                s.clearing | is_sorted.bit_select(leaving, 1) | (probe == 0),
                ~known | due, ~due | (taken.probes == most),
                ~waits | (data.View(dut.batch.payload.shape(), h.inner("waiting")).probes == most),
                ~known | (h.inner("last") == (probe == most)), ~known | ~fetching[1],
                ~(known & (row >= 1)) | ~fetched[1], ~(known & (row >= 2)) | ~ended,
                ~some_left | (current & ~draining) | (fetching[1] & (probes[0] == which))
                | (fetched[1] & (probes[1] == which)) | (ended & (probes[2] == which))]
    h.prove("probes take turns", Cat(in_turn).all())

    for name in ("known", "continued", "more", "row", "in_place", "walking"):
        setattr(s, name, h.inner(name))
    prove_sorter_progress(
        h, s, probes=_PROBES, quota=_QUOTA, ended=in_list & entry.last, left=(pointer + 1 - consumed)[:bits],
        active=sorted_and_due & (probe == which), unwalked=(first - walked)[:bits])
    return h


_NO_ITEMS = SortingEmitter, "more.eq(count != at)", "more.eq(0)", "_walk"
_GROUP = SortingEmitter, "put.group.eq(reads.r_data.group)", "put.group.eq(reads.r_data.group + 1)", "_take_reads"
_BATCH_END = SortingEmitter, "end.eq(looked.next)", "end.eq(looked.next + 1)", "_take_reads"
_FAULTS = (
    Fault("an entry is an outcome with hits, or the last of its pass, and has the outcome's number", Listing,
          "(self.group + 1)", "(self.group + 0)", "__init__"),
    Fault("items leave probe by probe, and each probe ends", SortingEmitter, "last.eq(probe == taken.probes)",
          "last.eq(probe == 0)", "_walk"),
    Fault("items are of a batch that was taken, and its last item comes after its end", SortingEmitter,
          "due & is_sorted.bit_select(leaving, 1)", "is_sorted.bit_select(leaving, 1)", "_walk"),
    Fault("nothing leaves that did not enter", Places, "Cat(self.at, self.probe, self.batch)",
          "Cat(self.at, ~self.probe, self.batch)"),
    Fault("items leave unchanged and in order", *_GROUP),
    Fault("each hit leaves before the end of its probe", *_NO_ITEMS),
    Fault("the picked entry is in the list", SortingEmitter, "ram.w_addr.eq(found.tail[:-1])",
          "ram.w_addr.eq(found.head[:-1])", "_walk"),
    Fault("reads of the picked entry find it", SortingEmitter, "outer.at.eq(looked.at)", "outer.at.eq(looking.at)",
          "_take_reads"),
    Fault("places hold the entries of their batch, in order", Places, "count[:-1]",
          "~count[:-1]"),
    Fault("the last read of a batch is the one before its end", *_BATCH_END),
    Fault("a hit whose read was taken is on its way to its place or in it, or its place is full", Places,
          "self.put & (self.put_batch == n)", "self.put & self.put_batch"),
    Fault("the picked item is inside", *_NO_ITEMS),
    Fault("items under way are in order", SortingEmitter, "at.eq(at + 1)", "at.eq(at)", "_walk"),
    Fault("items under way are those of the picked entry", *_GROUP),
    Fault("a place is written before it is read", SortingEmitter, "known.eq(~end & (known | may_advance))",
          "known.eq(1)", "_walk"),
    Fault("a walk reads for the probe whose place is full", SortingEmitter, "count.eq(places.count)",
          "count.eq(places.count + 1)", "_walk"),
    Fault("a full place is followed by a walk", SortingEmitter, "walk.eq(fetched[2])",
          "walk.eq(fetched[2] & ~self.found_valid)", "_walk"),
    Fault("a batch ends with the last read of its pass", *_BATCH_END),
    Fault("reads show what the list holds", SortingEmitter, "entries.r_addr.eq(place[:-1])",
          "entries.r_addr.eq(place[:-1] + 1)", "_take_reads"),
    Fault("probes take turns", SortingEmitter, "Mux(finish, 0, probe + 1)", "Mux(finish, 1, probe + 1)", "_walk"),
    *SORTER_FAULTS,
)

PROOFS = (
    Proof("sorter", sorted_items, 2, faults=_FAULTS, search=30, first=28, apart=True, quick=False),
)
