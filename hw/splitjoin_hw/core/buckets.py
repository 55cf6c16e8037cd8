"""Buckets of core kinds with an index: which of them a tuple is in, and which a probe looks up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from splitjoin.circuit.core_kinds import POLYNOMIALS, Span
from splitjoin.circuit.wire import Configuration


@dataclass(frozen=True)
class BucketReach:
    """The buckets that the bounds of a probe reach, in the cycles after it was accepted.

    Attributes:
        parts: Per part of a bucket's number, the first one and the one above.
        none: In the cycle of the step, true if the bounds reach no bucket.
        too_many: In that cycle, true if they reach more buckets than are looked up.
        lookups_due: From the next cycle on, one bit per bucket still to be looked up; the prober clears them.
    """

    parts: list[tuple[Value, Value]]
    none: Value
    too_many: Value
    lookups_due: Signal


class Buckets(ABC):
    """The buckets of a core kind with an index."""

    @abstractmethod
    def stored_cells(self, config: Configuration, side: str, body: data.View) -> list[Value]:
        """The cells that a tuple of stream ``side`` with ``body`` is indexed by, in the order of `cells_layout`."""

    @abstractmethod
    def address(self, config: Configuration, cells: Sequence[Value]) -> Value:
        """The number of the bucket of ``cells``, which has one cell per test of the index."""

    @abstractmethod
    def looked_up(self, config: Configuration, bounds: Any, reach: Any) -> tuple[Value, list[tuple[Value, Value]]]:
        """Of a probe with ``bounds`` and ``reach``, a record's: whether it reaches more buckets than are looked up; and
        of those that may be looked up, whether it is, and its number.
        """

    @abstractmethod
    def reach(self, m: Module, config: Configuration, task: Any, accept: Signal, step: Signal) -> BucketReach:
        """The buckets that the probe of ``task`` reaches. The probe is accepted in the cycle before ``step``."""


def cells_layout(config: Configuration, side: str) -> data.StructLayout:
    """The cells that tuples of stream ``side`` are indexed by, one per test of the index: keys, or cells of keys."""
    return data.StructLayout({f"cell{n}": width for n, width in enumerate(config.kind.index_widths(config, side))})


def lowest_due(lookups_due: Value) -> Value:
    """The number of the first bucket still to be looked up, of up to four."""
    number: Value = Const(0, 2)
    for n in reversed(range(len(lookups_due))):
        number = Mux(lookups_due[n], n, number)
    return number


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

    def looked_up(self, config: Configuration, bounds: Any, reach: Any) -> tuple[Value, list[tuple[Value, Value]]]:
        lows = [bounds[f"lo{test}"] for test in config.index]
        return (Cat(bounds[f"hi{test}"] != low for test, low in zip(config.index, lows, strict=True)).any(),
                [(Const(1, 1), self.address(config, lows))])

    def reach(self, m: Module, config: Configuration, task: Any, accept: Signal, step: Signal) -> BucketReach:
        lookups_due = Signal(config.kind.lookups(config))
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
        return BucketReach([(place, place)], Cat(low > high for low, high in pairs).any(),
                     Cat(low != high for low, high in pairs).any(), lookups_due)


class CellBuckets(Buckets):
    """Puts the cells of all keys side by side, so that neighbours never share a bucket."""

    def stored_cells(self, config: Configuration, side: str, body: data.View) -> list[Value]:
        return [body[name] for name, _ in config.cells(side).fields]

    def address(self, config: Configuration, cells: Sequence[Value]) -> Value:
        return Cat(*cells)

    def looked_up(self, config: Configuration, bounds: Any, reach: Any) -> tuple[Value, list[tuple[Value, Value]]]:
        cells = [(reach[f"first{n}"], reach[f"span{n}"]) for n in range(len(config.index))]
        return Cat(span == Span.MANY for _, span in cells).any(), [
            (Cat(Const(1), *(span == Span.TWO for d, (_, span) in enumerate(cells) if n >> d & 1)).all(),
             self.address(config, [(first + (n >> d & 1))[:len(first)] for d, (first, _) in enumerate(cells)]))
            for n in range(config.kind.lookups(config))]

    def reach(self, m: Module, config: Configuration, task: Any, accept: Signal, step: Signal) -> BucketReach:
        lookups_due = Signal(config.kind.lookups(config))
        reach = [(task.reach[f"first{n}"], task.reach[f"span{n}"]) for n in range(len(config.index))]
        cells = [Signal(first.shape(), name=f"cell{n}") for n, (first, _) in enumerate(reach)]
        nexts = [Signal(first.shape(), name=f"above{n}") for n, (first, _) in enumerate(reach)]
        spans = [Signal(2, name=f"span{n}") for n in range(len(reach))]
        with m.If(accept):
            m.d.sync += [cell.eq(first) for cell, (first, _) in zip(cells, reach, strict=True)]
            m.d.sync += [held.eq(span) for held, (_, span) in zip(spans, reach, strict=True)]
        with m.If(step):
            m.d.sync += [above.eq(cell + 1) for above, cell in zip(nexts, cells, strict=True)]
            m.d.sync += lookups_due.eq(Cat(
                Cat(Const(1), *(spans[d] == Span.TWO for d in range(len(spans)) if n >> d & 1)).all()
                for n in range(len(lookups_due))))
        return BucketReach(list(zip(cells, nexts, strict=True)), Cat(span == Span.NONE for span in spans).any(),
                     Cat(span == Span.MANY for span in spans).any(), lookups_due)
