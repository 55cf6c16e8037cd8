"""A join core: two regions that run concurrently and exchange nothing."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.registers import COUNTER_BITS, REGION_COUNTERS
from splitjoin.circuit.wire import ROW_BITS, Configuration

from ..layouts import input_layout, settings_layout, window_layout
from ..network.distributor import Distributor
from .region import Region, match_count, memory_port, region_layout


class Core(wiring.Component):
    """Delivers every record to both regions: the left one stores S and probes with R, the right one the reverse.

    Ports: ``i``: input records. ``left``, ``right``: the regions' results. ``index``: the core's number. ``settings``
    must be stable from three cycles before the first record on, as each region registers them and derives more.
    ``overflow_r``, ``overflow_s`` and their rows; ``overflow_after_s``: R tuples before the S tuple that did not fit.
    ``compared``, ``matched``: for the left and the right region, the numbers of comparisons and of matches to count in
    this cycle. ``select``, ``selected``: the number of a counter, and its value in each region.
    ``scanning``, ``takes``, with stage counters: for each region, a pass is under way, and one is to begin.
    ``busy``, ``works``, with a fault time-out: for each region, it has work to do, and some of it is done in this cycle
    beside taking records and giving results.
    ``memory``: the ports of the left and the right region to external memory.
    """

    def __init__(self, config: Configuration):
        self.config = config
        super().__init__({
            "i": In(stream.Signature(input_layout(config))),
            "left": Out(stream.Signature(region_layout(config, "s"))),
            "right": Out(stream.Signature(region_layout(config, "r"))),
            "index": In(range(max(2, config.cores))),
            "settings": In(settings_layout(config)),
            "overflow_r": Out(1),
            "overflow_s": Out(1),
            "overflow_row_r": Out(ROW_BITS),
            "overflow_row_s": Out(ROW_BITS),
            "overflow_after_s": Out(ROW_BITS),
            "compared": Out(range(config.capacity + 1)).array(2),
            "matched": Out(data.ArrayLayout(match_count(config, "s"), 2)),
            "select": In(range(len(REGION_COUNTERS))),
            "selected": Out(COUNTER_BITS).array(2),
            **({"scanning": Out(2), "takes": Out(2)} if config.stage_counters else {}),
            **({"busy": Out(2), "works": Out(2)} if config.fault_timeout else {}),
            **{name: Out(member.signature).array(2) for name, member in memory_port(config).items()},
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.left = left = Region(self.config, "s")
        m.submodules.right = right = Region(self.config, "r")
        self._distribute(m, left, right)
        m.d.comb += [region.index.eq(self.index) for region in (left, right)]
        wiring.connect(m, left.o, wiring.flipped(self.left))
        wiring.connect(m, right.o, wiring.flipped(self.right))
        # A pipeline register of the settings in each core, so that the wires to it have a whole cycle.
        for region, window in ((left, self.settings.s), (right, self.settings.r)):
            held = Signal(window_layout(self.config), name=f"window_{region.side}", reset_less=True)
            m.d.sync += held.eq(window)
            m.d.comb += region.window.eq(held)
        m.d.comb += [
            self.overflow_s.eq(left.overflow), self.overflow_row_s.eq(left.overflow_row),
            self.overflow_after_s.eq(left.overflow_after),
            self.overflow_r.eq(right.overflow), self.overflow_row_r.eq(right.overflow_row),
            self.compared[0].eq(left.compared), self.compared[1].eq(right.compared),
            self.matched[0].eq(left.matched), self.matched[1].eq(right.matched),
            left.select.eq(self.select), right.select.eq(self.select),
            self.selected[0].eq(left.selected), self.selected[1].eq(right.selected),
        ]
        if self.config.stage_counters:
            m.d.comb += [getattr(self, name).eq(Cat(getattr(region, name) for region in (left, right)))
                         for name in ("scanning", "takes")]
        if self.config.memory != "bram":
            for region, port in ((left, self.memory[0]), (right, self.memory[1])):
                wiring.connect(m, region.memory, wiring.flipped(port))
        if self.config.fault_timeout:
            m.d.comb += [self.works.eq(Cat(left.works, right.works)), self.busy.eq(Cat(
                region.busy | (region.i.valid & ~region.i.ready) for region in (left, right)))]
        return m

    def _distribute(self, m: Module, left: Region, right: Region) -> None:
        """Hands each record to both regions."""
        if self.config.queue:
            # Both queues take it in the same cycle. Their ``ready`` are registers and do not depend on ``valid``.
            for region, other in ((left, right), (right, left)):
                m.d.comb += [region.i.payload.eq(self.i.payload), region.i.valid.eq(self.i.valid & other.i.ready)]
            m.d.comb += self.i.ready.eq(left.i.ready & right.i.ready)
            return
        # The regions accept each record independently of each other. Each keeps its own pending work for earlier
        # records, such as probes that wait for a scan.
        m.submodules.records = records = Distributor(input_layout(self.config), 2)
        wiring.connect(m, wiring.flipped(self.i), records.i)
        for n, region in enumerate((left, right)):
            wiring.connect(m, records.o[n], region.i)
