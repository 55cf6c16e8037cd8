"""Proofs of the circuits that fold: each hit is merged once into its probe's state, and each stored tuple's first hit
alone passes.

Merging is proved with one merge for all. A value is 1 for one hit that the solver picks, and 0 for all others; states
are sums. So the state of a probe tells how often the picked hit was merged into it. Whichever merge it is, if it
depends neither on order nor on grouping, a state into which each hit of its probe was merged once, and nothing else, is
what a fold of one hit after the other gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value

from splitjoin.circuit.fold_parts import FoldPart, FoldValue, extreme_part, sum_part
from splitjoin.circuit.geometry import position_bits
from splitjoin.circuit.wire import Configuration, ItemKind
from splitjoin_hw.core import states
from splitjoin_hw.core.first_hits import FirstHits
from splitjoin_hw.core.folder import FoldingEmitter
from splitjoin_hw.gather import state_tree
from splitjoin_hw.gather.state_tree import StateMerger, StateTree

from .harness import Harness
from .monitors import Event, assume_stable_offers, prove_stable_offers
from .proofs import Fault, Proof

#: Bits of row ids in these proofs: enough for those within the bound.
_ROW = 4
#: Lanes and probes of the region.
_LANES, _PROBES = 2, 2
#: Cycles from a read to its outcome.
_LATENCY = 3
#: Bits of numbers of passes, and of tuples.
_NUMBERS = 2

_COUNT = sum_part(0, 0, 1, 3)


@contextmanager
def _narrow() -> Iterator[None]:
    with (patch("splitjoin_hw.layouts.ROW_BITS", _ROW), patch("splitjoin_hw.core.layouts.ROW_BITS", _ROW),
          patch("splitjoin_hw.core.folder.ROW_BITS", _ROW), patch("splitjoin.circuit.geometry.STORES", 2),
          patch("splitjoin_hw.gather.state_tree.ROW_BITS", _ROW), patch.object(Configuration, "beats", 1)):
        yield


def _config(part: FoldPart, value: FoldValue, **others: Any) -> Configuration:
    given = {"cores": 2, "capacity": 4, "lanes": _LANES, "probes": _PROBES, **others}
    return Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, values=(value,),
                         folds=(part,), **given)


class _Passes:
    """The passes of a region that folds, and the states that leave it.

    ``ended``: passes whose last outcome has come, the number of that under way. ``leaves``: the number of the pass
    whose state is offered, and ``probe`` the number of the state's probe. ``flush``, ``last``: of the batch of that
    pass.
    """

    def __init__(self, h: Harness):
        dut, m = h.dut, h.m
        assume_stable_offers(h, "batch", dut.batch)
        self.ended, self.accepted, self.leaves = (Signal(_NUMBERS + 1, name=name) for name in (
            "passes_ended", "batches_accepted", "pass_leaves"))
        self.probe = Signal(range(max(2, _PROBES)), name="probe_leaves")
        batches = Array(Signal(dut.batch.payload.shape(), name=f"batch_of{n}") for n in range(4))
        with m.If(dut.batch.valid & dut.batch.ready):
            m.d.sync += [self.accepted.eq(self.accepted + 1), batches[self.accepted[:2]].eq(dut.batch.payload)]
        with m.If(dut.found_valid & dut.found.last):
            m.d.sync += self.ended.eq(self.ended + 1)
        h.assume("a batch is offered when its pass begins",
                 ~dut.found_valid | (self.ended < self.accepted) | ((self.ended == self.accepted) & dut.batch.valid))
        h.assume("no pass begins after one whose batch is not accepted", self.ended <= self.accepted + dut.batch.valid)
        # No more than the monitors number.
        h.assume("there are few passes", self.ended < 2**_NUMBERS - 1)
        batch = batches[self.leaves[:2]]
        self.last, self.flush = self.probe == batch.probes, batch.flush
        with m.If(dut.o.valid & dut.o.ready):
            m.d.sync += [self.probe.eq(Mux(self.last, 0, self.probe + 1)), self.leaves.eq(self.leaves + self.last)]
        prove_stable_offers(h, "o", dut.o)
        h.prove("a state leaves for each probe of each batch, after its pass, and an END for a FLUSH",
                ~dut.o.valid | ((self.leaves < self.ended) & (self.leaves < self.accepted)
                                & (dut.o.payload.end == (self.last & self.flush))))


@_narrow()
def folding() -> Harness:
    """The harness of the output side of a region that folds; the solver chooses outcomes, batches and the hit."""
    dut = FoldingEmitter(_config(_COUNT, FoldValue(1, False, False)), latency=_LATENCY)
    h = Harness(dut)
    passes, m = _Passes(h), h.m
    lane = h.constant("picked_lane", range(_LANES))
    mark, marked, read = h.free("mark"), Signal(name="marked"), Signal(name="read_picked")
    ahead = _LATENCY - 2  # cycles from a value to its outcome
    assert ahead == 1
    m.d.sync += [marked.eq(marked | mark), read.eq(mark)]
    h.assume("one hit is picked", ~(mark & marked))
    h.assume("values tell the picked hit", Cat(
        dut.values[n].value0 == (mark & (lane == n)) for n in range(_LANES)).all())
    number = Signal.like(passes.ended, name="pass_picked")
    hits = [Signal(name=f"picked_by{n}") for n in range(_PROBES)]
    some = [Signal(name=f"some{n}") for n in range(_PROBES)]
    watched = h.constant("watched", passes.ended.shape())
    with m.If(dut.found_valid & read):
        m.d.sync += number.eq(passes.ended)
        for n in range(_PROBES):
            m.d.sync += hits[n].eq(Array(dut.found.hits[n * _LANES:(n + 1) * _LANES])[lane])
    with m.If(dut.found_valid & (passes.ended == watched)):
        m.d.sync += [seen.eq(seen | dut.found.hits[n * _LANES:(n + 1) * _LANES].any()) for n, seen in enumerate(some)]
    state = dut.o.payload.state
    own = (passes.leaves == number) & Array(hits)[passes.probe]
    h.prove("each hit is merged once into the state of its probe, and into no other",
            ~dut.o.valid | (state.slot0_0 == own))
    h.prove("a state has a partner if its probe had a hit",
            ~(dut.o.valid & (passes.leaves == watched)) | (state.any == Array(some)[passes.probe]))
    return h


@_narrow()
def newest() -> Harness:
    """As `folding`, of the greatest row id of the hits."""
    row = extreme_part(0, 0, 2**_ROW - 1, "max")
    dut = FoldingEmitter(_config(row, FoldValue(_ROW, False, False, row=True)), latency=_LATENCY)
    h = Harness(dut)
    passes, m = _Passes(h), h.m
    watched, index = h.constant("watched", passes.ended.shape()), h.constant("core", 1)
    h.assume("the core has its number", dut.index == index)
    first, lane0 = h.constant("first_row", _ROW), h.constant("first_lane", 1)
    current = (passes.accepted == watched) & dut.batch.valid
    h.assume("the batch of the watched pass begins there", ~current | (
        (dut.batch.payload.row == first) & (dut.batch.payload.lane == lane0)))
    reads = Signal(_ROW, name="reads")
    newest = [Signal(_ROW, name=f"newest{n}") for n in range(_PROBES)]
    with m.If(dut.found_valid & (passes.ended == watched)):
        m.d.sync += reads.eq(reads + 1)
        for n in range(_PROBES):
            # The lane behind the first one of a read has the younger tuple.
            hits = dut.found.hits[n * _LANES:(n + 1) * _LANES]
            younger, older = (hits.bit_select(lane, 1) for lane in (~lane0, lane0))
            place = Mux(younger, 2 * reads + 1, 2 * reads)
            with m.If(younger | older):
                m.d.sync += newest[n].eq(first + 2 * place[:_ROW] + index)
    h.assume("row ids do not wrap around", first + 2 * (2 * reads + 1) + index < 2**_ROW)
    state = dut.o.payload.state
    h.prove("a state has the row id of the newest hit of its probe",
            ~(dut.o.valid & (passes.leaves == watched)) | ~state.any | (state.slot0_0 == Array(newest)[passes.probe]))
    return h


@_narrow()
def merging() -> Harness:
    """The harness of the tree of states of three cores: of one core and one probe the state is 1, of all others 0."""
    config = _config(_COUNT, FoldValue(1, False, False), cores=3)
    dut = StateTree(config)
    h = Harness(dut)
    m = h.m
    assume_stable_offers(h, "i", *dut.i)
    core, probe = h.constant("picked_core", range(3)), h.constant("picked_probe", _NUMBERS)
    ends = h.constant("end", _NUMBERS)
    h.assume("there is the picked core", core < 3)
    for n, port in enumerate(dut.i):
        count = Signal(_NUMBERS + 1, name=f"states_of{n}")
        with m.If(port.valid & port.ready):
            m.d.sync += count.eq(count + 1)
        is_picked = (core == n) & (count == probe)
        h.assume(f"the states of core {n} tell the picked one", ~port.valid | (
            (port.payload.state.slot0_0 == is_picked) & (port.payload.state.any == is_picked)
            & (port.payload.end == (count == ends)) & ~count[-1]))
    prove_stable_offers(h, "o", dut.o)
    # A state leaves in two items here, an END in one.
    left, second, item = Signal(_NUMBERS + 1, name="left_states"), Signal(name="second"), dut.o.payload
    with m.If(dut.o.valid & dut.o.ready):
        m.d.sync += second.eq(~second & (left != ends))
        with m.If(second | (left == ends)):
            m.d.sync += left.eq(left + 1)
    h.prove("one state leaves for each probe, with those of all cores merged once", ~dut.o.valid | second | (
        left == ends) | ((item.kind == ItemKind.PAIR) & (Cat(item.probe, item.stored) == Mux(left == probe, 3, 0))))
    h.prove("a star tells the number of its probe, and an END has none", ~dut.o.valid | Mux(
        left == ends, item.kind == ItemKind.END, ~second | (
            (item.kind == ItemKind.STAR) & (item.probe == (left - (left > ends))[:_ROW]))))
    return h


@_narrow()
def first_hits(lanes: int) -> Harness:
    """The harness of the filter of hits; the solver picks a tuple when it is stored."""
    config = _config(_COUNT, FoldValue(1, False, False), first_hits=True, lanes=lanes, capacity=2 * lanes)
    dut = FirstHits(config, latency=_LATENCY)
    h = Harness(dut)
    m, bits = h.m, position_bits(config)
    reach = config.capacity + 2
    # Positions that do not wrap around within the bound.
    wide = bits + 3
    written, at = Signal(wide, name="written_now"), h.free("read_at", wide)
    m.d.sync += written.eq(written + dut.stored)
    h.assume("positions are counted", (dut.written == written[:bits]) & (dut.position == at[:bits]) & ~written[-1])
    begin, following = Signal(wide, name="pass_begin"), Signal(wide, name="next_position")
    begins = h.free("pass_begins")
    h.assume("a pass reads position after position, and begins where the pass before began, or behind",
             ~dut.read | Mux(begins, at >= begin, at == following))
    h.assume("what is read was stored, and is not replaced; an empty pass has a read too",
             ~dut.read | (((at < written) | (begins & (at == written))) & (written <= at + reach)))
    with m.If(dut.read):
        m.d.sync += following.eq(at + lanes)
        with m.If(begins):
            m.d.sync += begin.eq(at)
    # What a read fetches, until its outcome.
    mark, picked, tuple_ = h.free("pick"), Signal(name="picked"), Signal(wide, name="picked_position")
    with m.If(mark & dut.stored & ~picked):
        m.d.sync += [picked.eq(1), tuple_.eq(written)]
    token: Value = Cat(dut.read, picked & (at <= tuple_) & (tuple_ < at + lanes), tuple_[0] if lanes > 1 else Const(0),
                       *(at + n < written for n in range(lanes)))
    start: Value = dut.position[0] if lanes > 1 else Const(0)
    for n in range(_LATENCY):
        token, start = h.past(token, f"read{n}"), h.past(start, f"lane{n}")
    is_read, fetched, lane = token[0], token[1], token[2]
    h.assume("each read has its outcome", dut.i.found_valid == is_read)
    for n in range(lanes):
        # The n-th tuple of a read lies in this lane; hits are of tuples that were stored.
        h.assume(f"hits of tuple {n} of a read are of a tuple", ~is_read | token[3 + n] | ~Cat(
            _hits(dut.i.found, lanes, (start + n)[0])).any())
    had = Signal(name="had")
    given = _hits(dut.i.found, lanes, lane)
    with m.If(is_read & fetched):
        m.d.sync += had.eq(had | Cat(given).any())
    wanted = Cat(hit & ~had & ~Cat(given[:p]).any() for p, hit in enumerate(given))
    shown = h.past(Cat(is_read & fetched, lane, wanted), "shown")
    h.prove("of a stored tuple's hits only the first one passes",
            ~shown[0] | (Cat(_hits(dut.o.found, lanes, shown[1])) == shown[2:]))
    h.prove("outcomes follow a cycle later, with the end of their pass", (dut.o.found_valid == h.past(
        dut.i.found_valid, "valid")) & (dut.o.found.last == h.past(dut.i.found.last, "last")))
    # `alive` looks for an item that leaves.
    h.output = Event(dut.o.found_valid & dut.o.found.hits.any())
    return h


def _hits(found: Any, lanes: int, lane: Any) -> list[Value]:
    """The hits in ``lane``, probe by probe."""
    return [found.hits[p * lanes:(p + 1) * lanes].bit_select(lane if lanes > 1 else 0, 1) for p in range(_PROBES)]


_STATE = "a state leaves for each probe of each batch, after its pass, and an END for a FLUSH"
_SHARED = (
    Fault("offers at o are stable", FoldingEmitter, "take.eq(busy & ~self.o.valid)", "take.eq(busy)"),
    Fault(_STATE, FoldingEmitter, "busy.eq(left != 0)", "busy.eq(1)"),
)

_FIRST = (
    Fault("of a stored tuple's hits only the first one passes", states,
          "same & was_valid[n]", "same & 0", "newest"),
    Fault("outcomes follow a cycle later, with the end of their pass", FirstHits, "self.o.found_valid.eq(valid)",
          "self.o.found_valid.eq(1)"),
)

PROOFS = (
    Proof("folding region", folding, 10, inductive=False, search=12, first=10, quick=False, faults=(
        *_SHARED,
        Fault("each hit is merged once into the state of its probe, and into no other", FoldingEmitter,
              "masked(m, config, f'before{n}', states[n], ~fresh)",
              "masked(m, config, f'before{n}', states[n], Const(1))"),
        Fault("a state has a partner if its probe had a hit", FoldingEmitter,
              "probe * lanes + lane", "lane", "_folded"),
    )),
    Proof("folding region of row ids", newest, 9, inductive=False, search=12, first=10, quick=False, faults=(
        *_SHARED,
        Fault("a state has the row id of the newest hit of its probe", FoldingEmitter, "is_held.eq(held & ~begun)",
              "is_held.eq(held)", "_rows"),
    )),
    Proof("tree of states", merging, 10, inductive=False, search=10, first=8, faults=(
        Fault("offers at o are stable", state_tree, "leave.eq(out.valid & out.ready)", "leave.eq(out.valid)",
              "state_items"),
        Fault("one state leaves for each probe, with those of all cores merged once", StateMerger,
              "b.state", "a.state"),
        Fault("a star tells the number of its probe, and an END has none", state_tree,
              "probe.eq(probe + ~found.payload.end)", "probe.eq(probe + 1)", "state_items"),
    )),
    Proof("first hits of one lane", partial(first_hits, 1), 11, inductive=False, search=12, first=10, quick=False,
          faults=_FIRST),
    Proof("first hits of two lanes", partial(first_hits, 2), 9, inductive=False, search=12, first=10, quick=False),
)
