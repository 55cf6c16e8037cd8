"""Comparators for keys and bounds, and the order-preserving codes that they compare, one for each FPGA family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from amaranth.hdl import Cat, Const, Instance, Module, Signal, Value

from .ccu2c import Half, carry_chain

# A half of a CCU2C propagates the carry if its LUT4 of A, B, C, D is 1, and else replaces it by the LUT2 of A and B
# that is the first four bits of the same INIT. A chain from the least significant bits up computes key > bound, or
# key >= bound, depending on the carry that its first half outputs for equality. The carry that a half outputs for
# inequality depends on A and B alone, so a half can order three values of a digit, not the four of two bits; hence 3
# bits in two halves. The codes for that have the fewest bits that are not plain wires, two of four on either side: no
# codes with fewer exist (found by a solver over all INITs, wirings and codes).

#: One bit without a carry in: C and D are tied to 1, so the LUT4 is 0, and the LUT2 is A | ~B, or A & ~B.
_START = {"above": 0x000B, "below": 0x0002}
#: One bit: propagate if A = B, else output A. C and D are tied to 1.
_BIT = 0x9002
#: Three bits, in two halves.
_LOW, _HIGH = 0x8421, 0x498B
#: The carry as a signal, S = LUT4 ^ carry: the carry itself for key >= bound, its inverse for not key > bound.
_OUT = {"above": 0x0000, "below": 0xFFFF}


class CarryOrder:
    """Compares unsigned integers of ``width`` bits with ⌈(width + 1 − ⌊(width − 1) / 3⌋) / 2⌉ cells ``CCU2C``.

    The lowest bit starts the chain, most others are compared in groups of three, and a few single ones fill the last
    cell: 12 cells for 32 bits, in codes of 41 bits.
    """

    def __init__(self, width: int):
        self._width = width
        groups = (width - 1) // 3
        # An odd number of halves leaves one unused, so one group of three bits takes three halves and needs no code.
        self._groups = groups - 1 if groups and (width + 1 - groups) % 2 else groups
        self.bits = width + self._groups

    def key(self, value: Value) -> Value:
        return self._code(value, lambda v: (_middle(v), v[1], v[0] & v[1], v[2]))

    def bound(self, value: Value) -> Value:
        return self._code(value, lambda v: (v[1], _middle(v), v[2], ~(v[0] & v[1])))

    def above(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        return self._chain(m, name, key, bound, "above")

    def below(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        return self._chain(m, name, key, bound, "below")

    def _code(self, value: Value, group: Any) -> Value:
        first, last = 1, 1 + 3 * self._groups
        return Cat(value[:first], *(Cat(group(value[n:n + 3])) for n in range(first, last, 3)), value[last:self._width])

    def _chain(self, m: Module, name: str, key: Value, bound: Value, which: str) -> Value:
        one = Const(1)
        halves: list[Half] = [(_START[which], (key[0], bound[0], one, one))]
        last = 1 + 4 * self._groups
        for n in range(1, last, 4):
            k, b = key[n:n + 4], bound[n:n + 4]
            halves += [(_LOW, (k[0], b[0], b[1], k[1])), (_HIGH, (k[2], b[2], k[3], b[3]))]
        halves += [(_BIT, (key[n], bound[n], one, one)) for n in range(last, self.bits)]
        halves.append((_OUT[which], (one, one, one, one)))
        return carry_chain(m, name, halves)


def _middle(v: Value) -> Value:
    """One of the two functions that the codes of three bits need: true if they are 0, 3 or 4."""
    return (v[0] == v[1]) & ~(v[1] & v[2])


# A LUT6_2 computes both inputs of a stage of a CARRY8: O6, the stage propagates the carry if both bits are equal; O5,
# it replaces the carry by 1 if the key's bits are greater. I0, I1: the lower bit of key and bound; I2, I3: the upper
# one; I5 = 1.
_EQUAL = sum(1 << n for n in range(16) if (n & 1, n >> 2 & 1) == (n >> 1 & 1, n >> 3 & 1))
_GREATER = sum(1 << n for n in range(16) if (n >> 2 & 1, n & 1) > (n >> 3 & 1, n >> 1 & 1))
_INIT = sum((_EQUAL << 32 | _GREATER) << shift for shift in (0, 16))


class GenericOrder:
    """The definition: uncoded integers, and Amaranth's operators."""

    def __init__(self, width: int):
        self.bits = width

    def key(self, value: Value) -> Value:
        return value

    def bound(self, value: Value) -> Value:
        return value

    def above(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        return key >= bound

    def below(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        return key <= bound


class Carry8Order(GenericOrder):
    """Compares unsigned integers of ``width`` bits, uncoded, with ⌈width / 2⌉ cells ``LUT6_2``."""

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


class OrderComparator(Protocol):
    """A comparator for unsigned integers of one width.

    The comparator takes codes of the integers, so that a family may choose codes that its cells compare cheaply.
    A bound is coded once, when a probe is loaded; a key once for all of its comparators.
    """

    #: Bits of a code.
    bits: int

    def key(self, value: Value) -> Value:
        """The code of a key."""

    def bound(self, value: Value) -> Value:
        """The code of a bound."""

    def above(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        """True if the key is greater than or equal to the bound; both coded, combinational."""

    def below(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        """True if the key is less than or equal to the bound; both coded, combinational."""


def order_of(family: str, width: int) -> OrderComparator:
    """The comparator of ``family`` for integers of ``width`` bits."""
    kinds: dict[str, Callable[[int], OrderComparator]] = {"ecp5": CarryOrder, "ultrascale": Carry8Order}
    return kinds.get(family, GenericOrder)(width)
