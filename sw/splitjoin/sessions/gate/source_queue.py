"""The tuples of one source that are not ready yet, as sorted runs, and how far the source has got."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.lang.layouts import take_rows

__all__ = ["Run", "SourceQueue", "rises"]

Ticks = npt.NDArray[np.int64]

#: Runs of up to this many tuples together are merged: there are fewer runs, and each tuple is copied only a few times.
_SMALL_RUN = 1 << 14
_MIN, _MAX = -(2**63), 2**63 - 1


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
    """The tuples of one source that are not ready, and how far the source has got.

    Attributes:
        highest: The highest event time so far, in ticks; None at first.
        promise: The time in ticks below which the source has promised to deliver no more tuples; None without one.
        closed: True if the source delivers no more tuples.
        idle: True if the others do not wait for the source until it speaks again.
        was_idle: True if it ever was.
        spoke: When the source last spoke, in seconds of the gate's clock.
        waiting: Number of tuples that are not ready.
    """

    def __init__(self, spoke: float = 0.0):
        self._runs: list[Run] = []
        self.highest: int | None = None
        self.promise: int | None = None
        self.closed = self.idle = self.was_idle = False
        self.spoke = spoke
        self.waiting = 0

    @property
    def runs(self) -> list[Run]:
        """The tuples that are not ready yet, in runs by position."""
        return self._runs

    def speak(self, now: float) -> None:
        """Note that the source delivers or promises something."""
        self.spoke, self.idle = now, False

    def silence(self) -> None:
        """Let the others not wait for the source until it speaks."""
        self.idle = self.was_idle = True

    def highest_before(self, ts: Ticks, delay: int, beyond: bool) -> Ticks:
        """The highest event time before each of the next tuples less ``delay``, plus 1 if ``beyond``, int64 (n,).

        The least int64 stands for no tuple, and for lower times.
        """
        before = np.empty(len(ts), np.int64)
        if len(ts):
            before[0] = _MIN if self.highest is None else self.highest
            np.maximum.accumulate(ts[:-1], out=before[1:])
            np.maximum(before, before[0], out=before)
        # The distance from the least int64 fits uint64, so that nothing wraps.
        above = before.astype(np.uint64) - np.uint64(2**63)
        less = above - np.minimum(above, np.uint64(min(delay, 2**64 - 1)))
        if beyond:
            less += (above > 0) & (less < np.uint64(2**64 - 1))
        found: Ticks = (less + np.uint64(2**63)).astype(np.int64)
        return found

    def promised_away(self, ts: Ticks) -> npt.NDArray[np.bool_]:
        """True for each of the next tuples that is below the source's promise, bool (n,)."""
        if self.promise is None:
            return np.zeros(len(ts), np.bool_)
        if self.promise > _MAX:
            return np.ones(len(ts), np.bool_)
        away: npt.NDArray[np.bool_] = ts < max(self.promise, _MIN)
        return away

    def reach(self, ts: Ticks) -> None:
        """Note that the source has got to the event times ``ts``, of at least one tuple."""
        highest = int(ts.max())
        self.highest = highest if self.highest is None else max(highest, self.highest)

    def is_next(self, ts: Ticks, floor: int | None) -> bool:
        """True if the next tuples, at least one, rise from what the source has got to and promised, and ``floor``."""
        least = max((time for time in (self.highest, self.promise, floor) if time is not None), default=_MIN)
        return int(ts[0]) >= least and rises(ts)

    def add(self, ts: Ticks, table: pa.Table, *, in_order: bool = False) -> None:
        """Add tuples that are not late, in the order of the source; ``in_order``: their times are known to rise."""
        if not len(ts):
            return
        self.reach(ts[-1:] if in_order else ts)
        self.waiting += len(ts)
        self._runs.append(Run(ts, table) if in_order else _sorted(ts, table))
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


def rises(ts: Ticks) -> bool:
    """True if the event times ``ts`` do not fall."""
    return bool((ts[1:] >= ts[:-1]).all())


def _sorted(ts: Ticks, table: pa.Table) -> Run:
    if rises(ts):
        return Run(ts, table)
    order = np.argsort(ts, kind="stable")
    return Run(ts[order], take_rows(table, order))
