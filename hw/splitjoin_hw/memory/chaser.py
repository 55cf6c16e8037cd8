"""The processing side of a region whose window lies in external memory: it follows the chains of K probes at once."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import distance_bits, position_bits, ring_rows
from splitjoin.circuit.memory import (
    HIT_LIST,
    address_bits,
    first_head,
    first_record,
    head_lines,
    heads_a_line,
    heads_have_records,
    place_bits,
    step_latency,
)
from splitjoin.circuit.wire import ROW_BITS, Configuration
from splitjoin.lang.schema import other_side

from ..core.buckets import Buckets, lowest_due
from ..core.interfaces import ProcessingSignature
from ..core.layouts import batch_layout
from ..hls.delays import Delays
from ..hls.matcher import Matcher
from ..layouts import struct
from ..network.queue import Queue
from .port import MemorySignature, core_of, head_in, head_line
from .repetition import Repetition

#: Bits of the number of probes in a row that look up nothing in a core.
_PASSED = 8


class Cause(IntEnum):
    """The reason why a context takes its next step."""

    ANSWER = 0
    START = 1
    RESUME = 2


class Chaser(wiring.Component):
    """Compares each probe with the tuples of its buckets that are in the sub-window, youngest first, K probes at once.

    A probe takes the next of K contexts. A context has one read under way at most: heads of its buckets, up to two of
    them that share a line, then records, always the youngest tuple of its chains that was not read. Answers come in any
    order. Each passes one pipeline: the record is compared, the chain goes on, and the next read is decided. What a
    context keeps between its steps lies in LUT RAM.

    Where heads have records, a look-up brings its bucket's youngest tuple. It is compared at once, and waits for its
    turn by age with the outcome and the link: then the context takes a step without a read.

    Hits of a context wait in a list of their own until those of all earlier probes have left, so that a probe's hits
    leave together and probes in their order. A context whose list is full stands still until then. A probe whose bounds
    reach more buckets than are looked up reads the sub-window tuple by tuple.

    The emitter turns a probe's hits round, and has room for `splitjoin.circuit.geometry.PASS_HITS`. A probe that finds
    more of them is repeated: once to count its hits, and then for each part of so many, the oldest part first.

    A probe may find tuples that came after it, where a store has overtaken its look-up: they are passed over. The slots
    that a context may read are claimed by the oldest context's window, as later windows begin later.

    A probe that looks up no bucket of this core takes no context. It is counted, and its star leaves in its turn.

    Ports: `ProcessingSignature`, where ``single`` has no effect. ``read``, ``answer_valid``, ``answer``: as of
    `MemorySignature`, with numbers below K. ``look``, ``blocked``: a line of heads, and that it must not be read now.
    ``able``: heads are cleared after a reset. ``storing``: tuples are under way to memory. ``settles``: a probe that
    reads the sub-window tuple by tuple waits for these, and none may be stored meanwhile. ``youngest``: the distance
    from the next tuple to the youngest one of this core. ``index``, where tuples are routed: the core's number.
    ``reads``, ``spills``, ``stall_results``: for `RegionCounters`.
    """

    counters = ("reads", "spills", "stall_results")
    #: Cycles from a look at ``room`` to the outcome.
    latency = 1

    def __init__(self, config: Configuration, side: str, buckets: Buckets):
        self._config, self._side, self._buckets = config, side, buckets
        self._number = (config.contexts - 1).bit_length()
        self._slot_bits = place_bits(config)
        port = MemorySignature(config).members
        super().__init__({
            **ProcessingSignature(config, side).members,
            **{name: port[name] for name in ("read", "answer_valid", "answer")},
            "look": Out(max(1, (head_lines(config) - 1).bit_length())),
            "blocked": In(1),
            "able": In(1),
            "settles": Out(1),
            "storing": In(1),
            "youngest": In(distance_bits(config)),
            **({"index": In(range(config.cores))} if config.routed else {}),
            "reads": Out(1),
            "spills": Out(1),
            "stall_results": Out(1),
        })
        position, lookups = position_bits(config), config.kind.lookups(config)
        self._lookups = lookups
        #: The next tuple of a chain; and where it came with its head, the outcome of its comparison, and its link.
        cursor = data.StructLayout({"valid": 1, "offset": position, **(
            {"known": 1, "match": 1, "link": distance_bits(config)} if heads_have_records(config) else {})})
        bits = config.buckets.bit_length() - 1
        widths = config.kind.index_widths(config, side) if lookups > 1 else (bits,)
        #: Of a probe, from its begin: its window and bounds, and the buckets that it reaches.
        self._fixed = data.StructLayout({
            "row": ROW_BITS, "start": position, "count": config.capacity.bit_length(), "flush": 1, "whole": 1,
            **({"probe": ROW_BITS, "last": position, "passed": _PASSED} if config.routed else {}),
            "due": lookups, "here": data.StructLayout({f"part{n}": w for n, w in enumerate(widths)}),
            "above": data.StructLayout({f"part{n}": w for n, w in enumerate(widths)}),
            "bounds": struct(config.bounds(other_side(side)))})
        #: Of a probe, from step to step: look-ups that are due, the next tuple of each chain, and what is read: the
        #: number of a chain or look-up, whether heads are read, and whether two of them.
        self._state = data.StructLayout({
            "due": lookups, "cursors": data.ArrayLayout(cursor, lookups), "number": range(max(2, lookups)), "head": 1,
            "two": 1})
        #: What is read next.
        self._next = data.StructLayout({
            "context": self._number, "head": 1, "at": max(bits, (ring_rows(config) - 1).bit_length())})

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        c = _Contexts(m, config, self._fixed, self._state)
        m.submodules.next = following = Queue(self._next, max(16, config.contexts))
        if heads_have_records(config):
            m.submodules.known = c.known = Queue(self._number, max(16, config.contexts))
        m.d.sync += c.level.eq(c.level + c.allocated - c.leave)
        with m.If(c.allocated):
            m.d.sync += c.tail.eq(c.tail + 1)
        self._accept(m, c)
        self._step(m, c, following)
        self._drain(m, c)
        self._ask(m, following)
        m.d.comb += self.stall_results.eq(c.parked.any())
        return m

    def _accept(self, m: Module, c: _Contexts) -> None:
        """Takes a task into the next free context, whose first step begins once no answer comes."""
        config, task, write = self._config, self.task.payload, c.fixed.write_port()
        held = Signal(self._fixed)
        accept, step, due, none = (Signal(name=name) for name in ("accept", "step", "start_due", "finds_none"))
        here = task.here if config.routed else Const(1)
        m.d.comb += [self.task.ready.eq(~self.waiting & Mux(here, c.level != config.contexts, ~c.passed.all())),
                     accept.eq(self.task.valid & self.task.ready & here)]
        if config.routed:
            m.d.sync += c.passed.eq(Mux(c.allocated, 0, c.passed) + (self.task.valid & self.task.ready & ~here)
                                    - (c.passes & (c.level == 0)))
        m.d.sync += [step.eq(accept), c.allocated.eq(step)]
        with m.If(accept):
            m.d.sync += [self.waiting.eq(1), self.first.eq(task.start), held.row.eq(task.row),
                         held.count.eq(task.count), held.start.eq(task.start), held.flush.eq(task.flush),
                         held.bounds.eq(task.bounds), none.eq(task.masked | (task.count == 0))]
            if config.routed:
                m.d.sync += [held.probe.eq(task.probe), held.last.eq(Mux(
                    self.youngest == 0, -1, task.count - self.youngest))]
        reach = self._buckets.reach(m, config, task, accept, step)
        no_lookup = Signal()
        with m.If(step):
            m.d.sync += [no_lookup.eq(none | reach.none | reach.too_many),
                         held.whole.eq(~none & ~reach.none & reach.too_many)]
        given = Signal(self._fixed, name="given")
        mine: Value = Const(-1, self._lookups)  # look-ups of buckets of this core
        if config.routed:
            mine = Cat(core_of(config, Cat(part[n >> d & 1] for d, part in enumerate(reach.parts))) == self.index
                       for n in range(self._lookups))
        m.d.comb += [given.eq(held), given.due.eq(reach.lookups_due & mine & ~no_lookup.replicate(self._lookups)),
                     *(given.here[f"part{n}"].eq(here) for n, (here, _) in enumerate(reach.parts)),
                     *(given.above[f"part{n}"].eq(above) for n, (_, above) in enumerate(reach.parts)),
                     *([given.passed.eq(c.passed)] if config.routed else []),
                     write.addr.eq(c.tail), write.data.eq(given), write.en.eq(c.allocated)]
        with m.If(c.allocated):
            m.d.sync += [due.eq(1), c.begins.eq(c.tail)]
        m.d.comb += [self.settles.eq(due & held.whole),
                     c.begin.eq(due & self.able & ~self.answer_valid & ~(held.whole & self.storing))]
        with m.If(c.begin):
            m.d.sync += [due.eq(0), self.waiting.eq(0)]

    def _step(self, m: Module, c: _Contexts, following: Queue) -> None:
        """The pipeline of a step: a context's next read, or its end."""
        config, position = self._config, position_bits(self._config)
        fixed_read, state_read = c.fixed.read_port(domain="comb"), c.state.read_port(domain="comb")
        valid, cause = Signal(name="valid1"), Signal(Cause, name="cause1")
        context = Signal(self._number, name="context1")
        word, f, s = (Signal(len(self.answer.data), name="word"), Signal(self._fixed, name="fixed1"),
                      Signal(self._state, name="state1"))
        starts, given, waiting = c.begin | c.repeat, self.answer_valid, c.oldest
        some = given | starts | c.resume
        if c.known is not None:
            m.d.comb += c.known.o.ready.eq(~some)
            waiting = Mux(c.resume | c.repeat, c.oldest, c.known.o.payload)
            some |= c.known.o.valid
        at = Mux(given, self.answer.number[:self._number], Mux(c.begin, c.begins, waiting))
        m.d.comb += [fixed_read.addr.eq(at), state_read.addr.eq(at)]
        m.d.sync += [valid.eq(some), context.eq(at), word.eq(self.answer.data),
                     cause.eq(Mux(starts, Cause.START, Mux(c.resume, Cause.RESUME, Cause.ANSWER))),
                     f.eq(fixed_read.data), s.eq(state_read.data)]
        with m.If(c.resume | c.repeat):
            m.d.sync += c.parked.bit_select(c.oldest, 1).eq(0)

        # First stage: the answer is compared, and advances its chain.
        m.submodules.matcher = matcher = Matcher(config, self._side, each=True)
        keys = config.keys(self._side)
        link, before_it = (word[keys.width + n * distance_bits(config):][:distance_bits(config)] for n in (0, 1))
        number, before = s.number, s.cursors[s.number]
        step_back = Mux(f.whole, before_it if config.routed else 1, Mux(
            before.known, before.link, link) if c.known is not None else link)
        m.d.comb += [Cat(matcher.keys[0]).eq(word[:keys.width]), matcher.bounds.eq(f.bounds)]
        heads, records = Signal(name="heads"), Signal(name="records")
        m.d.comb += [heads.eq((cause == Cause.ANSWER) & s.head), records.eq((cause == Cause.ANSWER) & ~s.head)]
        slot = self._bucket(f, number)[:self._slot_bits]
        cursors = Signal(s.cursors.shape(), name="cursors1")
        for n in range(self._lookups):
            second = n % 2 and self._lookups > 1
            head = Signal(ROW_BITS, name=f"head{n}")
            offset = Signal(ROW_BITS, name=f"head_offset{n}")
            pair = s.two & (number == n - 1) if second else Const(0, 1)
            m.d.comb += [head.eq(head_in(config, word, slot + pair)), offset.eq(head + ~f.row),
                         cursors[n].eq(s.cursors[n])]
            with m.If(cause == Cause.START):
                m.d.comb += [cursors[n].valid.eq(f.whole & (~f.last[-1] if config.routed else 1) if n == 0 else 0),
                             cursors[n].offset.eq(f.last if config.routed else f.count - 1)]
            with m.Elif(heads & ((number == n) | pair)):
                m.d.comb += [cursors[n].valid.eq((head != 0) & ~offset[position - 1:].any()),
                             cursors[n].offset.eq(offset)]
            with m.Elif(records & (number == n)):
                older = Signal(position, name=f"older{n}")
                m.d.comb += [older.eq(before.offset - step_back), cursors[n].offset.eq(older),
                             cursors[n].valid.eq(~older[-1] & (step_back != 0))]
            if c.known is not None:
                with m.If((cause == Cause.START) | (records & (number == n))):
                    m.d.comb += cursors[n].known.eq(0)
                with m.Elif(heads & (number == n)):
                    m.d.comb += [cursors[n].known.eq(1), cursors[n].link.eq(link)]
        m.d.comb += self.spills.eq(valid & (cause == Cause.START) & f.whole)

        # Second stage: the youngest tuple of all chains, and the first look-up that is due.
        second = Signal(data.StructLayout({
            "context": self._number, "start": 1, "cursors": s.cursors.shape(), "due": self._lookups, "inside": 1,
            "hit": position, **({"looked": self._lookups, "known": 1, "match": 1} if c.known is not None else {})}),
            name="second")
        f2 = Signal(self._fixed, name="fixed2", reset_less=True)
        m.d.sync += [second.context.eq(context), second.start.eq(cause == Cause.START), second.cursors.eq(cursors),
                     second.due.eq(Mux(cause == Cause.START, f.due, s.due)), second.hit.eq(before.offset),
                     second.inside.eq(valid & records & (before.offset < f.count)), f2.eq(f)]
        if c.known is not None:
            m.d.sync += [second.looked.eq(heads << number), second.known.eq(before.known),
                         second.match.eq(before.match)]
        youngest, some, offset = self._youngest(second.cursors)
        lookup = lowest_due(second.due)
        two = self._shares_line(f2, second.due, lookup)
        bucket = self._bucket(f2, lookup)

        # Third stage: what is read next, and what is then still due.
        third = Signal(data.StructLayout({
            "step": second.shape(), "looks": 1, "any": 1, "known": 1, "number": range(max(2, self._lookups)), "two": 1,
            "bucket": len(bucket), "offset": position}), name="third")
        start = Signal(position, name="start3")
        m.d.sync += [
            third.step.eq(second), third.looks.eq(second.due.any()), third.any.eq(some), third.two.eq(two),
            third.known.eq(second.cursors[youngest].known & ~second.due.any() if c.known is not None else 0),
            third.number.eq(Mux(second.due.any(), lookup, youngest)), third.bucket.eq(bucket),
            third.offset.eq(offset), start.eq(f2.start),
            third.step.due.eq(second.due & (second.due - 1) & ~Cat(
                two & (lookup == n - 1) for n in range(self._lookups)))]
        decision = Signal(data.StructLayout({
            "step": second.shape(), "looks": 1, "any": 1, "known": 1, "number": range(max(2, self._lookups)), "two": 1,
            "at": self._next["at"].shape}), name="decision")
        stages = step_latency(config)
        row = (start + third.offset)[:ring_rows(config).bit_length() - 1]
        delayed = Delays(m, Cat(third.step, third.looks, third.any, third.known, third.number, third.two,
                                Mux(third.looks, third.bucket, row)), "decision_delay")
        steps = Delays(m, valid, "step_valid", reset_less=False)
        m.d.comb += Cat(decision).eq(delayed.at(stages - 2))

        # Last stage: the outcome of the comparison is there; the next read, or the end.
        step, done = decision.step, steps.at(stages)
        match = Delays(m, matcher.match, "match").at(stages - config.stages)
        outcome = match[0] if c.known is None else Mux(step.known, step.match, match[0])
        count_write, count_read = c.counts.write_port(), c.counts.read_port(domain="comb")
        hit_write, state_write, found = c.hits.write_port(), c.state.write_port(), Signal()
        looks, reads = Signal(name="looks"), Signal(name="reads_on")
        count, room, kept = Signal(range(2 * HIT_LIST)), Signal(name="list_room"), Signal(self._state, name="kept")
        hit, listed, stop, counting = c.repetition.on_hit(m, step.context == c.oldest, done & step.inside & outcome)
        m.d.comb += [
            found.eq(hit & listed), count_read.addr.eq(step.context),
            count.eq(Mux(step.start, 0, count_read.data + found)), count_write.addr.eq(step.context),
            count_write.data.eq(count), count_write.en.eq(done),
            hit_write.addr.eq(Cat(count_read.data[:-1], step.context)), hit_write.data.eq(step.hit),
            hit_write.en.eq(found),
            room.eq(counting | ~(count - Mux(step.context == c.oldest, c.taken, 0))[:len(count)][-1]),
            looks.eq(decision.looks & ~stop), reads.eq(decision.any & ~decision.looks & ~stop),
            kept.due.eq(step.due), kept.cursors.eq(step.cursors), kept.number.eq(decision.number),
            kept.head.eq(decision.looks), kept.two.eq(decision.two),
            state_write.addr.eq(step.context), state_write.data.eq(kept), state_write.en.eq(done),
            following.i.valid.eq(done & (looks | (reads & room & ~decision.known))),
            following.i.p.context.eq(step.context), following.i.p.head.eq(decision.looks),
            following.i.p.at.eq(decision.at), self.compared.eq(done & step.inside),
        ]
        if c.known is not None:
            m.d.comb += [c.known.i.valid.eq(done & reads & room & decision.known), c.known.i.payload.eq(step.context),
                         *(kept.cursors[n].match.eq(Mux(step.looked[n], match[0], step.cursors[n].match))
                           for n in range(self._lookups))]
        with m.If(done):
            m.d.sync += [c.begun.bit_select(step.context, 1).eq(1),
                         c.parked.bit_select(step.context, 1).eq(reads & ~room),
                         c.finished.bit_select(step.context, 1).eq(~looks & ~reads)]
        if c.repetition.made:
            with m.If(done & step.start & (step.context == c.oldest)):
                m.d.sync += c.repetition.due.eq(0)

    def _drain(self, m: Module, c: _Contexts) -> None:
        """Hands the hits of the oldest context to the emitter, and frees it."""
        m.submodules.batches = batches = Queue(batch_layout(self._config), geometry.PASSES)
        wiring.connect(m, batches.o, wiring.flipped(self.batch))
        fixed_read, count_read, hit_read = (part.read_port(domain="comb") for part in (c.fixed, c.counts, c.hits))
        shown = data.View(self._fixed, fixed_read.data)
        opened, live, drained, give, ends = (Signal(name=name) for name in (
            "opened", "live", "drained", "give", "ends"))
        again = c.repetition
        ahead: Value = Const(0)  # probes that look up nothing here come before the oldest context's
        if self._config.routed:
            gone, probe = Signal(_PASSED, name="gone"), Signal(ROW_BITS, name="next_probe")
            ahead = gone != shown.passed
            m.d.comb += [
                c.passes.eq(~opened & self.room & batches.i.ready & Mux(
                    c.level != 0, ahead, (c.passed != 0) & ~c.allocated)),
                batches.i.p.probe.eq(Mux(c.passes, probe, shown.probe))]
            with m.If(batches.i.valid & batches.i.ready):
                m.d.sync += probe.eq(batches.i.p.probe + 1)
            m.d.sync += gone.eq(Mux(c.leave, 0, gone + (c.passes & (c.level != 0))))
        of = {name: flags.bit_select(c.oldest, 1) for name, flags in (
            ("begun", c.begun), ("finished", c.finished), ("parked", c.parked))}
        m.d.comb += [
            fixed_read.addr.eq(c.oldest), count_read.addr.eq(c.oldest),
            hit_read.addr.eq(Cat(c.taken[:-1], c.oldest)),
            self.scanning.eq(c.level != 0), self.position.eq(shown.start), live.eq((c.level != 0) & of["begun"]),
            batches.i.valid.eq((live & ~opened & ~ahead) | c.passes), batches.i.p.row.eq(shown.row),
            batches.i.p.flush.eq(shown.flush & ~c.passes), batches.i.p.count.eq(Mux(c.passes, 0, shown.count)),
            drained.eq(c.taken == count_read.data),
            give.eq(opened & ~drained & self.room & ~again.holds),
            ends.eq(opened & drained & of["finished"] & ~again.due), c.leave.eq(ends & self.room & again.last),
            c.resume.eq(opened & drained & of["parked"] & ~again.due & ~self.answer_valid & ~c.begin),
        ]
        again.drive(m, c, give, opened & ~drained, ends, (of["finished"] | of["parked"]), self.room,
                    ~self.answer_valid & ~c.begin)
        if again.made:
            m.d.sync += [self.found.more.eq(again.part), self.found.drop.eq(again.drop)]

        with m.If(batches.i.valid & batches.i.ready & ~c.passes):
            m.d.sync += opened.eq(1)
        with m.If(give):
            m.d.sync += c.taken.eq(c.taken + 1)
        with m.If(c.leave):
            m.d.sync += [opened.eq(0), c.taken.eq(0), c.oldest.eq(c.oldest + 1),
                         c.begun.bit_select(c.oldest, 1).eq(0), c.finished.bit_select(c.oldest, 1).eq(0)]
        with m.If(c.repeat):
            m.d.sync += [c.taken.eq(0), c.finished.bit_select(c.oldest, 1).eq(0)]
        m.d.sync += [self.found_valid.eq(give | c.leave | again.part | again.drop | c.passes), self.found.hits.eq(give),
                     self.found.last.eq(c.leave | again.part | c.passes),
                     self.found.group.eq(hit_read.data)]

    def _ask(self, m: Module, following: Queue) -> None:
        """Sends reads to memory, those of heads when no store of their line is under way."""
        config, side, item = self._config, self._side, following.o.payload
        room, send = Signal(name="read_room"), Signal(name="send")
        m.d.comb += [
            room.eq(~self.read.valid | self.read.ready), self.look.eq(head_line(config, item.at)),
            send.eq(following.o.valid & room & ~(item.head & self.blocked)), following.o.ready.eq(send),
            self.reads.eq(send & ~item.head),
        ]
        with m.If(room):
            line = Mux(item.head, first_head(config, side) | head_line(config, item.at),
                       first_record(config, side) | item.at[:ring_rows(config).bit_length() - 1])
            m.d.sync += [self.read.valid.eq(send), self.read.p.line.eq(line[:address_bits(config)]),
                         self.read.p.number.eq(item.context)]

    def _bucket(self, f: Any, number: Value) -> Value:
        """The bucket of look-up ``number``: of each part of its number the first one, or the one above."""
        parts = len(self._fixed["here"].shape.members)
        return Cat(Mux(number[n] if self._lookups > 1 else 0, f.above[f"part{n}"], f.here[f"part{n}"])
                   for n in range(parts))

    def _shares_line(self, f: Any, due: Value, number: Value) -> Value:
        """True if the look-up behind ``number`` is due too, and its head lies in the same line."""
        if self._lookups == 1 or heads_a_line(self._config) == 1:
            return Const(0, 1)
        return Cat((number == n) & due[n + 1] for n in range(0, self._lookups, 2)).any() & (
            ~f.here["part0"][:self._slot_bits].all())

    def _youngest(self, cursors: Any) -> tuple[Value, Value, Value]:
        """The number of the youngest of ``cursors``, whether there is one, and its offset."""
        found: list[tuple[Value, Value, Value]] = [(Const(n, 2), cursors[n].valid, cursors[n].offset)
                                                   for n in range(self._lookups)]
        while len(found) > 1:
            pairs = []
            for (a, a_valid, a_offset), (b, b_valid, b_offset) in zip(found[::2], found[1::2], strict=True):
                takes = b_valid & (~a_valid | (b_offset > a_offset))
                pairs.append((Mux(takes, b, a), a_valid | b_valid, Mux(takes, b_offset, a_offset)))
            found = pairs
        return found[0]


