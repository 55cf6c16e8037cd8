"""Buckets of an index: the one that a key belongs to, and those that a probe's bounds reach."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const, Value
from amaranth.lib import data
from splitjoin.circuit.wire import Configuration

from ..layouts import struct

__all__ = ["POLYNOMIALS", "address", "cells_layout", "stored_cells", "ways"]

#: Degree → a primitive polynomial over GF(2), its coefficients as bits.
POLYNOMIALS = {2: 0b111, 3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011, 8: 0x11D, 9: 0x211, 10: 0x409,
               11: 0x805, 12: 0x1053, 13: 0x201B, 14: 0x4443, 15: 0x8003, 16: 0x1100B}


def cells_layout(config: Configuration, side: str) -> data.StructLayout:
    """The values by which tuples of stream ``side`` are indexed: for each test of the index a key, or a cell of keys in
    core kind bucket.
    """
    if config.core == "bucket":
        return struct(config.cells(side))
    widths, slots = dict(config.keys(side).fields), [config.tests[j]["rs".index(side)] for j in config.index]
    return data.StructLayout({f"cell{n}": widths[f"key{slot}"] for n, slot in enumerate(slots)})


def stored_cells(config: Configuration, side: str, body: data.View) -> list[Value]:
    """The values of `cells_layout` in the body of a record."""
    if config.core == "bucket":
        return [body[name] for name, _ in config.cells(side).fields]
    return [body[f"key{config.tests[j]['rs'.index(side)]}"] for j in config.index]


def ways(config: Configuration) -> int:
    """Buckets that a probe looks up at most: one, or two neighbours a test."""
    return 1 if config.core == "hash" else 2 ** len(config.index)


def address(config: Configuration, cells: Sequence[Value], step: int = 0) -> Value:
    """The bucket of ``cells``, one for each test of the index; for core kind hash these are the keys themselves.

    Core hash takes all bits of all keys as a polynomial, and what is left of it modulo a primitive one: keys that
    differ in a few neighbouring bits only, wherever these are, never share a bucket. Core bucket puts
    the cells side by side, so that neighbours never share a bucket; bit n of ``step`` asks for the one above in test n.
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
    return Cat((cell + (step >> n & 1))[:len(cell)] for n, cell in enumerate(cells))
