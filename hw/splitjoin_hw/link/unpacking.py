"""Takes output records of several items apart, for a link that sends one item after the other."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import NO_ITEM, Configuration

__all__ = ["RecordUnpacker"]


class RecordUnpacker(wiring.Component):
    """Gives the items of each output record of ``config``, one in a cycle, the first one first.

    Ports: ``i``: `Configuration.output_record`. ``o``: `Configuration.item_record`. A record is taken with its last
    item; none is without any.
    """

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__({"i": In(stream.Signature(config.output_record.width)),
                          "o": Out(stream.Signature(config.item_record.width))})

    def elaborate(self, platform) -> Module:
        m = Module()
        width, count = self._config.item_record.width, self._config.root_width
        items = [self.i.payload[n * width:(n + 1) * width] for n in range(count)]
        place = Signal(range(count))
        # Items take the lowest places, so the first place without one ends the record.
        last = Array([items[n + 1][:2] == NO_ITEM for n in range(count - 1)] + [1])[place]
        m.d.comb += [self.o.payload.eq(Array(items)[place]), self.o.valid.eq(self.i.valid),
                     self.i.ready.eq(self.o.ready & last)]
        with m.If(self.i.valid & self.o.ready):
            m.d.sync += place.eq(place + 1)
            with m.If(last):
                m.d.sync += place.eq(0)
        return m