class _Contexts:
    """The state that contexts share, and that of each of them.

    Attributes:
        fixed, state, counts, hits: Memories, of a row a context; ``hits`` has `HIT_LIST` of them.
        oldest, tail: The context whose hits leave, and the next one to be taken; ``level``: contexts in use.
        begins: The context whose first step is due.
        begin, resume, repeat: The first step of that one, a further step, or anew the first one of the oldest, begin in
            this cycle. ``repetition``: whether and why it is repeated.
        known: Contexts whose next tuple came with its head, so that their next step reads nothing; None where heads
            have no records.
        allocated, leave: A context is taken, and the oldest one is free again.
        begun, finished, parked: Contexts whose first step is done; that have read all; that wait for room in their
            list.
        taken: Hits of the oldest context that have left.
        passed: Probes behind the youngest context's that look up nothing; ``passes``: one such leaves in this cycle.
    """

    def __init__(self, m: Module, config: Configuration, fixed: Any, state: Any):
        k, position = config.contexts, position_bits(config)
        bits = (k - 1).bit_length()
        m.submodules.fixed = self.fixed = memory.Memory(shape=Shape.cast(fixed).width, depth=k, init=[])
        m.submodules.state = self.state = memory.Memory(shape=Shape.cast(state).width, depth=k, init=[])
        m.submodules.counts = self.counts = memory.Memory(shape=range(2 * HIT_LIST), depth=k, init=[])
        m.submodules.hits = self.hits = memory.Memory(shape=position, depth=k * HIT_LIST, init=[])
        self.level = Signal(range(k + 1))
        self.oldest, self.tail, self.begins = (Signal(bits, name=name) for name in ("oldest", "tail", "begins"))
        self.begin, self.resume, self.repeat, self.allocated, self.leave = (Signal(name=name) for name in (
            "begin", "resume", "repeat", "allocated", "leave"))
        self.begun, self.finished, self.parked = (Signal(k, name=name) for name in ("begun", "finished", "parked"))
        self.taken = Signal(range(2 * HIT_LIST))
        self.passed, self.passes = Signal(_PASSED, name="passed"), Signal(name="passes")
        self.repetition = Repetition(config)
        self.known: Queue | None = None
