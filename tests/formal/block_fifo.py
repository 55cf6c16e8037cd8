"""Proofs of the FIFOs in block RAM: nothing is lost or overtaken, and no item waits for another to arrive."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from amaranth.hdl import Mux, Signal, Value

from splitjoin_hw.network.block_fifo import BlockFifo, HalfRateFifo, _Fifo
from splitjoin_hw.network.queue import Queue

from .harness import Harness
from .monitors import Follower, follow, prove_stable_offers
from .network import sound_queue
from .proofs import Fault, Proof

#: Rows of the memory, and places of the queue behind it, in these proofs.
_DEPTH, _OFFERED = 4, 4


def _prove_memory(h: Harness) -> tuple[Value, Value, Any]:
    """Prove that pointers and level agree. Returns head, level, and the contents some rows from the head on."""
    head, tail, level, room = (h.inner(name) for name in ("head", "tail", "level", "room"))
    h.prove("tail minus head is the level, and there is room for an item on its way",
            (level == (tail - head)[:len(head)]) & (level <= _DEPTH) & (~room | (level < _DEPTH)))
    return head, level, lambda steps: h.look("rows.rows", (head + steps)[:len(head) - 1])


def _prove_offers(h: Harness, inside: Value) -> None:
    """Prove liveness: whatever is inside moves on by itself."""
    dut = h.dut
    waited = Signal(4, name="waited")
    h.m.d.sync += waited.eq(Mux((inside == 0) | dut.o.valid, 0, waited + 1))
    h.prove("an item is offered four cycles after it arrived or its predecessor left", waited <= 3)


def half_rate() -> Harness:
    dut = HalfRateFifo(2, _DEPTH)
    h = Harness(dut)
    prove_stable_offers(h, "o", dut.o)
    f = Follower(h, "item", entered=dut.i.valid & dut.i.ready, entering=dut.i.payload, port=dut.o, capacity=_DEPTH + 1)
    follow(h, f)
    head, level, row = _prove_memory(h)
    due, shown, held = (h.inner(name) for name in ("due", "shown", "held"))
    h.prove("the successor of the head is right", h.inner("head_next") == (head + 1)[:len(head)])
    h.prove("the items inside are counted", f.inside == level + held)
    h.prove("the memory shows the item at the head",
            (~(due | shown) | (level != 0)) & (~shown | (h.inner("rows.r_data", domain="sync") == row(0)))
            & (~due | (h.inner("rows.read__data") == row(0))))
    h.prove("the picked item is in its place",
            ~f.picked | (Mux(held & (f.ahead == 0), h.inner("item"), row(f.ahead - held)) == f.token))
    _prove_offers(h, f.inside)
    return h


def full_rate() -> Harness:
    with patch("splitjoin_hw.network.block_fifo._OFFERED", _OFFERED):
        dut = BlockFifo(2, _DEPTH)
        h = Harness(dut)
    prove_stable_offers(h, "o", dut.o)
    f = Follower(h, "item", entered=dut.i.valid & dut.i.ready, entering=dut.i.payload, port=dut.o,
                 capacity=_DEPTH + _OFFERED)
    follow(h, f)
    _, level, row = _prove_memory(h)
    reads, claimed, place = [h.inner("read0"), h.inner("read1")], h.inner("claimed"), h.inner("place")
    offered, first = h.inner("offered.level"), h.inner("offered.head")
    h.prove("pointers, flags and level of its queue agree", sound_queue(h, "offered", _OFFERED))
    h.prove("the queue has a place for each item that was read",
            (claimed == offered + sum(reads)) & (claimed <= _OFFERED) & (~place | (claimed < _OFFERED)))
    h.prove("the items inside are counted", f.inside == level + claimed)
    behind = (f.ahead - offered)[:4]
    on_the_way = Mux(reads[1] & (behind == 0), h.inner("rows.r_data", domain="sync"),
                     Mux(reads[0] & (behind == reads[1]), h.inner("rows.read__data"), row(f.ahead - claimed)))
    h.prove("the picked item is in its place", ~f.picked | (Mux(
        f.ahead < offered, h.look("offered.rows", (first + f.ahead)[:len(first)]), on_the_way) == f.token))
    _prove_offers(h, f.inside)
    return h


_ROOM = "level < self.depth - 1"
_SHARED_FAULTS = (
    Fault("tail minus head is the level, and there is room for an item on its way", _Fifo, _ROOM,
          "level < self.depth", "_room"),
)
_HALF_FAULTS = (
    *_SHARED_FAULTS,
    Fault("the picked item is inside", _Fifo, "self.i.ready.eq(room)", "self.i.ready.eq(1)", "_room"),
    Fault("offers at o are stable", HalfRateFifo, "held.eq(load | (held & ~self.o.ready))", "held.eq(load)"),
    Fault("nothing leaves that did not enter", HalfRateFifo, "Mux(load, head_next != tail, head != tail)", "1"),
    Fault("items leave unchanged and in order", HalfRateFifo, "shown.eq(due & ~load)", "shown.eq(due)"),
    Fault("the successor of the head is right", HalfRateFifo, "head_next.eq(head_next + 1)", "head_next.eq(head + 1)"),
    Fault("the items inside are counted",
          HalfRateFifo, "held.eq(load | (held & ~self.o.ready))", "held.eq(load | held)"),
    Fault("the memory shows the item at the head", HalfRateFifo, "shown.eq(due & ~load)", "shown.eq(due)"),
    Fault("the picked item is in its place", HalfRateFifo, "m.If(~held | self.o.ready)", "m.If(~held)"),
    Fault("an item is offered four cycles after it arrived or its predecessor left",
          HalfRateFifo, "shown.eq(due & ~load)", "shown.eq(due & ~load & self.i.valid)"),
)
_FULL_FAULTS = (
    *_SHARED_FAULTS,
    Fault("the picked item is inside", BlockFifo, "self.o.valid.eq(offered.o.valid)", "self.o.valid.eq(1)"),
    Fault("offers at o are stable", BlockFifo, "self.o.valid.eq(offered.o.valid)",
          "self.o.valid.eq(offered.o.valid & self.i.valid)"),
    Fault("nothing leaves that did not enter", BlockFifo, "self.o.valid.eq(offered.o.valid)", "self.o.valid.eq(1)"),
    Fault("items leave unchanged and in order", BlockFifo, "claimed < _OFFERED - 1", "claimed < _OFFERED + 2"),
    Fault("the items inside are counted", BlockFifo, "claimed.eq(claimed + read - pop)", "claimed.eq(claimed + read)"),
    Fault("pointers, flags and level of its queue agree", Queue, "push & (tail_next == head)", "push & (tail == head)"),
    Fault("the queue has a place for each item that was read", BlockFifo, "claimed < _OFFERED - 1",
          "claimed <= _OFFERED"),
    Fault("the picked item is in its place", BlockFifo, "claimed < _OFFERED - 1", "claimed <= _OFFERED"),
    Fault("an item is offered four cycles after it arrived or its predecessor left",
          BlockFifo, "(head != tail) & place", "(head != tail) & place & self.i.valid"),
)

PROOFS = (
    Proof("FIFO in block RAM, an item in two cycles", half_rate, 5, faults=_HALF_FAULTS, search=14),
    Proof("FIFO in block RAM, an item a cycle", full_rate, 5, faults=_FULL_FAULTS, search=16),
)
