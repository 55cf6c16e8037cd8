"""Sources: the handle through which one producer delivers its tuples, and what a gate keeps of them: those that are not
ready, as sorted runs, and those that are late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Mask, Ticks
from splitjoin.base.closing import Closing
from splitjoin.base.errors import InputError
from splitjoin.lang.layouts import take_rows
from splitjoin.lang.schema import SIDES, Side

#: Runs of up to this many tuples together are merged: there are fewer runs, and each tuple is copied only a few times.
_SMALL_RUN = 1 << 14
_MIN, _MAX = -(2**63), 2**63 - 1


class SourceOwner(Protocol):
    """The receiver of sources' tuples: a gate, or a session that has one."""

    def deliver(self, side: Side, index: int, data: Any) -> None:
        """Take the next tuples of a source."""

    def promise(self, side: Side, index: int, time: Any) -> None:
        """Record a source's promise."""

    def silence(self, side: Side, index: int) -> None:
        """Let no other source wait for a source until it speaks."""

    def remove(self, side: Side, index: int) -> None:
        """Close a source."""


#: Chooses the tuples that are dropped under load, bool (n,), of so many, while so many of the stream wait.
Shed = Callable[[int, int], Mask]


class Source(Closing):
    """One producer of tuples. ``side`` is its stream, ``index`` its place among sources of that stream at equal times.

    Use as a context manager to close it at the end.
    """

    def __init__(self, owner: SourceOwner, side: Side, index: int):
        self._owner = owner
        self.side: Side = side
        self.index = index

    def __repr__(self) -> str:
        return f"<source {self.side}[{self.index}]>"

    def push(self, data: Any) -> None:
        """Deliver the source's next tuples: an Arrow table or batch, or anything with ``__arrow_c_stream__``.

        If it raises, no tuple of ``data`` was taken.
        """
        self._owner.deliver(self.side, self.index, data)

    def heartbeat(self, time: Any) -> None:
        """Promise that this source delivers no more tuples below ``time`` (semantics, section 1)."""
        self._owner.promise(self.side, self.index, time)

    def idle(self) -> None:
        """Let no other source wait for this one until its next push or heartbeat.

        What it then delivers is late if it precedes what the others have got to.
        """
        self._owner.silence(self.side, self.index)

    def close(self) -> None:
        """End the source, so that no other source waits for it. Closing it again has no effect."""
        self._owner.remove(self.side, self.index)


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
        runs: The tuples that are not ready, in runs by position.
        waiting: Their number.
    """

    def __init__(self, spoke: float = 0.0):
        self.runs: list[Run] = []
        self.highest: int | None = None
        self.promise: int | None = None
        self.closed = self.idle = self.was_idle = False
        self.spoke = spoke
        self.waiting = 0

    def speak(self, now: float) -> None:
        """Note that the source delivers or promises something."""
        self.spoke, self.idle = now, False

    def silence(self) -> None:
        """Let the others not wait for the source until it speaks."""
        self.idle = self.was_idle = True

    def state(self, now: float | None) -> list[Any]:
        """The source's times and whether it is closed or idle, as plain values for `restore`. ``now``: None if nobody
        looks at the clock.
        """
        return [self.highest, self.promise, self.closed, self.idle, self.was_idle,
                0.0 if now is None else float(now - self.spoke)]

    def restore(self, state: Sequence[Any], now: float) -> None:
        """Take over the `state` of another queue, whose tuples are here."""
        self.highest, self.promise, self.closed, self.idle, self.was_idle, silent = state
        self.spoke = now - silent

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

    def promised_away(self, ts: Ticks) -> Mask:
        """True for each of the next tuples that is below the source's promise, bool (n,)."""
        if self.promise is None:
            return np.zeros(len(ts), np.bool_)
        if self.promise > _MAX:
            return np.ones(len(ts), np.bool_)
        away: Mask = ts < max(self.promise, _MIN)
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
        self.runs.append(Run(ts, table) if in_order else _sorted(ts, table))
        while len(self.runs) > 1:
            a, b = self.runs[-2:]
            if len(a) + len(b) > _SMALL_RUN or 2 * len(b) < len(a):
                break
            self.runs[-2:] = [_sorted(np.concatenate([a.ts, b.ts]),
                                       pa.concat_tables([a.table, b.table]).combine_chunks())]

    def take(self, cut: int | None) -> list[Run]:
        """Remove the tuples up to event time ``cut`` (None: all) and return them, in runs by position."""
        if cut is None:
            taken, self.runs, self.waiting = self.runs, [], 0
            return taken
        taken, rest = [], []
        for run in self.runs:
            first, last = int(run.ts[0]), int(run.ts[-1])
            n = 0 if first > cut else len(run) if last <= cut else int(np.searchsorted(run.ts, cut, side="right"))
            if n:
                taken.append(run if n == len(run) else run.slice(0, n))
            if n < len(run):
                rest.append(run if n == 0 else run.slice(n))
            self.waiting -= n
        self.runs = rest
        return taken


