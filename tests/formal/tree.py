"""Proofs of the distribution tree: every item reaches every leaf, without back-pressure between the nodes."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from amaranth.hdl import Cat, Mux

from splitjoin.circuit.geometry import credit_fifo_depth, split
from splitjoin_hw.network.link import BroadcastRegister, CreditFifo
from splitjoin_hw.network.queue import Queue
from splitjoin_hw.network.tree import DistributionTree

from .harness import Harness
from .monitors import Follower, follow, prove_stable_offers
from .network import sound_queue
from .proofs import Fault, Proof

#: Words in a LUT RAM of a FIFO, fewer than in the circuits: the queue's proof covers several depths.
_ROW = 4


def tree(leaves: int, fanout: int) -> Harness:
    with patch("splitjoin.circuit.geometry._LUT_RAM_WORDS", _ROW):
        dut = DistributionTree(1, leaves=leaves, fanout=fanout)
        h = Harness(dut)
        ways = [way for n, size in enumerate(split(leaves, fanout)) for way in _ways([f"node_{n}"], size, fanout)]
        places = [credit_fifo_depth(len(way) - 1) for way in ways]
    credit = h.inner("credit")
    followers, counted, placed, kept, sound = [], [], [], [], []
    for n, (leaf, way, size) in enumerate(zip(dut.o, ways, places, strict=True)):
        end, registers = way[-1], way[-2::-1]  # nearest to the leaf first
        queue = f"{end}.queue"
        level, head = h.inner(f"{queue}.level"), h.inner(f"{queue}.head")
        arriving = [h.inner(f"{register}.valid") for register in registers]
        f = Follower(h, f"item{n}", entered=dut.i.valid & dut.i.ready, entering=dut.i.payload, port=leaf,
                     capacity=size)
        followers.append(f)
        counted.append((f.inside == level + sum(arriving)) & (leaf.valid == (level != 0)))
        # The FIFO has space for all items that may still be sent, and for those under way.
        granted = [credit, *(h.inner(f"{register}.credit", bits=1, domain="sync") for register in registers),
                 h.inner(f"{end}.credit", bits=1, domain="sync")]
        kept.append(level + sum(arriving) + sum(granted) <= size)
        sound.append(sound_queue(h, queue, size))
        found: Any = h.look(f"{queue}.rows", (head + f.ahead)[:len(head)])
        reached: Any = f.ahead < level
        position: Any = f.ahead - level
        for register, there in zip(registers, arriving, strict=True):
            here = ~reached & there & (position == 0)
            found = Mux(here, h.inner(f"{register}.item"), found)
            position = position - (there & ~reached)
            reached = reached | here
        placed.append(~f.picked | (reached & (found == f.token)))
    prove_stable_offers(h, "o", *dut.o)
    follow(h, *followers)
    h.prove("pointers, flags and levels of the FIFOs agree", Cat(sound).all())
    h.prove("each FIFO has a place for every item in flight and every credit", Cat(kept).all())
    h.prove("the items that each leaf still needs are counted, and the next is offered", Cat(counted).all())
    h.prove("the picked item is in its place", Cat(placed).all())
    return h


def _ways(way: list[str], count: int, fanout: int) -> list[list[str]]:
    """The paths from the root to each of the ``count`` leaves below the path ``way``."""
    if count == 1:
        return [way]
    return [longer for n, size in enumerate(split(count, fanout))
            for longer in _ways([*way, f"{way[-1]}_{n}"], size, fanout)]


_FAULTS = (
    Fault("offers at o are stable", Queue, "self.o.valid.eq(not_empty)", "self.o.valid.eq(not_empty & ~self.i.valid)"),
    Fault("nothing leaves that did not enter", BroadcastRegister, "valid.eq(self.i.valid)",
          "valid.eq(self.i.valid | ~credit)"),
    Fault("items leave unchanged and in order", Queue, "write.addr.eq(tail)", "write.addr.eq(head)"),
    Fault("the picked item is inside", DistributionTree, "self.i.ready.eq(credit)", "self.i.ready.eq(1)"),
    Fault("pointers, flags and levels of the FIFOs agree", Queue, "push & (tail_next == head)", "push"),
    Fault("each FIFO has a place for every item in flight and every credit",
          CreditFifo, "self.depth - in_flight(self.stages)",
          "self.depth - self.stages"),
    Fault("the items that each leaf still needs are counted, and the next is offered",
          DistributionTree, "self.i.valid & credit", "self.i.valid"),
    Fault("the picked item is in its place", BroadcastRegister, "Cat(item).eq(Cat(self.i.payload))",
          "Cat(item).eq(item)"),
)

PROOFS = tuple(
    Proof(f"distribution tree, {leaves} leaves, fan-out {fanout}", lambda a=(leaves, fanout): tree(*a), 2,
          faults=_FAULTS if leaves == 3 else (), quick=leaves != 5)
    for leaves, fanout in ((2, 2), (3, 2), (5, 2), (7, 3)))
