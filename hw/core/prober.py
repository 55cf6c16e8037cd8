"""The processing side of a region with an index: follows the chains of the buckets that a probe's bounds reach."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.circuit.wire import Configuration, Span

from ..hls.matcher import Matcher
from ..layouts import struct
from ..network.queue import Queue
from ..tech.ram import Ram
from .buckets import address, ways
from .layouts import PASSES, STORES, batch_layout, found_layout, position_bits, ring_rows, task_layout

__all__ = ["Prober"]

#: Cycles from issuing a read to its keys.
_READ_LATENCY = Ram.latency
#: Cycles from a look-up to what it found: its offset in the window takes one, and whether others are younger another.
_LOOK_LATENCY = Ram.latency + 2


class Prober(wiring.Component):
    """Compares each probe with the tuples of its buckets that are in the sub-window, youngest first.

    Buckets are ESJ's main predicate; the comparison with all tests adds the secondary ones.

    While the chains of one probe are followed, the buckets of the next are looked up. The chains of several buckets are
    merged by age, so the order does not depend on buckets. A probe whose bounds reach more buckets than are looked up
    reads the whole sub-window, one tuple a cycle.

    Ports: as of `Scanner`, and of `Index` for what that gives: ``known``, ``look``, ``bucket``, ``granted``, ``head``,
    ``live``, ``distance``. ``spills``: a probe begins to read the whole sub-window.
    """

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        position = position_bits(config)
        super().__init__({
            "task": In(stream.Signature(task_layout(config, side))),
            "known": In(position),
            "look": Out(1),
            "bucket": Out(range(config.buckets)),
            "granted": In(1),
            "head": In(position),
            "live": In(1),
            "rows": Out(range(ring_rows(config))).array(1),
            "keys": In(struct(config.keys(side))).array(1),
            "distance": In(range(config.capacity + STORES + 1)),
            "scanning": Out(1),
            "position": Out(position),
            "waiting": Out(1),
            "first": Out(position),
            "batch": Out(stream.Signature(batch_layout(config))),
            "found": Out(found_layout(config)),
            "found_valid": Out(1),
            "room": In(1),
            "compared": Out(range(config.capacity + 1)),
            "reads": Out(1),
            "spills": Out(1),
            "stall_results": Out(1),
        })
        #: How far along a chain, or the sub-window, a probe has come. Offsets are from the probe's oldest tuple.
        self._cursor = data.StructLayout({"valid": 1, "at": position, "offset": position})

    @property
    def latency(self) -> int:
        """Cycles from issuing a read to its outcome."""
        return _READ_LATENCY + self._config.stages + 1

    def elaborate(self, platform) -> Module:
        m = Module()
        take = Signal()  # the probe that waits is the one whose chains are followed
        m.submodules.matcher = matcher = Matcher(self._config, self._side)
        m.submodules.batches = batches = Queue(batch_layout(self._config), PASSES)
        wiring.connect(m, batches.o, wiring.flipped(self.batch))
        ready, firsts, whole = self._lookup(m, matcher, batches, take)
        self._follow(m, matcher, batches, take, ready, firsts, whole)
        return m

    def _lookup(self, m: Module, matcher: Matcher, batches: Queue, take: Signal) -> tuple[Signal, list, Signal]:
        """The probe that waits: whether all is known of it, where its chains begin, and whether it reads everything."""
        config, task, held = self._config, self.task.payload, batches.i.payload
        accept, step, reached, stop = (Signal(name=name) for name in ("accept", "step", "reached", "stop"))
        none, wide, ready = (Signal(name=name) for name in ("none", "wide", "ready"))
        end, top, youngest = (Signal(position_bits(config), name=name) for name in ("end", "top", "youngest"))
        m.d.comb += [
            self.task.ready.eq(~self.waiting), accept.eq(self.task.valid & self.task.ready),
            # The bounds stand for a cycle, in which those of the probe before reach their comparators.
            matcher.bounds.eq(task.bounds), matcher.hold.eq(step), matcher.load.eq(reached),
        ]
        m.d.sync += [step.eq(accept), reached.eq(step), top.eq(end - 1), youngest.eq(held.count - 1)]
        with m.If(accept):
            m.d.sync += [self.waiting.eq(1), self.first.eq(task.start), end.eq(task.end),
                         held.row.eq(task.row), held.flush.eq(task.flush),
                         held.count.eq(task.count), none.eq(task.masked | (task.count == 0))]
        with m.If(take):
            m.d.sync += [self.waiting.eq(0), ready.eq(0)]
        cells, unmet, far, due = self._reach(m, accept, step)
        with m.If(step):
            m.d.sync += [stop.eq(none | unmet | far), wide.eq(~none & ~unmet & far)]

        # One bucket after the other, when all earlier tuples are in the index.
        most = ways(config)
        nth = Signal(range(max(2, most)))
        looking, final, indexed = (Signal(name=name) for name in ("looking", "final", "indexed"))
        m.d.sync += indexed.eq(~(self.known - end)[-1])
        m.d.comb += [
            nth.eq(_lowest(due)),
            self.bucket.eq(Cat(Mux(nth[n], above, here) for n, (here, above) in enumerate(cells))),
            self.look.eq(looking & indexed & ~stop),
            final.eq(~(due & (due - 1)).any()),
        ]
        with m.If(step):
            m.d.sync += looking.eq(1)
        with m.Elif(stop | (self.granted & final)):
            m.d.sync += looking.eq(0)
        with m.If(self.granted):
            m.d.sync += due.eq(due & (due - 1))
        with m.If(reached & stop):
            m.d.sync += ready.eq(1)

        # What is found is put where it belongs by age: before those that are older, as was found a cycle earlier.
        token = Cat(self.granted, self.granted & final)
        for n in range(_LOOK_LATENCY):
            last_token, token = token, Signal(2, name=f"looked_up{n}")
            m.d.sync += token.eq(last_token)
        firsts = [Signal(self._cursor, name=f"first{n}") for n in range(most)]
        found = Signal(self._cursor)
        at, offset = Signal(position_bits(config)), Signal(position_bits(config))
        before = Signal(most)
        m.d.sync += [at.eq(self.head), offset.eq(self.head - self.first), found.at.eq(at), found.offset.eq(offset),
                     found.valid.eq(last_token[0] & self.live & ~offset[-1])]
        older = [~first.valid | (offset > first.offset) for first in firsts]
        with m.If(found.valid):
            m.d.sync += [first.eq(new) for first, new in zip(firsts, _inserted(found, before, firsts), strict=True)]
            m.d.sync += before.eq(Cat(_inserted(offset > found.offset, before, older)))
        with m.Else():
            m.d.sync += before.eq(Cat(older))
        with m.If(token[1]):
            m.d.sync += ready.eq(1)
        # A chain of all tuples begins with the last one.
        with m.If(reached):
            m.d.sync += [first.valid.eq(0) for first in firsts]
            m.d.sync += firsts[0].valid.eq(wide)
            with m.If(wide):
                m.d.sync += [firsts[0].at.eq(top), firsts[0].offset.eq(youngest)]
        return ready, firsts, wide

    def _reach(self, m: Module, accept: Signal, step: Signal) -> tuple[list, Value, Value, Signal]:
        """Of the probe just accepted: per part of a bucket's number the first that its bounds reach and the one above;
        in the cycle ``step``, whether they reach none, and more than are looked up; and then which are to be.
        """
        config, task = self._config, self.task.payload
        due = Signal(ways(config))
        if config.core == "hash":
            edges = [(task.bounds[f"lo{test}"], task.bounds[f"hi{test}"]) for test in config.index]
            lows = [Signal(low.shape(), name=f"low{n}") for n, (low, _) in enumerate(edges)]
            tops = [Signal(high.shape(), name=f"high{n}") for n, (_, high) in enumerate(edges)]
            with m.If(accept):
                m.d.sync += [cell.eq(low) for cell, (low, _) in zip(lows, edges, strict=True)]
                m.d.sync += [top.eq(high) for top, (_, high) in zip(tops, edges, strict=True)]
            place = Signal(range(config.buckets))
            with m.If(step):
                m.d.sync += [place.eq(address(config, lows)), due.eq(1)]
            pairs = list(zip(lows, tops, strict=True))
            return ([(place, place)], Cat(low > high for low, high in pairs).any(),
                    Cat(low != high for low, high in pairs).any(), due)
        reach = [(task.reach[f"first{n}"], task.reach[f"span{n}"]) for n in range(len(config.index))]
        cells = [Signal(first.shape(), name=f"cell{n}") for n, (first, _) in enumerate(reach)]
        nexts = [Signal(first.shape(), name=f"above{n}") for n, (first, _) in enumerate(reach)]
        spans = [Signal(2, name=f"span{n}") for n in range(len(reach))]
        with m.If(accept):
            m.d.sync += [cell.eq(first) for cell, (first, _) in zip(cells, reach, strict=True)]
            m.d.sync += [held.eq(span) for held, (_, span) in zip(spans, reach, strict=True)]
        with m.If(step):
            m.d.sync += [above.eq(cell + 1) for above, cell in zip(nexts, cells, strict=True)]
            m.d.sync += due.eq(Cat(Cat(Const(1), *(spans[d] == Span.TWO for d in range(len(spans)) if n >> d & 1)).all()
                                   for n in range(len(due))))
        return (list(zip(cells, nexts, strict=True)), Cat(span == Span.NONE for span in spans).any(),
                Cat(span == Span.MANY for span in spans).any(), due)

    def _follow(self, m: Module, matcher: Matcher, batches: Queue, take: Signal, ready: Signal, firsts: list,
                whole: Signal) -> None:
        """The probe under way."""
        config, batch = self._config, batches.i.payload
        # The youngest tuple to come is at hand; chains that go on behind it, youngest first; and the next tuple of the
        # chain that the last one at hand was of, which may be younger than they or not.
        at_hand, older = Signal(self._cursor), Signal(self._cursor)
        others = [Signal(self._cursor, name=f"other{n}") for n in range(len(firsts) - 1)]
        choosing, reading, straight = (Signal(name=name) for name in ("choosing", "reading", "straight"))
        waited, linked = Signal(name="waited"), Signal(name="linked")
        count = Signal(config.capacity.bit_length())
        before = Signal(max(1, len(others)))  # one that changes nothing where there is one chain only
        some = Signal()  # there is a tuple to come
        issue, inside, last, compared = Signal(), Signal(), Signal(), Signal()
        m.d.sync += compared.eq(issue & inside)
        m.d.comb += [
            last.eq(choosing & ~some & self.room),
            inside.eq(at_hand.offset < count),
            issue.eq(reading & self.room),
            take.eq(ready & (~self.scanning | last) & batches.i.ready),
            self.rows[0].eq(at_hand.at[:len(self.rows[0])]), matcher.keys[0].eq(self.keys[0]),
            self.compared.eq(compared), self.reads.eq(issue), self.spills.eq(take & whole),
            self.stall_results.eq(Mux(self.scanning, (choosing | reading) & ~self.room, ready & ~take)),
            batches.i.valid.eq(take),
        ]
        with m.If(last):
            m.d.sync += [self.scanning.eq(0), choosing.eq(0)]
        with m.If(choosing & some):
            best, *rest = _inserted(older, before & older.valid.replicate(len(before)), [*others, older])
            m.d.sync += [choosing.eq(0), reading.eq(1), older.valid.eq(0), at_hand.eq(best)]
            m.d.sync += [other.eq(new) for other, new in zip(others, rest, strict=True)]
        m.d.sync += [waited.eq(issue & ~straight), linked.eq(waited)]
        with m.If(issue):
            m.d.sync += [reading.eq(straight & (at_hand.offset != 0)), some.eq(0)]
            with m.If(straight):
                m.d.sync += [at_hand.at.eq(at_hand.at - 1), at_hand.offset.eq(at_hand.offset - 1),
                             choosing.eq(at_hand.offset == 0)]
        offset, there = Signal(position_bits(config)), Signal()
        m.d.comb += [offset.eq(at_hand.offset - self.distance), there.eq((self.distance != 0) & ~offset[-1])]
        # How much younger than they the tuple at hand is tells whether so is the next one of its chain.
        younger = [Signal(position_bits(config), name=f"younger{n}") for n in range(len(others))]
        m.d.sync += [by.eq(at_hand.offset - other.offset) for by, other in zip(younger, others, strict=True)]
        with m.If(linked):
            m.d.sync += [choosing.eq(1), older.at.eq(at_hand.at - self.distance), older.offset.eq(offset),
                         older.valid.eq(there), some.eq(there | Cat(other.valid for other in others[:1]).any()),
                         before.eq(Cat(~other.valid | (by > self.distance)
                                       for by, other in zip(younger, others, strict=True)))]
        with m.If(take):
            m.d.sync += [self.scanning.eq(1), self.position.eq(self.first), straight.eq(whole), count.eq(batch.count),
                         choosing.eq(1), older.eq(firsts[0]), some.eq(firsts[0].valid), before.eq(-1)]
            m.d.sync += [other.eq(first) for other, first in zip(others, firsts[1:], strict=True)]
        self._compare(m, matcher, take, issue & inside, last, at_hand.offset)

    def _compare(self, m: Module, matcher: Matcher, take: Signal, valid: Value, last: Value, group: Value) -> None:
        """From reads to their outcomes."""
        swap = take
        for n in range(_READ_LATENCY):
            delayed = Signal(name=f"swap{n}")
            m.d.sync += delayed.eq(swap)
            swap = delayed
        m.d.comb += matcher.swap.eq(swap)
        token = Cat(valid, last, group)
        for n in range(_READ_LATENCY + self._config.stages):
            later = Signal(len(token), name=f"token{n}")
            m.d.sync += later.eq(token)
            token = later
        m.d.sync += [self.found_valid.eq(token[:2].any()), self.found.last.eq(token[1]),
                     self.found.group.eq(token[2:]), self.found.hits.eq(matcher.match & token[0])]


def _lowest(bits: Signal) -> Value:
    """The number of the lowest bit that is set, of up to four."""
    number: Value = Const(0, 2)
    for n in reversed(range(len(bits))):
        number = Mux(bits[n], n, number)
    return number


def _inserted(new: Any, before: Value, items: list) -> list[Value]:
    """``items`` with ``new`` before those that ``before`` has ones for, which are the last ones, and without the last
    item.
    """
    out: list[Value] = []
    for n, item in enumerate(Value.cast(item) for item in items):
        here = Mux(before[n], Value.cast(new), item) if n < len(before) else item
        out.append(Mux(before[n - 1], Value.cast(items[n - 1]), here) if n else here)
    return out
