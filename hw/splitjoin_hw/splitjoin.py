"""The whole SplitJoin circuit: a distribution tree, cores, gather trees, and a combiner of both sides."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring

from splitjoin.circuit.geometry import (
    REPORT_GROUP,
    RESULT_QUEUE,
    SEQUENCE_FIFO,
    log_depth,
    order_bits,
    register_tree_depth,
    root_ways,
    sequence_depth,
)
from splitjoin.circuit.registers import DEAD_CORES, LAST_PROBE, REGION_COUNTERS
from splitjoin.circuit.wire import ROW_BITS, Op

from .core.core import Core
from .core.watchdog import Watchdog
from .gather.combiner import Combiner
from .gather.ordered_folder import OrderedFolder, operation_layout
from .gather.root import Root
from .gather.state_tree import StateTree, state_items
from .gather.tree import GatherTree
from .gather.ways import WayTree
from .layouts import STREAM_R, input_layout, result_layout, taken
from .link.registers import RegisterBlock
from .memory.port import AxiMaster
from .network.block_fifo import BlockFifo
from .network.pipeline import pipelined, register_tree
from .network.queue import Queue
from .network.skid_buffer import SkidBuffer
from .network.tree import DistributionTree
from .stage_counters import stage_occupancies, sums
from .top import Top, total

#: Tuples that may still arrive after `sequence_room` has fallen, plus one.
_UNDER_WAY = 5
#: A core's report of tuples that did not fit; the last field: R tuples before the first such S tuple.
_REPORT = data.StructLayout({"overflow_r": 1, "overflow_s": 1, "overflow_row_r": ROW_BITS, "overflow_row_s": ROW_BITS,
                             "overflow_after_s": ROW_BITS})


class SplitJoin(Top):
    """Distribution tree → join cores → gather trees → combiner (SplitJoin, Figure 11)."""

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self.config
        k = config.cores
        m.submodules.registers = registers = RegisterBlock(config)
        m.submodules.tree = tree = self._distribution()
        record = self._record
        left: GatherTree | WayTree | StateTree
        if config.folds and not config.in_order:
            m.submodules.left = left = StateTree(config, self._parts)
        else:
            m.submodules.left = left = self._gathering()
            m.d.comb += left.total.eq(registers.settings.sorted)
        # The sequence FIFOs have space for all tuples that may still arrive.
        sequence_room = Signal()
        gathered: Any
        if isinstance(left, StateTree) and config.whole_states:
            m.d.comb += sequence_room.eq(1)
            gathered, stored = left.o, left.later
        else:
            m.submodules.right = right = self._gathering()
            m.d.comb += right.total.eq(registers.settings.sorted)
            stored = right.i
            if config.in_order:
                gathered = self._fold_in_order(m, registers, left, right, record, sequence_room)
            else:
                gathered = self._combine(m, registers, left, right, record, sequence_room)
        if config.whole_states:
            items: list[Any] = [{"kind": gathered.payload.kind, "side": STREAM_R, "r": gathered.payload.probe,
                                 "s": gathered.payload.stored}]
        else:
            items = [gathered.payload] if config.root_width == 1 else list(gathered.payload)

        accepting, settling = self._accepting(m, sequence_room)
        m.d.comb += [
            tree.i.payload.eq(record),
            tree.i.valid.eq(self.i.valid & accepting),
            self.i.ready.eq(tree.i.ready & accepting),
            self.o.payload.eq(Cat(Const(item[name], width) if isinstance(item[name], int) else item[name][:width]
                                  for item in items for name, width in config.item_record.fields)),
            self.o.valid.eq(gathered.valid),
            gathered.ready.eq(self.o.ready),
            *self._bus(registers),
        ]

        cores = []
        settings = register_tree(m, self._parts, "settings", registers.settings, k)
        for n in range(k):
            core = self._parts.add(m, f"core{n}", "core", lambda: Core(config))
            if not config.fault_timeout:
                wiring.connect(m, tree.o[n], core.i)
                wiring.connect(m, core.left, left.i[n])
                wiring.connect(m, core.right, stored[n])
            m.d.comb += [core.index.eq(n), core.settings.eq(settings[n])]
            cores.append(core)

        fault = self._memory(m, cores) if config.memory != "bram" else None
        watchdogs = self._watch(m, cores, tree, left, right) if config.fault_timeout else []
        valid_since_reset = Signal()  # no register holds anything from before a reset
        m.d.sync += valid_since_reset.eq(settling == 0)
        self._count(m, registers, record, [core.compared[n] for core in cores for n in (0, 1)],
                    [core.matched[n] & ~watchdogs[at].dead if watchdogs else core.matched[n]
                     for at, core in enumerate(cores) for n in (0, 1)])
        self._report_overflow(m, registers, cores, valid_since_reset, [watchdog.dead for watchdog in watchdogs], fault)
        if config.region_counters:
            select = registers.select
            counter = Signal(range(len(REGION_COUNTERS)))
            side = Signal()
            m.d.sync += [counter.eq(select[20:]), side.eq(select[16])]
            selected = [Array(core.selected[n] for core in cores)[select[:16]] for n in (0, 1)]
            m.d.comb += [core.select.eq(counter) for core in cores]
            m.d.sync += registers.selected.eq(Mux(side, selected[1], selected[0]))
        if watchdogs:
            self._show_faults(m, registers, watchdogs)
        if config.stage_counters:
            held = stage_occupancies(m, record, self.i, self.o, cores, (left, right))
            totals = sums(m, {name: total(m, numbers, name) for name, numbers in held.items()})
            m.d.sync += registers.selected.eq(Array(totals)[registers.select[20:]])
        return m

    def _distribution(self) -> Any:
        """The network from the input to the cores."""
        config = self.config
        return DistributionTree(input_layout(config), leaves=config.cores, fanout=config.fanout, parts=self._parts)

    def _gathering(self) -> Any:
        """The network from the cores to one side of the combiner."""
        config = self.config
        options: dict[str, Any] = {"leaves": config.cores, "fanin": config.fanin, "bits": order_bits(config),
                                   "parts": self._parts}
        if root_ways(config.root_width) > 1:
            return WayTree(**options)
        return GatherTree(**options, fixed=config.merger == "fixed", isolates=bool(config.fault_timeout))

    def _combine(self, m: Module, registers: RegisterBlock, left: Any, right: GatherTree | WayTree, record: Any,
                 sequence_room: Signal) -> stream.Interface:
        """Joins the results of both sides, and returns the stream of items. ``sequence_room`` is driven."""
        config = self.config
        combiner: Combiner | Root = Root(config.root_width, self._parts) if config.root_width > 1 else Combiner()
        m.submodules.combiner = combiner
        queues = [Queue(unsigned(1), SEQUENCE_FIFO) for _ in range(sequence_depth(config) // SEQUENCE_FIFO)]
        for n, queue in enumerate(queues):
            m.submodules[f"sequence{n}"] = queue
            if n:
                wiring.connect(m, queues[n - 1].o, queue.i)
        sequence = queues[0]
        # A skid buffer behind the FIFOs keeps their memory out of the combiner's select path.
        m.submodules.sequence_buffer = sequence_buffer = SkidBuffer(unsigned(1))
        total = Signal()
        level = Signal.like(sequence.level, name="sequence_level")
        m.d.sync += [total.eq(registers.settings.total), level.eq(sequence.level),
                     sequence_room.eq(~total | (level < sequence.depth - _UNDER_WAY))]
        m.d.comb += combiner.total.eq(total)
        # Total order: the combiner needs the stream of each tuple, in arrival order.
        m.d.sync += [sequence.i.payload.eq(record.stream),
                     sequence.i.valid.eq(self.i.valid & self.i.ready & total & (record.op == Op.TUPLE))]
        for tree_of_side, side, sink in ((left, "left", combiner.left), (right, "right", combiner.right)):
            if config.root_width > 1:
                for n, way in enumerate(tree_of_side.o if isinstance(tree_of_side, WayTree) else [tree_of_side.o]):
                    wiring.connect(m, way, sink[n])
            else:
                self._queued(m, side, tree_of_side, sink)
        if config.root_width > 1:
            # Groups of more than one probe, or none at all, are not to be held in one way until they are complete.
            spread = Signal()
            m.d.sync += spread.eq(registers.settings.r.precision != 1)
            m.d.comb += [part.spread.eq(spread) for part in (left, right, combiner) if hasattr(part, "spread")]
        wiring.connect(m, queues[-1].o, sequence_buffer.i)
        wiring.connect(m, sequence_buffer.o, combiner.sequence)
        return combiner.o

    def _queued(self, m: Module, side: str, tree: Any, sink: Any) -> None:
        """Connects ``tree`` with ``sink``, through a queue where regions have one."""
        if not self.config.queue:
            wiring.connect(m, tree.o, sink)
            return
        # In total order the side that is ahead must not stop, so its items wait here.
        m.submodules[f"{side}_results"] = results = BlockFifo(result_layout(), RESULT_QUEUE)
        wiring.connect(m, tree.o, results.i)
        wiring.connect(m, results.o, sink)

    def _fold_in_order(self, m: Module, registers: RegisterBlock, left: Any, right: Any, record: Any,
                       room: Signal) -> stream.Interface:
        """The stream of states in items, by a fold of both sides in order of arrival. ``room`` is driven."""
        config = self.config
        layout, depth = operation_layout(config), log_depth(config)
        m.submodules.folder = folder = OrderedFolder(config)
        m.submodules.operations = log = BlockFifo(layout, depth)
        given, held = log.i.payload, Signal(range(depth + 1), name="operations_held")
        time = [given.ts.eq(record.ts)] if config.time_bits else []
        values = [Cat(given["values"]).eq(taken(config.body("s"), payload, record.body))
                  for payload in [config.payload("s")] if payload.fields]
        m.d.sync += [
            given.op.eq(record.op), given.stream.eq(record.stream), *time, *values,
            log.i.valid.eq(self.i.valid & self.i.ready & (record.op != Op.MASK)),
            held.eq(held + log.i.valid - (log.o.valid & log.o.ready)), room.eq(held < depth - _UNDER_WAY),
        ]
        wiring.connect(m, log.o, folder.operation)
        for tree, side in ((left, "left"), (right, "right")):
            self._queued(m, side, tree, getattr(folder, side))
        m.d.sync += folder.window.eq(registers.settings.r)
        out = stream.Signature(result_layout()).create(path=("states",))
        state_items(m, config, folder.o, out)
        return out

    def _memory(self, m: Module, cores: list[Any]) -> Signal:
        """Connects the regions of ``cores`` with external memory, and returns the flag that this has given an error."""
        fault = Signal(name="memory_fault")
        masters = []
        for at, (core, port) in enumerate(zip(cores, [self.m] if len(cores) == 1 else self.m, strict=True)):
            m.submodules[f"master{at}"] = master = AxiMaster(self.config)
            for n in (0, 1):
                wiring.connect(m, core.memory[n], master.regions[n])
            wiring.connect(m, master.bus, wiring.flipped(port))
            masters.append(master)
        m.d.sync += fault.eq(Cat(master.fault for master in masters).any())
        return fault

    def _watch(self, m: Module, cores: list[Any], tree: Any, left: Any, right: Any) -> list[Any]:
        """Watchdogs between the trees and the ``cores``."""
        config, watchdogs = self.config, []
        count = Signal(range(config.fault_timeout), name="fault_count")
        tick = Signal(name="fault_tick")
        m.d.sync += [tick.eq(count == config.fault_timeout - 1),
                     count.eq(Mux(count == config.fault_timeout - 1, 0, count + 1))]
        ticks = register_tree(m, self._parts, "fault_ticks", tick, config.cores)
        for n, core in enumerate(cores):
            watchdog = self._parts.add(m, f"watchdog{n}", "watchdog", lambda: Watchdog(config))
            wiring.connect(m, tree.o[n], watchdog.i)
            wiring.connect(m, watchdog.core_i, core.i)
            for side, sink in (("left", left.i[n]), ("right", right.i[n])):
                wiring.connect(m, getattr(core, side), getattr(watchdog, f"core_{side}"))
                wiring.connect(m, getattr(watchdog, side), sink)
            m.d.comb += [watchdog.busy.eq(core.busy), watchdog.works.eq(core.works), watchdog.tick.eq(ticks[n]),
                         watchdog.overflow.eq(core.overflow_r | core.overflow_s)]
            watchdogs.append(watchdog)
        for gathered in (left, right):
            m.d.comb += gathered.dead.eq(Cat(watchdog.dead for watchdog in watchdogs))
        return watchdogs

    def _show_faults(self, m: Module, registers: RegisterBlock, watchdogs: list[Any]) -> None:
        """Makes ``selected`` show what `splitjoin.circuit.registers.DEAD_CORES` and ``LAST_PROBE`` name."""
        select = registers.select
        dead = total(m, [watchdog.dead for watchdog in watchdogs], "dead")
        side, counter = Signal(name="fault_side"), Signal(range(LAST_PROBE + 1), name="fault_counter")
        last = [Signal(ROW_BITS + 2, name=f"fault_last{n}") for n in (0, 1)]
        m.d.sync += [side.eq(select[16]), counter.eq(select[20:]),
                     *(each.eq(Array(Cat(watchdog.last[n], watchdog.dead) for watchdog in watchdogs)[select[:16]])
                       for n, each in enumerate(last))]
        with m.If(counter == DEAD_CORES):
            m.d.sync += registers.selected.eq(dead)
        with m.Elif((counter == LAST_PROBE) | ~Const(self.config.region_counters, 1)):
            m.d.sync += registers.selected.eq(Mux(side, last[1], last[0]))

    def _report_overflow(self, m: Module, registers: RegisterBlock, cores: list[Core], valid_since_reset: Signal,
                         dead: list[Signal], fault: Signal | None) -> None:
        """The sticky overflow report, which begins when ``valid_since_reset`` is high. ``dead``: empty, or for each
        core whether it is left out, and reports nothing. ``fault``: external memory has given an error.
        """
        # Once a region has overflowed, all others stop too, sooner or later, but not before they have processed the
        # input up to the same tuple. So when all have stopped, the first tuple in arrival order that did not fit is
        # among those reported, whatever the timing. The cores' reports are compared in turn to find it.
        visit = Signal(range(max(2, len(cores))))  # the core whose report is compared
        second = Signal()  # the second of its two cycles
        m.d.sync += second.eq(~second)
        # The reports come from all over the device, so they are registered and selected in two steps.
        of_cores = [_report(core) for core in cores]
        if dead:
            # The two flags are the lowest bits.
            of_cores = [Cat(report[:2] & ~each.replicate(2), report[2:])
                        for report, each in zip(of_cores, dead, strict=True)]
        reports = [pipelined(m, self._parts, f"report{n}", report) if register_tree_depth(len(cores)) else report
                   for n, report in enumerate(of_cores)]
        step = Signal.like(visit, name="visit_step")
        groups = [Signal(_REPORT, name=f"report_group{at}", reset_less=True)
                  for at in range(0, len(cores), REPORT_GROUP)]
        report = Signal(_REPORT)
        # Two cycles for each core: its report, stable for both, is compared in the first and kept in the second.
        with m.If(second):
            m.d.sync += [visit.eq(Mux(visit == len(cores) - 1, 0, visit + 1)), step.eq(visit),
                         report.eq(Array(groups)[step // REPORT_GROUP])]
            for n, group in enumerate(groups):
                m.d.sync += group.eq(Array(reports[n * REPORT_GROUP:(n + 1) * REPORT_GROUP])[visit % REPORT_GROUP])
        first_after = Signal(ROW_BITS)  # R tuples before the first S tuple that did not fit
        seen, row = {}, {}
        for side in "rs":
            flag, at = report[f"overflow_{side}"], report[f"overflow_row_{side}"]
            seen[side] = Signal(name=f"overflow_seen_{side}")
            row[side] = Signal(ROW_BITS, name=f"overflow_first_{side}")
            less = Signal(name=f"overflow_less_{side}")
            m.d.sync += less.eq(at < row[side])
            with m.If(second & flag & valid_since_reset & (~seen[side] | less)):
                m.d.sync += [seen[side].eq(1), row[side].eq(at)]
                if side == "s":
                    m.d.sync += first_after.eq(report.overflow_after_s)
            m.d.comb += getattr(registers, f"overflow_row_{side}").eq(row[side])
        r_first = Signal()
        m.d.sync += r_first.eq(row["r"] < first_after)
        m.d.comb += [
            registers.overflow.eq(Cat(seen["r"] & (r_first | ~seen["s"]), seen["s"] & ~(r_first & seen["r"]),
                                      *([] if fault is None else [fault]))),
        ]


def _report(core: Core) -> Value:
    """A core's report of the first tuples that did not fit."""
    return Cat(Value.cast(getattr(core, name)) for name in _REPORT.members)
