"""The order of appended matches: by probe and row. A counting sort, then a few rows of each probe."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..cpu.jit import compiled

__all__ = ["by_probe"]

Rows = npt.NDArray[np.int64]

#: Matches of a probe that are sorted by insertion.
_FEW = 32


def by_probe(hits: npt.NDArray[np.uint64], first: int, until: int, origin: int) -> tuple[Rows, Rows]:
    """How many matches each of the probes from ``first`` to before ``until`` has, and their row ids in order. ``hits``
    (n,): probe · 2**32 + row less ``origin``.
    """
    ends, rows = np.zeros(until - first + 1, np.int64), np.empty(len(hits), np.int64)
    _scatter(hits, first, origin, ends, rows, _FEW)
    counts = np.diff(ends)
    for probe in np.flatnonzero(counts > _FEW):
        rows[ends[probe]:ends[probe + 1]].sort()
    return counts, rows


@compiled
def _scatter(hits: Any, first: Any, origin: Any, ends: Any, rows: Any, few: Any) -> None:
    """Write the rows of each probe to ``rows``, in order where there are ``few``; probe p's end at ``ends[p + 1]``."""
    n = len(ends) - 1
    for i in range(len(hits)):
        ends[np.int64(hits[i] >> np.uint64(32)) - first + 1] += 1
    for p in range(n):
        ends[p + 1] += ends[p]
    places = ends[:n].copy()
    for i in range(len(hits)):
        probe = np.int64(hits[i] >> np.uint64(32)) - first
        row = np.int64(hits[i] & np.uint64(0xFFFFFFFF)) + origin
        place = places[probe]
        places[probe] = place + 1
        if place - ends[probe] < few:
            while place > ends[probe] and rows[place - 1] > row:
                rows[place] = rows[place - 1]
                place -= 1
        rows[place] = row
