"""Proofs of the queue that looks ahead, the merger, the gather tree and the combiner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import data
from splitjoin.circuit.wire import ItemKind
from splitjoin.hw.gather.combiner import Combiner
from splitjoin.hw.gather.lookahead import Lookahead, offered
from splitjoin.hw.gather.merger import Merger
from splitjoin.hw.gather.tree import GatherTree
from splitjoin.hw.gather.verdict import Verdict
from splitjoin.hw.layouts import result_layout

from .harness import Harness
from .monitors import Follower, assume_offers_stand, follow, offers_stand
from .proofs import Fault, Proof

__all__ = ["PROOFS"]


def _taken(port: Any) -> Value:
    return port.valid & port.ready


#: Bits of row ids that are compared, here.
_BITS = 4


#: Bits of row ids, here; nothing in these circuits depends on how many there are.
_ROW = 5


@contextmanager
def _narrow() -> Iterator[None]:
    with patch("splitjoin.hw.layouts.ROW_BITS", _ROW), patch("splitjoin.hw.gather.lookahead.ROW_BITS", _ROW):
        yield


class _Queue:
    """The `Lookahead` at ``path``: what it holds. ``bits``: of its ages. ``absent``: if empty, whether it is clear."""

    def __init__(self, h: Harness, path: str, bits: int, absent: Value):
        at = f"{path}." if path else ""
        self.leaves, has, self._head, copy, behind, third, tail, kind = (h.inner(f"{at}{name}") for name in (
            "goes", "has", "head0", "head1", "behind", "third", "tail", "kind"))
        self._h, self._at, self.level = h, at, sum(has)
        self.some, self.first = has[0], data.View(result_layout(), self.at(0))
        flags = ((name, test) for name, test in (
            ("pair", kind == ItemKind.PAIR), ("bar", kind != ItemKind.PAIR), ("part", kind == ItemKind.SLICE),
            ("star", kind == ItemKind.STAR), ("end", kind == ItemKind.END), ("ready", kind != ItemKind.END)))
        ages = ((h.inner(f"{at}age{n}"), has[n], data.View(result_layout(), self.at(n)).stored[:bits])
                for n in range(2 if bits else 0))
        self.sound = (((has & (has + 1)) == 0) & ((self._head + self.level - tail)[:len(tail)] == 0)
                      & ((self._head + 1 - behind)[:len(behind)] == 0) & (self._head == copy)
                      & ((self._head + 2 - third)[:len(third)] == 0)
                      & Cat(~here | (age == stored) for age, here, stored in ages).all()
                      & (h.inner(f"{at}clear") == Mux(self.some, kind != ItemKind.PAIR, absent))
                      & (h.inner(f"{at}room") == ~has[-1])
                      & (~self.some | (kind == self.first.kind))
                      & Cat(h.inner(f"{at}{name}") == (self.some & test) for name, test in flags).all())
        self.kind = kind
        self.pair = self.some & (kind == ItemKind.PAIR)

    def at(self, position: Any) -> Value:
        """What it holds behind ``position`` others."""
        place = (self._head + position)[:len(self._head)]
        return Cat(*(self._h.look(f"{self._at}{rows}", place) for rows in ("kinds", "probes", "stored")))


def _tells(comes: Any, results: Any) -> Value:
    """Whether what comes is what results are on offer."""
    return Cat(comes[name] == value for name, value in offered(results).items()).all()


@_narrow()
def lookahead(bits: int) -> Harness:
    dut = Lookahead(bits)
    h = Harness(dut)
    h.assume("what comes is told", _tells(dut.comes, dut.i))
    h.assume("what goes is there", ~dut.goes | dut.valid)
    queue = _Queue(h, "", bits, h.started() & ~h.past(dut.awaited, "was_awaited"))
    item = Signal(len(queue.at(0)), name="item")
    h.m.d.comb += item.eq(Cat(dut.kind, dut.item))
    h.output = out = SimpleNamespace(valid=dut.valid, ready=dut.goes, payload=item)
    offers_stand(h, "o", out)
    f = Follower(h, "item", entered=_taken(dut.i), entering=dut.i.payload, port=out, capacity=4)
    follow(h, f)
    h.prove("its places and flags agree", queue.sound)
    h.prove("what is inside is counted", (f.inside == queue.level) & (dut.i.ready == (queue.level != 4)))
    h.prove("the item picked is in its place", ~f.picked | (queue.at(f.ahead) == f.token))
    h.prove("the first two are shown", Cat(
        (dut.here[n] == (queue.level > n)) & (~dut.here[n] | (
            dut.ages[n] == data.View(result_layout(), queue.at(n)).stored[:bits])) for n in (0, 1)).all())
    return h


def _queues(h: Harness, inputs: int) -> list[_Queue]:
    """Those of a merger, and what is known of them."""
    out, bits = h.dut.o, h.dut.bits
    # An empty queue is waited for from the second cycle on; in the first it says nothing.
    queues = [_Queue(h, f"queue{n}", bits, h.started() & ~h.past(h.dut.total, f"waits{n}"))
              for n in range(inputs)]
    slices = Cat(q.kind == ItemKind.SLICE for q in queues)
    leaving = Cat(q.leaves for q in queues)
    h.prove("places and flags of its queues agree", Cat(q.sound for q in queues).all())
    h.prove("only what is there leaves, with what is taken",
            (_taken(out) == leaving.any()) & Cat(~q.leaves | q.some for q in queues).all())
    h.prove("a pair leaves alone and as it came", ~_taken(out) | (out.payload.kind != ItemKind.PAIR) | (
        (sum(leaving) == 1) & Cat(~q.leaves | (q.pair & (Value.cast(q.first) == Value.cast(out.payload)))
                                  for q in queues).all()))
    kinds = (ItemKind.STAR, ItemKind.END)
    h.assume("stars and ENDs do not stand at one barrier",
             ~(Cat(q.some & (q.kind == kinds[0]) for q in queues).any()
               & Cat(q.some & (q.kind == kinds[1]) for q in queues).any()))
    first = queues[0].first
    h.prove("a barrier is on offer when all inputs have come to one, and is that of all or of those between slices",
            ~out.valid | (out.payload.kind == ItemKind.PAIR) | (
                Cat(q.some & ~q.pair for q in queues).all() & (out.payload.probe == first.probe)
                & (out.payload.stored == first.stored) & Mux(
                    slices.any(), (~out.ready | (leaving == slices)) & (out.payload.kind == ItemKind.SLICE),
                    (~out.ready | leaving.all()) & (out.payload.kind == first.kind))))
    h.prove("it tells what is on offer", _tells(h.dut.offer, out))
    if h.dut.told:
        h.assume("what comes is told", Cat(_tells(*of) for of in zip(h.dut.comes, h.dut.i, strict=True)).all())
    h.prove("with total, a pair is on offer when all inputs show something",
            ~h.dut.total | ~out.valid | (out.payload.kind != ItemKind.PAIR) | Cat(q.some for q in queues).all())
    total = h.constant("total_order", 1)
    h.assume("the order stands", h.dut.total == total)
    h.assume("and for a cycle before the first result", h.started() | ~Cat(i.valid for i in h.dut.i).any())
    known, turns = [], {}
    for j, k in combinations(range(inputs), 2):
        before, behind = h.inner(f"first{j}_{k}").any(), h.inner(f"first{k}_{j}").any()
        turn = turns[j, k] = h.inner(f"turn{j}_{k}")
        both = queues[j].some & queues[k].some
        younger = (queues[k].first.stored[:bits] - queues[j].first.stored[:bits])[bits - 1]
        known.append(Mux(total, (~before | (both & ~younger)) & (~behind | (both & younger)),
                         ~h.started() | ((before == turn) & (behind == ~turn))))
    h.prove("what is known of the order of two inputs is true", Cat(known).all())
    h.prove("the turns of all inputs are an order", Cat(
        Mux(turns[i, j] == turns[j, k], turns[i, k] == turns[i, j], 1)
        for i, j, k in combinations(range(inputs), 3)).all() if inputs > 2 else Const(1))
    return queues


@_narrow()
def merger(inputs: int, *, told: bool = False) -> Harness:
    dut = Merger(inputs, _BITS, told=told)
    h = Harness(dut)
    queues = _queues(h, inputs)
    offers_stand(h, "o", dut.o)
    pairs, here = Cat(q.pair for q in queues), Cat(q.some for q in queues)
    h.prove("without total, pairs do not wait for other inputs", dut.total | ~pairs.any() | dut.o.valid)
    h.prove("a barrier that all have come to does not wait", ~(here.all() & ~pairs.any()) | dut.o.valid)
    # Row ids are modular: the pairs shown lie within half of what their bits count, of some row.
    base = h.free("base", _ROW)
    age = [(q.first.stored - base)[:_ROW] for q in queues]
    h.assume("the pairs shown lie in half the range of the bits compared",
             Cat(~q.pair | (a < 2**(_BITS - 1)) for q, a in zip(queues, age, strict=True)).all())
    h.prove("with total, the oldest stored tuple goes first",
            ~dut.total | Cat(~q.leaves | ~q.pair | ~other.pair | (a <= b)
                             for q, a in zip(queues, age, strict=True)
                             for other, b in zip(queues, age, strict=True)).all())
    h.prove("with total, row ids that all show are compared in a cycle",
            ~h.past(here.all() & ~dut.o.valid, "waited") | dut.o.valid)
    return h


@_narrow()
def sorted_merger(inputs: int) -> Harness:
    """In total order each group leaves sorted, if each input's is. What is behind its queue is what came to an input,
    in its order: that is proved of the queue. Row ids do not wrap here.
    """
    dut = Merger(inputs, _BITS + 1)
    h = Harness(dut)
    m = h.m
    h.assume("total order", dut.total)
    queues = _queues(h, inputs)
    last, some = Signal(_ROW), Signal()  # of the group under way: the stored tuple that left last, if any
    pairs, kept = [], []
    for n, q in enumerate(queues):
        own, had = Signal(_ROW, name=f"own{n}"), Signal(name=f"had{n}")
        h.assume(f"input {n} is sorted", ~q.pair | ~had | (q.first.stored >= own))
        h.assume(f"row ids of input {n} are small", ~q.pair | (q.first.stored < 2**_BITS))
        with m.If(q.leaves):
            m.d.sync += [own.eq(q.first.stored), had.eq(q.pair)]
        with m.If(q.leaves & q.pair):
            m.d.sync += [last.eq(q.first.stored), some.eq(1)]
        pairs.append((q, had))
        # What an input brings next is not older than what left: it shows it, or it left itself.
        kept.append(~some | Mux(q.some, ~q.pair | (q.first.stored >= last), had & (own == last)))
        kept.append(some | ~had)
    with m.If(Cat(q.leaves & ~q.pair for q in queues).any()):
        m.d.sync += [some.eq(0), *(had.eq(0) for _, had in pairs)]
    h.prove("a group leaves in the order of stored tuples",
            Cat(~(q.leaves & q.pair) | ~some | (q.first.stored >= last) for q in queues).all())
    h.prove("no input brings anything older", Cat(kept).all())
    h.prove("what leaves is the oldest", Cat(
        ~(q.leaves & q.pair) | ~other.pair | (q.first.stored <= other.first.stored)
        for q in queues for other in queues).all())
    return h


@_narrow()
def tree(leaves: int, fanin: int) -> Harness:
    """A tree of mergers. Each pair carries the number of its group in the low bits of ``probe``; one may be marked."""
    dut = GatherTree(leaves=leaves, fanin=fanin, bits=_BITS)
    h = Harness(dut)
    m = h.m
    assume_offers_stand(h, "i", *dut.i)
    offers_stand(h, "o", dut.o)
    total = h.constant("total_order", 1)
    h.assume("the order stands", dut.total == total)
    settled = h.started()
    for n in range(dut.latency):
        settled = h.past(settled, f"settled{n}")
    h.assume("and all nodes know it before the first result", settled | ~Cat(i.valid for i in dut.i).any())
    bits = 3  # more groups than a tree of two levels can hold
    for n, i in enumerate(dut.i):
        h.assume(f"row ids of input {n} are small", (i.payload.probe[bits:] == 0) & (i.payload.stored[bits:] == 0))
    one = h.constant("one", bits)  # the group whose pairs are counted
    ends = h.constant("ends", 2**bits)  # of each group, whether it ends with the input and not with a star

    came, marks = Signal(4), []
    for n, i in enumerate(dut.i):
        group = Signal(bits, name=f"group{n}")
        pair = i.payload.kind == ItemKind.PAIR
        h.assume(f"input {n} has no slices", i.payload.kind != ItemKind.SLICE)
        h.assume(f"groups end at input {n} as at the others",
                 ~i.valid | pair | ((i.payload.kind == ItemKind.END) == ends.bit_select(group, 1)))
        h.assume(f"pairs of input {n} carry their group", ~i.valid | ~pair | (i.payload.probe[:bits] == group))
        with m.If(_taken(i) & ~pair):
            m.d.sync += group.eq(group + 1)
        marks.append(i.valid & pair & i.payload.stored[0])
    counted = [_taken(i) & (i.payload.kind == ItemKind.PAIR) & (i.payload.probe[:bits] == one) for i in dut.i]
    m.d.sync += came.eq(came + sum(counted))
    marked, where = Signal(), Signal(bits)  # whether the marked pair was taken, and its group
    h.assume("one pair is marked", (sum(marks) <= 1) & ~(marked & Cat(marks).any()))
    for mark, i in zip(marks, dut.i, strict=True):
        with m.If(mark & i.ready):
            m.d.sync += [marked.eq(1), where.eq(i.payload.probe)]

    item, group, left, gone = dut.o.payload, Signal(bits, name="group"), Signal(4), Signal()
    pair = item.kind == ItemKind.PAIR
    with m.If(_taken(dut.o)):
        with m.If(~pair):
            m.d.sync += group.eq(group + 1)
        with m.Elif(item.probe[:bits] == one):
            m.d.sync += left.eq(left + 1)
        with m.If(pair & item.stored[0]):
            m.d.sync += gone.eq(1)
    h.prove("each pair leaves in its group", ~dut.o.valid | ~pair | (item.probe[:bits] == group))
    h.prove("a group is whole when its barrier leaves",
            ~dut.o.valid | pair | (group != one) | (left == came))
    h.prove("a pair leaves once, and only if it came",
            ~(dut.o.valid & pair & item.stored[0]) | (marked & ~gone & (where == group)))
    return h


@_narrow()
def combiner() -> Harness:
    dut = Combiner()
    h = Harness(dut)
    out, turn = dut.o, dut.sequence
    left, right = queues = tuple(_Queue(h, name, 0, h.started()) for name in ("left", "right"))
    ends = [q.some & (q.kind == ItemKind.END) for q in queues]
    total = h.constant("total_order", 1)
    h.assume("the order stands", dut.total == total)
    assume_offers_stand(h, "sequence", turn)
    offers_stand(h, "o", out)
    h.prove("places and flags of its queues agree", left.sound & right.sound)
    h.prove("only what is there leaves, with what is taken",
            (_taken(out) == (left.leaves | right.leaves)) & Cat(~q.leaves | q.some for q in queues).all())
    item, side = Signal(out.payload.shape()), right.leaves
    kind = Mux(side, right.kind, left.kind)
    h.m.d.comb += [
        item.kind.eq(Mux(kind == ItemKind.SLICE, ItemKind.STAR, kind)), item.side.eq(side),
        item.r.eq(Mux(side, right.first.stored, left.first.probe)),
        item.s.eq(Mux(side, right.first.probe, left.first.stored)),
    ]
    # What an END carries besides its kind means nothing.
    end = out.payload.kind == ItemKind.END
    h.prove("an END is on offer when both sides have come to theirs, and leaves both",
            ~out.valid | ((end == (ends[0] & ends[1])) & (~end | ~out.ready | (left.leaves & right.leaves))))
    h.prove("all else leaves one side, as it came",
            ~_taken(out) | end | ((left.leaves ^ right.leaves) & (Value.cast(item) == Value.cast(out.payload))))
    h.prove("without total, nothing waits", dut.total | ~_waiting(queues, ends) | out.valid)
    goes = [q.leaves for q in queues]
    stars = Cat(go & (q.kind == ItemKind.STAR) for go, q in zip(goes, queues, strict=True)).any()
    told, whose = Signal(), Signal()  # the turn that was taken last has not ended; the side whose it is
    with h.m.If(_taken(turn)):
        h.m.d.sync += [told.eq(1), whose.eq(turn.payload)]
    with h.m.Elif(stars):
        h.m.d.sync += told.eq(0)
    h.prove("in total order the side is the one whose turn it is",
            ~dut.total | ~(goes[0] | goes[1]) | (goes[0] & goes[1])
            | (told & (goes[0] == ~whose) & (goes[1] == whose)))
    h.prove("a turn ends with its star, and only then", ~_taken(turn) | (dut.total & (~told | stars)))
    h.prove("whose turn it may be is what was told", ~h.started() | (
        h.inner("may") == Mux(total, Cat(told & ~whose, told & whose), 0b11)))
    h.prove("and nothing is before that", (h.started() | ~told) & (h.inner("in_order") == (total & h.started())))
    return h


def _waiting(queues: Sequence[_Queue], ends: Sequence[Value]) -> Value:
    """Whether a side has come to something other than END, or both to theirs."""
    return Cat(q.some & ~end for q, end in zip(queues, ends, strict=True)).any() | (ends[0] & ends[1])


_LOOKAHEAD_FAULTS = (
    Fault("offers at o stand", Lookahead, "read(probes, heads[0])", "read(probes, behind)"),
    Fault("nothing leaves that did not enter", Lookahead, "self.valid.eq(has[0])", "self.valid.eq(1)"),
    Fault("items leave whole and in order", Lookahead, "write.addr.eq(tail)", "write.addr.eq(behind)"),
    Fault("what is picked is inside", Lookahead, "self.i.ready.eq(room)", "self.i.ready.eq(1)"),
    Fault("its places and flags agree", Lookahead, "(self.part, kind == ItemKind.SLICE, comes.part)",
          "(self.part, kind == ItemKind.SLICE, comes.star)"),
    Fault("what is inside is counted", Lookahead, "room.eq(self.goes | ~has[-2])", "room.eq(self.goes | ~has[-1])"),
    Fault("the item picked is in its place", Lookahead, "write.en.eq(~has[-1])", "write.en.eq(self.goes)"),
    Fault("the first two are shown", Lookahead, "read(stored, third)", "read(stored, behind)"),
)

_QUEUES_FAULTS = (
    Fault("places and flags of its queues agree", Lookahead, "(self.part, kind == ItemKind.SLICE, comes.part)",
          "(self.part, kind == ItemKind.SLICE, comes.star)"),
)

_MERGER_FAULTS = (
    Fault("offers at o stand", Merger, "Mux(chosen[j], ~self.o.ready, Mux(chosen[k], self.o.ready, turn))",
          "turn ^ self.o.ready"),
    *_QUEUES_FAULTS,
    Fault("only what is there leaves, with what is taken", Merger, "barrier | chosen.any()",
          "chosen.any()"),
    Fault("a pair leaves alone and as it came", Merger, "~(pair[k] & first[k, j])", "~(pair[k] & first[j, k])"),
    Fault("a barrier is on offer when all inputs have come to one, and is that of all or of those between slices",
          Merger, "part[j] | ~part.any()", "1"),
    Fault("it tells what is on offer", Merger, "offer.part.eq(barrier & part.any())", "offer.part.eq(part.all())"),
    Fault("with total, a pair is on offer when all inputs show something", Merger,
          "queue.awaited.eq(total)", "queue.awaited.eq(0)"),
    Fault("what is known of the order of two inputs is true", Merger, "queues[k].ages[b] - queues[j].ages[a]",
          "queues[k].ages[b] - queues[j].ages[0]"),
    Fault("the turns of all inputs are an order", Merger, "chosen[j], ~self.o.ready",
          "chosen[j], ~self.o.ready & (k > 1)"),
    Fault("without total, pairs do not wait for other inputs", Merger,
          "queue.awaited.eq(total)", "queue.awaited.eq(1)"),
    Fault("a barrier that all have come to does not wait", Merger, "barrier.eq(bar.all())",
          "barrier.eq(part.all())"),
    Fault("with total, the oldest stored tuple goes first", Verdict, "~self.later if", "self.later if"),
    Fault("with total, row ids that all show are compared in a cycle", Merger, "(queues[j].goes == a)",
          "queues[j].goes & (a == 1)"),
)

_SORTED_FAULTS = (
    Fault("a group leaves in the order of stored tuples", Verdict, "~self.later if self._older else self.later",
          "self.later if self._older else ~self.later"),
    Fault("no input brings anything older", Merger, "queue.awaited.eq(total)", "queue.awaited.eq(0)"),
    Fault("what leaves is the oldest", Verdict, "~self.later if", "self.later if"),
)

_TREE_FAULTS = (
    Fault("offers at o stand", Lookahead, "read(probes, heads[0])", "read(probes, behind)"),
    Fault("each pair leaves in its group", Merger, "barrier.eq(bar.all())", "barrier.eq(bar.any() & ~pair.any())"),
    Fault("a group is whole when its barrier leaves", Lookahead, "self.goes ^ came", "self.goes"),
    Fault("a pair leaves once, and only if it came", Lookahead, "head + self.goes", "head"),
)

_COMBINER_FAULTS = (
    Fault("offers at o stand", Combiner, "turn.eq(chosen[STREAM_S] ^ self.o.ready)", "turn.eq(~chosen[STREAM_S])"),
    *_QUEUES_FAULTS,
    Fault("only what is there leaves, with what is taken", Combiner, "self.o.valid.eq(can.any() | end)",
          "self.o.valid.eq(can.any())"),
    Fault("an END is on offer when both sides have come to theirs, and leaves both", Combiner, "left.end & right.end",
          "left.end | right.end"),
    Fault("all else leaves one side, as it came", Combiner, "item.r.eq(Mux(side, right.item.stored, left.item.probe))",
          "item.r.eq(Mux(side, right.item.probe, left.item.probe))"),
    Fault("without total, nothing waits", Combiner, "self.o.valid.eq(can.any() | end)", "self.o.valid.eq(can.any())"),
    Fault("in total order the side is the one whose turn it is", Combiner, "may & ready", "ready"),
    Fault("whose turn it may be is what was told", Combiner, "due.valid.replicate(2) & ", ""),
    Fault("and nothing is before that", Combiner, "in_order.eq(self.total)", "in_order.eq(1)"),
    Fault("a turn ends with its star, and only then", Combiner, "(may & star).any()",
          "(may & ready).any()"),
)

PROOFS = (
    *(Proof(f"lookahead that shows {n} bits", lambda n=n: lookahead(n), 2, faults=_LOOKAHEAD_FAULTS if n == 4 else ())
      for n in (4, 5)),
    *(Proof(f"merger of {n}", lambda n=n: merger(n), 2, faults=_MERGER_FAULTS if n == 3 else (), search=8, quick=n == 2)
      for n in (2, 3)),
    *(Proof(f"merger of {n} in total order", lambda n=n: sorted_merger(n), 2, faults=_SORTED_FAULTS if n == 3 else (),
            search=8, quick=n == 2) for n in (2, 3)),
    *(Proof(f"merger of {n} that is told what comes", lambda n=n: merger(n, told=True), 2, quick=n == 2)
      for n in (2, 3)),
    Proof("gather tree, 3 leaves, fan-in 2", lambda: tree(3, 2), 9, inductive=False, faults=_TREE_FAULTS, search=9,
          quick=False),
    Proof("combiner", combiner, 2, faults=_COMBINER_FAULTS, search=8),
)
