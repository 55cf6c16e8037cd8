"""The tuples of one source that are not ready yet, as sorted runs, and the source's watermark."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.lang.layouts import take

__all__ = ["Run", "SourceQueue", "take_rows"]

Ticks = npt.NDArray[np.int64]

#: Runs of up to this many tuples together are merged: there are fewer runs, and each tuple is copied only a few times.
_SMALL_RUN = 1 << 14


@dataclass(frozen=True)
class Run:
    """Tuples sorted by event time, at equal times by position: ``ts`` int64 (n,) in ticks, ``table`` n rows."""

    ts: Ticks
    table: pa.Table

    def __len__(self) -> int:
        return len(self.ts)

    def slice(self, start: int, end: int | None = None) -> Run:
        """The part of the run from tuple ``start`` to before ``end``."""
        return Run(self.ts[start:end], self.table.slice(start, None if end is None else end - start))


class SourceQueue:
    """The tuples of one source, and its watermark. ``lateness``: in ticks, None if input must be in order.

    A tuple is late when it is below the source's promise, or more than ``lateness`` below an earlier tuple.

    Attributes:
        highest: The highest event time so far, in ticks; None at first.
        promise: The time in ticks below which the source promised to deliver no more tuples; None without a promise.
        closed: True if the source delivers no more tuples.
        waiting: Number of tuples that are not ready.
    """

    def __init__(self, lateness: int | None):
        self._lateness = lateness
        self._runs: list[Run] = []
        self.highest: int | None = None
        self.promise: int | None = None
        self.closed = False
        self.waiting = 0

    @property
    def runs(self) -> list[Run]:
        """The tuples that are not ready yet, in runs by position."""
        return self._runs

    @property
    def watermark(self) -> int | None:
        """The event time in ticks below which no tuple can arrive any more; None if unknown."""
        reached = None if self.highest is None else self.highest - (self._lateness or 0)
        return max((w for w in (reached, self.promise) if w is not None), default=None)

    def late(self, ts: Ticks) -> npt.NDArray[np.bool_]:
        """True for each of the next tuples that is late, bool (n,). Without a lateness, those out of order are."""
        out = np.zeros(len(ts), np.bool_)
        if not len(ts):
            return out
        # The highest event time before each tuple.
        before = np.empty(len(ts), np.int64)
        before[0] = ts[0] if self.highest is None else self.highest
        np.maximum.accumulate(ts[:-1], out=before[1:])
        np.maximum(before, before[0], out=before)
        behind = before > ts
        if behind.any():
            # Positive differences of int64 are exact as uint64, however large.
            gap = before.astype(np.uint64) - ts.astype(np.uint64)
            out = behind & (gap > np.uint64(min(self._lateness or 0, 2**64 - 1)))
        if self.promise is not None and int(ts.min()) < self.promise:
            out |= ts < min(self.promise, 2**63 - 1) if self.promise < 2**63 else np.ones(len(ts), np.bool_)
        return out

    def add(self, ts: Ticks, table: pa.Table) -> None:
        """Add tuples that are not late, in the order of the source."""
        if not len(ts):
            return
        highest = int(ts.max())
        self.highest = highest if self.highest is None else max(highest, self.highest)
        self.waiting += len(ts)
        self._runs.append(_sorted(ts, table))
        while len(self._runs) > 1:
            a, b = self._runs[-2:]
            if len(a) + len(b) > _SMALL_RUN or 2 * len(b) < len(a):
                break
            self._runs[-2:] = [_sorted(np.concatenate([a.ts, b.ts]),
                                       pa.concat_tables([a.table, b.table]).combine_chunks())]

    def take(self, cut: int | None) -> list[Run]:
        """Remove the tuples up to event time ``cut`` (None: all) and return them, in runs by position."""
        if cut is None:
            taken, self._runs, self.waiting = self._runs, [], 0
            return taken
        taken, rest = [], []
        for run in self._runs:
            first, last = int(run.ts[0]), int(run.ts[-1])
            n = 0 if first > cut else len(run) if last <= cut else int(np.searchsorted(run.ts, cut, side="right"))
            if n:
                taken.append(run if n == len(run) else run.slice(0, n))
            if n < len(run):
                rest.append(run if n == 0 else run.slice(n))
            self.waiting -= n
        self._runs = rest
        return taken


def _sorted(ts: Ticks, table: pa.Table) -> Run:
    if (ts[1:] >= ts[:-1]).all():
        return Run(ts, table)
    order = np.argsort(ts, kind="stable")
    return Run(ts[order], take_rows(table, order))


def take_rows(table: pa.Table, rows: npt.NDArray[np.int64]) -> pa.Table:
    """The rows of ``table`` with these numbers, in this order, for columns of any type."""
    chosen = pa.array(rows)
    table = table.combine_chunks()
    return pa.table([take(table.column(i), chosen) for i in range(table.num_columns)], schema=table.schema)
