"""Golden models of the core kinds: the tuples that a probe is compared with, and the index fields of records.

A new kind is a class here and a line of the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import product

from splitjoin.circuit.core_kinds import POLYNOMIALS, Span
from splitjoin.circuit.memory import place_bits
from splitjoin.circuit.wire import Configuration

Intervals = Sequence[tuple[int, int]]


class CoreModel:
    """Model of a core kind. This one compares all tuples with every probe."""

    def candidates(self, config: Configuration, side: str, bounds: Intervals) -> Callable[[Sequence[int]], bool]:
        """A function of a tuple's keys: true if a probe with ``bounds`` is compared with this tuple of ``side``."""
        return lambda keys: True

    def fields(self, config: Configuration, stream: int, keys: Sequence[int], bounds: Intervals) -> dict[str, int]:
        """The index fields of a tuple of ``stream``, 0 or 1, with ``keys`` and ``bounds``."""
        return {}

    def core(self, config: Configuration, side: str, keys: Sequence[int]) -> int:
        """The core that a tuple of ``side`` with ``keys`` is routed to."""
        raise NotImplementedError


class IndexModel(CoreModel, ABC):
    """Model of a core kind with an index: a probe is compared with the tuples of the buckets that it reaches, or with
    all if it reaches too many.
    """

    #: Cells of keys that lie further apart than this are not looked up.
    reach: int

    def core(self, config: Configuration, side: str, keys: Sequence[int]) -> int:
        cells = [self.cell(keys[config.tests[j]["rs".index(side)]]) for j in config.index]
        return self.bucket(config, side, cells) >> place_bits(config) & (config.cores - 1)

    @abstractmethod
    def cell(self, key: int) -> int:
        """The cell that ``key`` is in."""

    @abstractmethod
    def bucket(self, config: Configuration, side: str, cells: Sequence[int]) -> int:
        """The bucket of ``cells``, which has one cell per test of the index."""

    def candidates(self, config: Configuration, side: str, bounds: Intervals) -> Callable[[Sequence[int]], bool]:
        slots = [config.tests[j]["rs".index(side)] for j in config.index]
        if any(bounds[j][0] > bounds[j][1] for j in config.index):
            return lambda keys: False
        cells = [(self.cell(bounds[j][0]), self.cell(bounds[j][1])) for j in config.index]
        if any(high - low > self.reach for low, high in cells):
            return lambda keys: True
        reached = {self.bucket(config, side, chosen) for chosen in product(*({low, high} for low, high in cells))}
        return lambda keys: self.bucket(config, side, [self.cell(keys[slot]) for slot in slots]) in reached


class HashModel(IndexModel):
    """Kind ``hash``: all bits of all keys as a polynomial, divided by a primitive one."""

    reach = 0

    def cell(self, key: int) -> int:
        return key

    def bucket(self, config: Configuration, side: str, cells: Sequence[int]) -> int:
        bits = config.buckets.bit_length() - 1
        widths = config.keys_r if side == "r" else config.keys_s
        whole = at = 0
        for key, j in zip(cells, config.index, strict=True):
            whole |= key << at
            at += widths[config.tests[j]["rs".index(side)]]
        while whole.bit_length() > bits:  # division with remainder
            whole ^= POLYNOMIALS[bits] << whole.bit_length() - bits - 1
        return whole


class BucketModel(IndexModel):
    """Kind ``bucket``: cells of neighbouring keys, side by side."""

    reach = 1

    def cell(self, key: int) -> int:
        return cell_of(key)

    def bucket(self, config: Configuration, side: str, cells: Sequence[int]) -> int:
        whole = at = 0
        for cell, width in zip(cells, config.kind.index_widths(config, side), strict=True):
            whole |= cell % 2**width << at
            at += width
        return whole

    def fields(self, config: Configuration, stream: int, keys: Sequence[int], bounds: Intervals) -> dict[str, int]:
        fields: dict[str, int] = {}
        for n, (j, bits) in enumerate(zip(config.index, config.kind.index_widths(config, "rs"[stream]), strict=True)):
            low, high = bounds[j]
            span = Span.NONE if low > high else min(cell_of(high) - cell_of(low), Span.MANY)
            fields |= {f"cell{n}": cell_of(keys[config.tests[j][stream]]) % 2**bits,
                       f"first{n}": cell_of(low) % 2**bits, f"span{n}": int(span)}
        return fields


class OrderedModel(BucketModel):
    """Kind ``ordered``: the cells from one end of an interval to the other, or all."""

    def candidates(self, config: Configuration, side: str, bounds: Intervals) -> Callable[[Sequence[int]], bool]:
        j, = config.index
        slot, buckets = config.tests[j]["rs".index(side)], config.buckets
        low, high = map(self.cell, bounds[j])
        return lambda keys: bounds[j][0] <= bounds[j][1] and (self.cell(keys[slot]) - low) % buckets <= high - low

    def fields(self, config: Configuration, stream: int, keys: Sequence[int], bounds: Intervals) -> dict[str, int]:
        j, = config.index
        low, high = bounds[j]
        first, cells = self.cell(low), 0 if low > high else min(self.cell(high) - self.cell(low) + 1, config.buckets)
        return {"cell0": self.cell(keys[config.tests[j][stream]]) % config.buckets, "first0": first % config.buckets,
                "cells0": cells}


def cell_of(key: int) -> int:
    """The cell of ``key`` in the benches, for core kind ``bucket``: three neighbouring keys each."""
    return key // 3


#: Name of the kind → its model.
CORE_MODELS: dict[str, CoreModel] = {"scan": CoreModel(), "hash": HashModel(), "bucket": BucketModel(),
                                     "ordered": OrderedModel()}
