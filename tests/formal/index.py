"""Proofs of the index: a bucket's chain has each of its tuples once, from the youngest to the oldest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out

from splitjoin.circuit.geometry import position_bits, ring_rows
from splitjoin.circuit.wire import Configuration
from splitjoin_hw.core.buckets import CellBuckets
from splitjoin_hw.core.index import Index

from .harness import Harness
from .proofs import Fault, Proof

#: Tuples that may be stored ahead of unread ones in these proofs: fewer than in the circuits, so that positions wrap
#: soon.
STORES = 2
#: Four buckets, and chains of up to four live tuples.
_CONFIG = Configuration(keys_r=(2,), keys_s=(2,), tests=((0, 0),), tree=0, capacity=4, core="bucket", index=(0,))
#: Cycles from a store until the memory of heads has it, and until the memory of links has it.
_HEAD, _LINK = 5, 6


@contextmanager
def few_stores() -> Iterator[None]:
    """Context in which cores are made for `STORES`."""
    with patch("splitjoin.circuit.geometry.STORES", STORES):
        yield


class LookedUp(wiring.Component):
    """An index, and a stream of the results of look-ups."""

    def __init__(self, config: Configuration):
        self._index = Index(config, "s", CellBuckets())
        self._position = position_bits(config)
        inputs = {name: member for name, member in self._index.signature.members.items()
                  if name in ("store", "cells", "position", "look", "bucket", "row")}
        super().__init__({**inputs, "hold": Out(1), "granted": Out(1), "known": Out(self._position),
                          "o": Out(stream.Signature(self._position))})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.index = index = self._index
        for name in ("store", "cells", "position", "look", "bucket", "row"):
            m.d.comb += getattr(index, name).eq(getattr(self, name))
        ways = [Signal(name=f"granted{n}") for n in range(3)]
        head = Signal(self._position)
        m.d.sync += [Cat(ways).eq(Cat(index.granted, ways)), head.eq(index.head)]
        m.d.comb += [self.hold.eq(index.hold), self.granted.eq(index.granted), self.known.eq(index.known),
                     self.o.valid.eq(ways[-1] & index.live), self.o.payload.eq(head)]
        return m


@few_stores()
def chains() -> Harness:
    """The harness of an index: the solver picks a bucket, and one of its tuples, to follow.

    Positions wrap around after 16 stores.
    """
    config = _CONFIG
    dut = LookedUp(config)
    h = Harness(dut)
    m = h.m
    bits, most = position_bits(config), config.capacity + STORES
    count = Signal(bits)  # tuples stored, those under way included
    m.d.sync += count.eq(count + dut.store)
    h.assume("tuples are stored one behind the other, when they may be", ~dut.store | (
        h.past(~dut.hold, "allowed") & ~h.past(dut.store, "before") & (dut.position == count)))

    bucket = h.constant("chosen_bucket", range(config.buckets))
    step, clearing, sweep = (h.inner(f"index.{name}") for name in ("step", "clearing", "sweep"))
    inside = dut.known
    # What came in, until it is in the memories.
    mark = h.free("mark")
    coming, marked = Signal(_LINK, name="coming"), Signal(_LINK, name="marked")
    mine = dut.store & (Cat(dut.cells) == bucket)
    m.d.sync += [coming.eq(Cat(mine, coming)), marked.eq(Cat(mine & mark, marked))]
    stored = Signal(_LINK)
    m.d.sync += stored.eq(Cat(dut.store, stored))
    place = Signal(bits)
    with m.If(dut.store):
        m.d.sync += place.eq(dut.position)

    # The bucket's youngest tuple: its position, and how many tuples came since, itself included.
    some, youngest, age = Signal(name="some"), Signal(bits, name="youngest"), Signal(5, name="age")
    enters = coming[_HEAD - 1]
    with m.If(enters):
        m.d.sync += [some.eq(1), youngest.eq(place), age.eq(1)]
    with m.Elif(stored[_HEAD - 1] & (age != 31)):
        m.d.sync += age.eq(age + 1)
    head = h.look("index.heads.rows", bucket)
    head_valid, head_position = head[0], head[1:]
    # One of its tuples, how old it is, and how much older the next one is.
    picked, at = Signal(name="picked"), Signal(bits, name="at")
    since, older = Signal(5, name="since"), Signal(5, name="older")
    with m.If(enters & marked[_HEAD - 1] & ~picked):
        m.d.sync += [picked.eq(1), at.eq(place), since.eq(1), older.eq(Mux(some & (age <= most), age, 0))]
    with m.Elif(stored[_HEAD - 1] & picked):
        m.d.sync += [since.eq(since + 1), picked.eq(since != most)]
    link = h.look("index.links.rows", at[:(ring_rows(config) - 1).bit_length()])

    pending = step[5] | step[6]
    visits = (sweep - 1 - bucket)[:2]  # how many buckets were looked at after this one
    h.prove("indexed tuples are counted, and the sweep checks a bucket for each", ~(
        (count - inside)[:bits] != stored[:_HEAD].any()) & (clearing | ((inside - sweep)[:2] == pending)))
    h.prove("a store waits until the previous one is complete", (step == Cat(stored, step[_LINK])) & (
        dut.hold == (clearing | stored[:_HEAD - 1].any())) & ~(clearing & (step.any() | (count != 0))) & (
        (stored[:_HEAD] & (stored[:_HEAD] - 1)) == 0))
    h.prove("the head of a bucket is its youngest tuple", ~(some & (age <= most)) | (
        head_valid & (head_position == youngest)))
    h.prove("a head is cleared before its position is used again", ~head_valid | (
        some & (head_position == youngest) & ~(clearing & (sweep > bucket)) & (age <= most + 1 + visits + pending)))
    h.prove("the age of a head is right", ~some | (age == 31) | (
        (age != 0) & ((inside - youngest)[:bits] == age[:bits])))
    h.prove("each tuple is linked to the next older one of its bucket", ~picked | (
        (since != 0) & (since <= most) & ((inside - at)[:bits] == since) & some & (age <= since)
        & Mux(step[5] & (since == 1), h.inner("index.link") == older, link == older)))

    # A look-up, by what is in the bucket in its cycle. How old that is is seen two cycles later.
    found = h.past(dut.granted & (dut.bucket == bucket) & some, "found0")
    young = [h.past(youngest, "youngest0")]
    old = [h.past(age, "age0")]
    h.prove("no bucket is read while it is written", ~h.inner("index.heads.w_en") | ~(
        dut.granted | step[1] | step[2]) | (h.inner("index.heads.r_addr") != h.inner("index.heads.w_addr")))
    looked = h.past(dut.granted & (dut.bucket == bucket), "looked0")
    for n in (1, 2):
        found, looked = h.past(found, f"found{n}"), h.past(looked, f"looked{n}")
        young.append(h.past(young[-1], f"youngest{n}"))
        # Of stores since the look-up, those that the comparison counts.
        old.append(h.past(old[-1] + (stored[_HEAD - 1] if n == 1 else 0), f"age{n}"))
    h.prove("a look-up finds the youngest tuple of its bucket if the ring still holds it", ~looked | (
        (dut.o.valid == (found & (old[-1] <= most))) & (~dut.o.valid | (dut.o.payload == young[-1]))))
    return h


_FAULTS = (
    Fault("indexed tuples are counted, and the sweep checks a bucket for each", Index, "m.If(clearing | step[6])",
          "m.If(clearing | (step[6] & stale))"),
    Fault("a store waits until the previous one is complete", Index, "m.Elif(step[3] | cleared)",
          "m.Elif(step[2] | cleared)"),
    Fault("the head of a bucket is its youngest tuple", Index, "other_bucket.eq(sweep != bucket)",
          "other_bucket.eq(1)"),
    Fault("a head is cleared before its position is used again", Index, "heads.w_data.position.eq(position)",
          "heads.w_data.position.eq(self.known - 1)"),
    Fault("the age of a head is right", Index, "self.known.eq(position + 1)", "self.known.eq(self.position + 1)"),
    Fault("each tuple is linked to the next older one of its bucket", Index, "link.eq(Mux(in_ring, age, 0))",
          "link.eq(Mux(in_ring, age + 1, 0))"),
    Fault("no bucket is read while it is written", Index, "clearing | step[0] | step[1] | step[3]",
          "clearing | step[0] | step[1]"),
    Fault("a look-up finds the youngest tuple of its bucket if the ring still holds it", Index,
          "clearing | step[0] | step[1]", "clearing | step[0]"),
)

PROOFS = (
    Proof("index of 4 buckets, 4 live tuples", chains, 9, faults=_FAULTS, search=24, first=20, quick=False),
)
