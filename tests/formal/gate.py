"""Proofs of the gate: its source inputs, its mergers, and the whole with two sources."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from splitjoin.circuit.wire import Configuration, Op
from splitjoin_hw.gate.gate import ScaleGate
from splitjoin_hw.gate.merger import ReadyMerger
from splitjoin_hw.gate.source import SourceInput
from splitjoin_hw.network.skid_buffer import SkidBuffer

from .harness import Harness
from .monitors import Follower, assume_stable_offers, follow, prove_stable_offers
from .network import BUFFER_FAULTS, buffered
from .proofs import Fault, Proof

#: Records of 2 + 1 + 4 + 3 bits. Times wrap after 16 ticks.
_CONFIG = Configuration(keys_r=(1,), keys_s=(1,), tests=((0, 0),), tree=0, time_bits=4)


def _taken(port: Any) -> Value:
    return port.valid & port.ready


def _key(payload: Any) -> Value:
    """Event time, then stream: the key of arrival order before the source."""
    return Cat(payload.stream, payload.ts)


def source_input() -> Harness:
    dut = SourceInput(_CONFIG)
    h = Harness(dut)
    flush = dut.i.payload.op == Op.FLUSH
    h.assume("a new round begins while nothing is taken", ~dut.reopen | dut.hold)
    prove_stable_offers(h, "o", dut.o)
    level, holds, sound = buffered(h, "buffer")
    h.prove("the buffer is not full and empty at once, and the copies of its head agree", sound)
    f = Follower(h, "item", entered=_taken(dut.i) & ~flush, entering=dut.i.payload, port=dut.o, capacity=2)
    follow(h, f)
    h.prove("the level counts the items inside, and valid follows from it",
            (f.inside == level) & (dut.o.valid == (level != 0)))
    h.prove("the picked item is in its slot", ~f.picked | (Value.cast(holds(f.ahead)) == f.token))
    h.prove("no FLUSH passes", Cat((level <= n) | (Value.cast(holds(Const(n)))[:2] != Op.FLUSH) for n in (0, 1)).all())
    was_open, was_flushed = h.past(dut.open, "was_open"), h.past(dut.flushed, "was_flushed")
    h.prove("records are taken only while the source is open", ~_taken(dut.i) | dut.open)
    h.prove("a FLUSH closes the source", ~was_flushed | ~dut.open)
    h.prove("a closed source stays closed until a new round or its removal",
            ~h.started() | was_open | ~h.past(dut.active & ~dut.reopen, "stays") | ~dut.open)
    h.prove("a removed source is not open", dut.active | ~dut.open)
    return h


def merger() -> Harness:
    dut = ReadyMerger(_CONFIG)
    h = Harness(dut)
    m = h.m
    top = _CONFIG.time_bits
    assume_stable_offers(h, "i", *dut.i)
    prove_stable_offers(h, "o", dut.o)
    level, holds, sound = buffered(h, "buffer")
    h.prove("the buffer is not full and empty at once, and the copies of its head agree", sound)
    last, last_input, known = h.inner("last"), h.inner("last_input"), h.inner("last_valid")
    keys = [_key(i.payload) for i in dut.i]

    # All times in flight lie in half the counter's range, from a time on that only moves forward.
    floor = h.free("floor", top + 1)
    ages = [(k - floor)[:top + 1] for k in keys]
    last_age = (last - floor)[:top + 1]
    for n, i in enumerate(dut.i):
        h.assume(f"times at {n} lie in half the range", ~i.valid | ~ages[n][-1])
    h.assume("the last time lies in half the range, too", ~known | ~last_age[-1])

    def precedes(n: int, k: int) -> Value:
        """True if the record at input ``n`` precedes that at input ``k``."""
        return (ages[n] < ages[k]) | ((ages[n] == ages[k]) & Const(n < k))

    late = [i.valid & known & ((ages[n] < last_age) | ((ages[n] == last_age) & (Const(n) < last_input)))
            for n, i in enumerate(dut.i)]
    handed = [_taken(i) & ~late[n] for n, i in enumerate(dut.i)]
    f = Follower(h, "item", entered=handed[0] | handed[1], port=dut.o, capacity=2,
                 entering=Mux(handed[0], Value.cast(dut.i[0].payload), Value.cast(dut.i[1].payload)))
    follow(h, f)
    h.prove("the level counts the items inside, and valid follows from it",
            (f.inside == level) & (dut.o.valid == (level != 0)))
    h.prove("the picked item is in its slot", ~f.picked | (Value.cast(holds(f.ahead)) == f.token))
    h.prove("at most one record is passed on in a cycle", ~(handed[0] & handed[1]))
    h.prove("a record is passed on only when no record that precedes it can arrive", Cat(
        ~handed[n] | Mux(dut.i[1 - n].valid, precedes(n, 1 - n) & ~late[1 - n], ~dut.i_open[1 - n])
        for n in range(2)).all())
    h.prove("a record that is ready does not wait", Cat(
        ~dut.i[n].valid | late[n] | (level == 2) | handed[n]
        | Mux(dut.i[1 - n].valid, precedes(1 - n, n) | late[1 - n], dut.i_open[1 - n]) for n in range(2)).all())
    h.prove("late records, and no others, are refused at once",
            Cat(late[n] == (i.valid & i.ready & ~handed[n]) for n, i in enumerate(dut.i)).all())
    h.prove("refused tuples are counted",
            Cat(dut.refused[n] == (late[n] & (i.payload.op == Op.TUPLE)) for n, i in enumerate(dut.i)).all())

    # The harness's own copy of the last record that was passed on.
    before, some = Signal(top + 1), Signal()
    chosen = Mux(handed[0], ages[0], ages[1])
    with m.If(handed[0] | handed[1]):
        m.d.sync += [before.eq(Mux(handed[0], keys[0], keys[1])), some.eq(1)]
    with m.Elif(~known):
        m.d.sync += some.eq(0)
    h.prove("the last record is remembered while any input is open", ~known | (some & (before == last)))
    h.prove("records are passed on in order",
            ~(handed[0] | handed[1]) | ~known | (chosen >= (before - floor)[:top + 1]))
    h.prove("the output is open while a record is inside", (level == 0) | dut.o_open)
    busy = h.past(dut.i_open.any() | Cat(i.valid for i in dut.i).any(), "busy")
    h.prove("the output is open a cycle after an input was", ~busy | dut.o_open)
    return h


def whole() -> Harness:
    """The harness of a gate of two sources, which are open from the start. Times do not wrap."""
    dut = ScaleGate(_CONFIG, 2)
    h = Harness(dut)
    m = h.m
    h.assume("all sources take part", dut.active.all())
    assume_stable_offers(h, "i", *dut.i)
    prove_stable_offers(h, "o", dut.o)
    out, key = dut.o.payload, _key(dut.o.payload)
    flush = out.op == Op.FLUSH

    # A source is in order: no record that precedes its last one can still arrive.
    inside, sources = Signal(6), []
    entered = []
    for n, i in enumerate(dut.i):
        least, shut, any_ = Signal(len(key), name=f"least{n}"), Signal(name=f"shut{n}"), Signal(name=f"any{n}")
        ends = i.payload.op == Op.FLUSH
        h.assume(f"source {n} is in order", ~i.valid | ends | ~any_ | (_key(i.payload) >= least))
        h.assume(f"times of {n} do not wrap", ~i.valid | ~i.payload.ts[-1])
        with m.If(_taken(i)):
            with m.If(ends):
                m.d.sync += shut.eq(1)
            with m.Else():
                m.d.sync += [least.eq(_key(i.payload)), any_.eq(1)]
        with m.If(_taken(dut.o) & flush):
            m.d.sync += shut.eq(0)
        entered.append(_taken(i) & ~ends)
        sources.append((any_, least, shut))
    leaves = _taken(dut.o) & ~flush
    m.d.sync += inside.eq(inside + sum(entered) - leaves)

    last, some = Signal(len(key), name="last"), Signal(name="some")
    with m.If(_taken(dut.o)):
        m.d.sync += [last.eq(key), some.eq(~flush)]
    h.prove("records leave in order", ~dut.o.valid | flush | ~some | (key >= last))
    h.prove("no record that can still arrive precedes one that leaves", Cat(
        ~dut.o.valid | flush | shut | (any_ & (key <= least)) for any_, least, shut in sources).all())
    h.prove("nothing leaves that did not enter", ~dut.o.valid | flush | (inside != 0))
    h.prove("a FLUSH leaves when all sources are closed and all records have left",
            ~dut.o.valid | ~flush | ((inside == 0) & Cat(shut for _, _, shut in sources).all()))
    h.prove("no record is refused", (dut.refused == 0) & (h.inner("refused_pulses") == 0))
    _prove_contents(h, sources, inside, last, some)
    return h


def _prove_contents(h: Harness, sources: list[tuple[Signal, Signal, Signal]], inside: Signal, last: Signal,
                    some: Signal) -> None:
    """The invariants of a gate of two sources: how what it holds follows from what came and what left."""
    waiting = [buffered(h, f"source{n}.buffer") for n in range(2)]
    level, holds, sound = buffered(h, "node.buffer")
    known, passed, passed_from, is_open = (h.inner(f"node.{name}") for name in (
        "last_valid", "last", "last_input", "o_open"))
    empty = (level == 0) & Cat(of == 0 for of, _, _ in waiting).all()
    all_shut = Cat(shut for _, _, shut in sources).all()

    def at(contents: Any, position: int) -> tuple[Value, Value]:
        """The key of the record at ``position``, and a flag that it is no FLUSH."""
        record = Value.cast(contents(Const(position)))
        return record[2:3 + _CONFIG.time_bits], record[:2] != Op.FLUSH

    def in_order(size: Value, contents: Any, newest: Value) -> Value:
        """True if ``size`` records are in order, the newest with the key ``newest``."""
        (first, first_sound), (second, second_sound) = at(contents, 0), at(contents, 1)
        return (((size < 1) | (first_sound & ((size == 2) | (first == newest))))
                & ((size < 2) | (second_sound & (first <= second) & (second == newest))))

    h.prove("the buffer is not full and empty at once, and the copies of its head agree",
            sound & waiting[0][2] & waiting[1][2])
    h.prove("the records inside are counted", inside == level + sum(of for of, _, _ in waiting))
    h.prove("sources are closed from their FLUSH to the gate's", Cat(
        h.inner(f"source{n}.closed") == shut for n, (_, _, shut) in enumerate(sources)).all())
    h.prove("records wait in the order of their source", Cat(
        ((of == 0) | any_) & ~least[-1] & in_order(of, contents, least)
        for (any_, least, _), (of, contents, _) in zip(sources, waiting, strict=True)).all())
    h.prove("records behind the node are in order, up to the last one that it passed on",
            ~passed[-1] & ((level == 0) | known) & in_order(level, holds, passed))

    def follows(n: int, other: Value) -> Value:
        """True if a record of source ``n`` with this key follows the last one that the node passed on."""
        return (other > passed) | ((other == passed) & (Const(n) >= passed_from))

    h.prove("the last record that the node passed on precedes whatever can still reach it", ~known | Cat(
        Mux(of != 0, follows(n, at(contents, 0)[0]), shut | (any_ & follows(n, least)))
        for n, ((any_, least, shut), (of, contents, _)) in enumerate(zip(sources, waiting, strict=True))).all())
    h.prove("the last record that left precedes those that the node still holds", ~some | Mux(
        level != 0, last <= at(holds, 0)[0], Mux(known, last == passed, empty & all_shut)))
    h.prove("the node is open while it holds a record, or remembers one", is_open | ((level == 0) & ~known))
    h.prove("while a FLUSH is offered, the gate is empty", ~h.inner("flush_offer") | (empty & all_shut & ~is_open))


_SOURCE_FAULTS = (
    *BUFFER_FAULTS,
    Fault("the level counts the items inside, and valid follows from it", SourceInput,
          "buffer.i.valid.eq(self.i.valid & accepting & ~is_flush)",
          "buffer.i.valid.eq(self.i.valid & ~is_flush)"),
    Fault("no FLUSH passes", SourceInput, "buffer.i.payload.eq(self.i.payload)",
          "buffer.i.payload.eq(self.i.payload.as_value() | 2)"),
    Fault("records are taken only while the source is open", SourceInput, "self.i.ready.eq(accepting & buffer.i.ready)",
          "self.i.ready.eq(buffer.i.ready)"),
    Fault("a FLUSH closes the source",
          SourceInput, "(closed | self.flushed)", "(closed | (self.flushed & ~self.o.valid))"),
    Fault("a closed source stays closed until a new round or its removal", SourceInput, "(closed | self.flushed)",
          "self.flushed"),
    Fault("a removed source is not open", SourceInput, "self.open.eq(self.active & ~closed)", "self.open.eq(~closed)"),
)

_MERGER_FAULTS = (
    *BUFFER_FAULTS,
    Fault("the level counts the items inside, and valid follows from it", ReadyMerger, "buffer.i.valid.eq(grant.any())",
          "buffer.i.valid.eq(on_time.any())"),
    Fault("at most one record is passed on in a cycle", ReadyMerger, "Mux(on_time[0], ~precedes, exhausted[0])",
          "Mux(on_time[0], 1, exhausted[0])"),
    Fault("a record is passed on only when no record that precedes it can arrive", ReadyMerger,
          "exhausted[n].eq(~i.valid & ~self.i_open[n])", "exhausted[n].eq(~i.valid)"),
    Fault("a record that is ready does not wait", ReadyMerger, "exhausted[n].eq(~i.valid & ~self.i_open[n])",
          "exhausted[n].eq(0)"),
    Fault("late records, and no others, are refused at once", ReadyMerger,
          "late[0].eq(last_valid & (keys[0] - last - last_input)[top])",
          "late[0].eq(last_valid & (keys[0] - last)[top])"),
    Fault("refused tuples are counted", ReadyMerger, "i.valid & late[n] & (i.payload.op == Op.TUPLE)",
          "i.valid & late[n]"),
    Fault("the last record is remembered while any input is open", ReadyMerger, "Mux(grant[0], keys[0], keys[1])",
          "Mux(grant[1], keys[0], keys[1])"),
    Fault("records are passed on in order", ReadyMerger, "late[1].eq(last_valid & (keys[1] - last)[top])",
          "late[1].eq(0)"),
    Fault("the output is open while a record is inside", ReadyMerger,
          "self.i_open.any() | self.i[0].valid | self.i[1].valid | buffer.o.valid",
          "self.i_open.any() | self.i[0].valid | self.i[1].valid"),
    Fault("the output is open a cycle after an input was", ReadyMerger, "self.i_open.any() | self.i[0].valid",
          "self.i[0].valid"),
)

_WHOLE_FAULTS = (
    BUFFER_FAULTS[1],
    Fault("the records inside are counted", ReadyMerger, "buffer.i.valid.eq(grant.any())",
          "buffer.i.valid.eq(on_time.any())"),
    Fault("sources are closed from their FLUSH to the gate's", SourceInput, "(closed | self.flushed)", "self.flushed"),
    Fault("records wait in the order of their source", SourceInput, "buffer.i.payload.eq(self.i.payload)",
          "buffer.i.payload.eq(self.i.payload.as_value() | 2)"),
    Fault("records behind the node are in order, up to the last one that it passed on", ReadyMerger,
          "Mux(grant[0], keys[0], keys[1])", "Mux(grant[1], keys[0], keys[1])"),
    Fault("the last record that the node passed on precedes whatever can still reach it", ReadyMerger,
          "exhausted[n].eq(~i.valid & ~self.i_open[n])", "exhausted[n].eq(~i.valid)"),
    Fault("the last record that left precedes those that the node still holds", ReadyMerger,
          "self.i_open.any() | self.i[0].valid", "self.i[0].valid"),
    Fault("the node is open while it holds a record, or remembers one", ReadyMerger,
          "self.i_open.any() | self.i[0].valid | self.i[1].valid | buffer.o.valid",
          "self.i_open.any() | self.i[0].valid | self.i[1].valid"),
    Fault("while a FLUSH is offered, the gate is empty", ScaleGate, "flushed & drained", "flushed"),
    Fault("offers at o are stable", SkidBuffer, "full | (not_empty & (heads[0] == n))", "full"),
    Fault("records leave in order", SkidBuffer, "heads[0] == n",
          "heads[0] != n"),  # a node refuses what would break the order
    Fault("no record that can still arrive precedes one that leaves", ReadyMerger,
          "exhausted[n].eq(~i.valid & ~self.i_open[n])",
          "exhausted[n].eq(~i.valid)"),
    Fault("nothing leaves that did not enter", SkidBuffer, "self.o.valid.eq(not_empty)", "self.o.valid.eq(1)"),
    Fault("a FLUSH leaves when all sources are closed and all records have left",
          ScaleGate, "flushed & drained", "flushed"),
    Fault("no record is refused", ReadyMerger, "precedes.eq(~(keys[1] - keys[0])[top])", "precedes.eq(1)"),
)

PROOFS = (
    Proof("gate source input", source_input, 2, faults=_SOURCE_FAULTS, search=8),
    Proof("gate merger", merger, 2, faults=_MERGER_FAULTS, search=8),
    Proof("gate of 2 sources", whole, 2, faults=_WHOLE_FAULTS, search=8),
)
