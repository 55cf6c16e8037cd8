"""`MultiwayJoin`: a running join of three streams or more, as a chain of sessions of two (semantics, section 11). Rows
between two steps get numbers and times, and are put in order, by a `RowStep`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base import threads
from splitjoin.base.arrays import Ints
from splitjoin.base.closing import Closing
from splitjoin.base.errors import BackPressure, InputError, SnapshotError, first_line
from splitjoin.base.ipc import read_ipc_stream
from splitjoin.engines.arrival import event_ticks
from splitjoin.engines.device import ITEM, PAIR, STAR, Device, Items
from splitjoin.joins.sql import MultiwaySelect, Select
from splitjoin.joins.sql.multiway import latest
from splitjoin.lang.layouts import take_rows
from splitjoin.lang.schema import Side, suggest
from splitjoin.lang.types import Int
from splitjoin.rows.output import NUMBER, TIME
from splitjoin.tables.inputs import as_batch

from .envelope import Envelope, damaged, ipc_bytes
from .epochs import DeliveredCounts, EpochsOfResults, EpochSource
from .gate import Watermark
from .gate.times import time_value
from .limit import Limit
from .reading import ResultReader
from .results import ResultQueue
from .session import StreamJoin
from .shedding import Shedding

#: A snapshot holds those of the steps, what is held between them, and the rows that were not polled.
_ENVELOPE = Envelope(b"SPLJMANY", 1, "a join of several streams")
_NO_ITEMS = np.empty(0, ITEM)


class MultiwayJoin(ResultReader, EpochsOfResults, Closing):
    """A running join of three streams or more; `splitjoin.open_multiway` starts it.

    A combination of tuples, one of each stream, is a row when the condition is true of it, and each tuple but the
    latest lies in its own stream's window as the latest sees it. Rows come by the arrival of their latest tuple, and
    then by the arrivals of the others, stream by stream. LEFT, SEMI, ANTI and ASOF joins decide, step by step, on the
    rows of the step before (semantics, section 11).

    Use as a context manager. Several threads may call its methods.

    Args:
        select: The statement, checked.
        devices: A device for each step; the first joins the first two streams.
        lateness: The time by which tuples may be out of order, as of `splitjoin.open`: of all streams, or a mapping by
            their names.
        watermark: As of `splitjoin.open`, "min" by default, and in each step by itself.
        limit: Bounds on the rows that were not polled, and on the tuples of all streams and the rows of steps that wait
            for a stream that is behind; a whole number is short for ``Limit(rows=…)``.
        when_full: ``"raise"``: a push beyond them raises `BackPressure`; ``"shed"``: tuples of each stream are dropped
            under load, as of `splitjoin.open`, ahead of the step that takes them; rows between steps are not.
        shedding: Which tuples are dropped, with a seed of its own for each step: ``seed``, ``seed + 1``, ….
    """

    def __init__(self, select: MultiwaySelect, devices: Sequence[Device], *, lateness: Any = None,
                 watermark: Watermark | None = None, limit: Limit | int | None = None,
                 when_full: Literal["raise", "shed"] = "raise", shedding: Shedding | None = None):
        if when_full not in ("raise", "shed"):
            raise InputError(f"when_full of a join of several streams must be 'raise' or 'shed', not {when_full!r}")
        self._select, self._limit, self._sheds = select, Limit.of(limit), when_full == "shed"
        # Steps hold what they are given: only the input of the whole join is bounded.
        unbounded = Limit(rows=None, nbytes=None, waiting=None, late=self._limit.late)
        self._labels = [t.label for t in select.statement.tables]
        late = self._by_name(lateness)
        self._sessions: list[StreamJoin] = []
        try:
            for n, (_, step) in enumerate(select.steps):
                delays = None if lateness is None else (late[0] if n == 0 else _nothing(step), late[n + 1])
                rule = replace(shedding or Shedding(), seed=(shedding or Shedding()).seed + n) if (
                    when_full == "shed") else shedding
                self._sessions.append(StreamJoin(step, devices[n], lateness=delays, watermark=watermark,
                                                 limit=unbounded, when_full=when_full, shedding=rule,
                                                 punctuation=True))
        except BaseException:
            self.close()
            raise
        self._steps = [_step_of(select, n) for n in range(len(select.steps))]
        self._queue = ResultQueue(self.schema, False)
        self._delivered = DeliveredCounts(self._labels)
        self._lock = threads.condition()

    @property
    def schema(self) -> pa.Schema:
        return self._select.schema

    def push(self, stream: str, data: Any) -> None:
        """Deliver tuples of ``stream``, by its name in the statement, in order of time within the lateness.

        ``data`` is an Arrow table or batch, or anything with ``__arrow_c_stream__``. Raises `InputError` or
        `SchemaError` for what does not fit, and `BackPressure` if there is no room; then no tuple was taken.
        """
        n = self._number(stream)
        table = as_batch(data, "s" if n else "r", self._select.schemas[n])
        session, side = self._at(n)
        if side == "r":
            table = table.rename_columns([f"{stream}.{name}" for name in table.column_names])
        with self._lock:
            self._check_room(stream)
            before = session.delivered[side]
            try:
                (session.push_s if n else session.push_r)(table)
            finally:
                if session.delivered[side] != before:  # it was taken, though a device may have failed
                    self._delivered.add(stream, 0, len(table))
            self._work()

    def heartbeat(self, time: Any, stream: str | None = None) -> None:
        """Promise that ``stream`` (None: every stream) delivers no more tuples below ``time``; as `StreamJoin`'s."""
        with self._lock:
            for n in range(len(self._labels)) if stream is None else [self._number(stream)]:
                session, side = self._at(n)
                session.heartbeat(time, side)
            self._work()

    def idle(self, stream: str) -> None:
        """Declare ``stream`` silent: no other waits for it until it pushes or promises."""
        session, side = self._at(self._number(stream))
        with self._lock:
            session.idle(side)
            self._work()

    def finish(self, stream: str) -> None:
        """Close ``stream``: it delivers no more tuples, so no other waits for it."""
        with self._lock:
            self._finish(self._number(stream))
            self._work()

    def poll(self) -> pa.RecordBatch:
        """The rows that are complete and were not returned yet, in order; an empty batch if there are none."""
        with self._lock:
            self._check_unreserved()
            self._work()
            return self._queue.take()[0]

    def flush(self) -> pa.RecordBatch:
        """End all streams, and return all remaining rows."""
        with self._lock:
            self._check_unreserved()
            for n in range(len(self._labels)):
                self._finish(n)
            return self.poll()

    @property
    def finished(self) -> bool:
        """True if all streams are closed and all rows have been given out."""
        with self._lock:
            return self._sessions[-1].finished and not self._queue.rows

    def late(self, stream: str) -> pa.Table:
        """The late tuples of ``stream`` since the last call, in the order in which they were delivered."""
        return self._set_apart(stream, StreamJoin.late_r, StreamJoin.late_s)

    def shed(self, stream: str) -> pa.Table:
        """The tuples of ``stream`` that were dropped under load since the last call, as they were delivered."""
        return self._set_apart(stream, StreamJoin.shed_r, StreamJoin.shed_s)

    def counters(self) -> dict[str, int]:
        """The counters of each step (`StreamJoin.counters`), with its number in front: ``1_rows``, ``2_rows``, …"""
        with self._lock:
            return {f"{n}_{name}": count for n, session in enumerate(self._sessions, 1)
                    for name, count in session.counters().items()}

    def snapshot(self) -> bytes:
        """The state of all steps as bytes, from which `restore` continues on any devices."""
        with self._lock:
            self._work()
            parts = {f"step {n}": session.snapshot() for n, session in enumerate(self._sessions)}
            parts |= {f"held {n}": step.state() for n, step in enumerate(self._steps)}
            parts["rows"] = ipc_bytes(pa.Table.from_batches(self._queue.peek()[0], self.schema))
            return _ENVELOPE.packed(parts)

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot of a join of the same statement.

        Raises `SnapshotError` when the bytes are none; if a step's part is damaged, the join is closed, as the steps
        before it have gone on.
        """
        with self._lock:
            self._check_unreserved()
            parts = _ENVELOPE.unpacked(snapshot)
            wanted = {"rows", *(f"{what} {n}" for n in range(len(self._sessions)) for what in ("step", "held"))}
            if set(parts) != wanted:
                raise SnapshotError(f"the snapshot must be of a join of {len(self._labels)} streams; open the join as "
                                    f"the other one was")
            rows = _read_table(parts["rows"], self.schema)
            steps = [_step_of(self._select, n, parts[f"held {n}"]) for n in range(len(self._sessions))]
            for n, session in enumerate(self._sessions):
                try:
                    session.restore(parts[f"step {n}"])
                except BaseException:
                    if n:
                        self.close()
                    raise
            self._queue, self._steps = ResultQueue(self.schema, False), steps
            self._queue.restore(rows.to_batches(), _NO_ITEMS, len(rows))

    def restart(self, device: str | Device | None = None, *, device_options: Mapping[str, Any] | None = None,
                **options: object) -> None:
        """Go on in fresh device sessions, to which the windows are replayed: after a device has failed, or, with
        ``device`` as of `splitjoin.open`, on another one.
        """
        with self._lock:
            for session in self._sessions:
                session.restart(device, device_options=device_options, **options)
            self._work()

    def close(self) -> None:
        """Release the devices. Rows that were not polled are lost."""
        for session in self._sessions:
            session.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches that are complete, each with at least one row; ends when there is none."""
        while len(batch := self.poll()):
            yield batch

    def _by_name(self, spec: Any) -> list[Any]:
        if not isinstance(spec, Mapping):
            return [spec] * len(self._labels)
        if set(spec) != set(self._labels):
            raise InputError(f"a mapping of lateness must have the keys {', '.join(map(repr, self._labels))}, the "
                             f"streams of the statement, not {sorted(map(str, spec))}")
        return [spec[label] for label in self._labels]

    def _epochs(self) -> EpochSource:
        last = self._sessions[-1]
        return EpochSource(self._lock, lambda: {"": self}, self._delivered, lambda: last.frontier_ticks,
                           lambda: last.finished, self.snapshot, self.restore, self.reserve,
                           self._select.steps[-1][1].query.time, threads.monotonic)

    @property
    def lags(self) -> bool:
        """True if results may come from a device between two pushes."""
        return any(session.lags for session in self._sessions)

    @property
    def drained(self) -> bool:
        """True if all streams have ended, and all rows are found; they may wait for a poll."""
        return self._sessions[-1].finished

    @property
    def _results(self) -> ResultQueue:
        return self._queue

    @contextmanager
    def _usable(self) -> Iterator[None]:
        with self._lock:
            yield

    def _number(self, stream: str) -> int:
        if stream not in self._labels:
            raise InputError(f"there is no stream {stream!r}{suggest(str(stream), self._labels)}; the streams are "
                             f"{', '.join(self._labels)}")
        return self._labels.index(stream)

    def _at(self, n: int) -> tuple[StreamJoin, Side]:
        """The session that takes stream number ``n``, and the stream's side there."""
        return self._sessions[max(n - 1, 0)], "s" if n else "r"

    def _check_room(self, stream: str) -> None:
        """Raise `BackPressure` if ``stream`` must wait now."""
        if self._sheds:
            return
        reason = self._limit.unread(self._queue) if self._limit.full(self._queue) else None
        waiting = sum(session.waiting for session in self._sessions) + sum(step.held for step in self._steps)
        if reason is None and self._limit.held(waiting):
            marks = list[tuple[int | None, str]]()
            for n, label in enumerate(self._labels):
                session, side = self._at(n)
                marks += [(mark, label) for mark in session.marks(side)]
            # All others wait for the streams of which nothing is known, else for those that have got least far.
            unknown = any(mark is None for mark, _ in marks)
            least = None if unknown else min((mark for mark, _ in marks if mark is not None), default=None)
            behind = [label for mark, label in marks if mark == least]
            if behind and stream not in behind:
                reason = self._limit.waits(waiting, behind)
        if reason is not None:
            raise BackPressure(f"the join is full: {reason}; the batch was not taken")

    def _set_apart(self, stream: str, of_r: Callable[[StreamJoin], pa.Table],
                   of_s: Callable[[StreamJoin], pa.Table]) -> pa.Table:
        """The tuples of ``stream`` that a function of its session gives, as they were delivered."""
        n = self._number(stream)
        with self._lock:
            return (of_s if n else of_r)(self._at(n)[0]).rename_columns(self._select.schemas[n].names)

    def _finish(self, n: int) -> None:
        session, side = self._at(n)
        (session.close_s if side == "s" else session.close_r)()

    def _work(self) -> None:
        """Hand on what each step gives to the next one. The caller holds the lock."""
        # No stream waits for those of the first step if both are idle, but the later steps wait for its rows.
        self._sessions[0].advance_if_idle(self._sessions[1:])
        for (session, after), step in zip(pairwise([*self._sessions, None]), self._steps, strict=True):
            assert session is not None
            while True:
                items, rows = session.poll_items()
                if not len(items):
                    break
                made = step.complete(items, rows)
                if after is None:
                    for batch in made.select(self.schema.names).to_batches():
                        self._queue.put(batch, _NO_ITEMS)
                elif len(made):
                    after.hand_over(made)
            if after is not None:
                if len(made := step.due(session.frontier_ticks, ended=session.finished)):
                    after.hand_over(made)
                if session.finished:
                    after.close_r()
                elif (reached := step.frontier(session.frontier_ticks)) is not None:
                    after.heartbeat(reached, "r")
        self._lock.notify_all()