class LateRows:
    """A bounded buffer of late rows of ``schema``; beyond ``limit`` rows it forgets the oldest.

    Attributes:
        count: Number of late rows.
        forgotten: Number of late rows that were forgotten.
    """

    def __init__(self, schema: pa.Schema, limit: int):
        self._schema, self._limit = schema, limit
        self._tables: deque[pa.Table] = deque()
        self._rows = 0
        self.count = 0
        self.forgotten = 0

    def add(self, rows: pa.Table) -> None:
        """Keep ``rows``, or as many of them as the limit allows."""
        self.count += len(rows)
        self._keep(rows, self._tables.append)

    def put_back(self, rows: pa.Table) -> None:
        """Undo a `take` of ``rows``."""
        self._keep(rows, self._tables.appendleft)

    def _keep(self, rows: pa.Table, at: Callable[[pa.Table], None]) -> None:
        """Keep ``rows`` too, and forget the oldest ones beyond the limit."""
        if len(rows):  # else tables of nothing pile up
            at(rows)
        self._rows += len(rows)
        while (over := self._rows - self._limit) > 0:
            oldest = self._tables.popleft()
            drop = min(over, len(oldest))
            self._rows -= drop
            self.forgotten += drop
            if drop < len(oldest):
                self._tables.appendleft(oldest.slice(drop))

    def peek(self) -> pa.Table:
        """The kept rows, oldest first."""
        return pa.concat_tables(self._tables) if self._tables else self._schema.empty_table()

    def take(self) -> pa.Table:
        """Remove and return the kept rows, oldest first."""
        rows = self.peek()
        self._tables.clear()
        self._rows = 0
        return rows

    def restore(self, count: int, forgotten: int, rows: pa.Table) -> None:
        """Take over the counts and the ``rows`` of another buffer."""
        self.take()
        self.forgotten = forgotten
        self.add(rows)
        self.count = count


def rises(ts: Ticks) -> bool:
    """True if the event times ``ts`` do not fall."""
    return bool((ts[1:] >= ts[:-1]).all())


def _sorted(ts: Ticks, table: pa.Table) -> Run:
    if rises(ts):
        return Run(ts, table)
    order = np.argsort(ts, kind="stable")
    return Run(ts[order], take_rows(table, order))


def check_side(side: str) -> None:
    """Raise `InputError` unless ``side`` is "r" or "s"."""
    if side not in SIDES:
        raise InputError(f"a stream must be 'r' or 's', not {side!r}")


def check_unfinished(side: Side, finished: bool) -> None:
    """Raise `InputError` if stream ``side`` is ``finished``."""
    if finished:
        raise InputError(f"stream {side} is finished and takes no more tuples or sources; push before it is closed, or "
                         f"open a new session")
