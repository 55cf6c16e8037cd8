"""Levels: a monotone map from codes to small numbers, learnt so that the stored tuples spread evenly over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .jit import compiled

__all__ = ["Levels", "hashed", "learn"]

Array = npt.NDArray[Any]

#: Entries of a table: knots of the map, which is linear between them. They stay in the first-level cache.
_ENTRIES = 1 << 10
#: Codes that are looked at.
_SAMPLE = 1 << 14
#: The part of the sample at either end that the table does not resolve, so that a stray value does not stretch it.
_STRAY = 0.002


@dataclass(frozen=True)
class Levels:
    """Levels 0 to count − 1 by a table of (entries + 1,) knots that are 2**shift codes apart, the first at ``origin``;
    or, where ``table`` is empty, by a hash: for equalities.
    """

    origin: int
    shift: int
    table: npt.NDArray[np.int32]
    count: int

    def of(self, codes: Array, kind: type[Any] = np.int32) -> Array:
        """The levels of ``codes`` (n,), unsigned, as ``kind``."""
        out = np.empty(len(codes), kind)
        if len(self.table):
            _levels(codes, np.uint64(self.origin), np.uint64(self.shift), self.table, out)
        else:
            _hashes(codes, np.uint64(64 - (self.count - 1).bit_length()), out)
        return out


def learn(sample: Array, count: int) -> Levels:
    """``count`` levels, over which the codes of ``sample`` (n,) spread evenly; one level if there is no sample."""
    if not len(sample):
        return Levels(0, 0, np.zeros(2, np.int32), 1)
    if len(sample) > _SAMPLE:
        sample = sample[np.linspace(0, len(sample) - 1, _SAMPLE).astype(np.int64)]
    stray = int(len(sample) * _STRAY)
    ends = np.partition(sample, [stray, len(sample) - 1 - stray])
    low, high = int(ends[stray]), int(ends[len(sample) - 1 - stray])
    shift = max(0, (high - low).bit_length() - (_ENTRIES - 1).bit_length())
    size = ((high - low) >> shift) + 1
    inside = np.clip(sample, low, high) - sample.dtype.type(low)
    mass = np.bincount((inside >> sample.dtype.type(shift)).astype(np.int64), minlength=size).astype(np.float64)
    mass += mass.sum() / (64 * size)  # stretches without a sample get some levels, too
    knots = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum() * (count - 1)
    return Levels(low, shift, np.minimum(knots, count - 1).astype(np.int32), count)


def hashed(bits: int) -> Levels:
    """2**bits levels by a hash."""
    return Levels(0, 0, np.empty(0, np.int32), 1 << bits)


@compiled
def _levels(codes: Any, origin: Any, shift: Any, table: Any, out: Any) -> None:
    last = np.uint64(len(table) - 2)
    bits = np.int64(shift)
    left = np.uint64(16 - bits if bits < 16 else 0)
    right = np.uint64(bits - 16 if bits > 16 else 0)
    for i in range(len(codes)):
        code = np.uint64(codes[i])
        above: Any = code - min(origin, code)
        entry: Any = min(above >> shift, last)
        # 16 bits of the way to the next knot; all of it, and no further, for what is beyond the table.
        beyond: Any = min(above - (entry << shift), np.uint64(1) << shift)
        way = np.int64((beyond >> right) << left)
        here = np.int64(table[entry])
        out[i] = here + ((way * (np.int64(table[entry + np.uint64(1)]) - here)) >> 16)


@compiled
def _hashes(codes: Any, right: Any, out: Any) -> None:
    for i in range(len(codes)):
        mixed = np.uint64(codes[i]) * np.uint64(0x9E3779B97F4A7C15)
        out[i] = mixed >> right if right < np.uint64(64) else np.uint64(0)
