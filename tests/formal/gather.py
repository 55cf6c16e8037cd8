"""Proofs of the lookahead FIFO, the merger, the gather tree and the combiner."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import data

from splitjoin.circuit.wire import ItemKind
from splitjoin_hw.gather.combiner import Combiner
from splitjoin_hw.gather.lookahead import LookaheadFifo, offer_of
from splitjoin_hw.gather.merger import ComparisonSelect, Merger
from splitjoin_hw.gather.tree import GatherTree
from splitjoin_hw.layouts import result_layout

from .harness import Harness
from .monitors import Follower, assume_stable_offers, follow, prove_stable_offers
from .proofs import Fault, Proof
from .queues import BITS, ROW, Contents, Queue, narrow


def _taken(port: Any) -> Value:
    return port.valid & port.ready


def _is_offer_of(offer: Any, results: Any) -> Value:
    """True if ``offer`` is the kind of result that the stream ``results`` offers."""
    return Cat(offer[name] == value for name, value in offer_of(results).items()).all()


@narrow()
def lookahead(bits: int) -> Harness:
    dut = LookaheadFifo(bits)
    h = Harness(dut)
    h.assume("i_offer is the kind of the offered result", _is_offer_of(dut.i_offer, dut.i))
    h.assume("items are popped only while there is one", ~dut.pop | dut.valid)
    queue = Queue(h, "", bits, h.started() & ~h.past(dut.wait_if_empty, "waited_if_empty"))
    item = Signal(len(queue.at(0)), name="item")
    h.m.d.comb += item.eq(Cat(dut.kind, dut.item))
    h.output = out = SimpleNamespace(valid=dut.valid, ready=dut.pop, payload=item)
    prove_stable_offers(h, "o", out)
    f = Follower(h, "item", entered=_taken(dut.i), entering=dut.i.payload, port=out, capacity=4)
    follow(h, f)
    h.prove("its pointers and flags agree", queue.sound)
    h.prove("the items inside are counted", (f.inside == queue.level) & (dut.i.ready == (queue.level != 4)))
    h.prove("the picked item is in its place", ~f.picked | (queue.at(f.ahead) == f.token))
    h.prove("the first two items are visible", Cat(
        (dut.present[n] == (queue.level > n)) & (~dut.present[n] | (
            dut.row_ids[n] == data.View(result_layout(), queue.at(n)).stored[:bits])) for n in (0, 1)).all())
    return h


def _queues(h: Harness, inputs: int) -> list[Queue]:
    """The FIFOs of a merger, with their invariants."""
    out, bits = h.dut.o, h.dut.bits
    # ``lets_pass`` of an empty FIFO is a register: 0 in the first cycle, then 1 if ``total`` was 0 a cycle ago.
    queues = [Queue(h, f"queue{n}", bits, h.started() & ~h.past(h.dut.total, f"waits{n}"))
              for n in range(inputs)]
    slices = Cat(q.kind == ItemKind.SLICE for q in queues)
    leaving = Cat(q.leaves for q in queues)
    h.prove("pointers and flags of its queues agree", Cat(q.sound for q in queues).all())
    h.prove("queues pop when the output is taken, and only if they have an item",
            (_taken(out) == leaving.any()) & Cat(~q.leaves | q.some for q in queues).all())
    h.prove("a pair leaves alone and unchanged", ~_taken(out) | (out.payload.kind != ItemKind.PAIR) | (
        (sum(leaving) == 1) & Cat(~q.leaves | (q.pair & (Value.cast(q.first) == Value.cast(out.payload)))
                                  for q in queues).all()))
    kinds = (ItemKind.STAR, ItemKind.END)
    h.assume("stars and ENDs do not meet at one barrier",
             ~(Cat(q.some & (q.kind == kinds[0]) for q in queues).any()
               & Cat(q.some & (q.kind == kinds[1]) for q in queues).any()))
    first = queues[0].first
    h.prove("a barrier is offered only when all inputs have one, and pops all of them, or only the slice marks",
            ~out.valid | (out.payload.kind == ItemKind.PAIR) | (
                Cat(q.some & ~q.pair for q in queues).all() & (out.payload.probe == first.probe)
                & (out.payload.stored == first.stored) & Mux(
                    slices.any(), (~out.ready | (leaving == slices)) & (out.payload.kind == ItemKind.SLICE),
                    (~out.ready | leaving.all()) & (out.payload.kind == first.kind))))
    h.prove("o_offer is the kind of the offered result", _is_offer_of(h.dut.o_offer, out))
    if h.dut.has_offer_input:
        h.assume("i_offer is the kind of the offered result",
                 Cat(_is_offer_of(*of) for of in zip(h.dut.i_offer, h.dut.i, strict=True)).all())
    h.prove("with total, a pair is offered only when all inputs have an item",
            ~h.dut.total | ~out.valid | (out.payload.kind != ItemKind.PAIR) | Cat(q.some for q in queues).all())
    total = h.constant("total_order", 1)
    h.assume("the order is constant", h.dut.total == total)
    h.assume("the order is set a cycle before the first result", h.started() | ~Cat(i.valid for i in h.dut.i).any())
    known, turns = [], {}
    for j, k in combinations(range(inputs), 2):
        before, behind = h.inner(f"precedes{j}_{k}").any(), h.inner(f"precedes{k}_{j}").any()
        turn = turns[j, k] = h.inner(f"turn{j}_{k}")
        both = queues[j].some & queues[k].some
        younger = (queues[k].first.stored[:bits] - queues[j].first.stored[:bits])[bits - 1]
        known.append(Mux(total, (~before | (both & ~younger)) & (~behind | (both & younger)),
                         ~h.started() | ((before == turn) & (behind == ~turn))))
    h.prove("the registered comparisons of two inputs are right", Cat(known).all())
    h.prove("the inputs' turns form a total order", Cat(
        Mux(turns[i, j] == turns[j, k], turns[i, k] == turns[i, j], 1)
        for i, j, k in combinations(range(inputs), 3)).all() if inputs > 2 else Const(1))
    return queues


@narrow()
def merger(inputs: int, *, has_offer_input: bool = False) -> Harness:
    dut = Merger(inputs, BITS, has_offer_input=has_offer_input)
    h = Harness(dut)
    queues = _queues(h, inputs)
    prove_stable_offers(h, "o", dut.o)
    pairs, here = Cat(q.pair for q in queues), Cat(q.some for q in queues)
    h.prove("without total, pairs do not wait for other inputs", dut.total | ~pairs.any() | dut.o.valid)
    h.prove("a barrier that all inputs have reached does not wait", ~(here.all() & ~pairs.any()) | dut.o.valid)
    # Row ids are modular: the pairs shown lie within half of what their bits count, of some row.
    base = h.free("base", ROW)
    age = [(q.first.stored - base)[:ROW] for q in queues]
    h.assume("the pairs shown lie in half the range of the bits compared",
             Cat(~q.pair | (a < 2**(BITS - 1)) for q, a in zip(queues, age, strict=True)).all())
    h.prove("with total, the oldest stored tuple goes first",
            ~dut.total | Cat(~q.leaves | ~q.pair | ~other.pair | (a <= b)
                             for q, a in zip(queues, age, strict=True)
                             for other, b in zip(queues, age, strict=True)).all())
    h.prove("with total, the row ids of all inputs are compared within a cycle",
            ~h.past(here.all() & ~dut.o.valid, "waited") | dut.o.valid)
    return h


@narrow()
def sorted_merger(inputs: int) -> Harness:
    """A merger in total order: each group leaves sorted if each input's group is sorted.

    The proof of the FIFO shows that the results of an input keep their order. Row ids do not wrap here.
    """
    dut = Merger(inputs, BITS + 1)
    h = Harness(dut)
    m = h.m
    h.assume("total order", dut.total)
    queues = _queues(h, inputs)
    last, some = Signal(ROW), Signal()  # of the group under way: the stored tuple that left last, if any
    pairs, kept = [], []
    for n, q in enumerate(queues):
        own, had = Signal(ROW, name=f"own{n}"), Signal(name=f"had{n}")
        h.assume(f"input {n} is sorted", ~q.pair | ~had | (q.first.stored >= own))
        h.assume(f"row ids of input {n} are small", ~q.pair | (q.first.stored < 2**BITS))
        with m.If(q.leaves):
            m.d.sync += [own.eq(q.first.stored), had.eq(q.pair)]
        with m.If(q.leaves & q.pair):
            m.d.sync += [last.eq(q.first.stored), some.eq(1)]
        pairs.append((q, had))
        # The next pair of an input is not older than the last pair that left: it is at the input's head, or the last
        # pair came from this input.
        kept.append(~some | Mux(q.some, ~q.pair | (q.first.stored >= last), had & (own == last)))
        kept.append(some | ~had)
    with m.If(Cat(q.leaves & ~q.pair for q in queues).any()):
        m.d.sync += [some.eq(0), *(had.eq(0) for _, had in pairs)]
    h.prove("a group leaves in the order of stored tuples",
            Cat(~(q.leaves & q.pair) | ~some | (q.first.stored >= last) for q in queues).all())
    h.prove("no input holds an older tuple than the last that left", Cat(kept).all())
    h.prove("the pair that leaves is the oldest", Cat(
        ~(q.leaves & q.pair) | ~other.pair | (q.first.stored <= other.first.stored)
        for q in queues for other in queues).all())
    return h


@narrow()
def tree() -> Harness:
    """Three leaves, two of them with a node of their own before the root. Each pair carries the number of its group in
    the low bits of ``probe``; one may be marked.
    """
    dut = GatherTree(leaves=3, fanin=2, bits=BITS)
    h = Harness(dut)
    m = h.m
    assume_stable_offers(h, "i", *dut.i)
    prove_stable_offers(h, "o", dut.o)
    total = h.constant("total_order", 1)
    h.assume("the order is constant", dut.total == total)
    since = [h.started()]
    for n in range(dut.latency):
        since.append(h.past(since[-1], f"settled{n}"))
    h.assume("all nodes have the order before the first result", since[-1] | ~Cat(i.valid for i in dut.i).any())
    bits = 3  # a tree of two levels holds fewer groups beside the one that leaves
    for n, i in enumerate(dut.i):
        h.assume(f"row ids of input {n} are small", (i.payload.probe[bits:] == 0) & (i.payload.stored[bits:] == 0))
    one = h.constant("one", bits)  # the group whose pairs are counted
    ends = h.constant("ends", 2**bits)  # of each group, whether it ends with the input and not with a star

    came, marks, groups = Signal(5), [], []
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
        groups.append(group)
    counted = [_taken(i) & (i.payload.kind == ItemKind.PAIR) & (i.payload.probe[:bits] == one) for i in dut.i]
    m.d.sync += came.eq(came + sum(counted))
    marked, where = Signal(), Signal(bits)  # whether the marked pair was taken, and its group
    h.assume("one pair is marked", (sum(marks) <= 1) & ~(marked & Cat(marks).any()))
    for mark, i in zip(marks, dut.i, strict=True):
        with m.If(mark & i.ready):
            m.d.sync += [marked.eq(1), where.eq(i.payload.probe)]

    item, group, left, gone = dut.o.payload, Signal(bits, name="group"), Signal(5), Signal()
    pair = item.kind == ItemKind.PAIR
    with m.If(_taken(dut.o)):
        with m.If(~pair):
            m.d.sync += group.eq(group + 1)
        with m.Elif(item.probe[:bits] == one):
            m.d.sync += left.eq(left + 1)
        with m.If(pair & item.stored[0]):
            m.d.sync += gone.eq(1)
    h.prove("each pair leaves in its group", ~dut.o.valid | ~pair | (item.probe[:bits] == group))
    h.prove("a group is complete when its barrier leaves",
            ~dut.o.valid | pair | (group != one) | (left == came))
    h.prove("a pair leaves once, and only if it entered",
            ~(dut.o.valid & pair & item.stored[0]) | (marked & ~gone & (where == group)))

    # The invariants: what each FIFO holds follows from what came and what left.
    first, root = (node(h, name, f"{name}_total.o") for name in ("node_0", "node"))
    h.prove("the setting of the order reaches the nodes before the first result", Cat(
        since[1] | ~since[2], since[0] | ~since[1], ~since[0] | (root.total == total),
        ~since[1] | ((first.total == total) & (root.was_total == total)), ~since[2] | (first.was_total == total),
        *(~q.some | since[2] for q in (*first.queues, *root.queues))).all())
    h.prove("pointers, flags and registered comparisons of the nodes are right", first.sound & root.sound)
    contents = [Contents(q, bits, ends) for q in (*first.queues, *root.queues)]
    of_first, of_root = contents[:2], contents[2:]
    starts = [(groups[n] - c.barriers)[:bits] for n, c in enumerate(of_first)]
    tails = (starts[0], groups[2])  # the groups of the items that reach the root next
    root_starts = [(tails[n] - c.barriers)[:bits] for n, c in enumerate(of_root)]
    h.prove("all inputs of a node are in the same group",
            (starts[0] == starts[1]) & Cat(start == group for start in root_starts).all())
    h.prove("the barriers before a waiting item tell its group",
            Cat(c.fits(start) for c, start in zip(contents, (*starts, *root_starts), strict=True)).all())
    h.prove("the pairs inside are counted", (came - left)[:5] == sum(c.count(one) for c in contents))
    inside = sum(c.marked for c in contents)
    h.prove("the marked pair is inside from when it came until it leaves",
            (inside == (marked & ~gone)) & (marked | ~gone) & Cat(c.marked_in(where) for c in contents).all())
    return h


def node(h: Harness, name: str, total: str) -> SimpleNamespace:
    """The merger of two inputs at ``name``: ``queues``; ``total``, ``was_total``: its order in this cycle, the signal
    of that path, and in the last one; ``sound``: its invariant.
    """
    here = h.inner(total)
    was = h.past(here, f"{name}_was_total")
    queues = [Queue(h, f"{name}.queue{n}", BITS, h.started() & ~was) for n in range(2)]
    before, behind = h.inner(f"{name}.precedes0_1").any(), h.inner(f"{name}.precedes1_0").any()
    turn = h.inner(f"{name}.turn0_1")
    both = queues[0].some & queues[1].some
    younger = (queues[1].first.stored[:BITS] - queues[0].first.stored[:BITS])[BITS - 1]
    compared = Mux(was, (~before | (both & ~younger)) & (~behind | (both & younger)),
                   ~h.started() | ((before == turn) & (behind == ~turn)))
    return SimpleNamespace(queues=queues, total=here, was_total=was,
                           sound=compared & Cat(q.sound for q in queues).all())


@narrow()
def combiner() -> Harness:
    dut = Combiner()
    h = Harness(dut)
    out, turn = dut.o, dut.sequence
    left, right = queues = tuple(Queue(h, name, 0, h.started()) for name in ("left", "right"))
    ends = [q.some & (q.kind == ItemKind.END) for q in queues]
    total = h.constant("total_order", 1)
    h.assume("the order is constant", dut.total == total)
    assume_stable_offers(h, "sequence", turn)
    prove_stable_offers(h, "o", out)
    h.prove("pointers and flags of its queues agree", left.sound & right.sound)
    h.prove("queues pop when the output is taken, and only if they have an item",
            (_taken(out) == (left.leaves | right.leaves)) & Cat(~q.leaves | q.some for q in queues).all())
    item, side = Signal(out.payload.shape()), right.leaves
    kind = Mux(side, right.kind, left.kind)
    h.m.d.comb += [
        item.kind.eq(Mux(kind == ItemKind.SLICE, ItemKind.STAR, kind)), item.side.eq(side),
        item.r.eq(Mux(side, right.first.stored, left.first.probe)),
        item.s.eq(Mux(side, right.first.probe, left.first.stored)),
    ]
    # The other fields of an END are undefined.
    end = out.payload.kind == ItemKind.END
    h.prove("an END is offered only when both sides have reached theirs, and it pops both",
            ~out.valid | ((end == (ends[0] & ends[1])) & (~end | ~out.ready | (left.leaves & right.leaves))))
    h.prove("any other item pops one side, and is unchanged",
            ~_taken(out) | end | ((left.leaves ^ right.leaves) & (Value.cast(item) == Value.cast(out.payload))))
    h.prove("without total, no item waits", dut.total | ~_waiting(queues, ends) | out.valid)
    pops = [q.leaves for q in queues]
    stars = Cat(pop & (q.kind == ItemKind.STAR) for pop, q in zip(pops, queues, strict=True)).any()
    has_turn, turn_side = Signal(), Signal()  # the turn that was taken last has not ended; its side
    with h.m.If(_taken(turn)):
        h.m.d.sync += [has_turn.eq(1), turn_side.eq(turn.payload)]
    with h.m.Elif(stars):
        h.m.d.sync += has_turn.eq(0)
    h.prove("in total order items are of the side whose turn it is",
            ~dut.total | ~(pops[0] | pops[1]) | (pops[0] & pops[1])
            | (has_turn & (pops[0] == ~turn_side) & (pops[1] == turn_side)))
    h.prove("a turn ends with its star, and only then", ~_taken(turn) | (dut.total & (~has_turn | stars)))
    h.prove("the allowed sides follow from the turn", ~h.started() | (
        h.inner("allowed") == Mux(total, Cat(has_turn & ~turn_side, has_turn & turn_side), 0b11)))
    h.prove("there is no turn in the first cycle",
            (h.started() | ~has_turn) & (h.inner("was_total") == (total & h.started())))
    return h


def _waiting(queues: Sequence[Queue], ends: Sequence[Value]) -> Value:
    """True if a side offers something other than END, or both sides offer END."""
    return Cat(q.some & ~end for q, end in zip(queues, ends, strict=True)).any() | (ends[0] & ends[1])


_LOOKAHEAD_FAULTS = (
    Fault("offers at o are stable", LookaheadFifo, "read(probes, heads[0])", "read(probes, second)"),
    Fault("nothing leaves that did not enter", LookaheadFifo, "self.valid.eq(occupied[0])", "self.valid.eq(1)"),
    Fault("items leave unchanged and in order", LookaheadFifo, "write.addr.eq(tail)", "write.addr.eq(second)"),
    Fault("the picked item is inside", LookaheadFifo, "self.i.ready.eq(not_full)", "self.i.ready.eq(1)"),
    Fault("its pointers and flags agree", LookaheadFifo, "(self.slice, kind == ItemKind.SLICE, offer.slice)",
          "(self.slice, kind == ItemKind.SLICE, offer.star)"),
    Fault("the items inside are counted", LookaheadFifo, "not_full.eq(self.pop | ~occupied[-2])",
          "not_full.eq(self.pop | ~occupied[-1])"),
    Fault("the picked item is in its place", LookaheadFifo, "write.en.eq(~occupied[-1])", "write.en.eq(self.pop)"),
    Fault("the first two items are visible", LookaheadFifo, "read(stored, third)", "read(stored, second)"),
)

_QUEUES_FAULTS = (
    Fault("pointers and flags of its queues agree", LookaheadFifo, "(self.slice, kind == ItemKind.SLICE, offer.slice)",
          "(self.slice, kind == ItemKind.SLICE, offer.star)"),
)

_MERGER_FAULTS = (
    Fault("offers at o are stable", Merger, "Mux(grant[j], ~self.o.ready, Mux(grant[k], self.o.ready, turn))",
          "turn ^ self.o.ready"),
    *_QUEUES_FAULTS,
    Fault("queues pop when the output is taken, and only if they have an item", Merger, "barrier_offer | grant.any()",
          "grant.any()"),
    Fault("a pair leaves alone and unchanged", Merger, "~(pair[k] & precedes[k, j])", "~(pair[k] & precedes[j, k])"),
    Fault("a barrier is offered only when all inputs have one, and pops all of them, or only the slice marks",
          Merger, "slices[j] | ~slices.any()", "1"),
    Fault("o_offer is the kind of the offered result", Merger, "offer.slice.eq(barrier_offer & slices.any())",
          "offer.slice.eq(slices.all())"),
    Fault("with total, a pair is offered only when all inputs have an item", Merger,
          "queue.wait_if_empty.eq(total)", "queue.wait_if_empty.eq(0)"),
    Fault("the registered comparisons of two inputs are right", Merger, "queues[k].row_ids[b] - queues[j].row_ids[a]",
          "queues[k].row_ids[b] - queues[j].row_ids[0]"),
    Fault("the inputs' turns form a total order", Merger, "~self.o.ready",
          "~self.o.ready & (k > 1)"),
    Fault("without total, pairs do not wait for other inputs", Merger,
          "queue.wait_if_empty.eq(total)", "queue.wait_if_empty.eq(1)"),
    Fault("a barrier that all inputs have reached does not wait", Merger, "barrier_offer.eq(all_barriers)",
          "barrier_offer.eq(slices.all())"),
    Fault("with total, the oldest stored tuple goes first", ComparisonSelect, "~self.other_older",
          "self.other_older"),
    Fault("with total, the row ids of all inputs are compared within a cycle", Merger, "(queues[j].pop == a)",
          "queues[j].pop & (a == 1)"),
)

_SORTED_FAULTS = (
    Fault("a group leaves in the order of stored tuples", ComparisonSelect,
          "~self.other_older if self.older else self.other_older",
          "self.other_older if self.older else ~self.other_older"),
    Fault("no input holds an older tuple than the last that left",
          Merger, "queue.wait_if_empty.eq(total)", "queue.wait_if_empty.eq(0)"),
    Fault("the pair that leaves is the oldest", ComparisonSelect, "~self.other_older", "self.other_older"),
)

_TREE_FAULTS = (
    Fault("offers at o are stable", LookaheadFifo, "read(probes, heads[0])", "read(probes, second)"),
    Fault("each pair leaves in its group", Merger, "barrier_offer.eq(all_barriers)",
          "barrier_offer.eq(barrier.any() & ~pair.any())"),
    Fault("a group is complete when its barrier leaves", LookaheadFifo, "self.pop ^ push", "self.pop"),
    Fault("a pair leaves once, and only if it entered", LookaheadFifo, "head + self.pop", "head"),
    Fault("pointers, flags and registered comparisons of the nodes are right", LookaheadFifo,
          "(self.slice, kind == ItemKind.SLICE, offer.slice)", "(self.slice, kind == ItemKind.SLICE, offer.star)"),
    Fault("all inputs of a node are in the same group", Merger, "barrier_offer.eq(all_barriers)",
          "barrier_offer.eq(barrier.any() & ~pair.any())"),
    Fault("the barriers before a waiting item tell its group", LookaheadFifo, "write.addr.eq(tail)",
          "write.addr.eq(second)"),
    Fault("the pairs inside are counted", LookaheadFifo, "self.pop ^ push", "self.pop"),
    Fault("the marked pair is inside from when it came until it leaves", Merger, "~(pair[k] & precedes[k, j])",
          "~(pair[k] & precedes[j, k])"),
    Fault("the setting of the order reaches the nodes before the first result", GatherTree,
          "grow(node.i[n], node.i_offer[n] if has_offer_input else None, here, first + sum(groups[:n]), size, "
          "f'{name}_{n}')",
          "grow(node.i[n], node.i_offer[n] if has_offer_input else None, ~here, first + sum(groups[:n]), size, "
          "f'{name}_{n}')"),
)

_COMBINER_FAULTS = (
    Fault("offers at o are stable", Combiner, "turn.eq(grant[STREAM_S] ^ self.o.ready)", "turn.eq(~grant[STREAM_S])"),
    *_QUEUES_FAULTS,
    Fault("queues pop when the output is taken, and only if they have an item",
          Combiner, "self.o.valid.eq(able.any() | end)",
          "self.o.valid.eq(able.any())"),
    Fault("an END is offered only when both sides have reached theirs, and it pops both",
          Combiner, "left.end & right.end",
          "left.end | right.end"),
    Fault("any other item pops one side, and is unchanged",
          Combiner, "item.r.eq(Mux(side, right.item.stored, left.item.probe))",
          "item.r.eq(Mux(side, right.item.probe, left.item.probe))"),
    Fault("without total, no item waits", Combiner, "self.o.valid.eq(able.any() | end)", "self.o.valid.eq(able.any())"),
    Fault("in total order items are of the side whose turn it is", Combiner, "allowed & not_end", "not_end"),
    Fault("the allowed sides follow from the turn", Combiner, "due.valid.replicate(2) & Cat(~due.payload, due.payload)",
          "Cat(~due.payload, due.payload)"),
    Fault("there is no turn in the first cycle", Combiner, "was_total.eq(self.total)", "was_total.eq(1)"),
    Fault("a turn ends with its star, and only then", Combiner, "(allowed & star).any()",
          "(allowed & not_end).any()"),
)

PROOFS = (
    *(Proof(f"lookahead FIFO that shows {n} bits", lambda n=n: lookahead(n), 2,
            faults=_LOOKAHEAD_FAULTS if n == 4 else ())
      for n in (4, 5)),
    *(Proof(f"merger of {n}", lambda n=n: merger(n), 2, faults=_MERGER_FAULTS if n == 3 else (), search=8, quick=n == 2)
      for n in (2, 3)),
    *(Proof(f"merger of {n} in total order", lambda n=n: sorted_merger(n), 2, faults=_SORTED_FAULTS if n == 3 else (),
            search=8, quick=n == 2) for n in (2, 3)),
    *(Proof(f"merger of {n} with offer inputs", lambda n=n: merger(n, has_offer_input=True), 2, quick=n == 2)
      for n in (2, 3)),
    Proof("gather tree, 3 leaves, fan-in 2", tree, 2, faults=_TREE_FAULTS, search=9, quick=False),
    Proof("combiner", combiner, 2, faults=_COMBINER_FAULTS, search=8),
)
