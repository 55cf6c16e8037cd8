"""A join core: two regions that run concurrently and never talk to each other."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.device.wire import ROW_BITS, Configuration

from ..layouts import input_layout, result_layout, settings_layout
from ..network.queue import Queue
from .region import Region

__all__ = ["Core", "core_ports"]

#: Records a region can fall behind its twin before the core takes no more.
_INPUT = 16


def core_ports(config: Configuration) -> dict[str, wiring.Member]:
    """The ports of a `Core`."""
    return {
        "i": In(stream.Signature(input_layout(config))),
        "left": Out(stream.Signature(result_layout())),
        "right": Out(stream.Signature(result_layout())),
        "index": In(range(max(2, config.cores))),
        "settings": In(settings_layout(config)),
        "overflow_r": Out(1),
        "overflow_s": Out(1),
        "overflow_row_r": Out(ROW_BITS),
        "overflow_row_s": Out(ROW_BITS),
        "overflow_after_s": Out(ROW_BITS),
        "compared": Out(2),
        "matched": Out(2),
    }


class Core(wiring.Component):
    """Hands every record to both regions: the left one stores S and probes with R, the right one the reverse.

    Ports: ``i``: input records. ``left``, ``right``: the regions' results. ``index``: the core's number. ``settings``.
    ``overflow_r``, ``overflow_s`` and their rows; ``overflow_after_s``: R tuples before the S tuple that did not fit.
    ``compared``, ``matched``: bit 0 left, bit 1 right.
    """

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__(core_ports(config))

    @property
    def config(self) -> Configuration:
        """What the circuit is built for."""
        return self._config

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.left = left = Region(self._config, "s")
        m.submodules.right = right = Region(self._config, "r")
        m.submodules.left_queue = left_queue = Queue(input_layout(self._config), _INPUT)
        m.submodules.right_queue = right_queue = Queue(input_layout(self._config), _INPUT)
        m.d.comb += self.i.ready.eq(left_queue.i.ready & right_queue.i.ready)
        for queue, region in ((left_queue, left), (right_queue, right)):
            m.d.comb += [queue.i.payload.eq(self.i.payload), queue.i.valid.eq(self.i.valid & self.i.ready),
                         region.index.eq(self.index)]
            wiring.connect(m, queue.o, region.i)
        wiring.connect(m, left.o, wiring.flipped(self.left))
        wiring.connect(m, right.o, wiring.flipped(self.right))
        m.d.comb += [
            left.window.eq(self.settings.s), right.window.eq(self.settings.r),
            self.overflow_s.eq(left.overflow), self.overflow_row_s.eq(left.overflow_row),
            self.overflow_after_s.eq(left.overflow_after),
            self.overflow_r.eq(right.overflow), self.overflow_row_r.eq(right.overflow_row),
            self.compared[0].eq(left.compared), self.compared[1].eq(right.compared),
            self.matched[0].eq(left.matched), self.matched[1].eq(right.matched),
        ]
        return m
