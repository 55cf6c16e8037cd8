"""Overlaps of intervals of two tables, as pairs of row numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from splitjoin.joins.join import join

from .columns import Intervals, Numbers

#: The condition on tables that `bounds_of` gives.
OVERLAP = "r.g = s.g AND r.lo < s.hi AND s.lo < r.hi"


def overlapping(left: Intervals, right: Intervals) -> tuple[Numbers, Numbers]:
    """The rows of both tables whose intervals overlap, in the order of these rows."""
    if not len(left.rows) or not len(right.rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    found = join(bounds_of(left, "n"), bounds_of(right, "m"), on=OVERLAP, order="none", select=["n", "m"]).to_arrow()
    mine, theirs = found.column("n").to_numpy(), found.column("m").to_numpy()
    order = np.lexsort((theirs, mine))
    return mine[order], theirs[order]


def bounds_of(intervals: Intervals, row: str) -> pa.Table:
    """Group, bounds, and in the column ``row`` the row number of each interval."""
    return pa.table({"g": intervals.group, "lo": intervals.low, "hi": intervals.high, row: intervals.rows})
