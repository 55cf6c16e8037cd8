"""Orders and ranks of unsigned integers: dense ones are counted; of others, a number and its place are packed into 64
bits, which NumPy sorts fastest.

NumPy sorts plain integers by vector instructions (Blacher et al., Vectorized and performance-portable quicksort, 2022),
ten times as fast as it finds the order of an array; and it searches for numbers that rise twenty times as fast as for
numbers in any order, as these are not near each other in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .loops import loops

Rows = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint64]

#: The code of NaN, and the bits of a negative float that are inverted in its code.
_NAN, _POSITIVE = np.int64(0x7FF8_0000_0000_0000), np.int64(2**63 - 1)
#: Numbers are counted if there are more than the first, of at most so many times as many values, and of no more than
#: the last: in a fifth of the time of a sort, or half where they are many and in no order.
_FEW, _DENSE, _MOST = 1 << 10, 4, 1 << 25
#: Numbers that are compared at once, so that what is compared stays in a cache.
_SLICE = 1 << 16


def rises(values: npt.NDArray[Any]) -> bool:
    """True if none of ``values`` (n,) is below the one before it. No more are looked at behind the first that is."""
    parts = (values[at:at + _SLICE + 1] for at in range(0, len(values), _SLICE))
    return all((part[1:] >= part[:-1]).all() for part in parts)


def stable_order(values: npt.NDArray[Any]) -> Rows:
    """The order of ``values`` (n,), of 64 bits, unsigned or not negative; equal ones as they come."""
    n = len(values)
    if rises(values):
        return np.arange(n)
    least = values.min()
    bits, span = (n - 1).bit_length(), int(values.max() - least)
    width, step = span.bit_length(), 64 - bits
    numbers = (values - least).view(np.uint64)
    if n > _FEW and span < min(_DENSE * n, _MOST):
        counted, begins, order = numbers.view(np.int64), np.zeros(span + 2, np.int64), np.empty(n, np.int64)
        np.cumsum(np.bincount(counted), out=begins[1:])
        loops()["order_groups"](counted, begins, order)
        return order
    order = _packed_order(numbers if width <= step else numbers & _mask(step), bits)
    for shift in range(step, width, step):  # from the lowest bits to the highest, as a radix sort does
        order = order[_packed_order(numbers[order] >> np.uint64(shift) & _mask(step), bits)]
    return order


def _packed_order(numbers: Unsigned, bits: int) -> Rows:
    packed = numbers << np.uint64(bits)
    packed |= np.arange(len(numbers), dtype=np.uint64)
    packed.sort()
    packed &= _mask(bits)
    return packed.view(np.int64)


def _mask(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)


def dense_ranks(values: npt.NDArray[Any]) -> tuple[Rows, int]:
    """The rank of each of ``values`` among the different ones, from 0, and the number of these."""
    order = stable_order(values)
    ordered = values[order]
    rises = np.concatenate([np.zeros(min(len(values), 1), np.int64), ordered[1:] != ordered[:-1]])
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.cumsum(rises)
    return ranks, int(ranks[order[-1]]) + 1 if len(values) else 0


def counts_below(ordered: npt.NDArray[Any], wanted: npt.NDArray[Any], *, equal: bool = False) -> Rows:
    """For each of ``wanted`` (n,) how many of ``ordered``, which rise, are below it, or with ``equal`` not above it."""
    side: Any = "right" if equal else "left"
    if rises(wanted):
        return np.searchsorted(ordered, wanted, side=side)
    order = stable_order(wanted)
    found = np.empty(len(wanted), np.int64)
    found[order] = np.searchsorted(ordered, wanted[order], side=side)
    return found


def ordered_bits(values: npt.NDArray[np.float64]) -> Rows:
    """Whole numbers in the order of floats: NaN, all alike, is the greatest, and −0.0 equals 0.0."""
    bits = (values + 0.0).view(np.int64)  # −0.0 + 0.0 is 0.0
    bits = np.where(np.isnan(values), _NAN, bits)
    return np.where(bits < 0, bits ^ _POSITIVE, bits)


def float_of_bits(bits: Rows) -> npt.NDArray[np.float64]:
    """The floats whose `ordered_bits` these are."""
    return np.where(bits < 0, bits ^ _POSITIVE, bits).view(np.float64)
