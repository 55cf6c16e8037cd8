"""Proofs of the merger, the gather tree and the combiner."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Mux, Signal, Value
from splitjoin.device.wire import ROW_BITS, ItemKind
from splitjoin.hw.gather.combiner import Combiner
from splitjoin.hw.gather.merger import Merger
from splitjoin.hw.gather.tree import GatherTree
from splitjoin.hw.network.buffer import Buffer

from .harness import Harness
from .monitors import Follower, assume_offers_stand, follow, offers_stand
from .network import BUFFER_FAULTS, buffered
from .proofs import Fault, Proof

__all__ = ["PROOFS"]


def _taken(port: Any) -> Value:
    return port.valid & port.ready


def _selected(h: Harness, f: Follower, port: Any) -> None:
    """What is behind the selection is a `Buffer`: its invariants."""
    level, holds, sound = buffered(h, "buffer")
    h.prove("its buffer is never full and empty, and its shares agree", sound)
    h.prove("what is inside is counted, and offered", (f.inside == level) & (port.valid == (level != 0)))
    h.prove("the item picked is in its slot", ~f.picked | (Value.cast(holds(f.ahead)) == f.token))


def merger(inputs: int) -> Harness:
    dut = Merger(inputs)
    h = Harness(dut)
    pair = [i.valid & (i.payload.kind == ItemKind.PAIR) for i in dut.i]
    barrier = [i.valid & (i.payload.kind != ItemKind.PAIR) for i in dut.i]
    part = [i.valid & (i.payload.kind == ItemKind.SLICE) for i in dut.i]
    taken = Cat(_taken(i) for i in dut.i)
    taken_pairs = Cat(p & t for p, t in zip(pair, taken, strict=True))
    offers_stand(h, "o", dut.o)

    # What is selected: a pair of one input, or the barriers of all, which is one between slices if any is.
    common = Signal.like(dut.i[0].payload, name="common")
    h.m.d.comb += common.eq(dut.i[0].payload)
    with h.m.If(Cat(part).any()):
        h.m.d.comb += common.kind.eq(ItemKind.SLICE)
    chosen: Any = Value.cast(common)
    for n, i in enumerate(dut.i):
        chosen = Mux(taken_pairs[n], Value.cast(i.payload), chosen)
    f = Follower(h, "item", entered=taken.any(), entering=chosen, port=dut.o, capacity=2)
    follow(h, f)
    _selected(h, f, dut.o)
    h.prove("a barrier is taken when all inputs show one, from all of them",
            ~Cat(t & b & ~p for t, b, p in zip(taken, barrier, part, strict=True)).any()
            | (Cat(barrier).all() & taken.all()))
    h.prove("a star between slices is taken when all show a barrier, from all that show it",
            ~(taken & Cat(part)).any() | (Cat(barrier).all() & (taken == Cat(part))))
    h.prove("one pair at most is taken in a cycle",
            sum(taken_pairs[n] for n in range(inputs)) <= 1)
    h.prove("without total, pairs do not wait for other inputs",
            dut.total | ~Cat(pair).any() | h.inner("buffer.full") | taken_pairs.any())
    h.prove("with total, pairs wait until all inputs show something",
            ~dut.total | ~taken_pairs.any() | Cat(i.valid for i in dut.i).all())

    # Row ids are modular: the pairs shown lie within half their range of some row.
    base = h.free("base", ROW_BITS)
    age = [(i.payload.stored - base)[:ROW_BITS] for i in dut.i]
    h.assume("the pairs shown lie in half the range of row ids",
             Cat(~p | ~a[-1] for p, a in zip(pair, age, strict=True)).all())
    h.prove("with total, the oldest stored tuple goes first",
            ~dut.total | Cat(~taken_pairs[n] | ~pair[k] | (age[n] <= age[k])
                             for n in range(inputs) for k in range(inputs)).all())
    return h


def sorted_merger(inputs: int) -> Harness:
    """In total order each group leaves sorted, if it comes sorted on every input. Row ids do not wrap here."""
    dut = Merger(inputs)
    h = Harness(dut)
    m = h.m
    h.assume("total order", dut.total)
    assume_offers_stand(h, "i", *dut.i)
    last, some = Signal(ROW_BITS), Signal()  # of the group under way: the stored tuple selected last, if any
    pairs, kept = [], []
    for n, i in enumerate(dut.i):
        pair = i.valid & (i.payload.kind == ItemKind.PAIR)
        own, had = Signal(ROW_BITS, name=f"own{n}"), Signal(name=f"had{n}")
        h.assume(f"input {n} is sorted", ~pair | ~had | (i.payload.stored >= own))
        h.assume(f"row ids of input {n} do not wrap", ~i.payload.stored[-1])
        with m.If(_taken(i)):
            m.d.sync += [own.eq(i.payload.stored), had.eq(pair)]
        with m.If(_taken(i) & pair):
            m.d.sync += [last.eq(i.payload.stored), some.eq(1)]
        pairs.append((pair, i, had))
        # What an input brings next is not older than what was selected: it shows it, or it was selected itself.
        kept.append(~some | Mux(i.valid, ~pair | (i.payload.stored >= last), had & (own == last)))
        kept.append(some | ~had)
    with m.If(Cat(_taken(i) & ~pair for pair, i, _ in pairs).any()):
        m.d.sync += [some.eq(0), *(had.eq(0) for _, _, had in pairs)]
    h.prove("a group is selected in the order of stored tuples",
            Cat(~(_taken(i) & pair) | ~some | (i.payload.stored >= last) for pair, i, _ in pairs).all())
    h.prove("no input brings anything older", Cat(kept).all())
    return h


def tree(leaves: int, fanin: int) -> Harness:
    """A tree of mergers. Each pair carries the number of its group in the low bits of ``probe``; one may be marked."""
    dut = GatherTree(leaves=leaves, fanin=fanin)
    h = Harness(dut)
    m = h.m
    assume_offers_stand(h, "i", *dut.i)
    offers_stand(h, "o", dut.o)
    total = h.constant("total_order", 1)
    h.assume("the order stands", dut.total == total)
    bits = 3  # more groups than a tree of two levels can hold
    for n, i in enumerate(dut.i):
        h.assume(f"row ids of input {n} are small", (i.payload.probe[bits:] == 0) & (i.payload.stored[bits:] == 0))
    one = h.constant("one", bits)  # the group whose pairs are counted

    came, marks = Signal(4), []
    for n, i in enumerate(dut.i):
        group = Signal(bits, name=f"group{n}")
        pair = i.payload.kind == ItemKind.PAIR
        h.assume(f"input {n} has no slices", i.payload.kind != ItemKind.SLICE)
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


def combiner() -> Harness:
    dut = Combiner()
    h = Harness(dut)
    m = h.m
    offers_stand(h, "o", dut.o)
    sides = (dut.left, dut.right)
    taken = [_taken(side) for side in sides]
    ends = [side.payload.kind == ItemKind.END for side in sides]
    item, kind = Signal(dut.o.payload.shape()), Signal(ItemKind)
    right = taken[1] & ~ends[1]
    left, other = dut.left.payload, dut.right.payload
    m.d.comb += [
        kind.eq(Mux(right, other.kind, left.kind)), item.kind.eq(Mux(kind == ItemKind.SLICE, ItemKind.STAR, kind)),
        item.side.eq(right),
        item.r.eq(Mux(right, other.stored, left.probe)), item.s.eq(Mux(right, other.probe, left.stored)),
    ]
    # What an END carries besides its kind means nothing; in total order it has the side of the sequence's port.
    f = Follower(h, "item", entered=taken[0] | taken[1], entering=Mux(item.kind == ItemKind.END, item.kind,
                                                                     Value.cast(item)),
                 port=dut.o, capacity=2, leaving=Mux(dut.o.payload.kind == ItemKind.END, dut.o.payload.kind,
                                                     Value.cast(dut.o.payload)))
    follow(h, f)
    level, holds, sound = buffered(h, "buffer")
    h.prove("its buffer is never full and empty, and its shares agree", sound)
    kept = Value.cast(holds(f.ahead))
    h.prove("what is inside is counted, and offered", (f.inside == level) & (dut.o.valid == (level != 0)))
    h.prove("the item picked is in its slot",
            ~f.picked | (Mux(kept[:2] == ItemKind.END, kept[:2], kept) == f.token))
    h.prove("an END is taken when both sides show one, from both",
            ~((taken[0] & ends[0]) | (taken[1] & ends[1])) | (taken[0] & ends[0] & taken[1] & ends[1]))
    h.prove("but for an END one side at most is taken", ~(taken[0] & taken[1]) | (ends[0] & ends[1]))
    turn = dut.sequence
    h.prove("in total order the side is the one whose turn it is",
            ~dut.total | ~(taken[0] | taken[1]) | ends[0] & taken[0]
            | (turn.valid & (taken[0] == ~turn.payload) & (taken[1] == turn.payload)))
    star = [t & (side.payload.kind == ItemKind.STAR) for t, side in zip(taken, sides, strict=True)]
    h.prove("a turn ends with its star, and only then", _taken(turn) == (dut.total & (star[0] | star[1])))
    return h


_MERGER_FAULTS = (
    *BUFFER_FAULTS,
    Fault("items leave whole and in order", Merger, "payloads[chosen].as_value()", "payloads[served].as_value()"),
    Fault("what is inside is counted, and offered", Merger, "buffer.i.valid.eq(barrier | take)",
          "buffer.i.valid.eq(barrier | take | pair.any())"),
    Fault("a barrier is taken when all inputs show one, from all of them", Merger, "valid.all() & ~pair.any()",
          "valid.any() & ~pair.any()"),
    Fault("a star between slices is taken when all show a barrier, from all that show it", Merger, "part[j] | ~slice_",
          "1"),
    Fault("one pair at most is taken in a cycle", Merger, "(take & (chosen == j))", "(take & (pair[j]))"),
    Fault("without total, pairs do not wait for other inputs", Merger,
          "take.eq(pair.any() & (~self.total | valid.all()))",
          "take.eq(pair.any() & valid.all())"),
    Fault("with total, pairs wait until all inputs show something", Merger,
          "take.eq(pair.any() & (~self.total | valid.all()))", "take.eq(pair.any())"),
    Fault("with total, the oldest stored tuple goes first", Merger, "~(rb - ra)[31]", "(ra <= rb)"),
)

_SORTED_FAULTS = (
    Fault("a group is selected in the order of stored tuples", Merger, "Mux(self.total, oldest, in_turn)", "in_turn"),
    Fault("no input brings anything older", Merger, "take.eq(pair.any() & (~self.total | valid.all()))",
          "take.eq(pair.any())"),
)

_TREE_FAULTS = (
    Fault("offers at o stand", Buffer, "full | (some & (heads[0] == n))", "full"),
    Fault("each pair leaves in its group", Merger, "valid.all() & ~pair.any()", "valid.any() & ~pair.any()"),
    Fault("a group is whole when its barrier leaves", Merger, "buffer.i.valid.eq(barrier | take)",
          "buffer.i.valid.eq(barrier | (take & ~chosen))"),
    Fault("a pair leaves once, and only if it came", Merger, "(take & (chosen == j))",
          "(take & (chosen == j) & ~served)"),
)

_COMBINER_FAULTS = (
    *BUFFER_FAULTS,
    Fault("items leave whole and in order", Combiner, "item.r.eq(Mux(right, right_item.stored, left.probe))",
          "item.r.eq(Mux(right, right_item.probe, left.probe))"),
    Fault("what is inside is counted, and offered", Combiner, "buffer.i.valid.eq(take | end)",
          "buffer.i.valid.eq(take)"),
    Fault("an END is taken when both sides show one, from both", Combiner,
          "end.eq(ended[STREAM_R] & ended[STREAM_S]", "end.eq((ended[STREAM_R] | ended[STREAM_S])"),
    Fault("but for an END one side at most is taken", Combiner,
          "self.left.ready.eq(buffer.i.ready & (end | (take & ~right)))",
          "self.left.ready.eq(buffer.i.ready & (end | take))"),
    Fault("in total order the side is the one whose turn it is", Combiner, "(~self.total | self.sequence.valid)", "1"),
    Fault("a turn ends with its star, and only then", Combiner, "(kind == ItemKind.STAR)",
          "(kind != ItemKind.END)"),
)

PROOFS = (
    *(Proof(f"merger of {n}", lambda n=n: merger(n), 2, faults=_MERGER_FAULTS if n == 3 else (), search=6, quick=n == 2)
      for n in (2, 3)),
    *(Proof(f"merger of {n} in total order", lambda n=n: sorted_merger(n), 2, faults=_SORTED_FAULTS if n == 3 else (),
            search=6, quick=n == 2) for n in (2, 3)),
    Proof("gather tree, 3 leaves, fan-in 2", lambda: tree(3, 2), 7, inductive=False, faults=_TREE_FAULTS, search=7,
          quick=False),
    Proof("combiner", combiner, 2, faults=_COMBINER_FAULTS, search=6, quick=False),
)
