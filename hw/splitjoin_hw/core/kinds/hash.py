"""Core kind ``hash``: buckets are hashes of all keys of the index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import xor
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data

from splitjoin.circuit.core_kinds.hash import POLYNOMIALS
from splitjoin.circuit.wire import Configuration

from ..buckets import Buckets, Reach

__all__ = ["HashBuckets"]


class HashBuckets(Buckets):
    """Takes all bits of all keys as a polynomial; its remainder modulo a primitive one is the bucket's number.

    Keys that differ in a few neighbouring bits only, wherever these are, never share a bucket.
    """

    def stored_cells(self, config: Configuration, side: str, body: data.View) -> list[Value]:
        return [body[f"key{config.tests[j]['rs'.index(side)]}"] for j in config.index]

    def address(self, config: Configuration, cells: Sequence[Value]) -> Value:
        bits = config.buckets.bit_length() - 1
        whole, power, powers = Cat(*cells), 1, []
        for _ in range(len(whole)):  # the remainder of x to the power of each bit's place
            powers.append(power)
            power <<= 1
            power ^= POLYNOMIALS[bits] if power >> bits else 0
        return Cat(reduce(xor, (bit for bit, power in zip(whole, powers, strict=True) if power >> n & 1), Const(0, 1))
                   for n in range(bits))

    def reach(self, m: Module, config: Configuration, task: Any, accept: Signal, step: Signal) -> Reach:
        lookups_due = Signal(config.kind.ways(config))
        edges = [(task.bounds[f"lo{test}"], task.bounds[f"hi{test}"]) for test in config.index]
        lows = [Signal(low.shape(), name=f"low{n}") for n, (low, _) in enumerate(edges)]
        tops = [Signal(high.shape(), name=f"high{n}") for n, (_, high) in enumerate(edges)]
        with m.If(accept):
            m.d.sync += [cell.eq(low) for cell, (low, _) in zip(lows, edges, strict=True)]
            m.d.sync += [top.eq(high) for top, (_, high) in zip(tops, edges, strict=True)]
        place = Signal(range(config.buckets))
        with m.If(step):
            m.d.sync += [place.eq(self.address(config, lows)), lookups_due.eq(1)]
        pairs = list(zip(lows, tops, strict=True))
        return Reach([(place, place)], Cat(low > high for low, high in pairs).any(),
                     Cat(low != high for low, high in pairs).any(), lookups_due)
