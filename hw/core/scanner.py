"""The processing side of a region: scans the live slots for one probe, a stored tuple a cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for
from splitjoin.device.wire import ROW_BITS, Configuration, ItemKind

from ..hls.matcher import Matcher
from ..layouts import other, result_layout, struct
from ..network.queue import Queue
from .storage import task_layout

__all__ = ["Scanner"]

#: Registers between issuing a slot and its keys: block RAM, and its output register.
_READ_LATENCY = 2
#: Results a region can hold while its merger is busy elsewhere.
_RESULTS = 16


class Scanner(wiring.Component):
    """Compares a probe with every live tuple of the sub-window, oldest first (SplitJoin, Algorithm 3).

    One slot is issued a cycle, and the next task is taken in the cycle of the last slot of the one before: no cycle is
    lost between probes, except one for a star. The pipeline never stalls; instead no slot is issued unless the result
    queue has room for everything under way.

    Ports: ``task``: `task_layout`. ``slot``/``keys``: read port of the ring, two cycles. ``busy``/``unread``: slots
    still to read, for the storage side. ``o``: results and stars, as `result_layout`. ``compared``, ``matched``: one
    comparison, one match in this cycle.
    """

    def __init__(self, config: Configuration, side: str):
        self._config, self._side = config, side
        slot = unsigned(bits_for(config.capacity - 1))
        super().__init__({
            "task": In(stream.Signature(task_layout(config, side))),
            "index": In(range(max(2, config.cores))),
            "slot": Out(slot),
            "keys": In(struct(config.keys(side))),
            "busy": Out(1),
            "unread": Out(slot),
            "o": Out(stream.Signature(result_layout())),
            "compared": Out(1),
            "matched": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config, side = self._config, self._side
        m.submodules.matcher = matcher = Matcher(config, side)
        m.submodules.results = results = Queue(result_layout(), _RESULTS)
        wiring.connect(m, results.o, wiring.flipped(self.o))

        task = Signal(task_layout(config, side))  # the task under way; start, count and row move with the scan
        latency = _READ_LATENCY + Matcher.latency
        room = Signal()
        m.d.comb += room.eq(results.level < _RESULTS - latency)

        work = Cat(task.count != 0, task.star, task.end)
        compare, star, end, last = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            compare.eq((task.count != 0) & room),
            star.eq((task.count == 0) & task.star & room),
            end.eq((task.count == 0) & ~task.star & task.end & room),
            # The last item of the task is issued now, or there was none.
            last.eq(Mux(work.any(),
                        room & ((task.count == 1) & ~task.star & ~task.end
                                | (task.count == 0) & (task.star ^ task.end)),
                        1)),
            self.task.ready.eq(last),
            self.slot.eq(task.start),
            self.unread.eq(task.start),
            self.busy.eq(task.count != 0),
        ]
        with m.If(compare):
            m.d.sync += [task.start.eq(task.start + 1), task.count.eq(task.count - 1),
                         task.row.eq(task.row + config.cores)]
        with m.If(star):
            m.d.sync += task.star.eq(0)
        with m.If(end):
            m.d.sync += task.end.eq(0)
        with m.If(self.task.valid & self.task.ready):
            m.d.sync += task.eq(self.task.payload)

        issued = data.StructLayout({"valid": 1, "compare": 1, "item": result_layout()})
        stage = Signal(issued, name="stage0")
        m.d.comb += [
            stage.valid.eq(compare | star | end),
            stage.compare.eq(compare),
            stage.item.kind.eq(Mux(compare, ItemKind.PAIR, Mux(star, ItemKind.STAR, ItemKind.END))),
            stage.item.probe.eq(task.probe),
            stage.item.stored.eq(task.row),
        ]
        bounds = task.bounds
        for n in range(1, latency + 1):
            following = Signal(issued, name=f"stage{n}")
            m.d.sync += following.eq(stage)
            stage = following
            if n <= _READ_LATENCY:
                delayed = Signal(struct(config.bounds(other(side))), name=f"bounds{n}")
                m.d.sync += delayed.eq(bounds)
                bounds = delayed
        m.d.comb += [
            matcher.keys.eq(self.keys),
            matcher.bounds.eq(bounds),
            self.compared.eq(stage.valid & stage.compare),
            self.matched.eq(stage.valid & stage.compare & matcher.match),
            results.i.valid.eq(stage.valid & (~stage.compare | matcher.match)),
            results.i.payload.eq(stage.item),
            results.i.payload.stored.eq((stage.item.stored + self.index)[:ROW_BITS]),
        ]
        return m
