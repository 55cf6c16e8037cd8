"""Counters of a region: cycles by their use, and high-water marks of its queues."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import amount_bits
from splitjoin.circuit.registers import COUNTER_BITS, REGION_COUNTERS
from splitjoin.circuit.wire import Configuration

__all__ = ["RegionCounters"]


class RegionCounters(wiring.Component):
    """Implements `splitjoin.circuit.registers.REGION_COUNTERS`.

    Ports: one per counter: the increment of this cycle, or the level of a high-water mark. ``select``: the number of a
    counter. ``value``: its value two cycles ago.
    """

    def __init__(self, config: Configuration):
        super().__init__({
            **{c.name: In(amount_bits(config)) for c in REGION_COUNTERS},
            "select": In(range(len(REGION_COUNTERS))),
            "value": Out(COUNTER_BITS),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        counts = []
        for counter in REGION_COUNTERS:
            amount = getattr(self, counter.name)
            if counter.high:
                value = Signal(amount.shape(), name=f"{counter.name}_mark")
                m.d.sync += value.eq(Mux(amount > value, amount, value))
            else:
                value = Signal(COUNTER_BITS, name=f"{counter.name}_count")
                m.d.sync += value.eq(value + amount)
            counts.append(value)
        m.d.sync += self.value.eq(Array(counts)[self.select])
        return m
