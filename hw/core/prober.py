"""The processing side of a region with an index: follows the chains of the buckets that a probe's bounds reach."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.device.wire import Configuration, Span

from ..hls.matcher import Matcher
from ..layouts import struct
from ..tech.ram import Ram
from .buckets import address, ways
from .layouts import STORES, batch_layout, found_layout, position_bits, ring_rows, task_layout

__all__ = ["Prober"]

#: Cycles from issuing a read to its keys.
_READ_LATENCY = Ram.latency


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
        take, taken = Signal(), Signal()  # the probe that waits is the one whose chains are followed
        m.d.sync += taken.eq(take)
        m.submodules.matcher = matcher = Matcher(self._config, self._side)
        held = Signal(batch_layout(self._config))  # what the emitter has to know of the probe that waits
        ready, cursors, whole = self._lookup(m, matcher, held, take, taken)
        self._follow(m, matcher, held, take, taken, ready, cursors, whole)
        return m

    def _lookup(self, m: Module, matcher: Matcher, held, take: Signal, taken: Signal) -> tuple[Value, list, Value]:
        """The probe that waits: whether all is known of it, where its chains begin, and whether it reads everything."""
        config, task = self._config, self.task.payload
        accept, none, wide = Signal(), Signal(), Signal()
        m.d.comb += [
            # For the bounds of the probe before to reach their comparators, which lag behind.
            self.task.ready.eq(~self.waiting & ~taken),
            accept.eq(self.task.valid & self.task.ready),
            matcher.bounds.eq(task.bounds),
        ]
        m.d.sync += matcher.load.eq(accept)
        end = Signal(position_bits(config))
        with m.If(accept):
            m.d.sync += [self.waiting.eq(1), self.first.eq(task.start), end.eq(task.end),
                         held.row.eq(task.row), held.flush.eq(task.flush),
                         held.count.eq(task.count), none.eq(task.masked | (task.count == 0))]
        with m.Elif(take):
            m.d.sync += self.waiting.eq(0)
        # Its first cells, whether it reaches the next ones, and whether it reaches none, or too many.
        step = Signal()
        m.d.sync += step.eq(accept)
        if config.core == "hash":
            edges = [(task.bounds[f"lo{test}"], task.bounds[f"hi{test}"]) for test in config.index]
            cells = [Signal(low.shape(), name=f"low{n}") for n, (low, _) in enumerate(edges)]
            tops = [Signal(high.shape(), name=f"high{n}") for n, (_, high) in enumerate(edges)]
            above: list[Value] = [Const(0)] * len(cells)
            with m.If(accept):
                m.d.sync += [cell.eq(low) for cell, (low, _) in zip(cells, edges, strict=True)]
                m.d.sync += [top.eq(high) for top, (_, high) in zip(tops, edges, strict=True)]
            with m.If(step):
                pairs = list(zip(cells, tops, strict=True))
                m.d.sync += [none.eq(none | Cat(low > high for low, high in pairs).any()),
                             wide.eq(Cat(low != high for low, high in pairs).any())]
        else:
            reach = [(task.reach[f"first{n}"], task.reach[f"span{n}"]) for n in range(len(config.index))]
            cells = [Signal(first.shape(), name=f"cell{n}") for n, (first, _) in enumerate(reach)]
            spans = [Signal(2, name=f"span{n}") for n in range(len(reach))]
            above = [span == Span.TWO for span in spans]
            with m.If(accept):
                m.d.sync += [cell.eq(first) for cell, (first, _) in zip(cells, reach, strict=True)]
                m.d.sync += [held_.eq(span) for held_, (_, span) in zip(spans, reach, strict=True)]
            with m.If(step):
                m.d.sync += [none.eq(none | Cat(span == Span.NONE for span in spans).any()),
                             wide.eq(Cat(span == Span.MANY for span in spans).any())]

        # One bucket after the other, when all earlier tuples are in the index.
        most = ways(config)
        looking, nth = Signal(), Signal(range(max(2, most)))
        due, there, forward = Signal(), Signal(), Signal()
        with m.Switch(nth):
            for n in range(most):
                reached = Cat(Const(1), *(above[d] for d in range(len(cells)) if n >> d & 1)).all()
                with m.Case(n):
                    m.d.comb += [self.bucket.eq(address(config, cells, n)), there.eq(reached)]
        m.d.comb += [
            due.eq(looking & ~none & ~wide & there),
            self.look.eq(due & ~(self.known - end)[-1]),
            forward.eq(looking & (~due | self.granted)),
        ]
        with m.If(step):
            m.d.sync += [looking.eq(1), nth.eq(0)]
        with m.Elif(forward):
            m.d.sync += [nth.eq(nth + 1), looking.eq(~none & ~wide & (nth != most - 1))]
        token = Cat(self.granted, nth)
        under_way = []
        for n in range(_READ_LATENCY):
            delayed = Signal(len(token), name=f"looked_up{n}")
            m.d.sync += delayed.eq(token)
            token = delayed
            under_way.append(token[0])
        cursors = [Signal(self._cursor, name=f"first{n}") for n in range(most)]
        offset = Signal(position_bits(config))
        m.d.comb += offset.eq(self.head - self.first)
        for n, cursor in enumerate(cursors):
            with m.If(accept):
                m.d.sync += cursor.valid.eq(0)
            with m.If(token[0] & (token[1:] == n)):
                m.d.sync += [cursor.valid.eq(self.live & ~offset[-1]), cursor.at.eq(self.head),
                             cursor.offset.eq(offset)]
        ready = self.waiting & ~step & ~looking & ~Cat(under_way).any()
        return ready, cursors, wide & ~none

    def _follow(self, m: Module, matcher: Matcher, held, take: Signal, taken: Signal, ready: Value, firsts: list,
                whole: Value) -> None:
        """The probe under way."""
        config = self._config
        cursors = [Signal(self._cursor, name=f"cursor{n}") for n in range(len(firsts))]
        at_hand, best = Signal(self._cursor), Signal(self._cursor)  # the youngest tuple to come: chosen, and to be so
        chain, best_chain = (Signal(len(firsts), name=name) for name in ("chain", "best_chain"))
        choosing, reading, straight = Signal(), Signal(), Signal()
        waited, linked = Signal(), Signal()
        count = Signal(config.capacity.bit_length())
        issue, inside, last = Signal(), Signal(), Signal()

        chosen, which = _youngest(cursors)
        m.d.comb += [
            best.eq(chosen), best_chain.eq(which),
            last.eq(choosing & ~best.valid & self.room),
            inside.eq(at_hand.offset < count),
            issue.eq(reading & self.room),
            take.eq(ready & (~self.scanning | last) & ~self.batch.valid),
            self.rows[0].eq(at_hand.at[:len(self.rows[0])]), matcher.keys[0].eq(self.keys[0]),
            self.compared.eq(issue & inside), self.reads.eq(issue), self.spills.eq(take & whole),
            self.stall_results.eq(Mux(self.scanning, (choosing | reading) & ~self.room, ready & ~take)),
        ]
        with m.If(self.batch.ready):
            m.d.sync += self.batch.valid.eq(0)
        with m.If(last):
            m.d.sync += [self.scanning.eq(0), choosing.eq(0)]
        with m.If(choosing & best.valid):
            m.d.sync += [choosing.eq(0), reading.eq(1), at_hand.eq(best), chain.eq(best_chain)]
        older = Signal(self._cursor)
        step = Mux(straight, 1, self.distance)
        m.d.comb += [older.at.eq(at_hand.at - step), older.offset.eq(at_hand.offset - step),
                     older.valid.eq((step != 0) & ~older.offset[-1])]
        m.d.sync += [waited.eq(issue & ~straight), linked.eq(waited)]
        with m.If(issue):
            with m.If(straight):
                m.d.sync += [at_hand.eq(older), reading.eq(older.valid), choosing.eq(~older.valid)]
            with m.Else():
                m.d.sync += reading.eq(0)
        with m.If(linked):
            m.d.sync += choosing.eq(1)
            for n, cursor in enumerate(cursors):
                with m.If(chain[n]):
                    m.d.sync += cursor.eq(older)
        with m.If(take):
            m.d.sync += [self.scanning.eq(1), self.position.eq(self.first), self.batch.valid.eq(1),
                         self.batch.payload.eq(held), straight.eq(whole), count.eq(held.count),
                         choosing.eq(~whole), reading.eq(whole)]
            m.d.sync += [cursor.eq(first) for cursor, first in zip(cursors, firsts, strict=True)]
            with m.If(whole):
                m.d.sync += [at_hand.at.eq(self.first + held.count - 1), at_hand.offset.eq(held.count - 1)]
                m.d.sync += [cursor.valid.eq(0) for cursor in cursors]
        self._compare(m, matcher, taken, issue & inside, last, at_hand.offset)

    def _compare(self, m: Module, matcher: Matcher, taken: Signal, valid: Value, last: Value, group: Value) -> None:
        """From reads to their outcomes."""
        swap = taken
        for n in range(_READ_LATENCY - 1):
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


def _youngest(cursors: list) -> tuple[data.View, Value]:
    """The cursor that has come least far back, and its number, one bit each."""
    rank = [(cursor, Const(1 << n, len(cursors))) for n, cursor in enumerate(cursors)]
    while len(rank) > 1:
        (a, which_a), (b, which_b) = rank[:2]
        second = b.valid & (~a.valid | (b.offset > a.offset))
        better = data.View(a.shape(), Mux(second, b.as_value(), a.as_value()))
        rank = [*rank[2:], (better, Mux(second, which_b, which_a))]
    return rank[0]
