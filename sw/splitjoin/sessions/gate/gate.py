"""`ScaleGate`: merges the tuples of time-sorted sources into arrival order; `UnorderedGate`, for queries whose results
have no order, lets them through as soon as they may be in a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base import threads
from splitjoin.base.arrays import Ints, Mask
from splitjoin.base.errors import InputError
from splitjoin.engines.arrival import Arrivals, R, S, event_ticks, shown
from splitjoin.engines.merging import merged_slices
from splitjoin.lang.layouts import take_rows
from splitjoin.lang.schema import SIDES, Schema, Side, other_side
from splitjoin.lang.time_columns import TimeColumns, TimeSpec, time_columns
from splitjoin.tables.inputs import as_batch

from .lateness import LatenessRule, later
from .readers import GateReader, GateState, ReadySequence
from .source import Run, Shed, Source, SourceQueue, rises
from .source_gate import Place, SourceGate
from .times import to_ticks

#: A rank behind every source.
_END = (2, 0)
#: The time that a stream has passed which is finished: no event time to speak of is greater.
_MAX = 2**63 - 1
#: Less than any event time.
_NOTHING = -(2**63) - 1


class ScaleGate(SourceGate):
    """Merges time-sorted sources of streams R and S into arrival order: ``(ts, R before S, source index, position)``.

    A tuple is ready when no tuple that precedes it can still arrive: every other source has delivered past it, promised
    past it by a heartbeat, or is closed (semantics, section 1). No tuple is ready before both streams have had a
    source. Several threads may use a gate.

    Args:
        r: The Arrow schema of stream R.
        s: The Arrow schema of stream S.
        time: The event-time column, as in `splitjoin.join`.
        lateness: The time by which a tuple may be out of order: ``"5 SECONDS"``, or a whole number for integer times; a
            pair (R's, S's) or a mapping gives each stream its own, or None if it has no say in the watermark. Later
            tuples are refused, counted and kept for `late`. None, the default, raises for the first tuple out of order.
        watermark: Which tuples are late, a name of `LatenessRule`; ``"min"`` by default.
        idle: The time of silence after which no other source waits for a source until it speaks, such as
            ``"30 SECONDS"``; a pair or a mapping gives each stream its own, or None for never. What it then delivers is
            late if it precedes what was ready.
        clock: A function that returns seconds, which never fall; silence is measured by it.
        keep_late: Largest number of late tuples of a stream that are kept until `late` takes them, and of dropped ones
            until `shed` does; beyond it the oldest are forgotten.
        columns: The columns of each stream that `ready` returns, ``{"r": …, "s": …}``; all by default. The time column
            must be among them.
    """

    rule: LatenessRule

    def __init__(self, r: pa.Schema, s: pa.Schema, *, time: TimeSpec | TimeColumns, lateness: Any = None,
                 watermark: str | None = None, idle: Any = None, clock: Callable[[], float] = threads.monotonic,
                 keep_late: int = 1 << 16, columns: Mapping[Side, Sequence[str]] | None = None):
        self._time = time if isinstance(time, TimeColumns) else time_columns(
            Schema.from_arrow("r", r), Schema.from_arrow("s", s), time)
        self.rule = LatenessRule.make(lateness, watermark, idle, self._time)
        self.longest_delay = max(delay or 0 for delay in self.rule.delays.values())
        self._clock = clock
        super().__init__(r, s, columns=columns, keep_late=keep_late)
        self._restored = self._stale = False
        self._sequence: ReadySequence | None = None

    def add(self, side: Side) -> Source:
        with self._lock:
            self._stale = True
            return super().add(side)

    def deliver(self, side: Side, index: int, data: Any, shed: Shed | None = None) -> None:
        table = as_batch(data, side, self._schemas[side])
        with self._lock:
            queue = self._open_queue(side, index)
            ts = event_ticks(self._time, side, table)
            # Most often the tuples are in order and none is late, which is found without a limit for each.
            in_order = bool(len(ts)) and self.rule.by_own_mark(side) and queue.is_next(ts, self._floor(side, index))
            late = None if in_order else self._late_ones(side, index, queue, ts, table)
            queue.speak(self._clock())
            if late is not None and late.any():
                self._late[side].add(take_rows(table, np.flatnonzero(late)))
                kept = np.flatnonzero(~late)
                ts, table = ts[kept], take_rows(table, kept)
            if shed is not None and len(ts):
                kept = self._not_shed(side, table, shed, sum(q.waiting for q in self._queues[side]))
                queue.reach(ts)  # time goes on with dropped tuples too, else a full window would never empty
                ts, table = ts[kept], take_rows(table, kept)
            queue.add(ts, table.select(self._columns[side]), in_order=in_order)
            self._advance()

    def promise(self, side: Side, index: int, time: Any) -> None:
        ticks = self.ticks(side, time)
        with self._lock:
            queue = self._open_queue(side, index)
            queue.speak(self._clock())
            queue.promise = ticks if queue.promise is None else max(queue.promise, ticks)
            self._advance()

    def ticks(self, side: Side, time: Any) -> int:
        return to_ticks(time, self._time, side, self._schemas[side])

    def marks(self, side: Side) -> list[int | None]:
        with self._lock:
            rule, missing = self.rule, self._missing()
            reached = rule.reached(self._queues, missing) if rule.delays[side] is None else None
            return [None] * (side in missing) + [
                later(rule.mark(side, queue, later(rule.own(side, queue), reached)), self._floor(side, index))
                for index, queue in enumerate(self._queues[side]) if not queue.closed and not queue.idle]

    def advance_past(self, ticks: int) -> None:
        """Move the frontier behind all tuples of the time ``ticks``: what sources still deliver up to it is late."""
        with self._lock:
            key = ticks + 1, (0, 0)
            self._frontier = key if self._frontier is None else max(self._frontier, key)

    def next_idle(self) -> float | None:
        with self._lock:
            now = self._clock()
            return min((limit + since - now for limit, since in self._silences()), default=None)

    def ready(self) -> Arrivals:
        """The tuples that became ready since the last call: the next slice of arrival order, which may be empty.

        Raises `InputError` for a gate that has had readers.
        """
        if self._sequence is not None:
            raise InputError("a gate with readers gives its tuples to them; call ready() of a reader")
        return super().ready()

    def reader(self) -> GateReader:
        """A reader of all tuples that become ready from now on, at a pace of its own; there may be any number.

        A tuple is kept until the slowest reader has read it; `GateReader.close` gives up a reader's place.
        """
        with self._lock:
            if self._sequence is None:
                self._sequence = self.sequence()
        return self._sequence.reader()  # outside the lock, which is taken within the sequence's own

    def _ready(self) -> Arrivals:
        with self._lock:
            if self._stale or self.rule.idle is not None:  # a source may have become idle
                self._advance()
                self._stale = False
            return self._merge([(SIDES.index(side), run) for side in SIDES
                                for index, queue in enumerate(self._queues[side]) if queue.waiting
                                for run in queue.take(self._cut(side, index))])

    def restore(self, state: GateState) -> None:
        with self._lock:
            super().restore(state)
            self._restored = self._stale = True

    def _now(self) -> float | None:
        return None if self.rule.idle is None else self._clock()

    def _ticks(self, side: Side, table: pa.Table) -> Ints:
        return event_ticks(self._time, side, table)

    def _advance(self) -> None:
        """Move the frontier forward to the least place that a source which is not idle can still deliver."""
        for side in SIDES:
            limit = None if self.rule.idle is None else self.rule.idle[side]
            for queue in self._queues[side]:
                if limit is not None and not queue.closed and not queue.idle and self._clock() - queue.spoke >= limit:
                    queue.silence()
        key, _ = self._behind()
        if key is None:
            if any(not q.closed for queues in self._queues.values() for q in queues) or any(
                    not self._queues[side] and not self._finished[side] for side in SIDES):
                return  # nothing is known of a source, or all are idle
            # No source is open: all delivered tuples are ready.
            reached = [q.highest for queues in self._queues.values() for q in queues if q.highest is not None]
            key = (max(reached), _END) if reached else None
        if key is not None and (self._frontier is None or key > self._frontier):
            self._frontier = key

    def _silences(self) -> list[tuple[float, float]]:
        """For each source, or stream without one, that may become idle: after how many seconds, and since when."""
        found = []
        for side in SIDES:
            limit = None if self.rule.idle is None else self.rule.idle[side]
            if limit is not None:
                found += [(limit, queue.spoke) for queue in self._queues[side] if not queue.closed and not queue.idle]
                if side in self._missing():
                    found.append((limit, self._began))
        return found

    def _missing(self) -> list[Side]:
        """The streams that have had no source, for whose first one the others wait."""
        idle = dict.fromkeys(SIDES) if self.rule.idle is None else self.rule.idle
        return [side for side in SIDES if not self._queues[side] and not self._finished[side]
                and ((limit := idle[side]) is None or self._clock() - self._began < limit)]

    def _cut(self, side: Side, index: int) -> int | None:
        """The event time up to which tuples of a source are ready; None without end."""
        if self._frontier is None:
            return _NOTHING
        ts, rank = self._frontier
        return ts - ((SIDES.index(side), index) > rank)

    def _floor(self, side: Side, index: int) -> int | None:
        """The least event time that a source of this number may still deliver, as arrival order has got there."""
        if self._frontier is None:
            return None
        ts, rank = self._frontier
        return ts + ((SIDES.index(side), index) < rank)

    def _late_ones(self, side: Side, index: int, queue: SourceQueue, ts: Ints, table: pa.Table) -> Mask:
        """True for each of a source's next tuples that is late, bool (n,). Raises `InputError` if none may be."""
        late = ts < self.rule.limits(side, queue, ts, self._queues, self._missing())
        late |= queue.promised_away(ts)
        if (floor := self._floor(side, index)) is not None:
            late |= ts < floor if floor <= _MAX else np.ones(len(ts), np.bool_)
        if late.any() and self.rule.strict and not queue.was_idle:
            raise self._out_of_order(side, index, table, int(np.flatnonzero(late)[0]))
        return late

    def _behind(self) -> tuple[Place | None, list[str]]:
        missing, rule = self._missing(), self.rule
        reached = rule.reached(self._queues, missing)
        first = [(SIDES.index(side), 0) for side in missing]
        places: list[tuple[int | None, tuple[int, int]]] = [(reached, rank) for rank in first]
        waited: list[tuple[int | None, tuple[int, int], str]] = [(None, rank, SIDES[rank[0]]) for rank in first]
        for side in SIDES:
            for index, queue in enumerate(self._queues[side]):
                if not queue.closed and not queue.idle:
                    rank = (SIDES.index(side), index)
                    floor = self._floor(side, index)
                    places.append((later(rule.mark(side, queue, reached), floor), rank))
                    if rule.delays[side] is not None:
                        waited.append((later(rule.mark(side, queue, rule.own(side, queue)), floor), rank,
                                       f"{side}[{index}]"))
        known = [(mark, rank) for mark, rank in places if mark is not None]
        unknown = [name for mark, _, name in waited if mark is None]
        if len(known) < len(places):
            return None, unknown
        if rule.watermark == "max" or not waited:
            return min(known, default=None), []  # any source moves the watermark
        return min(known), unknown or [min((mark, rank, name) for mark, rank, name in waited if mark is not None)[2]]

    def _merge(self, taken: list[tuple[int, Run]]) -> Arrivals:
        """Merge the runs, given by (stream, source, position), into one slice of arrival order."""
        parts = {side: [run for number, run in taken if number == SIDES.index(side)] for side in SIDES}
        tables = {side: pa.concat_tables([run.table for run in runs]) if runs else self._kept[side]
                  for side, runs in parts.items()}
        if not taken:
            return Arrivals(np.empty(0, np.uint8), np.empty(0, np.int64), tables["r"], tables["s"])
        times = {side: _joined([run.ts for run in runs]) for side, runs in parts.items()}
        if all(len(runs) == 1 or rises(times[side]) for side, runs in parts.items()):  # each run rises
            return merged_slices(tables["r"], tables["s"], times["r"], times["s"])
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
                        tables[side] = take_rows(tables[side], rows)
        return Arrivals(stream, ts, tables["r"], tables["s"])

    def _out_of_order(self, side: Side, index: int, table: pa.Table, row: int) -> InputError:
        name, queue = self._time.name(side), self._queues[side][index]
        column = table.column(name)
        if row and (before := shown(column[row - 1])) and event_ticks(
                self._time, side, table.slice(row - 1, 1))[0] > event_ticks(self._time, side, table.slice(row, 1))[0]:
            reason = f"after {before}"
        elif (least := later(queue.promise, self._floor(side, index))) is not None and (
                queue.highest is None or least >= queue.highest):
            reason = f"although nothing below {least} was to come, by a heartbeat or as arrival order got there"
        else:
            reason = f"after {queue.highest} in an earlier batch"
            if self._restored:
                reason += (" of this session, or of the session whose snapshot this one restored; push only tuples "
                           "that follow those in the snapshot")
        return InputError(f"the time column {side}.{name} of source {side}[{index}] must not decrease, but row {row} "
                          f"of the batch has {shown(column[row])} {reason}; sort it first, or declare a lateness")


