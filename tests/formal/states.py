"""Proofs of the states that leave whole: the state beside each stored tuple, and the tree that takes them in turn.

As in `tests.formal.folds`, states are sums; the solver picks one probe and gives it the value 1, all others have 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

from amaranth.hdl import Array, Mux, Signal, Value
from amaranth.lib import data

from splitjoin.circuit.fold_parts import FoldValue, sum_part
from splitjoin.circuit.wire import Configuration, Op
from splitjoin_hw.core import states as shared
from splitjoin_hw.core.region import Region
from splitjoin_hw.core.stored_states import StoredStates
from splitjoin_hw.gather.turns import TurnMerger
from splitjoin_hw.layouts import STREAM_R, struct
from splitjoin_hw.network.queue import Queue

from .harness import Harness
from .monitors import assume_stable_offers, prove_stable_offers
from .proofs import Fault, Proof

#: Bits of row ids in these proofs: enough for those within the bound.
_ROW = 4


@contextmanager
def _narrow() -> Iterator[None]:
    with (patch("splitjoin_hw.layouts.ROW_BITS", _ROW), patch("splitjoin_hw.core.layouts.ROW_BITS", _ROW),
          patch("splitjoin_hw.core.storage.ROW_BITS", _ROW), patch("splitjoin_hw.core.scanner.ROW_BITS", _ROW),
          patch("splitjoin_hw.core.region.ROW_BITS", _ROW), patch("splitjoin.circuit.geometry.STORES", 2)):
        yield


def _config(**others: int) -> Configuration:
    return Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, values=(FoldValue(1, False, False),),
                         folds=(sum_part(0, 0, 1, 3),), whole_states=True, region_counters=False, capacity=2, **others)


@_narrow()
def stored(lanes: int, probes: int) -> Harness:
    """The harness of a region of R from power-up, whose states leave when its tuples expire or the input drains."""
    config = _config(cores=1, lanes=lanes, probes=probes)
    dut = Region(config, "r")
    h = Harness(dut)
    m = h.m
    assume_stable_offers(h, "i", dut.i)
    window = h.constant("settings", dut.window.shape())
    h.assume("settings are constant", (Value.cast(dut.window) == Value.cast(window)) & (dut.index == 0))
    h.assume("the window fits the ring", ~window.timed & (window.slice == 0) & (window.rows != 0) & (window.rows <= 2))
    record, cycles = dut.i.payload, Signal(2, name="cycles")
    m.d.sync += cycles.eq(cycles + (cycles != 3))
    own = record.stream == STREAM_R
    stored_tuple, probe = (data.View(struct(config.body(side)), record.body[:config.body(side).width])
                           for side in ("r", "s"))
    valued, drained = Signal(name="valued"), Signal(name="drained")
    h.assume("settings come before records, which are tuples and in the end a FLUSH", ~dut.i.valid | (
        (cycles == 3) & ~drained & ((record.op == Op.TUPLE) | ((record.op == Op.FLUSH) & record.stream))))
    is_tuple = record.op == Op.TUPLE
    h.assume("one probe at most has a value", ~dut.i.valid | own | ~is_tuple | ~probe.value0 | ~valued)
    taken = dut.i.valid & dut.i.ready
    with m.If(taken & is_tuple & ~own & probe.value0):
        m.d.sync += valued.eq(1)
    with m.If(taken & ~is_tuple):
        m.d.sync += drained.eq(1)

    # The picked tuple, and what it meets.
    mark, picked, number, key = (h.free("mark"), Signal(name="picked"), Signal(_ROW, name="number"),
                                 Signal(1, name="key"))
    count, some, got = Signal(_ROW, name="count"), Signal(name="some"), Signal(name="got")
    inside = picked & (((count - number)[:_ROW]) <= window.rows)
    meets = taken & is_tuple & ~own & inside & (probe.lo0 <= key) & (key <= probe.hi0)
    with m.If(meets):
        m.d.sync += [some.eq(1), got.eq(got | probe.value0)]
    with m.If(taken & is_tuple & own):
        m.d.sync += count.eq(count + 1)
        with m.If(mark & ~picked):
            m.d.sync += [picked.eq(1), number.eq(count), key.eq(stored_tuple.key0)]

    left, item = Signal(_ROW, name="left"), dut.o.payload
    with m.If(dut.o.valid & dut.o.ready & ~item.end):
        m.d.sync += left.eq(left + 1)
    prove_stable_offers(h, "o", dut.o)
    h.prove("a state leaves after its tuple has expired or a FLUSH has come, and an END after all states",
            ~dut.o.valid | Mux(item.end, drained & (left == count), (left < count) & (
                drained | ((count - left)[:_ROW] > window.rows))))
    h.prove("a tuple's state counts each probe that met it once, and no other",
            ~(dut.o.valid & ~item.end & picked & (left == number))
            | ((item.state.slot0_0 == got) & (item.state.any == some)))
    return h


@_narrow()
def turns(first: int, second: int) -> Harness:
    """The harness of a node of the tree of stored states."""
    dut = TurnMerger(_config(cores=first + second), first, second)
    h = Harness(dut)
    m = h.m
    assume_stable_offers(h, "i", *dut.i)
    prove_stable_offers(h, "o", dut.o)
    takes = [port.valid & port.ready for port in dut.i]
    ends = [take & port.payload.end for take, port in zip(takes, dut.i, strict=True)]
    states = [take & ~port.payload.end for take, port in zip(takes, dut.i, strict=True)]
    turn, holds = Signal(range(first + second), name="turn_now"), Signal(name="holds")
    last = Signal(dut.o.payload.shape(), name="last_taken")
    some = states[0] | states[1]
    with m.If(some):
        m.d.sync += turn.eq(Mux(turn == first + second - 1, 0, turn + 1))
    with m.If(some | ends[0]):
        m.d.sync += [holds.eq(1), last.eq(Mux(states[1], dut.i[1].payload, dut.i[0].payload))]
    with m.Elif(dut.o.ready):
        m.d.sync += holds.eq(0)
    h.prove("only what was taken last leaves, unchanged",
            (dut.o.valid == holds) & (~holds | ((dut.o.payload.end == last.end) & (
                last.end | (Value.cast(dut.o.payload) == Value.cast(last))))))
    h.prove("nothing is taken before what was taken last has left", ~(takes[0] | takes[1]) | ~holds)
    h.prove("states are taken in turn", (~states[0] | (turn < first)) & (~states[1] | (turn >= first)))
    h.prove("both inputs' ENDs are taken together", ends[0] == ends[1])
    h.prove("states that were taken are counted", h.inner("turn") == turn)
    due = Array(port.valid & ~port.payload.end for port in dut.i)[turn >= first]
    both = dut.i[0].valid & dut.i[0].payload.end & dut.i[1].valid & dut.i[1].payload.end
    h.prove("a state does not wait in its turn, and neither does an END that both inputs show",
            ~(due | both) | holds | some | ends[0])
    return h


_STORED_FAULTS = (
    Fault("offers at o are stable", Queue, "self.o.valid.eq(not_empty)", "self.o.valid.eq(not_empty & self.i.valid)"),
    Fault("a state leaves after its tuple has expired or a FLUSH has come, and an END after all states", StoredStates,
          "Mux(drained, self.written, self.head)", "self.written", "_leave"),
    Fault("a tuple's state counts each probe that met it once, and no other", shared,
          "same & was_valid[n]", "same & 0", "newest"),
)
_TURN_FAULTS = (
    Fault("offers at o are stable", TurnMerger, "b.valid & ~b.payload.end & ~self.o.valid", "b.valid & ~b.payload.end"),
    Fault("only what was taken last leaves, unchanged", TurnMerger, "chosen.eq(a.payload)",
          "chosen.eq(b.payload)"),
    Fault("nothing is taken before what was taken last has left", TurnMerger,
          "a.valid & ~a.payload.end & ~self.o.valid", "a.valid & ~a.payload.end"),
    Fault("states are taken in turn", TurnMerger, "second.eq(turn >= self._first)", "second.eq(turn > self._first)"),
    Fault("both inputs' ENDs are taken together", TurnMerger, "a.ready.eq(end | (take & ~second))",
          "a.ready.eq(a.valid & a.payload.end | (take & ~second))"),
    Fault("states that were taken are counted", TurnMerger, "turn == cores - 1", "turn == cores"),
    Fault("a state does not wait in its turn, and neither does an END that both inputs show", TurnMerger,
          "a.valid & ~a.payload.end", "a.valid & b.valid & ~a.payload.end"),
)

PROOFS = (
    Proof("states beside stored tuples", partial(stored, 1, 2), 28, inductive=False, faults=_STORED_FAULTS, search=28,
          first=24, quick=False),
    *(Proof(f"states in turn, {a} and {b} cores", partial(turns, a, b), 2, faults=_TURN_FAULTS if a == 2 else (),
            search=8, first=6) for a, b in ((1, 1), (2, 1))),
)
