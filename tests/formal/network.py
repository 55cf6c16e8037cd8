"""Proofs of the buffer, the queue and the distributor."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from amaranth.hdl import Array, Cat, Mux, Value

from splitjoin_hw import network
from splitjoin_hw.network.distributor import Distributor
from splitjoin_hw.network.queue import Queue
from splitjoin_hw.network.skid_buffer import SkidBuffer

from .harness import Harness
from .monitors import Follower, follow, prove_stable_offers
from .proofs import Fault, Proof


def buffered(h: Harness, path: str) -> tuple[Any, Any, Any]:
    """Level, contents by position, and invariant of the `SkidBuffer` at ``path``."""
    at = f"{path}." if path else ""
    not_empty, full = h.inner(f"{at}not_empty"), h.inner(f"{at}full")
    slots = Array([h.inner(f"{at}slot0"), h.inner(f"{at}slot1")])
    head, *others = (h.inner(f"{at}head{n}") for n in range(-(-len(slots[0]) // network.skid_buffer._SHARE)))
    sound = (not_empty | ~full) & Cat(other == head for other in others).all()
    return not_empty + full, lambda position: slots[(head + position)[0]], sound


def sound_queue(h: Harness, path: str, depth: int) -> Value:
    """The invariant of the `Queue` at ``path``, whose depth is a power of two."""
    head, tail, full, not_empty, head_next, tail_next, level = (h.inner(f"{path}.{name}") for name in (
        "head", "tail", "full", "not_empty", "head_next", "tail_next", "level"))
    bits = len(head)
    return ((not_empty == (level != 0)) & (full == (level == depth)) & (level <= depth)
            & (level[:bits] == (tail - head)[:bits])
            & (head_next == (head + 1)[:bits]) & (tail_next == (tail + 1)[:bits]))


def buffer() -> Harness:
    dut = SkidBuffer(2)
    with patch.object(network.skid_buffer, "_SHARE", 1):
        h = Harness(dut)
        level, holds, sound = buffered(h, "")
    prove_stable_offers(h, "o", dut.o)
    h.prove("the buffer is not full and empty at once, and the copies of its head agree", sound)
    f = Follower(h, "item", entered=dut.i.valid & dut.i.ready, entering=dut.i.payload, port=dut.o, capacity=2)
    follow(h, f)
    h.prove("the level counts the items inside, and valid follows from it",
            (f.inside == level) & (dut.o.valid == (level != 0)))
    h.prove("the picked item is in its slot", ~f.picked | (holds(f.ahead) == f.token))
    return h


def queue(depth: int) -> Harness:
    dut = Queue(2, depth)
    h = Harness(dut)
    prove_stable_offers(h, "o", dut.o)
    f = Follower(h, "item", entered=dut.i.valid & dut.i.ready, entering=dut.i.payload, port=dut.o, capacity=depth)
    follow(h, f)
    head, tail = h.inner("head"), h.inner("tail")

    def after(position: Any, steps: Any) -> Any:
        """``position`` moved on by ``steps``, at most ``depth``."""
        there = position + steps
        return Mux(there >= depth, there - depth, there)[:len(head)]

    h.prove("the level counts the items inside, and valid and ready follow from it",
            (dut.level == f.inside) & (f.inside <= depth) & (dut.o.valid == (f.inside != 0))
            & (dut.i.ready == (f.inside != depth)))
    h.prove("tail minus head is the level", (head < depth) & (tail < depth) & (tail == after(head, dut.level)))
    h.prove("the successors of head and tail are right",
            (h.inner("head_next") == after(head, 1)) & (h.inner("tail_next") == after(tail, 1)))
    h.prove("the picked item is in its place", ~f.picked | (h.look("rows", after(head, f.ahead)) == f.token))
    return h


def distributor(children: int) -> Harness:
    dut = Distributor(2, children)
    h = Harness(dut)
    level, holds, sound = buffered(h, "buffer")
    pending = h.inner("pending")
    # Children wait for an item exactly while there is a head item.
    h.prove("the buffer is consistent, and its first item is pending at a child",
            sound & (pending.any() == (level != 0)))
    followers, counted, placed = [], [], []
    for n, child in enumerate(dut.o):
        f = Follower(h, f"item{n}", entered=dut.i.valid & dut.i.ready, entering=dut.i.payload, port=child, capacity=2)
        followers.append(f)
        has = (level != 0) & ~pending[n]  # the head already
        counted.append((f.inside == level - has) & (child.valid == pending[n]))
        placed.append(~f.picked | (holds(f.ahead + has) == f.token))
    prove_stable_offers(h, "o", *dut.o)
    follow(h, *followers)
    h.prove("the items that each child still needs are counted, and the next is offered", Cat(counted).all())
    h.prove("the picked item is in its slot", Cat(placed).all())
    return h


BUFFER_FAULTS = (
    Fault("offers at o are stable", SkidBuffer, "full | (not_empty & (heads[0] == n))", "full"),
    Fault("the buffer is not full and empty at once, and the copies of its head agree", SkidBuffer,
          "self.i.valid | full | (not_empty & ~self.o.ready)", "self.i.valid"),
    Fault("nothing leaves that did not enter", SkidBuffer, "self.o.valid.eq(not_empty)", "self.o.valid.eq(1)"),
    Fault("items leave unchanged and in order", SkidBuffer, "head ^ self.o.ready", "head"),
    Fault("the picked item is inside", SkidBuffer, "self.i.ready.eq(~full)", "self.i.ready.eq(1)"),
    Fault("the level counts the items inside, and valid follows from it",
          SkidBuffer, "self.i.valid | full", "self.i.valid"),
    Fault("the picked item is in its slot", SkidBuffer, "heads[0] == n", "heads[0] != n"),
)

_QUEUE_FAULTS = (
    Fault("offers at o are stable", Queue, "self.o.valid.eq(not_empty)", "self.o.valid.eq(not_empty & self.i.valid)"),
    Fault("nothing leaves that did not enter", Queue, "self.o.valid.eq(not_empty)", "self.o.valid.eq(1)"),
    Fault("items leave unchanged and in order", Queue, "write.addr.eq(tail)", "write.addr.eq(head)"),
    Fault("the picked item is inside", Queue, "self.i.ready.eq(~full)", "self.i.ready.eq(1)"),
    Fault("the level counts the items inside, and valid and ready follow from it",
          Queue, "push & (tail_next == head)", "push"),
    Fault("tail minus head is the level", Queue, "Mux(next_ == depth - 1, 0, next_ + 1)", "next_ + 1"),
    Fault("the successors of head and tail are right", Queue, "Signal(range(depth), name=f'{name}_next', init=1)",
          "Signal(range(depth), name=f'{name}_next', init=0)"),
    Fault("the picked item is in its place", Queue, "write.en.eq(~full)", "write.en.eq(1)"),
)

_DISTRIBUTOR_FAULTS = (
    Fault("offers at o are stable", Distributor, "child.valid.eq(pending[n])",
          "child.valid.eq(pending[n] & ~self.o[n - 1].ready)"),
    Fault("nothing leaves that did not enter", Distributor, "child.valid.eq(pending[n])",
          "child.valid.eq(buffer.o.valid)"),
    Fault("items leave unchanged and in order", Distributor, "(~pending | ready).all()", "(~pending | ready).any()"),
    Fault("the picked item is inside", Distributor, "(pending & ~ready)", "pending"),
    Fault("the items that each child still needs are counted, and the next is offered",
          Distributor, "~buffer.i.ready | self.i.valid",
          "~buffer.i.ready"),
    Fault("the picked item is in its slot", Distributor, "(~pending | ready).all()", "(~pending | ready).any()"),
    Fault("the buffer is consistent, and its first item is pending at a child",
          Distributor, "buffer.o.ready.eq(advance)",
          "buffer.o.ready.eq(advance & self.i.valid)"),
)

PROOFS = (
    Proof("buffer", buffer, 2, faults=BUFFER_FAULTS),
    *(Proof(f"queue of {depth}", lambda depth=depth: queue(depth), 2, faults=_QUEUE_FAULTS if depth == 3 else ())
      for depth in (2, 3, 4, 16)),
    *(Proof(f"distributor to {n}", lambda n=n: distributor(n), 2,
            faults=_DISTRIBUTOR_FAULTS if n == 3 else ()) for n in (1, 2, 3, 4)),
)
