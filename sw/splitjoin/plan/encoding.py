"""Encoding of tuples by a plan, once per tuple, on the host: keys to store them with, and bounds to probe with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Mask
from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.schema import other_side

from .forms import OneSided
from .keys import Codes, Texts
from .plan import Plan
from .relations import Interval, Relation, interval


@dataclass(frozen=True)
class TupleCodes:
    """The codes of n tuples of one stream.

    Attributes:
        keys: Per slot of the plan a key, uint64 (n,).
        lows, highs: Per interval test the bounds on the other stream's key, uint64 (n,), both included; empty where
            low > high.
        values: Per slot of the plan the values that the keys encode (n,).
    """

    keys: list[Codes]
    lows: list[Codes]
    highs: list[Codes]
    values: list[Vector]


class Coder:
    """Computes `TupleCodes` by ``plan``, and keeps the session's dictionary of texts."""

    def __init__(self, plan: Plan):
        self._plan = plan
        self._texts = Texts()

    def codes(self, side: str, table: pa.Table) -> TupleCodes:
        """The codes of every row of ``table``, tuples of stream ``side``."""
        values = self.values(side, table)
        return TupleCodes(self.keys(side, values), *self.bounds(side, values), values)

    def values(self, side: str, table: pa.Table) -> list[Vector]:
        """Per slot of the plan the values that its keys encode."""
        found = []
        for slot in self._plan.slots(side):
            v = slot.key.values(table, self._texts)
            found.append(Vector(v.values, v.valid & guard_holds(slot.guards, table)) if slot.guards else v)
        return found

    def keys(self, side: str, values: list[Vector]) -> list[Codes]:
        """Per slot of the plan the keys of ``values``."""
        return [np.where(v.valid, slot.key.encode(v), np.uint64(0)) if slot.null_code and not v.valid.all()
                else slot.key.encode(v) for slot, v in zip(self._plan.slots(side), values, strict=True)]

    def bounds(self, side: str, values: list[Vector]) -> tuple[list[Codes], list[Codes]]:
        """Per interval test the bounds, lows and highs, of the tuples with ``values``."""
        theirs, lows, highs = self._plan.slots(other_side(side)), [], []
        for j, test in enumerate(self._plan.tests):
            key, v = theirs[test.slot(other_side(side))].key, values[test.slot(side)]
            parts = self.intervals(side, j, test.relations, v)
            low = reduce(np.maximum, (p[0] for p in parts))
            high = reduce(np.minimum, (p[1] for p in parts))
            every = bool(v.valid.all())
            lows.append(low if every else np.where(v.valid, low, np.uint64(2**key.width - 1)))
            highs.append(high if every else np.where(v.valid, high, np.uint64(0)))
        return lows, highs

    def intervals(self, side: str, test: int, relations: Sequence[Relation], v: Vector) -> list[Interval]:
        """The interval of codes that each of the ``relations`` of a test asks for, of the tuples with values ``v``;
        those of NULL have no meaning.
        """
        mine, theirs, of = self._plan.slots(side), self._plan.slots(other_side(side)), self._plan.tests[test]
        return [interval(relation, side, v, mine[of.slot(side)].key, theirs[of.slot(other_side(side))].key)
                for relation in relations]


def guard_holds(guards: tuple[OneSided, ...], table: pa.Table) -> Mask:
    """Truth per row of ``table``, bool (n,): True if every condition has one of its required values.

    Guards are selections at ingress. A tuple that fails one keeps its place in the window; its key's code is 0, which
    no probe's interval holds.
    """
    holds = np.ones(table.num_rows, np.bool_)
    for guard in guards:
        v = evaluate(guard.condition, table)
        wanted = np.zeros(table.num_rows, np.bool_)
        if "true" in guard.values:
            wanted |= v.valid & v.values
        if "false" in guard.values:
            wanted |= v.valid & ~v.values
        if "null" in guard.values:
            wanted |= ~v.valid
        holds &= wanted
    return holds