def _nothing(select: Select) -> Any:
    """No lateness, as the times of ``select`` have it."""
    time = select.query.time
    return 0 if time is not None and isinstance(time.type, Int) else "0 SECONDS"


class RowStep(ABC):
    """Makes rows of a step those that the next one takes, or the result.

    Columns of numbers, in which −1 stands for a tuple that a row lacks, and the time of the latest tuple are added.
    """

    def __init__(self, select: MultiwaySelect, n: int):
        step, made = select.steps[n]
        self.is_last, self._is_first = n == len(select.steps) - 1, n == 0
        self._left, self._gives_s = step.left, step.made != step.left
        self._numbers = [f"{t.label}.{NUMBER}" for t in step.made]
        self._tables = [select.statement.tables.index(t) for t in step.made]
        self._times = [f"{t.label}.{select.windows.times[at]}" for t, at in zip(step.made, self._tables, strict=True)]
        self._schema, self._query = made.schema, made.query

    @property
    @abstractmethod
    def held(self) -> int:
        """The number of rows that are held."""

    @abstractmethod
    def complete(self, items: Items, rows: pa.RecordBatch) -> pa.Table:
        """Take rows of the step with their items, and return those that go on at once."""

    @abstractmethod
    def due(self, frontier: int | None, *, ended: bool) -> pa.Table:
        """The rows that go on once the step has got to ``frontier`` in ticks, or has ``ended``."""

    @abstractmethod
    def frontier(self, ticks: int | None) -> Any:
        """The time below which no row goes on any more, if the step has got to ``ticks``; None if that is unknown."""

    @abstractmethod
    def state(self) -> bytes:
        """The rows that are held."""

    def _value(self, ticks: int) -> Any:
        """A time as a value of the time columns."""
        assert self._query.time is not None and self._query.r.arrow is not None
        return time_value(self._query.r.arrow.field(self._query.time.r).type, self._query.time, ticks)

    def _numbers_of(self, pairs: Items, table: pa.Table) -> list[Ints]:
        """The number of each table's tuple in the rows of ``pairs``."""
        found = [pairs["r"].copy()] if self._is_first else [
            table.column(f"{t.label}.{NUMBER}").to_numpy() for t in self._left]
        return [*found, pairs["s"].copy()] if self._gives_s else found

    def _numbered(self, table: pa.Table, numbers: list[Ints]) -> pa.Table:
        """``table`` with columns of numbers and of the latest times."""
        table = table.select([name for name in self._schema.names if name not in self._numbers])
        for name, of in zip(self._numbers, numbers, strict=True):
            table = table.append_column(pa.field(name, pa.int64(), nullable=False), pa.array(of.astype(np.int64)))
        time = latest([table.column(name) for name in self._times])
        return table.append_column(pa.field(TIME, time.type, nullable=False), time)


