"""Small arithmetic in logic."""

from __future__ import annotations

from functools import reduce
from operator import add

from amaranth.hdl import Cat, Value

__all__ = ["at_most_one", "times"]


def times(value: Value, factor: int) -> Value:
    """``value`` · ``factor`` by shifts and sums, for a positive ``factor``; tools make a slower multiplier of it."""
    return reduce(add, (value << n for n in range(factor.bit_length()) if factor >> n & 1))


def at_most_one(bits: Value) -> Value:
    """Whether no more than one of ``bits`` is set."""
    return ~Cat(bits[n] & bits[:n].any() for n in range(1, len(bits))).any()
