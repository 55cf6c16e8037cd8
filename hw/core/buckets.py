"""Which bucket of an index a key belongs to, and which buckets a probe's bounds reach."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const, Value
from splitjoin.device.wire import Configuration

__all__ = ["address", "indexed_slots", "ways"]

#: How far each part of a hashed key is turned against the one before, so that equal parts do not cancel out.
_TURN = 3


def indexed_slots(config: Configuration, side: str) -> list[int]:
    """Of each test of the index, the key of stream ``side`` that it is about."""
    return [config.tests[j][0 if side == "r" else 1] for j in config.index]


def ways(config: Configuration) -> int:
    """Buckets that a probe looks up at most: one, or two neighbours a test."""
    return 1 if config.core == "hash" else 2 ** len(config.index)


def address(config: Configuration, cells: Sequence[Value], step: int = 0) -> Value:
    """The bucket of ``cells``: one a test of the index, the key or its upper bits.

    Core hash folds all bits of all keys by XOR. Core bucket takes the low bits of each cell, so that neighbours never
    share a bucket; bit n of ``step`` asks for the neighbour above in test n.
    """
    bits = config.buckets.bit_length() - 1
    if config.core == "hash":
        whole = Cat(*cells)
        parts = []
        for n, at in enumerate(range(0, len(whole), bits)):
            part = whole[at:at + bits]
            parts.append(Cat(part, Const(0, bits - len(part))).rotate_left(_TURN * n % bits))
        return reduce(xor, parts)
    widths = _widths(config)
    return Cat((cell + (step >> n & 1))[:width] for n, (cell, width) in enumerate(zip(cells, widths, strict=True)))


def _widths(config: Configuration) -> list[int]:
    """Of each test, how many bits of its cells choose the bucket."""
    bits, tests = config.buckets.bit_length() - 1, len(config.index)
    return [(bits + tests - 1 - n) // tests for n in range(tests)]
