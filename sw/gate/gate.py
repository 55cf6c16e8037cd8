"""`ScaleGate`: sources in, ready tuples out in arrival order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrival import Arrivals, R, S, event_ticks, shown
from ..errors import InputError
from ..lang.query import TimeColumns, TimeSpec, time_columns
from ..lang.schema import SIDES, Schema, Side
from .batch import as_batch
from .late import LateRows
from .runs import Run, Runs, rows_of
from .source import Source, check_unfinished
from .state import GateState, SourceState
from .times import parse_lateness, to_ticks

__all__ = ["ScaleGate"]

#: A place in arrival order: event time, then the source. `_END` sorts behind every source.
_Key = tuple[int, tuple[int, int]]
_END = (2, 0)


class ScaleGate:
    """Merges time-sorted sources of streams R and S into arrival order: ``(ts, R before S, source index, position)``.

    A tuple is ready when nothing that precedes it can still come: every other source has delivered past it, promised
    past it by a heartbeat, or is closed (semantics, section 1). Nothing is ready while a stream never had a source.
    May be used from several threads.

    Args:
        r, s: The Arrow schemas of both streams.
        time: The event-time column, as in `splitjoin.join`.
        lateness: How far out of order a source may deliver: ``"5 SECONDS"``, or a whole number for integer times.
            Tuples within it are sorted; later ones are refused, counted and kept for `late`. None, the default, raises
            for the first tuple out of order.
        keep_late: The most late tuples of a stream that are kept until they are taken; beyond it the oldest go.
        columns: The columns of each stream that `ready` gives, ``{"r": …, "s": …}``; all by default. The time column
            must be among them.
    """

    def __init__(self, r: pa.Schema, s: pa.Schema, *, time: TimeSpec | TimeColumns, lateness: int | str | None = None,
                 keep_late: int = 1 << 16, columns: Mapping[Side, Sequence[str]] | None = None):
        self._schemas: dict[Side, pa.Schema] = {"r": r, "s": s}
        self._time = time if isinstance(time, TimeColumns) else time_columns(
            Schema.from_arrow("r", r), Schema.from_arrow("s", s), time)
        self._columns: Mapping[Side, Sequence[str]] = columns or {"r": r.names, "s": s.names}
        self._kept = {side: schema.empty_table().select(self._columns[side]) for side, schema in self._schemas.items()}
        self._lateness = None if lateness is None else parse_lateness(lateness, self._time)
        self._queues: dict[Side, list[Runs]] = {"r": [], "s": []}
        self._finished: dict[Side, bool] = {"r": False, "s": False}
        self._late: dict[Side, LateRows] = {side: LateRows(schema, keep_late) for side, schema in self._schemas.items()}
        self._frontier: _Key | None = None
        self._lock = RLock()

    @property
    def lateness(self) -> int | None:
        """How far out of order a source may deliver, in ticks; None: not at all."""
        return self._lateness

    @property
    def waiting(self) -> int:
        """How many tuples were delivered and not given out."""
        return sum(q.waiting for queues in self._queues.values() for q in queues)

    @property
    def frontier(self) -> int | None:
        """The event time up to which arrival order is known: nothing below it can come any more. None at first."""
        return None if self._frontier is None else self._frontier[0]

    @property
    def done(self) -> bool:
        """Whether both streams are finished."""
        return all(self._finished.values())

    def add(self, side: Side) -> Source:
        """A new source of stream ``side`` ("r" or "s"), behind its earlier ones at equal times.

        It may be added at any time; what it delivers must not precede what was ready already. Raises `InputError` when
        the stream is finished.
        """
        with self._lock:
            _check_side(side)
            check_unfinished(side, self._finished[side])
            queues = self._queues[side]
            runs = Runs(self._lateness)
            if self._frontier is not None:
                ts, rank = self._frontier
                runs.promise = ts if (_number(side), len(queues)) > rank else ts + 1
            queues.append(runs)
            return Source(self, side, len(queues) - 1)

    def deliver(self, side: Side, index: int, data: Any) -> None:
        """Deliver tuples of the source ``index`` of stream ``side``; `Source.push` calls this."""
        table = as_batch(data, side, self._schemas[side])
        with self._lock:
            runs = self._open(side, index)
            ts = event_ticks(self._time, side, table)
            late = runs.late(ts)
            if late.any():
                if self._lateness is None:
                    raise self._out_of_order(side, index, table, int(np.flatnonzero(late)[0]))
                self._late[side].add(rows_of(table, np.flatnonzero(late)))
                kept = np.flatnonzero(~late)
                ts, table = ts[kept], rows_of(table, kept)
            runs.add(ts, table.select(self._columns[side]))
            self._advance()

    def behind(self) -> list[str]:
        """The sources that all others wait for, as ``r[0]``; or the streams that never had one, as ``r``."""
        with self._lock:
            return self._behind()[1]

    def held_up(self, side: Side, index: int | None) -> bool:
        """Whether a source (None: one still to be added) waits for another one.

        One that is behind never does, nor one that is closed: what it delivers is refused at once.
        """
        with self._lock:
            if self._finished[side] or (index is not None and self._runs(side, index).closed):
                return False
            _, names = self._behind()
            return bool(names) and (f"{side}[{index}]" if index is not None else side) not in names

    def promise(self, side: Side, index: int, time: Any) -> None:
        """The promise of a source; `Source.heartbeat` calls this. One that says nothing new changes nothing."""
        ticks = to_ticks(time, self._time, side, self._schemas[side])
        with self._lock:
            runs = self._open(side, index)
            if runs.promise is None or ticks > runs.promise:
                runs.promise = ticks
                self._advance()

    def remove(self, side: Side, index: int) -> None:
        """Close a source; `Source.close` calls this. What it delivered stays."""
        with self._lock:
            self._runs(side, index).closed = True
            self._advance()

    def finish(self, side: Side) -> None:
        """Close all sources of stream ``side``, and let there be no more."""
        with self._lock:
            _check_side(side)
            self._finished[side] = True
            for runs in self._queues[side]:
                runs.closed = True
            self._advance()

    def ready(self) -> Arrivals:
        """The tuples that became ready since the last call: the next stretch of arrival order, which may be empty."""
        with self._lock:
            taken: list[tuple[int, Run]] = []
            for side in SIDES:
                for index, runs in enumerate(self._queues[side]):
                    if runs.waiting and self._frontier is not None:
                        ts, rank = self._frontier
                        cut = ts if (_number(side), index) <= rank else ts - 1
                        taken += [(_number(side), run) for run in runs.take(cut)]
            return self._merge(taken)

    def late(self, side: Side) -> pa.Table:
        """The late tuples of stream ``side`` since the last call, in the order in which they came."""
        with self._lock:
            return self._late[side].take()

    def counters(self) -> dict[str, int]:
        """``waiting``: tuples not given out; ``late_r``, ``late_s``: tuples refused; ``forgotten_r``, ``forgotten_s``:
        those of them that were not taken in time.
        """
        with self._lock:
            out = {"waiting": self.waiting}
            for side, late in self._late.items():
                out |= {f"late_{side}": late.count, f"forgotten_{side}": late.forgotten}
            return out

    def state(self) -> GateState:
        """All that a gate must know to go on; see `restore`."""
        with self._lock:
            return GateState(
                self._frontier, dict(self._finished),
                {side: [SourceState(q.top, q.promise, q.closed, pa.concat_tables(
                    [run.table for run in q.runs] or [self._kept[side]])) for q in queues]
                 for side, queues in self._queues.items()},
                {side: (late.count, late.forgotten, late.peek()) for side, late in self._late.items()})

    def restore(self, state: GateState) -> None:
        """Go on from ``state`` of a gate with the same arguments, instead of what this one knew."""
        with self._lock:
            self._frontier, self._finished = state.frontier, dict(state.finished)
            for side in SIDES:
                self._queues[side] = []
                for source in state.sources[side]:
                    runs = Runs(self._lateness)
                    runs.add(event_ticks(self._time, side, source.waiting), source.waiting)
                    runs.top, runs.promise, runs.closed = source.top, source.promise, source.closed
                    self._queues[side].append(runs)
                self._late[side].restore(*state.late[side])

    def is_closed(self, side: Side, index: int) -> bool:
        """Whether a source is closed. Raises `InputError` when there is none with this index."""
        return self._runs(side, index).closed

    def count(self, side: Side) -> int:
        """How many sources stream ``side`` has had."""
        _check_side(side)
        return len(self._queues[side])

    def _advance(self) -> None:
        """Move the frontier to the least that an open source can still deliver; it never goes back."""
        key, names = self._behind()
        if names and key is None:
            return
        if key is None:  # no source is open: all that was delivered is ready
            tops = [runs.top for queues in self._queues.values() for runs in queues if runs.top is not None]
            key = (max(tops), _END) if tops else None
        if key is not None and (self._frontier is None or key > self._frontier):
            self._frontier = key

    def _behind(self) -> tuple[_Key | None, list[str]]:
        """The least that an open source can still deliver, None if that is not known, and who holds it there."""
        key: _Key | None = None
        unknown: list[str] = []
        for side in SIDES:
            if not self._queues[side] and not self._finished[side]:
                unknown.append(side)
            for index, runs in enumerate(self._queues[side]):
                if runs.closed:
                    continue
                if (mark := runs.watermark) is None:
                    unknown.append(f"{side}[{index}]")
                else:
                    reached = (mark, (_number(side), index))
                    key = reached if key is None else min(key, reached)
        if unknown or key is None:
            return None, unknown
        return key, [f"{'rs'[key[1][0]]}[{key[1][1]}]"]

    def _merge(self, taken: list[tuple[int, Run]]) -> Arrivals:
        """The runs, given by (stream, source, position), as one stretch of arrival order."""
        parts = {side: [run for number, run in taken if number == _number(side)] for side in SIDES}
        tables = {side: pa.concat_tables([run.table for run in runs]) if runs else self._kept[side]
                  for side, runs in parts.items()}
        if not taken:
            return Arrivals(np.empty(0, np.uint8), np.empty(0, np.int64), tables["r"], tables["s"])
        ts = np.concatenate([run.ts for _, run in taken])
        n = [sum(map(len, parts[side])) for side in SIDES]
        stream = np.repeat(np.array([R, S], np.uint8), n)
        if not (ts[1:] >= ts[:-1]).all():
            order = np.argsort(ts, kind="stable")  # timsort: it merges the runs; stable: ties stay as given
            ts, stream = ts[order], stream[order]
            for number, side in enumerate(SIDES):
                if len(parts[side]) > 1:
                    rows = order[stream == number] - number * n[0]
                    if not (rows[1:] > rows[:-1]).all():
                        tables[side] = rows_of(tables[side], rows)
        return Arrivals(stream, ts, tables["r"], tables["s"])

    def _runs(self, side: Side, index: int) -> Runs:
        _check_side(side)
        if not 0 <= index < len(self._queues[side]):
            raise InputError(f"stream {side} has no source {index}; it has {len(self._queues[side])}")
        return self._queues[side][index]

    def _open(self, side: Side, index: int) -> Runs:
        runs = self._runs(side, index)
        check_unfinished(side, self._finished[side])
        if runs.closed:
            raise InputError(f"source {side}[{index}] is closed and takes no more; add a new one")
        return runs

    def _out_of_order(self, side: Side, index: int, table: pa.Table, row: int) -> InputError:
        name, runs = self._time.name(side), self._queues[side][index]
        column = table.column(name)
        if row and (before := shown(column[row - 1])) and event_ticks(
                self._time, side, table.slice(row - 1, 1))[0] > event_ticks(self._time, side, table.slice(row, 1))[0]:
            reason = f"after {before}"
        elif runs.promise is not None and runs.promise == runs.watermark:
            reason = f"although nothing below {runs.promise} was to come, by a heartbeat or as arrival order got there"
        else:
            reason = f"after {runs.top} in an earlier batch"
        return InputError(f"the time column {side}.{name} of source {side}[{index}] must not decrease, but row {row} "
                          f"of the batch has {shown(column[row])} {reason}; sort it first, or declare a lateness")


def _number(side: Side) -> int:
    return R if side == "r" else S


def _check_side(side: str) -> None:
    if side not in ("r", "s"):
        raise InputError(f"a stream must be 'r' or 's', not {side!r}")
