"""Comparators as UltraScale carry chains, two bits per LUT."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Instance, Module, Signal, Value

__all__ = ["Carry8Order"]

# A LUT6_2 computes both inputs of a stage of a CARRY8: O6, the stage propagates the carry if both bits are equal; O5,
# it replaces the carry by 1 if the key's bits are greater. I0, I1: the lower bit of key and bound; I2, I3: the upper
# one; I5 = 1.
_EQUAL = sum(1 << n for n in range(16) if (n & 1, n >> 2 & 1) == (n >> 1 & 1, n >> 3 & 1))
_GREATER = sum(1 << n for n in range(16) if (n >> 2 & 1, n & 1) > (n >> 3 & 1, n >> 1 & 1))
_INIT = sum((_EQUAL << 32 | _GREATER) << shift for shift in (0, 16))


class Carry8Order:
    """Compares unsigned integers of ``width`` bits, uncoded, with ⌈width / 2⌉ cells ``LUT6_2``."""

    def __init__(self, width: int):
        self.bits = width

    def key(self, value: Value) -> Value:
        return value

    def bound(self, value: Value) -> Value:
        return value

    def above(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        return self._greater(m, name, key, bound, or_equal=True)

    def below(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        return ~self._greater(m, name, key, bound, or_equal=False)

    def _greater(self, m: Module, name: str, key: Value, bound: Value, *, or_equal: bool) -> Value:
        stages = -(-self.bits // 2)
        key, bound = (Cat(value, Const(0, 2 * stages - self.bits)) for value in (key, bound))
        equal, greater = Signal(stages, name=f"{name}_equal"), Signal(stages, name=f"{name}_greater")
        for n in range(stages):
            m.submodules[f"{name}_lut{n}"] = Instance(
                "LUT6_2", p_INIT=Const(_INIT, 64), i_I0=key[2 * n], i_I1=bound[2 * n], i_I2=key[2 * n + 1],
                i_I3=bound[2 * n + 1], i_I4=Const(1), i_I5=Const(1), o_O6=equal[n], o_O5=greater[n])
        carry: Any = Const(or_equal)
        for first in range(0, stages, 8):
            out = Signal(8, name=f"{name}_carry{first // 8}")
            m.submodules[f"{name}_carry{first // 8}"] = Instance(
                "CARRY8", p_CARRY_TYPE="SINGLE_CY8", i_CI=carry, i_CI_TOP=Const(0),
                i_S=Cat(equal[first:first + 8], Const(0, 8))[:8], i_DI=Cat(greater[first:first + 8], Const(0, 8))[:8],
                o_CO=out)
            carry = out[min(8, stages - first) - 1]
        return carry
