"""The processing side of a region: collects probes into batches, and reads the ring once for each batch."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out
from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import TABLE_WRITE_CYCLES, group_bits, outcome_latency, position_bits, ring_rows
from splitjoin.circuit.wire import ROW_BITS, Configuration

from ..hls.matcher import Matcher
from ..tech.ram import Ram
from .interfaces import ProcessingSignature
from .layouts import task_layout

__all__ = ["Scanner"]

#: Cycles from issuing a read to its keys.
_READ_LATENCY = Ram.latency


class Scanner(wiring.Component):
    """Compares a batch of probes with every live tuple of the sub-window, oldest first (SplitJoin, Algorithm 3).

    While a pass is under way, the probes that come are collected. When it ends they are the next batch, and its first
    read follows the last one of the pass before in the next cycle. A pass reads the union of its probes' windows once,
    a tuple from each lane a cycle, and starts with the oldest tuple of the oldest probe, wherever in the lanes that
    lies. Each probe takes part from its own start to its own end: tuples that were stored after it, or expired before
    it, are masked off.

    With tables a batch takes no more when it is full, or little is left of the pass under way.

    Ports: `ProcessingSignature`; `latency` outcomes may still come after ``room`` has fallen. ``reads``, ``stall_…``:
    for `RegionCounters`.
    """

    counters = ("reads", "stall_results")

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        super().__init__({
            **ProcessingSignature(config, side).members,
            "reads": Out(1),
            "stall_results": Out(1),
        })

    @property
    def latency(self) -> int:
        """Cycles from issuing a read to its outcome."""
        return outcome_latency(self._config)

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        lanes, probes = config.lanes, config.probes
        lane_bits = lanes.bit_length() - 1
        m.submodules.matcher = matcher = Matcher(config, self._side)
        m.d.comb += [matcher.keys[lane].eq(self.keys[lane]) for lane in range(lanes)]

        # A task waits here, its bounds in the matcher, so that what takes it does not wait for what makes room for it.
        task = Signal(data.StructLayout({name: field.shape for name, field in task_layout(config, self._side)
                                         if name not in ("bounds", "reach")}), reset_less=True)
        # One waits; the opposite, for many registers.
        task_valid, task_ready = Signal(name="task_valid"), Signal(init=1, name="task_ready")
        accept = Signal()
        m.d.comb += [self.task.ready.eq(task_ready), matcher.bounds.eq(self.task.payload.bounds),
                     matcher.hold.eq(~task_ready)]
        m.d.sync += [task_valid.eq(Mux(task_valid, ~accept, self.task.valid)),
                     task_ready.eq(Mux(task_valid, accept, ~self.task.valid))]
        with m.If(task_ready):
            m.d.sync += [task[name].eq(self.task.payload[name]) for name, _ in task.shape()]

        # The batch being collected.
        batch_size = Signal(range(probes + 1))  # probes in it
        flush = Signal()
        row = Signal(ROW_BITS, reset_less=True)
        reach = Signal(position_bits(config))  # tuples that its pass reads: windows never end earlier than before
        take = Signal()  # it becomes the batch under way
        taken = Signal()  # it became so in the last cycle
        pass_due = Signal()  # it becomes so now, or with the last read before it
        begins_batch = Signal()  # the task is the first of its batch, which it then becomes at once
        fills_batch = Signal()  # the batch takes no more probes than the task
        batch_closed = Signal()  # it takes no more than it has
        # That is so, or tables of probes in it are being written, whose bounds must stand meanwhile.
        batch_locked = Signal(name="batch_locked") if config.tables else batch_closed
        batch_limit = Signal.like(batch_size)  # probes of a batch
        m.d.sync += batch_limit.eq(Mux(self.single, 1, probes))
        begin, start, end = (Signal(position_bits(config), name=name) for name in ("begin", "start", "end"))
        m.d.comb += [
            # Not in the two cycles from taking a batch on, for the bounds collected so far to reach their comparators,
            # which lag behind by `_READ_LATENCY` cycles.
            begins_batch.eq(task_valid & ~self.waiting & ~taken),
            accept.eq(task_valid & ~taken & (~self.waiting | (~batch_locked & ~pass_due))),
            begin.eq(Mux(self.waiting, self.first, task.start)),
            fills_batch.eq(task.flush | ((batch_size + 1) == batch_limit)),
            start.eq(task.start - begin),
            end.eq(task.end - begin),
            self.claiming.eq(task_valid & ~self.waiting),
        ]
        counts, count = Signal(name="counts"), Signal.like(task.count, name="count", reset_less=True)
        m.d.sync += [counts.eq(accept & ~task.masked), count.eq(task.count), self.compared.eq(Mux(counts, count, 0))]
        loads = Signal(probes)  # the probe of the batch that the last task became
        # No Mux: synthesis would make a reset of it, which is slower.
        m.d.sync += loads.eq(Cat(accept & (batch_size == n) for n in range(probes)))
        m.d.comb += matcher.load.eq(loads)
        with m.If(accept):
            m.d.sync += [batch_size.eq(batch_size + 1), flush.eq(task.flush), self.waiting.eq(1),
                         batch_closed.eq(fills_batch)]
            with m.If(~self.waiting | ~task.flush):
                m.d.sync += reach.eq(end)
        with m.If(begins_batch):
            m.d.sync += [self.first.eq(task.start), row.eq(task.row)]
        with m.If(take):
            m.d.sync += [batch_size.eq(0), flush.eq(0), self.waiting.eq(0), batch_closed.eq(0)]
        m.d.sync += taken.eq(take)
        due: Value = (task_valid & ~taken) | self.waiting
        if config.tables:
            pass_ends_soon = Signal(name="pass_ends_soon")
            with m.If(self.waiting & pass_ends_soon & ~take):
                m.d.sync += batch_closed.eq(1)
            due = written = self._write(m, matcher, accept, batch_size, batch_closed, batch_locked)
            with m.If(accept & fills_batch):
                m.d.sync += batch_locked.eq(1)
            with m.If(self.waiting & pass_ends_soon):
                m.d.sync += batch_locked.eq(1)
            with m.If(take):
                m.d.sync += [batch_locked.eq(0), written.eq(0)]

        # The pass under way.
        left = Signal(position_bits(config))  # tuples it has still to read
        upper, lower = (Signal(range(ring_rows(config)), name=name) for name in ("upper", "lower"))
        issue, advance = Signal(name="issue"), Signal(name="advance")  # one is read; that, or a pass begins
        last, next_last = Signal(name="last"), Signal(name="next_last")  # no more than a read is left; than two
        last_or_idle = Signal(init=1)  # that is so, or there is no pass
        batch_free = Signal(init=1)  # of the batch's register, like `batch.valid`, which is asked for elsewhere
        m.d.comb += [
            # All that a probe may see was written before it came.
            issue.eq(self.scanning & self.room),
            take.eq(pass_due & (~self.scanning | self.room)),
            advance.eq(Mux(self.scanning, self.room, pass_due)),
            self.reads.eq(issue),
            self.stall_results.eq(Mux(self.scanning, ~self.room, self.waiting & ~take)),
        ]
        # There is a batch to take, no read before it but a last one, and its register is free.
        m.d.sync += pass_due.eq(~take & due & (batch_free | self.batch.ready)
                             & (last_or_idle | (issue & next_last)))
        with m.If(self.batch.ready):
            m.d.sync += [self.batch.valid.eq(0), batch_free.eq(1)]
        with m.If(take):
            m.d.sync += [self.batch.valid.eq(1), batch_free.eq(0)]
        with m.If(batch_free):
            m.d.sync += [
                self.batch.payload.row.eq(row), self.batch.payload.flush.eq(flush),
                self.batch.payload.lane.eq(self.first[:lane_bits]), self.batch.payload.probes.eq(batch_size - 1),
                self.batch.payload.count.eq(reach),
            ]
        # Where a read is issued in the cycle of `pass_due`, `take` is too: so `pass_due`, which comes earlier, selects.
        with m.If(advance):
            m.d.sync += [
                self.scanning.eq(pass_due | ~last_or_idle),
                left.eq(Mux(pass_due, reach, left - lanes)),
                last.eq(Mux(pass_due, reach <= lanes, next_last)),
                next_last.eq(Mux(pass_due, reach <= 2 * lanes, left <= 3 * lanes)),
                last_or_idle.eq(Mux(pass_due, reach <= lanes, last_or_idle | next_last)),
                self.position.eq(Mux(pass_due, self.first, self.position + lanes)),
                lower.eq(Mux(pass_due, self.first[lane_bits:], upper)),
                upper.eq(Mux(pass_due, self.first[lane_bits:], upper) + 1),
            ]
        if config.tables:  # that the next pass's are to be written, so that they are in time
            m.d.sync += pass_ends_soon.eq(last_or_idle | (left <= TABLE_WRITE_CYCLES * lanes))
        # A read may begin in any lane: those before it are one row further.
        for lane in range(lanes - 1):
            m.d.comb += self.rows[lane].eq(Mux(self.position[:lane_bits] > lane, upper, lower))
        m.d.comb += self.rows[lanes - 1].eq(lower)

        # Everything about the batch changes hands when the last keys of the one before are at the matcher.
        swap = taken
        for n in range(_READ_LATENCY - 1):
            delayed = Signal(name=f"swap{n}")
            m.d.sync += delayed.eq(swap)
            swap = delayed
        m.d.comb += matcher.swap.eq(swap)
        token = Cat(issue, last)
        for n in range(_READ_LATENCY):
            delayed = Signal(2, name=f"token{n}")
            m.d.sync += delayed.eq(token)
            token = delayed
        mask = self._mask(m, task, loads, start, end, swap, token)

        for n in range(config.stages):
            later = Signal(2, name=f"token_matched{n}")
            m.d.sync += later.eq(token)
            token = later
        for n in range(config.stages - 1):
            later_mask = Signal.like(mask, name=f"mask{n}", reset_less=True)
            m.d.sync += later_mask.eq(mask)
            mask = later_mask
        m.d.sync += [self.found_valid.eq(token[0]), self.found.last.eq(token[1]),
                     self.found.hits.eq(matcher.match & mask)]
        return m

    def _write(self, m: Module, matcher: Matcher, accept: Signal, batch_size: Signal, batch_closed: Signal,
               batch_locked: Signal) -> Signal:
        """Starts writing the tables of a group of probes when it is complete, or when the batch takes no more probes.

        ``batch_locked`` is 1 while the bounds of the group must stay. Returns a flag: the batch takes no more probes,
        and all its tables are written.
        """
        # There are probes whose tables are not written; which group they are; and no more are to come.
        some, group_complete = Signal(name="unwritten"), Signal(name="group_complete")
        group_select = Signal(len(matcher.fill))
        write_start, done = Signal(name="write_start"), Signal(name="written")
        m.d.comb += [write_start.eq(some & (group_complete | batch_closed)),
                     matcher.fill.eq(group_select & write_start.replicate(len(group_select)))]
        since = [write_start]  # it began so many cycles ago
        for n in range(1, TABLE_WRITE_CYCLES - 1):
            since.append(Signal(name=f"write_start{n}"))
            m.d.sync += since[n].eq(since[n - 1])
        with m.If(since[-1] & ~batch_closed):
            m.d.sync += batch_locked.eq(0)
        with m.If(write_start):
            m.d.sync += [some.eq(0), group_complete.eq(0)]
        with m.If(accept):
            last = (batch_size + 1) % geometry.PROBE_GROUP == 0
            m.d.sync += [some.eq(1), group_complete.eq(last), batch_locked.eq(last),
                         *(group_select[n].eq(batch_size // geometry.PROBE_GROUP == n)
                           for n in range(len(group_select)))]
        # Before the last of it is written: what it decides takes as long to come to the tables.
        m.d.sync += done.eq(batch_closed & ~some & ~Cat(since[:TABLE_WRITE_CYCLES - _READ_LATENCY - 2]).any())
        return done

    def _mask(self, m: Module, task, loads, start, end, swap, token) -> Signal:
        """The mask of probes and lanes that take part in the read whose keys were at the matcher in the last cycle.

        A probe's window starts and ends with a read's number within the pass, found by equality, and the lanes of that
        read from which on it is so. Both are made of ``start`` and ``end``, of the cycle before ``loads`` tells whose
        they are, and so is what tells whether the task is masked.
        """
        config = self._config
        lanes, lane_bits = config.lanes, config.lanes.bit_length() - 1
        valid, last = token
        group = Signal(group_bits(config))
        with m.If(valid):
            m.d.sync += group.eq(Mux(last, 0, group + 1))
        part = Signal()
        m.d.sync += part.eq(~task.masked)
        edges_by_name: list[tuple[str, Signal, Signal]] = []
        for name, edge in (("start", start), ("end", end)):
            # Lane l is the (l − lane0) mod lanes-th tuple of a read, if the batch's reads begin in lane0.
            held_edge = Signal(position_bits(config), name=f"{name}_held", reset_less=True)
            lane0 = self.first[:lane_bits]
            m.d.sync += held_edge.eq(edge)
            edge_lanes = (Cat((lane - lane0)[:lane_bits] >= held_edge[:lane_bits] for lane in range(lanes))
                          if lanes > 1 else Const(1))
            edges_by_name.append((name, held_edge, edge_lanes))
        # The lanes' part follows a cycle behind that of the reads' numbers.
        swapped = Signal()
        m.d.sync += swapped.eq(swap)
        mask = Signal(config.probes * lanes)
        for probe in range(config.probes):
            members = [Signal(name=f"member{probe}_{n}") for n in range(2)]
            with m.If(swapped):
                m.d.sync += [members[1].eq(members[0]), members[0].eq(0)]
            with m.If(loads[probe]):
                m.d.sync += members[0].eq(part)
            since = []  # per edge, the lanes that lie behind it
            for name, edge, edge_lanes in edges_by_name:
                at = [Signal(group_bits(config), name=f"{name}{probe}_{n}", reset_less=True) for n in range(2)]
                edges = [Signal(lanes, name=f"{name}_lanes{probe}_{n}", reset_less=True) for n in range(2)]
                reached, was_reached, at_edge = (Signal(name=f"{name}_{kind}{probe}")
                                                 for kind in ("reached", "was_reached", "at_edge"))
                with m.If(loads[probe]):
                    m.d.sync += [at[0].eq(edge[lane_bits:]), edges[0].eq(edge_lanes)]
                with m.If(swap):
                    m.d.sync += at[1].eq(at[0])
                with m.If(swapped):
                    m.d.sync += edges[1].eq(edges[0])
                m.d.sync += [at_edge.eq(at[1] == group), was_reached.eq(reached)]
                with m.If(valid):
                    m.d.sync += reached.eq(~last & (reached | (at[1] == group)))
                since.append([was_reached | (at_edge & edges[1][lane]) for lane in range(lanes)])
            for lane in range(lanes):
                # Beyond its window's end only the last batch member could be, in the rest of the last read.
                m.d.comb += mask[probe * lanes + lane].eq(members[1] & since[0][lane] & ~since[1][lane])
        return mask
