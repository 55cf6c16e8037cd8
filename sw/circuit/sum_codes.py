"""Encoding of tuples for sum tests, once a tuple, on the host: places on the axes, and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..lang.eval.vector import Vector, magnitude, widen
from ..lang.schema import other_side
from ..plan.keys import Codes
from .plan import SumTest
from .sum_relations import AxisRelation, SumRelation

__all__ = ["SumCodes", "sum_codes"]


@dataclass(frozen=True)
class SumCodes:
    """What n tuples of one stream bring for a sum test.

    Attributes:
        places: Per axis the place among the other stream's codes, uint64 (n,).
        limits: How much the stored tuple may make of the sum, plus 1, uint64 (n,); None where the limit is the same for
            all.
    """

    places: list[Codes]
    limits: Codes | None


def sum_codes(test: SumTest, side: str, values: list[Vector], n: int) -> SumCodes:
    """The codes for ``test`` of ``n`` tuples of stream ``side``, whose slots have ``values``."""
    slots, rest = (test.r, test.rest_r) if side == "r" else (test.s, test.rest_s)
    places = [_place(axis, side, values[slot].values) for axis, slot in zip(test.relation.axes, slots, strict=True)]
    return SumCodes(places, _limits(test.relation, other_side(side), n, None if rest is None else values[rest].values))


def _place(axis: AxisRelation, side: str, values: npt.NDArray[Any]) -> Codes:
    """Where tuples of ``side`` lie among the other stream's codes, modulo 2^bits: for its code less this is the
    difference, or its negative.
    """
    if side == "r":
        return _modular(values, axis.c - axis.s.low, axis.bits)
    return _modular(values, -axis.c - axis.r.low, axis.bits)


def _modular(values: npt.NDArray[Any], offset: int, bits: int) -> Codes:
    """``values + offset`` modulo 2^bits."""
    if values.dtype == object:
        return np.array([(int(v) + offset) % 2**bits for v in values], np.uint64)
    return (values.astype(np.int64).astype(np.uint64) + np.uint64(offset % 2**64)) & np.uint64(2**bits - 1)


def _limits(relation: SumRelation, other: str, n: int, values: npt.NDArray[Any] | None) -> Codes | None:
    """How much axes and the code of stream ``other``'s key may come to at most for tuples whose own keys have
    ``values``, plus 1, and 0 if that is never enough.
    """
    if relation.r is None and relation.s is None:
        return None
    key = relation.r if other == "r" else relation.s
    limit = relation.limit + 1 - (0 if key is None else key.low)
    if values is None:
        return np.full(n, max(0, limit), np.uint64)
    values = widen(values, magnitude(values) + abs(limit))
    left = np.clip(limit - values, 0, max(0, relation.most + 1))  # NULL has no value, and matches nothing anyway
    return np.array(left, np.uint64)
