"""Comparators for equality, one for each FPGA family."""

from __future__ import annotations

from typing import Protocol

from amaranth.hdl import Cat, Const, Module, Value

from .ccu2c import Half, carry_chain

# Halves of a CCU2C, as in `.carry`. One of two bits is on C and D, complemented in the bound: for C = D the bits are
# unequal. So the LUT2, which is the LUT4 for C and D both 0, is 0, and the LUT4 is 1 if A = B and C != D.
_START, _PAIR, _OUT = 0x0009, 0x0990, 0x0000


class Equality(Protocol):
    """A comparator for equality of numbers of one width. A bound is coded once, when a probe is loaded."""

    def bound(self, value: Value) -> Value:
        """The code of a bound, with as many bits as the bound."""

    def equal(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        """True if a key equals the bound with this code; combinational."""


class GenericEquality:
    """The definition: Amaranth's operator."""

    def bound(self, value: Value) -> Value:
        return value

    def equal(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        return key == bound


class CarryEquality:
    """A carry chain of ECP5: a half cell for the lowest bit, one per two more bits, and one to output the carry."""

    def bound(self, value: Value) -> Value:
        # Of bits 1 and 2, 3 and 4, … the second ones are complemented.
        return Cat(bit if n == 0 or n % 2 else ~bit for n, bit in enumerate(value))

    def equal(self, m: Module, name: str, key: Value, bound: Value) -> Value:
        one, zero = Const(1), Const(0)
        halves: list[Half] = [(_START, (key[0], bound[0], one, one))]
        for n in range(1, len(key), 2):
            second = (key[n + 1], bound[n + 1]) if n + 1 < len(key) else (one, zero)
            halves.append((_PAIR, (key[n], bound[n], *second)))
        halves.append((_OUT, (one, one, one, one)))
        return carry_chain(m, name, halves)


def equality_of(family: str) -> Equality:
    """The comparator for ``family``."""
    return CarryEquality() if family == "ecp5" else GenericEquality()
