"""Proof of the gather tree of a wide root: its two ways share the groups of a stream, and merge each of them as one.

Short queues take the places of the FIFOs in block RAM, as in `tests.formal.wide`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from amaranth.hdl import Cat, Const, Signal, Value

from splitjoin.circuit.wire import ItemKind
from splitjoin_hw.gather.lookahead import LookaheadFifo
from splitjoin_hw.gather.merger import Merger
from splitjoin_hw.gather.ways import WaySplitter, WayTree
from splitjoin_hw.network.pipeline import PipelineRegister
from splitjoin_hw.network.queue import Queue

from .gather import node
from .harness import Harness
from .monitors import assume_stable_offers, prove_stable_offers
from .network import sound_queue
from .proofs import Fault, Proof
from .queues import BITS, Contents, narrow
from .wide import DEPTH, short_queues

#: Bits of the numbers of groups: on a way there are fewer groups at a time.
_GROUP = 5


class _Queued:
    """The contents of a `Queue`, as `Contents` reads them."""

    def __init__(self, h: Harness, path: str):
        self._h, self._rows, self._head = h, f"{path}.rows", h.inner(f"{path}.head")
        self.level = h.inner(f"{path}.level")

    def at(self, position: Any) -> Value:
        return self._h.look(self._rows, (self._head + position)[:len(self._head)])


@narrow()
@short_queues()
def way_tree(spread: bool) -> Harness:
    """Two leaves. Each pair carries the number of its group in ``probe``; one may be marked by the lowest bit of
    ``stored``. Without ``spread`` groups take turns on the ways, with it each is on both.
    """
    dut = WayTree(leaves=2, fanin=2, bits=BITS)
    h = Harness(dut)
    m = h.m
    assume_stable_offers(h, "i", *dut.i)
    prove_stable_offers(h, "o", *dut.o)
    total = h.constant("total_order", 1)
    h.assume("the order is constant, and sorted results are not spread", (dut.total == total) & (dut.spread == spread)
             & ~(total & spread))
    since = [h.started()]
    since.append(h.past(since[-1], "settled"))
    h.assume("the mergers have the order before the first result", since[-1] | ~Cat(i.valid for i in dut.i).any())
    step = 1 if spread else 2

    # Each input: groups that ended with a star, pairs of one group, and the marked pair.
    one, marked, gone = h.constant("one", _GROUP), Signal(name="marked"), Signal(name="gone")
    where, on = Signal(_GROUP, name="where"), Signal(name="way_of_marked")  # the group and the way of the marked pair
    marks, groups, turns = [], [], []
    for n, i in enumerate(dut.i):
        group, item = Signal(_GROUP, name=f"group{n}"), i.payload
        turn = h.inner(f"splitter{n}.way")
        pair = item.kind == ItemKind.PAIR
        h.assume(f"input {n} has pairs and stars", pair | (item.kind == ItemKind.STAR))
        h.assume(f"pairs of input {n} carry their group", ~i.valid | ~pair | (item.probe == group))
        with m.If(_taken(i) & ~pair):
            m.d.sync += group.eq(group + 1)
        marks.append(i.valid & pair & item.stored[0])
        groups.append(group)
        turns.append(turn)
        with m.If(marks[n] & i.ready):
            m.d.sync += [marked.eq(1), where.eq(item.probe), on.eq(turn)]
    h.assume("one pair is marked", (sum(marks) <= 1) & ~(marked & Cat(marks).any()))
    counted = [_taken(i) & (i.payload.kind == ItemKind.PAIR) & (i.payload.probe == one) for i in dut.i]

    # What leaves each way.
    starts, missing, honest, whole, single = [], [], [], [], []
    for way, out in enumerate(dut.o):
        group, item = Signal(_GROUP, name=f"way_group{way}", init=0 if spread else way), out.payload
        pair = item.kind == ItemKind.PAIR
        with m.If(_taken(out) & ~pair):
            m.d.sync += group.eq(group + step)
        with m.If(_taken(out) & pair & item.stored[0]):
            m.d.sync += gone.eq(1)
        inside = Signal(6, name=f"inside{way}")  # pairs of the one group that came to this way and have not left it
        m.d.sync += inside.eq(inside + sum(some & (turn == way) for some, turn in zip(counted, turns, strict=True))
                              - (_taken(out) & pair & (item.probe == one)))
        honest.append(~out.valid | ~pair | (item.probe == group))
        whole.append(~out.valid | pair | (group != one) | (inside == 0))
        single.append(~(out.valid & pair & item.stored[0]) | (marked & ~gone & (where == group) & (on == way)))
        starts.append(group)
        missing.append(inside)
    h.prove("each pair leaves in its group, on the way of its group", Cat(honest).all())
    h.prove("a way's pairs of a group have left when its star leaves", Cat(whole).all())
    h.prove("a pair leaves once, and only if it entered", Cat(single).all())

    # The invariants: what each FIFO holds follows from what came and what left.
    mergers = [node(h, f"way{way}", "total_here.o") for way in range(2)]
    h.prove("the setting of the order reaches the mergers before the first result", Cat(
        since[0] | ~since[1], ~since[0] | (mergers[0].total == total), ~since[1] | (mergers[0].was_total == total),
        *(~q.some | since[1] for merger in mergers for q in merger.queues)).all())
    h.prove("pointers, flags and registered comparisons of the mergers are right", mergers[0].sound & mergers[1].sound)
    h.prove("pointers, flags and levels of the splitters' queues agree", Cat(
        sound_queue(h, f"splitter{n}.queue{way}", DEPTH) for n in range(2) for way in range(2)).all())
    fits, aligned, inside_ways, found = [], [], [], []
    for way in range(2):
        parts = []
        for n in range(2):
            next_group = groups[n] if spread else groups[n] + (groups[n][0] ^ way)
            queued = Contents(_Queued(h, f"splitter{n}.queue{way}"), _GROUP, Const(0, 2**_GROUP), step)
            merging = Contents(mergers[way].queues[n], _GROUP, Const(0, 2**_GROUP), step)
            first = (next_group - step * queued.barriers)[:_GROUP]
            begin = (first - step * merging.barriers)[:_GROUP]
            aligned.append(begin == starts[way])
            fits += [queued.fits(first), merging.fits(begin)]
            parts += [queued, merging]
        inside_ways.append(missing[way] == sum((part.count(one) for part in parts), Const(0)))
        found.append((sum((part.marked for part in parts), Const(0)) == (marked & ~gone & (on == way)))
                     & Cat(part.marked_in(where) for part in parts).all())
    if not spread:
        aligned += [turn == group[0] for turn, group in zip(turns, groups, strict=True)]
    h.prove("all inputs of a way are in the same group, and the splitters' turns say which way it is",
            Cat(aligned).all())
    h.prove("the stars before a waiting item tell its group", Cat(fits).all())
    h.prove("the pairs inside are counted", Cat(inside_ways).all())
    h.prove("the marked pair is inside from when it came until it leaves", (marked | ~gone) & Cat(found).all())
    h.output = dut.o[0]
    return h


def _taken(port: Any) -> Value:
    return port.valid & port.ready


_FAULTS = (
    Fault("offers at o are stable", LookaheadFifo, "read(probes, heads[0])", "read(probes, second)"),
    Fault("each pair leaves in its group, on the way of its group", Merger, "barrier_offer.eq(all_barriers)",
          "barrier_offer.eq(barrier.any() & ~pair.any())"),
    Fault("a way's pairs of a group have left when its star leaves", LookaheadFifo, "self.pop ^ push", "self.pop"),
    Fault("a pair leaves once, and only if it entered", LookaheadFifo, "head + self.pop", "head"),
    Fault("the setting of the order reaches the mergers before the first result", PipelineRegister,
          "register.eq(self.i)", "register.eq(~self.i)"),
    Fault("pointers, flags and registered comparisons of the mergers are right", LookaheadFifo,
          "(self.slice, kind == ItemKind.SLICE, offer.slice)", "(self.slice, kind == ItemKind.SLICE, offer.star)"),
    Fault("pointers, flags and levels of the splitters' queues agree", Queue, "push & (tail_next == head)",
          "push & (tail == head)"),
    Fault("all inputs of a way are in the same group, and the splitters' turns say which way it is", WaySplitter,
          "way.eq(~way)", "way.eq(way)"),
    Fault("the stars before a waiting item tell its group", WaySplitter, "self.spread | (kind == ItemKind.STAR)",
          "1 | (kind == ItemKind.STAR)"),
    Fault("the pairs inside are counted", LookaheadFifo, "self.pop ^ push", "self.pop"),
    Fault("the marked pair is inside from when it came until it leaves", WaySplitter,
          "Mux(both, ready[1 - n], way == n)", "Mux(both, ready[1 - n], 1)"),
)

PROOFS = (
    Proof("tree of a wide root, groups in turn", partial(way_tree, False), 2, faults=_FAULTS, search=9, apart=True,
          quick=False),
    Proof("tree of a wide root, groups spread", partial(way_tree, True), 2, search=9, apart=True, quick=False),
)
