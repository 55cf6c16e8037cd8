"""The processing side of a region: collects probes into batches, and reads the ring once for each batch."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from splitjoin.circuit import geometry
from splitjoin.circuit.geometry import TABLE_WRITE_CYCLES, group_bits, outcome_latency, position_bits, ring_rows
from splitjoin.circuit.wire import ROW_BITS, Configuration
from splitjoin.lang.schema import other_side

from ..hls.delays import delay_line
from ..hls.matcher import Matcher
from ..layouts import struct
from ..tech.ram import Ram
from .interfaces import ProcessingSignature
from .layouts import task_layout

#: Cycles from issuing a read to its keys.
_READ_LATENCY = Ram.latency


class Scanner(wiring.Component):
    """Compares a batch of probes with every live tuple of the sub-window, oldest first (SplitJoin, Algorithm 3).

    While a pass is under way, arriving probes are collected. When it ends they are the next batch, whose first read
    follows the last read of the previous pass in the next cycle. A pass reads the union of its probes' windows once, a
    tuple from each lane per cycle, and starts with the oldest tuple of the oldest probe, in whichever lane that lies.
    Each probe takes part from its own start to its own end: tuples that were stored after it, or expired before it,
    are masked off.

    With tables, a batch accepts no more probes when it is full, or when the pass under way is about to end.

    Ports: `ProcessingSignature`; `latency` outcomes may still arrive after ``room`` has fallen. ``load``: the task is
    accepted, and becomes the probe of that number of the batch that is collected; ``values``, where states leave whole:
    those that it brings. ``take``: that batch becomes the one under way. ``reads``, ``stall_…``: for `RegionCounters`.
    """

    counters = ("reads", "stall_results")

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        brought = config.brought(other_side(side))
        super().__init__({
            **ProcessingSignature(config, side).members,
            "reads": Out(1),
            "stall_results": Out(1),
            "load": Out(config.probes),
            "take": Out(1),
            **({"values": Out(struct(brought))} if brought.fields else {}),
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

        # A pipeline register for a task, its bounds in the matcher: it separates accepting a task from adding it to a
        # batch, so that no path leads through both.
        task = Signal(data.StructLayout({name: field.shape for name, field in task_layout(config, self._side)
                                         if name not in ("bounds", "reach")}), reset_less=True)
        # A task waits; and the inverse, a register of its own as it drives many loads.
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
        reach = Signal(position_bits(config))  # tuples that its pass reads: no window ends before an earlier one
        take = Signal()  # it becomes the batch under way
        taken = Signal()  # it became the batch under way in the last cycle
        pass_due = Signal()  # its pass begins now, or with the last read of the previous pass
        begins_batch = Signal()  # the task is the first of its batch
        fills_batch = Signal()  # the task is the last that the batch accepts
        batch_closed = Signal()  # it accepts no more tasks
        # It is closed, or tables of its probes are being written, whose bounds must be stable meanwhile.
        batch_locked = Signal(name="batch_locked") if config.tables else batch_closed
        batch_limit = Signal.like(batch_size)  # most probes of a batch
        m.d.sync += batch_limit.eq(Mux(self.single, 1, probes))
        begin, start, end = (Signal(position_bits(config), name=name) for name in ("begin", "start", "end"))
        m.d.comb += [
            # Tasks wait in the two cycles after a batch was taken, so that the bounds collected so far can reach their
            # comparators, which lag behind by `_READ_LATENCY` cycles.
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
        loads = Signal(probes)  # one bit per probe of the batch: the one that the last task became
        # No Mux: synthesis would turn it into a synchronous reset, which is slower.
        m.d.comb += [self.load.eq(Cat(accept & (batch_size == n) for n in range(probes))), self.take.eq(take)]
        if config.brought(other_side(self._side)).fields:
            m.d.comb += self.values.eq(task["values"])
        m.d.sync += loads.eq(self.load)
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
        issue, advance = Signal(name="issue"), Signal(name="advance")  # a read is issued; that, or a pass begins
        last, next_last = Signal(name="last"), Signal(name="next_last")  # at most one read is left; at most two
        last_or_idle = Signal(init=1)  # at most one read is left, or there is no pass
        batch_free = Signal(init=1)  # inverse of `batch.valid`, a register of its own for the loads here
        m.d.comb += [
            # No check for tuples not yet written: all that a probe may see was written before it arrived.
            issue.eq(self.scanning & self.room),
            take.eq(pass_due & (~self.scanning | self.room)),
            advance.eq(Mux(self.scanning, self.room, pass_due)),
            self.reads.eq(issue),
            self.stall_results.eq(Mux(self.scanning, ~self.room, self.waiting & ~take)),
        ]
        # A batch is due, at most one read of the previous pass is left, and the batch register is free.
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
        if config.tables:  # early enough to write the tables of the next pass
            m.d.sync += pass_ends_soon.eq(last_or_idle | (left <= TABLE_WRITE_CYCLES * lanes))
        # A read may begin in any lane: those before it are one row further.
        for lane in range(lanes - 1):
            m.d.comb += self.rows[lane].eq(Mux(self.position[:lane_bits] > lane, upper, lower))
        m.d.comb += self.rows[lanes - 1].eq(lower)

        # The matcher swaps batches when the last keys of the previous pass have reached it.
        swap = delay_line(m, "swap", taken, _READ_LATENCY - 1)[-1]
        m.d.comb += matcher.swap.eq(swap)
        token = delay_line(m, "token", Cat(issue, last), _READ_LATENCY)[-1]
        mask = self._mask(m, task, loads, start, end, swap, token)
        token = delay_line(m, "token_matched", token, config.stages)[-1]
        mask = delay_line(m, "mask", mask, config.stages - 1, reset_less=True)[-1]
        m.d.sync += [self.found_valid.eq(token[0]), self.found.last.eq(token[1]),
                     self.found.hits.eq(matcher.match & mask)]
        return m

    def _write(self, m: Module, matcher: Matcher, accept: Signal, batch_size: Signal, batch_closed: Signal,
               batch_locked: Signal) -> Signal:
        """Starts writing the tables of a group of probes when it is complete, or when the batch takes no more probes.

        ``batch_locked`` is 1 while the bounds of the group must stay. Returns a flag: the batch takes no more probes,
        and all its tables are written.
        """
        # There are probes whose tables are not written; their group; and the group has all its probes.
        some, group_complete = Signal(name="unwritten"), Signal(name="group_complete")
        group_select = Signal(len(matcher.fill))
        write_start, done = Signal(name="write_start"), Signal(name="written")
        m.d.comb += [write_start.eq(some & (group_complete | batch_closed)),
                     matcher.fill.eq(group_select & write_start.replicate(len(group_select)))]
        since = [write_start]  # element n: a write began n cycles ago
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
        # This flag rises before the last table word is written: its effect takes as long to reach the tables.
        m.d.sync += done.eq(batch_closed & ~some & ~Cat(since[:TABLE_WRITE_CYCLES - _READ_LATENCY - 2]).any())
        return done

    def _mask(self, m: Module, task, loads, start, end, swap, token) -> Signal:
        """The mask of probes and lanes that take part in the read whose keys were at the matcher in the last cycle.

        A window's edge is the number of a read within the pass, compared for equality, and the lanes of that read from
        the edge on. Both are derived from ``start`` and ``end`` in the cycle before ``loads`` selects their probe, and
        so is the flag that the task is not masked.
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
        # The masks of lanes follow the numbers of reads a cycle later.
        swapped = Signal()
        m.d.sync += swapped.eq(swap)
        mask = Signal(config.probes * lanes)
        for probe in range(config.probes):
            members = [Signal(name=f"member{probe}_{n}") for n in range(2)]
            with m.If(swapped):
                m.d.sync += [members[1].eq(members[0]), members[0].eq(0)]
            with m.If(loads[probe]):
                m.d.sync += members[0].eq(part)
            since = []  # per edge, the lanes that lie at or behind it
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
                # Also the batch's last probe needs its end: the last read may go beyond it.
                m.d.comb += mask[probe * lanes + lane].eq(members[1] & since[0][lane] & ~since[1][lane])
        return mask
