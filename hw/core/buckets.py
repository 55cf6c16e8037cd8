"""Which bucket of an index a key belongs to, and which buckets a probe's bounds reach."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const, Value
from splitjoin.device.wire import Configuration

__all__ = ["POLYNOMIALS", "address", "indexed_slots", "ways"]

#: Degree → a primitive polynomial over GF(2), its coefficients as bits.
POLYNOMIALS = {2: 0b111, 3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011, 8: 0x11D, 9: 0x211, 10: 0x409,
               11: 0x805, 12: 0x1053, 13: 0x201B, 14: 0x4443, 15: 0x8003, 16: 0x1100B}


def indexed_slots(config: Configuration, side: str) -> list[int]:
    """Of each test of the index, the key of stream ``side`` that it is about."""
    return [config.tests[j][0 if side == "r" else 1] for j in config.index]


def ways(config: Configuration) -> int:
    """Buckets that a probe looks up at most: one, or two neighbours a test."""
    return 1 if config.core == "hash" else 2 ** len(config.index)


def address(config: Configuration, cells: Sequence[Value], step: int = 0) -> Value:
    """The bucket of ``cells``: one a test of the index, the key or its upper bits.

    Core hash takes all bits of all keys as a polynomial, and what is left of it modulo a primitive one: keys that
    differ in a few neighbouring bits only, wherever these are, never share a bucket. Core bucket takes the low bits of
    each cell, so that neighbours never share a bucket; bit n of ``step`` asks for the neighbour above in test n.
    """
    bits = config.buckets.bit_length() - 1
    if config.core == "hash":
        whole, power, powers = Cat(*cells), 1, []
        for _ in range(len(whole)):  # what is left of x to the power of each bit's place
            powers.append(power)
            power <<= 1
            power ^= POLYNOMIALS[bits] if power >> bits else 0
        return Cat(reduce(xor, (bit for bit, power in zip(whole, powers, strict=True) if power >> n & 1), Const(0, 1))
                   for n in range(bits))
    widths = _widths(config)
    return Cat((cell + (step >> n & 1))[:width] for n, (cell, width) in enumerate(zip(cells, widths, strict=True)))


def _widths(config: Configuration) -> list[int]:
    """Of each test, how many bits of its cells choose the bucket."""
    bits, tests = config.buckets.bit_length() - 1, len(config.index)
    return [(bits + tests - 1 - n) // tests for n in range(tests)]