class _ByProbes(RowStep):
    """Rows of one probe are put in order. They are complete when its star has come; until then they are held.

    Rows without a partner, of the last step, keep their order in front of the rows of the probe that decides them. The
    rows of a last step that is no inner or left join, or that has aggregates, keep the order in which they are decided.
    """

    def __init__(self, select: MultiwaySelect, n: int, state: bytes | None):
        super().__init__(select, n)
        statement = select.steps[n][0].statement
        self._decides = statement.grouped or statement.how not in ("inner", "left")
        self._held: tuple[Items, pa.Table] = (np.empty(0, ITEM), self._schema.empty_table())
        if state is not None:
            size = int.from_bytes(state[:8], "little")
            try:
                self._held = np.frombuffer(state[8:8 + size], ITEM).copy(), _read_table(state[8 + size:], self._schema)
            except ValueError as error:
                raise damaged(first_line(error)) from None

    @property
    def held(self) -> int:
        return len(self._held[1])

    def state(self) -> bytes:
        items, rows = self._held
        return len(items.tobytes()).to_bytes(8, "little") + items.tobytes() + ipc_bytes(rows)

    def due(self, frontier: int | None, *, ended: bool) -> pa.Table:
        return self._schema.empty_table()

    def frontier(self, ticks: int | None) -> Any:
        return None if ticks is None else self._value(ticks)

    def complete(self, items: Items, rows: pa.RecordBatch) -> pa.Table:
        if self._decides:
            return pa.Table.from_batches([rows])
        items = np.concatenate([self._held[0], items])
        table = pa.concat_tables([self._held[1], pa.Table.from_batches([rows])])
        stars = np.flatnonzero(items["kind"] == STAR)
        end = int(stars[-1]) + 1 if len(stars) else 0
        partners = (items["kind"][end:] == PAIR) & (items["s"][end:] >= 0)
        end += int(partners.argmax()) if partners.any() else len(partners)  # nothing can come before such rows
        n = int(np.count_nonzero(items["kind"][:end] == PAIR))
        self._held = items[end:], table.slice(n)
        pairs = items[:end][items["kind"][:end] == PAIR]
        table = table.slice(0, n)
        numbers = self._numbers_of(pairs, table)
        group = np.cumsum(items["kind"][:end] == STAR)[items["kind"][:end] == PAIR]
        alone = pairs["s"] < 0
        order = pa.array(np.lexsort([*(np.where(alone, 0, of) for of in reversed(numbers)), ~alone, group]))
        return take_rows(table if self.is_last else self._numbered(table, numbers), order)