class UnorderedGate(ScaleGate):
    """A `ScaleGate` that does not sort: a tuple is ready once the other stream has delivered one within its window.

    The pairs of RANGE windows depend on their two tuples alone. So a tuple that comes late, but not too late, needs no
    place among earlier ones. One that is further ahead than the other stream's windows reach waits, as nothing can be
    with it in a pair yet; so the tuples of a query are never further apart than its windows and what its sources are
    out of order. The tuples of one `ready` are sorted.

    Args:
        r, s, options: As of `ScaleGate`.
        lengths: The lengths in ticks of both streams' windows, which are RANGE windows; None if all tuples are ready as
            they come, however far ahead.
        sorts_s: True if the tuples of S become ready in the order of S alone: once no tuple of S that precedes one can
            still come.
    """

    in_order = False

    def __init__(self, r: pa.Schema, s: pa.Schema, *, lengths: Mapping[Side, int] | None, sorts_s: bool = False,
                 **options: Any):
        super().__init__(r, s, **options)
        self._lengths = lengths
        self._sorts_s = sorts_s
        #: For each stream the event time below which it delivers no more tuples, and the first source that may deliver
        #: one of that time; None if unknown.
        self._passed: dict[Side, tuple[int, int] | None] = dict.fromkeys(SIDES)

    @property
    def passed(self) -> dict[Side, int | None]:
        with self._lock:
            found: dict[Side, int | None] = {}
            for side, passed in self._passed.items():
                waiting = [int(run.ts[0]) for queue in self._queues[side] for run in queue.runs]
                found[side] = None if passed is None else min([passed[0], *waiting])
            return found

    def state(self) -> GateState:
        with self._lock:
            state = super().state()
            state.values["passed"] = dict(self._passed)
            return state

    def restore(self, state: GateState) -> None:
        with self._lock:
            super().restore(state)
            self._passed = {side: None if passed is None else (passed[0], passed[1])
                            for side, passed in state.values["passed"].items()}

    def _advance(self) -> None:
        """Note how far each stream has got: as far as its own sources that are not idle, or else as the other ones."""
        super()._advance()
        reached = self.rule.reached(self._queues, self._missing())
        marks = {side: [(later(self.rule.mark(side, queue, reached), self._floor(side, index)), index)
                        for index, queue in enumerate(self._queues[side]) if not queue.closed and not queue.idle]
                 for side in SIDES}
        for side in SIDES:
            mine = [(reached, 0)] if side in self._missing() else marks[side] or [
                (mark, 0) for mark, _ in marks[other_side(side)]]
            known = [(mark, index) for mark, index in mine if mark is not None]
            if self._finished[side]:
                self._passed[side] = _MAX, 0
            elif known and len(known) == len(mine):
                passed = self._passed[side]
                self._passed[side] = min(known) if passed is None else max(passed, min(known))

    def _floor(self, side: Side, index: int) -> int | None:
        """The least event time that a source of stream ``side`` may still deliver."""
        passed = self._passed[side]
        return None if passed is None else passed[0] + (index < passed[1])

    def _cut(self, side: Side, index: int) -> int | None:
        """The event time up to which tuples of a source may be in a pair, and in the order of S if that is asked."""
        cut = self._near(side)
        if self._sorts_s and side == "s" and not self._finished[side]:
            passed = self._passed[side]
            in_order = _NOTHING if passed is None else passed[0] - (index > passed[1])
            cut = in_order if cut is None else min(cut, in_order)
        return cut

    def _near(self, side: Side) -> int | None:
        """The event time up to which tuples of stream ``side`` may be in a pair; None without end."""
        other = other_side(side)
        if self._finished[other] or self._lengths is None:
            return None
        reached = [t for queue in self._queues[other] for t in (queue.highest, queue.promise) if t is not None]
        if (passed := self._passed[other]) is not None:
            reached.append(passed[0])
        return max(reached) + self._lengths[other] if reached else _NOTHING


def _joined(parts: Sequence[Ints]) -> Ints:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int64), *parts])
