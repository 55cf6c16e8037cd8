"""What tuples are stored with and what they probe with, by a plan: the work of the host, once a tuple."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..circuit.sum_relations import Axis, SumRelation
from ..lang.eval.vector import Vector, magnitude, widen
from .keys import Codes, Texts, guard_holds
from .make import Plan
from .relations import interval

__all__ = ["Coder", "TupleCodes"]


@dataclass(frozen=True)
class TupleCodes:
    """Codes of n tuples of one stream: per slot of the plan a key (n,); per interval test the bounds (n,) on the other
    stream's key, both included, empty where low > high; per sum test the places (n,) on its axes, and how much the
    stored tuple may make of the sum, plus 1, where the limit is not the same for all.
    """

    keys: list[Codes]
    lows: list[Codes]
    highs: list[Codes]
    places: list[list[Codes]] = field(default_factory=list)
    limits: list[Codes | None] = field(default_factory=list)


class Coder:
    """Computes `TupleCodes` by ``plan``. Keeps the session's dictionary of texts."""

    def __init__(self, plan: Plan):
        self._plan = plan
        self._texts = Texts()

    def codes(self, side: str, table: pa.Table) -> TupleCodes:
        """The codes of every row of ``table``, tuples of stream ``side``."""
        mine, theirs = self._plan.slots(side), self._plan.slots("s" if side == "r" else "r")
        values = []
        for slot in mine:
            v = slot.key.values(table, self._texts)
            values.append(Vector(v.values, v.valid & guard_holds(slot.guards, table)))
        keys = [np.where(v.valid, slot.key.encode(v), np.uint64(0)) if slot.null_code else slot.key.encode(v)
                for slot, v in zip(mine, values, strict=True)]
        lows, highs = [], []
        for test in self._plan.tests:
            here, there = (test.r, test.s) if side == "r" else (test.s, test.r)
            key, v = theirs[there].key, values[here]
            parts = [interval(rel, side, v, mine[here].key, key) for rel in test.relations]
            low = reduce(np.maximum, (p[0] for p in parts))
            high = reduce(np.minimum, (p[1] for p in parts))
            lows.append(np.where(v.valid, low, np.uint64(2**key.width - 1)))
            highs.append(np.where(v.valid, high, np.uint64(0)))
        places, limits = [], []
        for sum_ in self._plan.sums:
            slots, rest, other = ((sum_.r, sum_.rest_r, "s") if side == "r" else (sum_.s, sum_.rest_s, "r"))
            places.append([_place(axis, side, values[slot].values)
                           for axis, slot in zip(sum_.relation.axes, slots, strict=True)])
            limits.append(_limits(sum_.relation, other, table.num_rows, None if rest is None else values[rest].values))
        return TupleCodes(keys, lows, highs, places, limits)


def _place(axis: Axis, side: str, values: npt.NDArray[Any]) -> Codes:
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