class _ByTime(RowStep):
    """Rows that are decided after their latest tuple has come are held until none below them can come. They go on in
    the order of their latest tuples.
    """

    def __init__(self, select: MultiwaySelect, n: int, delay: int, state: bytes | None):
        super().__init__(select, n)
        self._delay, after = delay, select.steps[n + 1][1].query
        assert after.time is not None and after.r.arrow is not None
        self._time, self._after = after.time, after.r.arrow
        self._held = self._after.empty_table() if state is None else _read_table(state, self._after)

    @property
    def held(self) -> int:
        return len(self._held)

    def state(self) -> bytes:
        return ipc_bytes(self._held)

    def complete(self, items: Items, rows: pa.RecordBatch) -> pa.Table:
        table = pa.Table.from_batches([rows])
        made = self._numbered(table, self._numbers_of(items[items["kind"] == PAIR], table))
        self._held = pa.concat_tables([self._held, made.select(self._after.names).cast(self._after)])
        return self._after.empty_table()

    def due(self, frontier: int | None, *, ended: bool) -> pa.Table:
        if not len(self._held) or (frontier is None and not ended):
            return self._after.empty_table()
        time = event_ticks(self._time, "r", self._held)
        numbers = [self._held.column(name).to_numpy() for name in self._numbers]
        # Of the tuples at that time, the latest is the one of the last stream.
        latest, number = np.zeros(len(time), np.int64), np.zeros(len(time), np.int64)
        for at, name, of in zip(self._tables, self._times, numbers, strict=True):
            there = (of >= 0) & pc.equal(self._held.column(name), self._held.column(TIME)).fill_null(False).to_numpy()
            latest, number = np.where(there, at, latest), np.where(there, of, number)
        order = np.lexsort([*reversed(numbers), number, latest, time])
        if not ended:
            assert frontier is not None
            order = order[:int(np.count_nonzero(time < frontier - self._delay))]
        rest = np.ones(len(time), np.bool_)
        rest[order] = False
        due = take_rows(self._held, order)
        self._held = take_rows(self._held, np.flatnonzero(rest))
        return due

    def frontier(self, ticks: int | None) -> Any:
        return None if ticks is None else self._value(ticks - self._delay)


def _step_of(select: MultiwaySelect, n: int, state: bytes | None = None) -> RowStep:
    """What comes behind step ``n``, from 0 on, in the ``state`` of another one."""
    step, _ = select.steps[n]
    if step.delay is None or n == len(select.steps) - 1:
        return _ByProbes(select, n, state)
    return _ByTime(select, n, step.delay, state)


def _read_table(data: bytes, schema: pa.Schema) -> pa.Table:
    """The table in ``data``. Raises `SnapshotError` if it is none of ``schema``."""
    try:
        table = read_ipc_stream(data)
    except (pa.ArrowException, OSError) as error:
        raise damaged(f"a table cannot be read ({first_line(error)})") from None
    if (table.schema.names, table.schema.types) != (schema.names, schema.types):
        raise SnapshotError("the snapshot is of another statement: a table has other columns; open the join as the "
                            "other one was")
    return table
