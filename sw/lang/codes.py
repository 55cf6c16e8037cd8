"""What tuples are stored with and what they probe with, by a plan: the work of the host, once a tuple."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa

from .bounds import interval
from .keys import Codes, Texts, guard_holds
from .plan import Plan
from .vector import Vector

__all__ = ["Coder", "TupleCodes"]


@dataclass(frozen=True)
class TupleCodes:
    """Codes of n tuples of one stream: per slot of the plan a key (n,); per test the bounds (n,) on the other stream's
    key, both included, empty where low > high.
    """

    keys: list[Codes]
    lows: list[Codes]
    highs: list[Codes]


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
        return TupleCodes(keys, lows, highs)
