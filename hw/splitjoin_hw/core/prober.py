"""The processing side of a region with an index: follows the chains of the buckets that a probe's bounds reach."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import outcome_latency, position_bits
from splitjoin.circuit.wire import Configuration

from ..hls.delays import delay_line
from ..hls.matcher import Matcher
from ..network.queue import Queue
from ..tech.ram import Ram
from .buckets import Buckets, lowest_due
from .interfaces import LookupSignature, ProcessingSignature
from .layouts import batch_layout

#: Cycles from issuing a read to its keys.
_READ_LATENCY = Ram.latency
#: Cycles from a look-up to its result, among them one for the offset in the window and one to compare ages.
_LOOK_LATENCY = Ram.latency + 2


class Prober(wiring.Component):
    """Compares each probe with the tuples of its buckets that are in the sub-window, youngest first.

    Buckets are ESJ's main predicate; the comparison with all tests adds the secondary ones.

    While the chains of one probe are followed, the buckets of the next are looked up. The chains of several buckets are
    merged by age, so the order does not depend on buckets. A probe whose bounds reach more buckets than are looked up
    reads the whole sub-window, one tuple per cycle.

    Ports: `ProcessingSignature`, where ``single`` has no effect; `LookupSignature`. ``reads``, ``spills`` (a probe
    begins to read the whole sub-window), ``stall_…``: for `RegionCounters`.
    """

    counters = ("reads", "spills", "stall_results")

    def __init__(self, config: Configuration, side: str, buckets: Buckets):
        self._config, self._side, self._buckets = config, side, buckets
        super().__init__({
            **ProcessingSignature(config, side).members,
            **LookupSignature(config).members,
            "reads": Out(1),
            "spills": Out(1),
            "stall_results": Out(1),
        })
        position = position_bits(config)
        #: A tuple in a chain, or in the sub-window. Offsets are from the oldest tuple of the probe's window.
        self._cursor = data.StructLayout({"valid": 1, "at": position, "offset": position})

    @property
    def latency(self) -> int:
        """Cycles from issuing a read to its outcome."""
        return outcome_latency(self._config)

    def elaborate(self, platform) -> Module:
        m = Module()
        take = Signal()  # the waiting probe becomes the one whose chains are followed
        m.submodules.matcher = matcher = Matcher(self._config, self._side)
        m.submodules.batches = batches = Queue(batch_layout(self._config), geometry.PASSES)
        wiring.connect(m, batches.o, wiring.flipped(self.batch))
        lookup_done, firsts, whole = self._lookup(m, matcher, batches, take)
        self._follow(m, matcher, batches, take, lookup_done, firsts, whole)
        return m

    def _lookup(self, m: Module, matcher: Matcher, batches: Queue, take: Signal) -> tuple[Signal, list, Signal]:
        """Looks up the buckets of the waiting probe.

        Returns a flag that all are looked up, the heads of its chains, and a flag that it reads the whole sub-window.
        """
        config, task, held = self._config, self.task.payload, batches.i.payload
        accept, step, reached, no_lookup = (Signal(name=name) for name in ("accept", "step", "reached", "no_lookup"))
        finds_none, reads_all, lookup_done = (Signal(name=name) for name in ("finds_none", "reads_all", "lookup_done"))
        end, youngest_position, youngest_offset = (Signal(position_bits(config), name=name) for name in (
            "end", "youngest_position", "youngest_offset"))
        m.d.comb += [
            self.task.ready.eq(~self.waiting), accept.eq(self.task.valid & self.task.ready),
            # The bounds are held for a cycle, in which those of the previous probe reach their comparators.
            matcher.bounds.eq(task.bounds), matcher.hold.eq(step), matcher.load.eq(reached),
        ]
        m.d.sync += [step.eq(accept), reached.eq(step), youngest_position.eq(end - 1),
                     youngest_offset.eq(held.count - 1)]
        with m.If(accept):
            m.d.sync += [self.waiting.eq(1), self.first.eq(task.start), end.eq(task.end),
                         held.row.eq(task.row), held.flush.eq(task.flush),
                         held.count.eq(task.count), finds_none.eq(task.masked | (task.count == 0))]
        with m.If(take):
            m.d.sync += [self.waiting.eq(0), lookup_done.eq(0)]
        reach = self._buckets.reach(m, config, task, accept, step)
        lookups_due = reach.lookups_due
        with m.If(step):
            m.d.sync += [no_lookup.eq(finds_none | reach.none | reach.too_many),
                         reads_all.eq(~finds_none & ~reach.none & reach.too_many)]

        # Buckets are looked up one after the other, once all earlier tuples are in the index.
        most = config.kind.lookups(config)
        lookup_select = Signal(range(max(2, most)))
        lookup_busy, last_lookup, indexed = (Signal(name=name) for name in ("lookup_busy", "last_lookup", "indexed"))
        # Modular, as positions wrap: a tuple may enter the index after ``end`` while look-ups are due.
        m.d.sync += indexed.eq(~(self.known - end)[len(end) - 1])
        m.d.comb += [
            lookup_select.eq(lowest_due(lookups_due)),
            self.bucket.eq(Cat(Mux(lookup_select[n], above, here) for n, (here, above) in enumerate(reach.parts))),
            self.look.eq(lookup_busy & indexed & ~no_lookup),
            last_lookup.eq(~(lookups_due & (lookups_due - 1)).any()),
        ]
        with m.If(step):
            m.d.sync += lookup_busy.eq(1)
        with m.Elif(no_lookup | (self.granted & last_lookup)):
            m.d.sync += lookup_busy.eq(0)
        with m.If(self.granted):
            m.d.sync += lookups_due.eq(lookups_due & (lookups_due - 1))
        with m.If(reached & no_lookup):
            m.d.sync += lookup_done.eq(1)

        # A head that was found is inserted by age: before the older ones, as compared in the previous cycle.
        *_, last_token, token = delay_line(m, "looked_up", Cat(self.granted, self.granted & last_lookup), _LOOK_LATENCY)
        firsts = [Signal(self._cursor, name=f"first{n}") for n in range(most)]
        found = Signal(self._cursor)
        position, offset = (Signal(position_bits(config), name=name) for name in ("head_position", "head_offset"))
        before = Signal(most)
        m.d.sync += [position.eq(self.head), offset.eq(self.head - self.first),
                     found.at.eq(position), found.offset.eq(offset),
                     found.valid.eq(last_token[0] & self.live & ~offset[-1])]
        is_older = [~first.valid | (offset > first.offset) for first in firsts]
        with m.If(found.valid):
            m.d.sync += [first.eq(new) for first, new in zip(firsts, _inserted(found, before, firsts), strict=True)]
            m.d.sync += before.eq(Cat(_inserted(offset > found.offset, before, is_older)))
        with m.Else():
            m.d.sync += before.eq(Cat(is_older))
        with m.If(token[1]):
            m.d.sync += lookup_done.eq(1)
        # A probe that reads the whole sub-window starts with the youngest tuple.
        with m.If(reached):
            m.d.sync += [first.valid.eq(0) for first in firsts]
            m.d.sync += firsts[0].valid.eq(reads_all)
            with m.If(reads_all):
                m.d.sync += [firsts[0].at.eq(youngest_position), firsts[0].offset.eq(youngest_offset)]
        return lookup_done, firsts, reads_all

    def _follow(self, m: Module, matcher: Matcher, batches: Queue, take: Signal, lookup_done: Signal, firsts: list,
                whole: Signal) -> None:
        """Follows the chains of the probe under way."""
        config, batch = self._config, batches.i.payload
        # ``current`` is the youngest tuple not read yet; ``others`` are the next tuples of the other chains, youngest
        # first; ``chain_next`` is the next tuple of the chain that ``current`` was of, younger than the others or not.
        current = Signal(self._cursor)
        chain_next = Signal(self._cursor)
        others = [Signal(self._cursor, name=f"other{n}") for n in range(len(firsts) - 1)]
        choosing, reading, sequential = (Signal(name=name) for name in ("choosing", "reading", "sequential"))
        link_wait, link_ready = Signal(name="link_wait"), Signal(name="link_ready")
        count = Signal(config.capacity.bit_length())
        before = Signal(max(1, len(others)))  # a dummy bit if there is one chain only
        has_next = Signal()  # there is a tuple still to read
        issue, inside, last, compared = (Signal(name=name) for name in ("issue", "inside", "last", "compared"))
        m.d.sync += compared.eq(issue & inside)
        m.d.comb += [
            last.eq(choosing & ~has_next & self.room),
            inside.eq(current.offset < count),
            issue.eq(reading & self.room),
            take.eq(lookup_done & (~self.scanning | last) & batches.i.ready),
            self.rows[0].eq(current.at[:len(self.rows[0])]), matcher.keys[0].eq(self.keys[0]),
            self.compared.eq(compared), self.reads.eq(issue), self.spills.eq(take & whole),
            self.stall_results.eq(Mux(self.scanning, (choosing | reading) & ~self.room, lookup_done & ~take)),
            batches.i.valid.eq(take),
        ]
        with m.If(last):
            m.d.sync += [self.scanning.eq(0), choosing.eq(0)]
        with m.If(choosing & has_next):
            best, *rest = _inserted(chain_next, before & chain_next.valid.replicate(len(before)), [*others, chain_next])
            m.d.sync += [choosing.eq(0), reading.eq(1), chain_next.valid.eq(0), current.eq(best)]
            m.d.sync += [other.eq(new) for other, new in zip(others, rest, strict=True)]
        m.d.sync += [link_wait.eq(issue & ~sequential), link_ready.eq(link_wait)]
        with m.If(issue):
            m.d.sync += [reading.eq(sequential & (current.offset != 0)), has_next.eq(0)]
            with m.If(sequential):
                m.d.sync += [current.at.eq(current.at - 1), current.offset.eq(current.offset - 1),
                             choosing.eq(current.offset == 0)]
        offset = Signal(position_bits(config), name="next_offset")
        link_valid = Signal()
        m.d.comb += [offset.eq(current.offset - self.distance), link_valid.eq((self.distance != 0) & ~offset[-1])]
        # The next tuple of the current chain is younger than another chain's if ``current`` is younger than that one by
        # more than the distance.
        younger = [Signal(position_bits(config), name=f"younger{n}") for n in range(len(others))]
        m.d.sync += [by.eq(current.offset - other.offset) for by, other in zip(younger, others, strict=True)]
        with m.If(link_ready):
            m.d.sync += [choosing.eq(1), chain_next.at.eq(current.at - self.distance), chain_next.offset.eq(offset),
                         chain_next.valid.eq(link_valid),
                         has_next.eq(link_valid | Cat(other.valid for other in others[:1]).any()),
                         before.eq(Cat(~other.valid | (by > self.distance)
                                       for by, other in zip(younger, others, strict=True)))]
        with m.If(take):
            m.d.sync += [self.scanning.eq(1), self.position.eq(self.first), sequential.eq(whole), count.eq(batch.count),
                         choosing.eq(1), chain_next.eq(firsts[0]), has_next.eq(firsts[0].valid), before.eq(-1)]
            m.d.sync += [other.eq(first) for other, first in zip(others, firsts[1:], strict=True)]
        self._compare(m, matcher, take, issue & inside, last, current.offset)

    def _compare(self, m: Module, matcher: Matcher, take: Signal, valid: Value, last: Value, group: Value) -> None:
        """Pipeline from reads to their outcomes."""
        m.d.comb += matcher.swap.eq(delay_line(m, "swap", take, _READ_LATENCY)[-1])
        token = delay_line(m, "token", Cat(valid, last, group), _READ_LATENCY + self._config.stages)[-1]
        m.d.sync += [self.found_valid.eq(token[:2].any()), self.found.last.eq(token[1]),
                     self.found.group.eq(token[2:]), self.found.hits.eq(matcher.match & token[0])]


def _inserted(new: Any, before: Value, items: list) -> list[Value]:
    """``items`` with ``new`` inserted and the last item dropped. ``before`` is 1 for the items that follow ``new``, all
    at the end.
    """
    out: list[Value] = []
    for n, item in enumerate(Value.cast(item) for item in items):
        here = Mux(before[n], Value.cast(new), item) if n < len(before) else item
        out.append(Mux(before[n - 1], Value.cast(items[n - 1]), here) if n else here)
    return out
