"""Estimates the size of a result from its first part, so that one that cannot fit is refused early."""

from __future__ import annotations

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import CapacityError
from splitjoin.base.memory import available_memory, size_text
from splitjoin.engines.arrival import Arrivals, S
from splitjoin.lang.query import Query

#: Bytes of the rows so far from which on an estimate is made.
_LEAST = 1 << 27
#: The share of what is free that they must take.
_SHARE = 16
#: The estimate is of a sample: a result is refused if it needs so many times what is free.
_MARGIN = 2


def compared_pairs(query: Query, incoming: Arrivals) -> Ints:
    """The pairs within the windows up to each arrival: int64 (n,)."""
    n = len(incoming)
    from_s = incoming.stream == S
    lengths = np.empty(n, np.int64)
    for mine, own in ((~from_s, "s"), (from_s, "r")):  # the probes, and the stream that they look into
        stored = ~mine
        extent = query.window(own)
        at = np.flatnonzero(mine)
        before = (np.cumsum(stored) - stored)[at]
        count = before if extent.rows is None else np.minimum(before, extent.rows)
        if extent.length is not None and incoming.ts is not None:
            ts, limit = incoming.ts, min(extent.length, 2**63 - 1)
            oldest = np.where(ts[at] < np.iinfo(np.int64).min + limit, np.iinfo(np.int64).min, ts[at] - limit)
            count = np.minimum(count, before - np.searchsorted(ts[stored], oldest, side="left"))
        lengths[at] = np.maximum(count, 0)
    return np.cumsum(lengths)


class ExpectedSize:
    """Estimates the rows of a result from those of its first arrivals. ``row``: bytes that a row takes."""

    def __init__(self, query: Query, incoming: Arrivals, row: int):
        self._query, self._incoming, self._row = query, incoming, row
        self._compared: Ints | None = None

    def check(self, done: int, rows: int) -> None:
        """Raise `CapacityError` if ``rows`` of the first ``done`` arrivals mean that all rows cannot fit in memory."""
        if rows * self._row < _LEAST or done >= len(self._incoming):
            return
        free = available_memory()
        if rows * self._row < free // _SHARE:  # the estimate takes a while, and there is time to refuse later
            return
        if self._compared is None:
            self._compared = compared_pairs(self._query, self._incoming)
        expected = rows * int(self._compared[-1]) // max(int(self._compared[done - 1]), 1)
        need = (expected - rows) * self._row
        if need > _MARGIN * free:
            raise CapacityError(
                f"the result must fit into memory, but {done / len(self._incoming):.0%} of the input gave {rows:,} "
                f"rows, so about {expected:,} are expected, which take about {size_text(expected * self._row)}, and "
                f"{size_text(free)} are free; write it to a file with to='OUT.parquet', or use a shorter window or a "
                f"tighter condition")
