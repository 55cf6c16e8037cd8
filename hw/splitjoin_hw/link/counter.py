"""A counter of 64 bits that is as fast as one of 32."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Counter"]

#: Bits of each half.
_HALF = 32


class Counter(wiring.Component):
    """Adds up ``step``, of ``bits`` bits, at most 32.

    ``value`` (64 bits): the sum of the steps until two cycles ago, modulo 2^64. The adder is pipelined in two halves;
    the low half is delayed by a cycle, so that both are of the same cycle.
    """

    def __init__(self, bits: int):
        if not (isinstance(bits, int) and 1 <= bits <= _HALF):
            raise ValueError(f"Bits of a step must be an integer from 1 to {_HALF}, not {bits!r}")
        super().__init__({"step": In(bits), "value": Out(2 * _HALF)})

    def elaborate(self, platform) -> Module:
        m = Module()
        sum_ = Signal(_HALF + 1, name="sum")  # the low half and its carry
        low = Signal(_HALF)
        high = Signal(_HALF)
        m.d.sync += [sum_.eq(sum_[:_HALF] + self.step), low.eq(sum_[:_HALF]), high.eq(high + sum_[-1])]
        m.d.comb += self.value.eq(Cat(low, high))
        return m
