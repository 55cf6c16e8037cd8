"""Packets of items for DMA engines, which hand a packet to the host when its last beat has come."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.axi import IDLE_CYCLES, PACKET_BEATS
from splitjoin.circuit.wire import ItemKind

__all__ = ["Packetizer"]


class Packetizer(wiring.Component):
    """Marks the last item of each packet.

    A packet ends with an END item, with the item that makes it ``beats`` long, and with an item that no other one
    follows within ``idle`` cycles: so the host gets packets as long as results come in a row, and waits for none.
    Ports: ``i``: items of ``width`` bits; ``o``: ``item`` and ``last``. Up to one item a cycle; an item is held until
    the next one comes, for ``idle`` cycles at most. ``o`` keeps an offer until it is taken.
    """

    def __init__(self, width: int, *, idle: int = IDLE_CYCLES, beats: int = PACKET_BEATS):
        self._width, self._idle, self._beats = width, idle, beats
        shape = data.StructLayout({"item": width, "last": 1})
        super().__init__({"i": In(stream.Signature(width)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform) -> Module:
        m = Module()
        held = Signal(self._width, reset_less=True)
        full = Signal()  # an item is held, and it is not known yet whether another one follows in time
        waited = Signal(range(self._idle + 1))
        beat = Signal(range(self._beats))
        # `ends`: the held item is the last one of its packet. `leaves`: the held item moves to the output register.
        ends, leaves, room = Signal(), Signal(), Signal()
        m.d.comb += [
            room.eq(~self.o.valid | self.o.ready),
            ends.eq((held[:2] == ItemKind.END) | (beat == self._beats - 1) | (waited == self._idle)),
            leaves.eq(full & room & (ends | self.i.valid)),
            self.i.ready.eq(~full | leaves),
        ]
        with m.If(room):
            m.d.sync += self.o.valid.eq(leaves)
        with m.If(leaves):
            m.d.sync += [self.o.payload.item.eq(held), self.o.payload.last.eq(ends), waited.eq(0), full.eq(0)]
            with m.If(ends):
                m.d.sync += beat.eq(0)
            with m.Else():
                m.d.sync += beat.eq(beat + 1)
        with m.Elif(full & (waited != self._idle)):
            m.d.sync += waited.eq(waited + 1)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [held.eq(self.i.payload), full.eq(1), waited.eq(0)]
        return m
