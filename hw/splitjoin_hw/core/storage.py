"""The storage side of a region: the sub-window as a ring, its round-robin turn, and expiry."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import position_bits, ring_rows, window_count_bits
from splitjoin.circuit.wire import ROW_BITS, Configuration, Op, Record
from splitjoin.lang.schema import other_side

from ..layouts import STREAM_R, STREAM_S, input_layout, struct, taken, window_layout
from ..tech.ram import Ram
from .interfaces import RingSignature, value_ports
from .layouts import task_layout


class Storage(wiring.Component):
    """Applies operations in arrival order (SplitJoin, section 4, Algorithms 2 and 4).

    A tuple of the region's own stream is counted, and stored when it is this core's turn: row id mod cores = index. A
    tuple of the other stream becomes a task for the processing side, with a snapshot of the live positions; storing
    goes on meanwhile. Where tuples are routed, each has a place in the ring of every core, and is written in one;
    a probe that looks up no bucket of this core becomes a task only if it has a star. Tuples expire on any arrival: by
    time, one per four cycles, before the operation takes effect; by count, together with the store that pushes them
    out.

    An operation takes two cycles: in the first it is decoded into registers, in the second these are combined and it
    takes effect; counters follow in a third. No combinational path spans two of these stages.

    The ring is banked: position p lies in lane p mod lanes. Its slack beyond the tuples that can be live
    (`splitjoin.circuit.geometry.stores`) lets new tuples be stored before expired ones have been read for the last
    time.

    Ports:
        ``i``: input records, in arrival order. ``task``: probes, as `task_layout`.
        ``index``: this core's number, 0 to cores − 1, constant. ``window``: settings, constant while tuples are in
        flight.
        `RingSignature`: the ring as the processing side reads it.
        ``values``, where tuples are stored with values to be folded: those of the tuples in ``keys``.
        ``here``, ``kept``, where tuples are routed: the tuple at ``i`` has its bucket in this core, or as a probe looks
        up one of its buckets; the tuple that is stored has.
        ``written``: the position up to which, exclusive, tuples are written. ``stored``: the tuple at ``i`` is written
        there now. ``hold``: no tuple may be stored in the next cycle.
        ``head``: the position of the oldest live tuple. ``flushed``, ``drains``: a FLUSH takes effect; and is one that
        expires all of R's tuples where states leave whole.
        ``stall_…``, ``stores_high``: for `RegionCounters`.
        ``overflow``, ``overflow_row``: sticky; the tuple that found the ring full of live tuples. Input then stops.
        ``overflow_after``: the number of tuples of the other stream that had arrived before it.
    """

    counters = ("stall_probe", "stall_store", "stall_expiry", "stores_high")

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        super().__init__({
            "i": In(stream.Signature(input_layout(config))),
            "task": Out(stream.Signature(task_layout(config, side))),
            "index": In(range(max(2, config.cores))),
            **({"here": In(1), "kept": Out(1)} if config.routed else {}),
            "window": In(window_layout(config)),
            **RingSignature(config, side).flip().members,
            **value_ports(config, side),
            "written": Out(position_bits(config)),
            "stored": Out(1),
            "head": Out(position_bits(config)),
            "flushed": Out(1),
            "drains": Out(1),
            "hold": In(1),
            "stall_probe": Out(1),
            "stall_store": Out(1),
            "stall_expiry": Out(1),
            "stores_high": Out(range(geometry.stores(config) + 1)),
            "overflow": Out(1),
            "overflow_row": Out(ROW_BITS),
            "overflow_after": Out(ROW_BITS),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config, op = self._config, self.i.payload
        depth = config.capacity
        own = STREAM_R if self._side == "r" else STREAM_S

        live = Signal(range(depth + 1))  # tuples in the sub-window
        not_empty = Signal()  # live != 0
        full = Signal()  # live == depth
        was_one = Signal()  # live was 1 a cycle ago
        was_almost_full = Signal()  # live was one less than depth a cycle ago
        head = self.head  # position of the oldest tuple
        tail = self.written  # position of the next tuple
        head_row = Signal(ROW_BITS)  # row id of the oldest tuple, less index
        turns, place = config.turns, Const(0) if config.routed else self.index
        turn = Signal(range(max(2, turns)))  # own tuples so far, mod turns
        probes = Signal(ROW_BITS)  # tuples of the other stream so far

        # First cycle: the operation is decoded.
        decoded = Signal()
        commit = Signal()  # the operation takes effect
        # A tuple of the own stream that another core stores; that this core stores; that this core stores and has a
        # slot for; that pushes out the oldest tuple.
        stored_elsewhere, stored_here, fits, evicts = (Signal(name=name) for name in (
            "stored_elsewhere", "stored_here", "fits", "evicts"))
        probe, flush = Signal(name="probe"), Signal(name="flush")
        makes_task = Signal()  # a probe or a flush
        immediate = Signal(name="immediate")  # it needs neither a slot nor the processing side
        expiry_applies = Signal(name="expiry_applies")  # tuples expire before it
        # The operation is decoded, and no tuple can expire before it; it is decoded, and ``head_expired`` is valid.
        nothing_to_expire, expiry_known = Signal(name="nothing_to_expire"), Signal(name="expiry_known")
        is_mask, addressed = Signal(name="is_mask"), Signal(name="addressed")
        free_next = Signal()  # a slot is not live, or will not be with the next store
        window_full_next = Signal()  # the window has no row left for the next own tuple
        is_tuple, mine = op.op == Op.TUPLE, turn == place
        expires = self.window.timed & (op.op != Op.FLUSH) & (op.op != Op.MASK)
        tasks: Value = Const(1)  # a probe becomes a task
        if config.routed:
            tasks = self.here | (self.window.precision != 0)
            m.d.sync += self.kept.eq(self.here)
        m.d.sync += [
            decoded.eq(self.i.valid & ~commit),
            stored_elsewhere.eq(is_tuple & (op.stream == own) & ~mine),
            stored_here.eq(is_tuple & (op.stream == own) & mine),
            fits.eq(is_tuple & (op.stream == own) & mine & free_next),
            evicts.eq(is_tuple & (op.stream == own) & window_full_next),
            probe.eq(is_tuple & (op.stream != own)),
            flush.eq(op.op == Op.FLUSH),
            self.drains.eq(op.stream),
            makes_task.eq((is_tuple & (op.stream != own) & tasks) | (op.op == Op.FLUSH)),
            immediate.eq((op.op == Op.TICK) | (op.op == Op.MASK) | (is_tuple & Mux(
                op.stream == own, ~mine, ~tasks))),
            expiry_applies.eq(expires),
            is_mask.eq(op.op == Op.MASK),
            addressed.eq(op.body[:len(self.index)] == self.index),
        ]
        masked = Signal()
        with m.If(decoded & is_mask & addressed):
            m.d.sync += masked.eq(op.stream)

        # Second cycle: an own tuple is counted; it is stored here; the oldest tuple leaves.
        counted, stored, advance = Signal(name="counted"), self.stored, Signal(name="advance")
        # Third cycle: the counters follow, before the second cycle of the next operation.
        was_counted, was_stored, advanced = (Signal(name=name) for name in ("was_counted", "was_stored", "advanced"))
        m.d.sync += [was_counted.eq(counted), was_stored.eq(stored), advanced.eq(advance)]

        # Tuples expire by count together with a store, so that afterwards the window is right for any later probe.
        m.d.comb += window_full_next.eq(self._count(m, was_counted, advanced))
        not_empty_next = Signal()
        if config.time_bits:
            head_expired, known_next = self._age(m, stored & ~not_empty, advance, stored, head)
            head_expires = expiry_known & ~nothing_to_expire & head_expired
            expiry_done = nothing_to_expire | (expiry_known & ~head_expired)
            m.d.sync += [nothing_to_expire.eq(self.i.valid & ~commit & ~(not_empty_next & expires)),
                         expiry_known.eq(self.i.valid & ~commit & ~head_expires & known_next)]
        else:
            head_expires, expiry_done = Const(0), decoded
        full_next = Signal()
        slot_free = self._space(m, stored)
        m.d.comb += [
            stored.eq(expiry_done & fits & slot_free),
            counted.eq(expiry_done & (stored_elsewhere | (fits & slot_free))),
            advance.eq(head_expires | (expiry_done & evicts & (stored_elsewhere | slot_free))),
            commit.eq(expiry_done & (immediate | (makes_task & self.task.ready) | (fits & slot_free))),
            self.i.ready.eq(commit),
            self.stall_probe.eq(self.task.valid & ~self.task.ready),
            self.stall_store.eq(expiry_done & fits & ~slot_free),
            self.stall_expiry.eq(decoded & ~expiry_done),
        ]
        # These are a cycle late, but nothing uses them before they are right again: after an expiry by time, the time
        # of the next tuple must be read first; after a store, another operation must be decoded.
        m.d.comb += [
            full_next.eq(Mux(was_stored, Mux(advanced, full, was_almost_full), full & ~advanced)),
            free_next.eq(~full_next | window_full_next),
            not_empty_next.eq(was_stored | (not_empty & ~(advanced & was_one))),
        ]
        m.d.sync += [
            live.eq(live + was_stored - advanced),
            was_one.eq(live == 1), was_almost_full.eq(live == depth - 1),
            not_empty.eq(not_empty_next),
            full.eq(full_next),
        ]
        with m.If(stored):
            m.d.sync += tail.eq(tail + 1)
        with m.If(advance):
            m.d.sync += head.eq(head + 1)
        with m.If(advanced):
            m.d.sync += head_row.eq(head_row + turns)
        with m.If(counted):
            m.d.sync += turn.eq(Mux(turn == turns - 1, 0, turn + 1))
        with m.If(expiry_done & stored_here & ~fits):
            m.d.sync += self.overflow.eq(1)
        m.d.sync += self.overflow_row.eq(head_row + turns * depth + place)
        m.d.comb += self.overflow_after.eq(probes)

        other = other_side(self._side)
        task = self.task.payload
        start, count, row = self._window(m, head, live, head_row, counted)
        m.d.comb += [
            self.task.valid.eq(expiry_done & makes_task),
            task.start.eq(start),
            task.end.eq(Mux(flush, start, tail)),
            task.count.eq(Mux(flush, 0, count)),
            task.row.eq(row),
            task.masked.eq(masked),
            task.flush.eq(flush),
            Cat(task.bounds).eq(taken(config.body(other), config.bounds(other), op.body)),
        ]
        if config.routed:
            m.d.comb += [task.probe.eq(probes - flush), task.here.eq(self.here | flush)]
        for name, part in (("reach", config.reach(other)), ("values", config.brought(other))):
            if part.fields:
                m.d.comb += Cat(task[name]).eq(taken(config.body(other), part, op.body))
        m.d.comb += self.flushed.eq(commit & flush)
        probed = Signal()
        m.d.sync += probed.eq(commit & probe)
        with m.If(probed):
            m.d.sync += probes.eq(probes + 1)

        if config.memory == "bram":
            self._banks(m, decoded & stored_here & slot_free)
        return m

    def _banks(self, m: Module, writes_next: Value) -> None:
        """The ring. ``writes_next``: the tuple at the input may be written to the tail in the next cycle."""
        config, op, tail = self._config, self.i.payload, self.written
        body = data.View(struct(config.body(self._side)), op.body[:config.body(self._side).width])
        lane_bits = config.lanes.bit_length() - 1
        # Tuples are written a cycle later, from registers next to the banks: no probe can read the slot before.
        row = Signal.like(tail[lane_bits:], name="write_row")
        payload = config.stored_values(self._side).fields
        stored_record = Record(config.keys(self._side).fields + payload)
        keys = Signal(struct(stored_record), name="write_keys", reset_less=True)
        m.d.sync += [row.eq(tail[lane_bits:]), *(keys[name].eq(body[name]) for name, _ in stored_record.fields)]
        for lane in range(config.lanes):
            writes = Signal(name=f"writes{lane}")
            # A free slot may be written before it is known whether the tuple is stored.
            m.d.sync += writes.eq(writes_next & (tail[:lane_bits] == lane))
            m.submodules[f"bank{lane}"] = bank = Ram(struct(stored_record), ring_rows(config))
            if payload:
                m.d.comb += [self.values[lane][name].eq(bank.r_data[name]) for name, _ in payload]
            m.d.comb += [
                bank.r_addr.eq(self.rows[lane]),
                Cat(self.keys[lane]).eq(Cat(bank.r_data[name] for name, _ in config.keys(self._side).fields)),
                bank.w_en.eq(writes), bank.w_addr.eq(row), Cat(bank.w_data).eq(Cat(keys)),
            ]

    def _window(self, m: Module, head: Value, live: Value, head_row: Value, counted: Value) -> tuple[Value, ...]:
        """The window that a probe sees: the position of its oldest tuple, their number, and the oldest one's row id.

        ``counted``: an own tuple takes effect; ``live`` and ``head_row`` follow two cycles later.
        """
        return head, live, head_row

    def _count(self, m: Module, counted: Signal, advanced: Signal) -> Signal:
        """True if an own tuple that takes effect in the next cycle pushes out the oldest one.

        That is so when its row id exceeds the oldest one's by the window's length. A counter holds the number of own
        tuples that still fit the window, in as few bits as the ring's capacity needs: a longer window counts as
        unlimited here.
        """
        config = self._config
        bits = window_count_bits(config)
        rows = Signal(bits, name="window_rows", init=2)  # as if a first store before the settings pushed nothing out
        long = Signal()  # the window is longer than ``bits`` bits can count
        whole, left, base = (Signal(signed(bits + 2), name=name, init=1) for name in ("whole", "left", "base"))
        started = Signal()  # a tuple was counted; the settings are stable by then
        # The counter is never below −1, which means that the window is full; a 0 a cycle ago tells it ahead.
        window_full, window_full_next = Signal(name="window_full"), Signal(name="window_is_full")
        zero = Signal(2)  # the counter was 0, even and odd bits
        turns, place = config.turns, Const(0) if config.routed else self.index
        change = Mux(advanced, Mux(counted, turns - 1, turns), Mux(counted, -1, 0))
        m.d.sync += [
            started.eq(started | counted),
            long.eq(self.window.rows[bits:].any()),
            rows.eq(self.window.rows[:bits]),
            whole.eq((rows | long.replicate(bits)) + place - 1),
            left.eq(base + change), *(zero[n].eq(~base[n::2].any()) for n in range(2)),
            window_full.eq(window_full_next),
        ]
        m.d.comb += [
            base.eq(Mux(started, left, whole)),
            window_full_next.eq(Mux(advanced, window_full & counted if turns == 1 else 0,
                                    Mux(counted, zero.all(), window_full))),
        ]
        return window_full_next

    def _age(self, m: Module, first: Signal, advance: Signal, stored: Signal, head: Signal) -> tuple[Value, Value]:
        """Two flags: the oldest tuple is too old for the operation; the first flag is valid in the next cycle, unless
        the tuple leaves in this one.
        """
        config, op = self._config, self.i.payload
        m.submodules.times = times = Ram(config.time_bits, config.capacity)
        head_expired = Signal()
        # Cycles from a new head to its age: the memory's latency, and one for the comparison.
        pending = Signal(Ram.latency + 1)
        # The time up to which the operation's tuple stays, if it is stored.
        last = Signal(config.time_bits, reset_less=True)
        m.d.comb += [
            times.w_en.eq(stored), times.w_addr.eq(self.written[:len(times.w_addr)]), times.w_data.eq(last),
            times.r_addr.eq(head[:len(times.r_addr)]),
        ]
        m.d.sync += [
            last.eq(op.ts + self.window.range),
            head_expired.eq((times.r_data - op.ts)[config.time_bits - 1]),
            pending.eq(Mux(first | advance, -1, pending >> 1)),
        ]
        return head_expired, ~pending[1]

    def _space(self, m: Module, stored: Signal) -> Signal:
        """True if all passes that must read the slot at the tail have done so.

        The flag is a cycle late. That is safe: stores are at least two cycles apart, and a probe claims the tuples that
        it reads before the next store.
        """
        bits, reach = position_bits(self._config), self._config.capacity + geometry.stores(self._config)
        border = Signal(bits, init=-reach % 2**bits)  # last position to be read before the next store: tail less reach
        slot_free = Signal()
        with m.If(stored):
            m.d.sync += border.eq(border + 1)
        behind = [(border - at)[bits - 1] for at in (self.position, self.first)]
        m.d.sync += slot_free.eq(~(self.scanning & ~behind[0]) & ~(self.waiting & ~behind[1])
                                 & ~self.claiming & ~self.hold)

        unread = Signal(bits)
        ahead = Signal(signed(bits))
        m.d.comb += [
            unread.eq(Mux(self.scanning, self.position, Mux(self.waiting, self.first, self.written))),
            ahead.eq(self.written - self._config.capacity - unread),
            self.stores_high.eq(Mux(ahead > 0, ahead, 0)),
        ]
        return slot_free
