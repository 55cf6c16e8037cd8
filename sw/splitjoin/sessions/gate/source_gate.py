"""`SourceGate`: a gate to which any number of sources of both streams deliver, in the order of the pushes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from splitjoin.base import threads
from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError
from splitjoin.engines.arrival import Arrivals, R, S
from splitjoin.lang.layouts import take_rows
from splitjoin.lang.schema import SIDES, Side
from splitjoin.tables.inputs import as_batch

from .readers import GateState, ReadyGate, ReadySequence
from .source import LateRows, Shed, Source, SourceQueue, check_side, check_unfinished

#: A place in arrival order: event time in ticks, then the rank of the source.
Place = tuple[int, tuple[int, int]]


class SourceGate(ReadyGate):
    """Keeps the sources of streams R and S, with what each has delivered, and the tuples that were late or dropped.

    Without times, as here, the order of the calls is arrival order, and all tuples are ready at once; `ScaleGate` goes
    by times. Several threads may use a gate.

    Args:
        r: The Arrow schema of stream R.
        s: The Arrow schema of stream S.
        columns: The columns of each stream that `ready` returns, ``{"r": …, "s": …}``; None: all.
        keep_late: Largest number of late tuples of a stream, and of dropped ones, that are kept until they are taken.

    Attributes:
        default: The index of each stream's default source, if there is one.
    """

    rule: object = "(none)"

    def __init__(self, r: pa.Schema, s: pa.Schema, *, columns: Mapping[Side, Sequence[str]] | None = None,
                 keep_late: int = 1 << 16):
        self._schemas: dict[Side, pa.Schema] = {"r": r, "s": s}
        self._columns: Mapping[Side, Sequence[str]] = columns or {"r": r.names, "s": s.names}
        self._kept = {side: schema.empty_table().select(self._columns[side]) for side, schema in self._schemas.items()}
        self._queues: dict[Side, list[SourceQueue]] = {"r": [], "s": []}
        self._pushed: list[tuple[Side, pa.Table]] = []
        self._finished: dict[Side, bool] = {"r": False, "s": False}
        self._late: dict[Side, LateRows] = {side: LateRows(schema, keep_late) for side, schema in self._schemas.items()}
        self._shed: dict[Side, LateRows] = {side: LateRows(schema, keep_late) for side, schema in self._schemas.items()}
        self.default: dict[Side, int] = {}
        self._frontier: Place | None = None
        self._began = self._now() or 0.0
        self._lock = threads.rlock()

    @property
    def waiting(self) -> int:
        """The number of tuples that were delivered and that `ready` has not returned."""
        return sum(q.waiting for queues in self._queues.values() for q in queues)

    @property
    def frontier(self) -> int | None:
        """The event time in ticks below which no tuple can arrive any more; None at first, and without times."""
        return None if self._frontier is None else self._frontier[0]

    @property
    def passed(self) -> dict[Side, int | None]:
        return dict.fromkeys(SIDES, self.frontier)

    @property
    def done(self) -> bool:
        return all(self._finished.values())

    def add(self, side: Side) -> Source:
        """Add a source to stream ``side`` ("r" or "s"); at equal times it follows the stream's earlier sources.

        It may be added at any time; its tuples must not precede those that were ready already. Raises `InputError` when
        the stream is finished.
        """
        with self._lock:
            check_side(side)
            check_unfinished(side, self._finished[side])
            self._queues[side].append(SourceQueue(self._now() or 0.0))
            return Source(self, side, len(self._queues[side]) - 1)

    def default_source(self, side: Side) -> int:
        """The index of the stream's default source, which is added if there is none."""
        with self._lock:
            if side not in self.default:
                self.default[side] = self.add(side).index
            return self.default[side]

    def open_sources(self, side: Side) -> list[int]:
        """The indices of the open sources of ``side``; where it has had no source and is not finished, the default one
        is added.
        """
        with self._lock:
            if not self._queues[side] and not self._finished[side]:
                self.default_source(side)
            return [index for index, queue in enumerate(self._queues[side]) if not queue.closed]

    def deliver(self, side: Side, index: int, data: Any, shed: Shed | None = None) -> None:
        """Take the next tuples of source ``index`` of stream ``side``; `Source.push` calls this.

        ``shed`` says which of so many tuples that are not late to drop, bool (n,), while so many of the stream wait.
        """
        table = as_batch(data, side, self._schemas[side])
        with self._lock:
            self._open_queue(side, index)
            if shed is not None and len(table):
                waiting = sum(len(t) for of, t in self._pushed if of == side)
                table = take_rows(table, self._not_shed(side, table, shed, waiting))
            self._pushed.append((side, table.select(self._columns[side])))

    def promise(self, side: Side, index: int, time: Any) -> None:
        """Record the promise of a source; `Source.heartbeat` calls this. A lower promise has no effect. Raises
        `InputError` without times.
        """
        self.ticks(side, time)

    def ticks(self, side: Side, time: Any) -> int:
        """A user's time of stream ``side`` in ticks. Raises `InputError` for what is none, and without times."""
        raise InputError("a heartbeat needs a query with a time column; without one, tuples arrive as they are pushed")

    def marks(self, side: Side) -> list[int | None]:
        """The marks (semantics, section 9) of those sources of stream ``side`` that are open and not idle, in ticks;
        None for one that is not known, and for a stream that has had no source.
        """
        with self._lock:
            return [None for queue in self._queues[side] if not queue.closed and not queue.idle]

    def silence(self, side: Side, index: int) -> None:
        """Let no other source wait for source ``index`` until it speaks; `Source.idle` calls this."""
        with self._lock:
            self._open_queue(side, index).silence()
            self._advance()

    def remove(self, side: Side, index: int) -> None:
        """Close a source; `Source.close` calls this. The tuples that it delivered stay."""
        with self._lock:
            self._queue(side, index).closed = True
            self._advance()

    def finish(self, side: Side) -> None:
        """Close all sources of stream ``side``, and refuse new ones."""
        with self._lock:
            check_side(side)
            self._finished[side] = True
            for queue in self._queues[side]:
                queue.closed = True
            self._advance()

    def next_idle(self) -> float | None:
        return None

    def behind(self) -> list[str]:
        """The sources that all others wait for, such as ``r[0]``; a stream that never had one, such as ``r``."""
        with self._lock:
            return self._behind()[1]

    def held_up(self, side: Side, index: int | None) -> bool:
        """True if a source (None: one still to be added) waits for another one.

        A source that is behind never waits, nor does a closed one, whose tuples are refused at once.
        """
        with self._lock:
            if self._finished[side] or (index is not None and self._queue(side, index).closed):
                return False
            _, names = self._behind()
            return bool(names) and (f"{side}[{index}]" if index is not None else side) not in names

    def ready(self) -> Arrivals:
        return self._ready()

    def sequence(self) -> ReadySequence:
        """The sequence of this gate's ready tuples, which nothing else may take."""
        return ReadySequence(self._take_ready, self.next_idle)

    def late(self, side: Side) -> pa.Table:
        """The late tuples of stream ``side`` since the last call, in the order in which they were delivered."""
        with self._lock:
            return self._late[side].take()

    def shed(self, side: Side) -> pa.Table:
        """The tuples of stream ``side`` that were dropped under load since the last call, in their order."""
        with self._lock:
            return self._shed[side].take()

    def put_back(self, what: Literal["late", "shed"], side: Side, rows: pa.Table) -> None:
        """Undo a `late` or a `shed` of stream ``side``, which gave ``rows``."""
        with self._lock:
            (self._late if what == "late" else self._shed)[side].put_back(rows)

    def shed_count(self, side: Side) -> int:
        """The number of tuples of stream ``side`` that were dropped under load."""
        return self._shed[side].count

    def counters(self) -> dict[str, int]:
        """Counters by name. ``waiting``: tuples not yet returned; ``late_r``, ``late_s``: tuples refused; ``shed_r``,
        ``shed_s``: tuples dropped under load; ``forgotten_r``, ``forgotten_s``: those of both that were not kept until
        they were taken.
        """
        with self._lock:
            out = {"waiting": self.waiting}
            for side, late in self._late.items():
                shed = self._shed[side]
                out |= {f"late_{side}": late.count, f"shed_{side}": shed.count,
                        f"forgotten_{side}": late.forgotten + shed.forgotten}
            return out

    def state(self) -> GateState:
        with self._lock:
            now = self._now()
            values: dict[str, Any] = {
                "default": dict(self.default), "frontier": self._frontier, "finished": dict(self._finished),
                "passed": dict.fromkeys(SIDES), "silent": 0.0 if now is None else float(now - self._began),
                "sources": {side: [queue.state(now) for queue in queues] for side, queues in self._queues.items()}}
            tables = {f"waiting_{side}_{n}": pa.concat_tables([run.table for run in queue.runs] or [self._kept[side]])
                      for side, queues in self._queues.items() for n, queue in enumerate(queues)}
            for kind, kept in ("late", self._late), ("shed", self._shed):
                values[kind] = {side: (rows.count, rows.forgotten) for side, rows in kept.items()}
                tables |= {f"{kind}_{side}": rows.peek() for side, rows in kept.items()}
            return GateState(values, tables)

    def restore(self, state: GateState) -> None:
        """Continue from ``state`` of a gate with the same arguments, instead of this one's."""
        with self._lock:
            now, values, tables = self._now() or 0.0, state.values, state.tables
            self._finished, self.default = dict(values["finished"]), dict(values["default"])
            place = values["frontier"]
            self._frontier = None if place is None else (place[0], (place[1][0], place[1][1]))
            self._began, self._pushed = now - values["silent"], []
            for side in SIDES:
                self._queues[side] = []
                for n, source in enumerate(values["sources"][side]):
                    queue, waiting = SourceQueue(), tables[f"waiting_{side}_{n}"]
                    queue.add(self._ticks(side, waiting), waiting)
                    queue.restore(source, now)
                    self._queues[side].append(queue)
                for kind, kept in ("late", self._late), ("shed", self._shed):
                    count, forgotten = values[kind][side]
                    kept[side].restore(count, forgotten, tables[f"{kind}_{side}"])

    def is_closed(self, side: Side, index: int) -> bool:
        """True if a source is closed. Raises `InputError` if no source has this index."""
        return self._queue(side, index).closed

    def count(self, side: Side) -> int:
        """The number of sources that stream ``side`` has had."""
        check_side(side)
        return len(self._queues[side])

    def _ready(self) -> Arrivals:
        """The tuples that became ready since the last call."""
        with self._lock:
            pushed, self._pushed = self._pushed, []
        tables = {side: pa.concat_tables([t for of, t in pushed if of == side] or [self._kept[side]])
                  for side in self._schemas}
        stream = np.repeat(np.array([R if side == "r" else S for side, _ in pushed], np.uint8),
                           [len(t) for _, t in pushed])
        return Arrivals(stream, None, tables["r"], tables["s"])

    def _take_ready(self) -> tuple[Arrivals, int | None, bool]:
        """The tuples that are ready, the time up to which the gate has gone with them, and whether it has ended."""
        with self._lock:
            return self._ready(), self.frontier, self.done

    def _advance(self) -> None:
        """Note how far arrival order is known, once a source has gone on. The caller holds the lock."""

    def _behind(self) -> tuple[Place | None, list[str]]:
        """The least place that a source which is not idle can still deliver, None if that is not known, and the sources
        (or streams without one) that are behind.
        """
        return None, []

    def _now(self) -> float | None:
        """The time in seconds by which silences are measured; None if none are."""
        return None

    def _ticks(self, side: Side, table: pa.Table) -> Ints:
        """The event times of tuples, int64 (n,); none without times."""
        return np.empty(0, np.int64)

    def _not_shed(self, side: Side, table: pa.Table, shed: Shed, waiting: int) -> Ints:
        """The numbers of the tuples that are not dropped, while so many of the stream wait; the others are noted."""
        dropped = shed(len(table), waiting)
        self._shed[side].add(take_rows(table, np.flatnonzero(dropped)))
        return np.flatnonzero(~dropped)

    def _queue(self, side: Side, index: int) -> SourceQueue:
        check_side(side)
        if not 0 <= index < len(self._queues[side]):
            raise InputError(f"stream {side} has no source {index}; it has {len(self._queues[side])}")
        return self._queues[side][index]

    def _open_queue(self, side: Side, index: int) -> SourceQueue:
        queue = self._queue(side, index)
        check_unfinished(side, self._finished[side])
        if queue.closed:
            raise InputError(f"source {side}[{index}] is closed and takes no more; add a new one")
        return queue
