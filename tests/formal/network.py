"""Proofs of the buffer, the queue and the distributor."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from amaranth.hdl import Array, Cat, Mux, Value
from splitjoin.hw import network
from splitjoin.hw.network.distributor import Distributor
from splitjoin.hw.network.queue import Queue
from splitjoin.hw.network.skid_buffer import SkidBuffer

from .harness import Harness
from .monitors import Follower, follow, offers_stand
from .proofs import Fault, Proof

__all__ = ["BUFFER_FAULTS", "PROOFS", "buffered", "sound_queue"]


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
    offers_stand(h, "o", dut.o)
    h.prove("its buffer is never full and empty, and its shares agree", sound)
    f = Follower(h, "item", entered=dut.i.valid & dut.i.ready, entering=dut.i.payload, port=dut.o, capacity=2)
    follow(h, f)
    h.prove("what is inside is counted, and offered", (f.inside == level) & (dut.o.valid == (level != 0)))
    h.prove("the item picked is in its slot", ~f.picked | (holds(f.ahead) == f.token))
    return h


def queue(depth: int) -> Harness:
    dut = Queue(2, depth)
    h = Harness(dut)
    offers_stand(h, "o", dut.o)
    f = Follower(h, "item", entered=dut.i.valid & dut.i.ready, entering=dut.i.payload, port=dut.o, capacity=depth)
    follow(h, f)
    head, tail = h.inner("head"), h.inner("tail")

    def after(position: Any, steps: Any) -> Any:
        """``position`` moved on by ``steps``, at most ``depth``."""
        there = position + steps
        return Mux(there >= depth, there - depth, there)[:len(head)]

    h.prove("the level is that of what is inside, and offered",
            (dut.level == f.inside) & (f.inside <= depth) & (dut.o.valid == (f.inside != 0))
            & (dut.i.ready == (f.inside != depth)))
    h.prove("the ends are a level apart", (head < depth) & (tail < depth) & (tail == after(head, dut.level)))
    h.prove("what comes behind the ends is known",
            (h.inner("head_next") == after(head, 1)) & (h.inner("tail_next") == after(tail, 1)))
    h.prove("the item picked is in its place", ~f.picked | (h.look("rows", after(head, f.ahead)) == f.token))
    return h


def distributor(children: int) -> Harness:
    dut = Distributor(2, children)
    h = Harness(dut)
    level, holds, sound = buffered(h, "buffer")
    pending = h.inner("pending")
    # Children wait for an item exactly while there is a head item.
    h.prove("who has the head is known, and the buffer is sound", sound & (pending.any() == (level != 0)))
    followers, counted, placed = [], [], []
    for n, child in enumerate(dut.o):
        f = Follower(h, f"item{n}", entered=dut.i.valid & dut.i.ready, entering=dut.i.payload, port=child, capacity=2)
        followers.append(f)
        has = (level != 0) & ~pending[n]  # the head already
        counted.append((f.inside == level - has) & (child.valid == pending[n]))
        placed.append(~f.picked | (holds(f.ahead + has) == f.token))
    offers_stand(h, "o", *dut.o)
    follow(h, *followers)
    h.prove("what each child lacks is counted, and offered", Cat(counted).all())
    h.prove("the item picked is in its slot", Cat(placed).all())
    return h


BUFFER_FAULTS = (
    Fault("offers at o stand", SkidBuffer, "full | (not_empty & (heads[0] == n))", "full"),
    Fault("its buffer is never full and empty, and its shares agree", SkidBuffer,
          "self.i.valid | full | (not_empty & ~self.o.ready)", "self.i.valid"),
    Fault("nothing leaves that did not enter", SkidBuffer, "self.o.valid.eq(not_empty)", "self.o.valid.eq(1)"),
    Fault("items leave whole and in order", SkidBuffer, "head ^ self.o.ready", "head"),
    Fault("what is picked is inside", SkidBuffer, "self.i.ready.eq(~full)", "self.i.ready.eq(1)"),
    Fault("what is inside is counted, and offered", SkidBuffer, "self.i.valid | full |", "self.i.valid |"),
    Fault("the item picked is in its slot", SkidBuffer, "heads[0] == n", "heads[0] != n"),
)

_QUEUE_FAULTS = (
    Fault("offers at o stand", Queue, "self.o.valid.eq(not_empty)", "self.o.valid.eq(not_empty & self.i.valid)"),
    Fault("nothing leaves that did not enter", Queue, "self.o.valid.eq(not_empty)", "self.o.valid.eq(1)"),
    Fault("items leave whole and in order", Queue, "write.addr.eq(tail)", "write.addr.eq(head)"),
    Fault("what is picked is inside", Queue, "self.i.ready.eq(~full)", "self.i.ready.eq(1)"),
    Fault("the level is that of what is inside, and offered", Queue, "push & (tail_next == head)", "push"),
    Fault("the ends are a level apart", Queue, "Mux(next_ == depth - 1, 0, next_ + 1)", "next_ + 1"),
    Fault("what comes behind the ends is known", Queue, "init=1", "init=0"),
    Fault("the item picked is in its place", Queue, "write.en.eq(~full)", "write.en.eq(1)"),
)

_DISTRIBUTOR_FAULTS = (
    Fault("offers at o stand", Distributor, "child.valid.eq(pending[n])",
          "child.valid.eq(pending[n] & ~self.o[n - 1].ready)"),
    Fault("nothing leaves that did not enter", Distributor, "child.valid.eq(pending[n])",
          "child.valid.eq(buffer.o.valid)"),
    Fault("items leave whole and in order", Distributor, "(~pending | ready).all()", "(~pending | ready).any()"),
    Fault("what is picked is inside", Distributor, "(pending & ~ready)", "pending"),
    Fault("what each child lacks is counted, and offered", Distributor, "~buffer.i.ready | self.i.valid",
          "~buffer.i.ready"),
    Fault("the item picked is in its slot", Distributor, "(~pending | ready).all()", "(~pending | ready).any()"),
    Fault("who has the head is known, and the buffer is sound", Distributor, "buffer.o.ready.eq(advance)",
          "buffer.o.ready.eq(advance & self.i.valid)"),
)

PROOFS = (
    Proof("buffer", buffer, 2, faults=BUFFER_FAULTS),
    *(Proof(f"queue of {depth}", lambda depth=depth: queue(depth), 2, faults=_QUEUE_FAULTS if depth == 3 else ())
      for depth in (2, 3, 4, 16)),
    *(Proof(f"distributor to {n}", lambda n=n: distributor(n), 2,
            faults=_DISTRIBUTOR_FAULTS if n == 3 else ()) for n in (1, 2, 3, 4)),
)
