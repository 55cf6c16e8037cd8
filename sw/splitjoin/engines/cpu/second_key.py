"""Pairs by two inequalities on keys that cannot be compared with each other, as in ``r.salary > s.salary AND r.tax <
s.tax``: the first is a range of sorted tuples, and the second skips what it rules out in that range.

Each of the two lets half of all tuples through. Over the tuples in the order of the first key, the least and the
greatest second key of every aligned run of 16, 64, 256, … tuples tell which runs hold no pair. A bound at one end of
the second key leaves only runs that hold one, but for those across the end of a range: so the time is that of the pairs
times the logarithm of the tuples (a priority search tree over blocks; McCreight, Priority search trees, 1985).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.plan.keys import Codes

__all__ = ["SecondKey"]

Rows = npt.NDArray[np.int64]

#: Tuples of the smallest runs, and runs of each larger one, as the loop `expand_within` has them.
_RUN, _FAN = 16, 4


class SecondKey:
    """The ``keys`` (n,) of tuples in the order of another key, and the interval ``low`` to ``high`` of each probe (m,).

    ``loops``: the compiled ones.
    """

    def __init__(self, loops: Mapping[str, Any], keys: Codes, low: Codes, high: Codes):
        self._loops, self._keys, self._low, self._high = loops, keys, low, high
        least, most, begins, n = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)], list[int](), 0
        ends, size = (keys, keys), _RUN
        while len(ends[0]) > 1 or (not begins and len(keys)):
            at = np.arange(0, len(ends[0]), size)
            ends, size = (np.minimum.reduceat(ends[0], at), np.maximum.reduceat(ends[1], at)), _FAN
            least.append(ends[0])
            most.append(ends[1])
            begins.append(n)
            n += len(at)
        self._least, self._most = np.concatenate(least), np.concatenate(most)
        self._begins = np.array(begins, np.int64)

    def pairs(self, order: Rows, rows: Rows, first: Rows, behind: Rows, most: int) -> Iterator[tuple[Rows, Rows]]:
        """The pairs of the probes ``rows`` with tuples at positions from ``first`` to before ``behind``, which are the
        rows ``order`` (n,), whose keys are in the probe's interval: row ids, about ``most`` at once. ``rows``,
        ``first`` and ``behind``: (k,).
        """
        state = np.zeros(2, np.int64)
        while state[0] < len(rows):
            probe, stored = np.empty(max(most, _RUN), np.int64), np.empty(max(most, _RUN), np.int64)
            n = self._loops["expand_within"](first, behind, rows, self._low, self._high, self._keys, self._least,
                                             self._most, self._begins, order, state, probe, stored)
            if n:
                yield probe[:n], stored[:n]

    def count(self, rows: Rows, first: Rows, behind: Rows) -> int:
        """The number of pairs that `pairs` would give."""
        none = np.empty(0, np.int64)
        return int(self._loops["expand_within"](first, behind, rows, self._low, self._high, self._keys, self._least,
                                                self._most, self._begins, none, np.zeros(2, np.int64), none, none))
