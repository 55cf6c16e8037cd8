"""Comparators as ECP5 carry chains, up to 1.5 bits per half cell."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Value

from .ccu2c import Half, carry_chain

__all__ = ["CarryOrder"]

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
