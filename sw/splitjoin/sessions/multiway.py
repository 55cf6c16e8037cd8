"""`MultiwayJoin`: a running join of three streams or more, as a chain of sessions of two (semantics, section 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from types import TracebackType
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from splitjoin.base import threads
from splitjoin.base.errors import InputError, SnapshotError
from splitjoin.engines.device import ITEM, Device
from splitjoin.joins.sql import MultiwaySelect
from splitjoin.lang.schema import Side, suggest
from splitjoin.tables.inputs import as_batch

from .envelope import Envelope, ipc_bytes
from .epochs import DeliveredCounts, EpochsOfResults, EpochSource
from .gate import Watermark
from .limit import Limit
from .multiway_steps import read_table, step_of
from .reading import ResultReader
from .results import ResultQueue
from .session import StreamJoin
from .shedding import Shedding

__all__ = ["MultiwayJoin"]

#: A snapshot holds those of the steps, what is held between them, and the rows that were not polled.
_ENVELOPE = Envelope(b"SPLJMANY", 1, "a join of several streams")
#: Sessions between two steps hold what they are given: only the input of the whole join is bounded.
_UNBOUNDED = Limit(rows=None, nbytes=None, waiting=None)
_NO_ITEMS = np.empty(0, ITEM)


class MultiwayJoin(ResultReader, EpochsOfResults):
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
        when_full: ``"raise"``: all tuples are taken; ``"shed"``: tuples of each stream are dropped under load, as of
            `splitjoin.open`, ahead of the step that takes them; rows between steps are not.
        shedding: Which tuples are dropped, with a seed of its own for each step: ``seed``, ``seed + 1``, ….
    """

    def __init__(self, select: MultiwaySelect, devices: Sequence[Device], *, lateness: Any = None,
                 watermark: Watermark | None = None, when_full: Literal["raise", "shed"] = "raise",
                 shedding: Shedding | None = None):
        if when_full not in ("raise", "shed"):
            raise InputError(f"when_full of a join of several streams must be 'raise' or 'shed', not {when_full!r}")
        self._select = select
        self._labels = [t.label for t in select.statement.tables]
        late = self._by_name(lateness)
        self._sessions: list[StreamJoin] = []
        try:
            for n, (_, step) in enumerate(select.steps):
                delays = None if lateness is None else (late[0] if n == 0 else _nothing(late[n + 1]), late[n + 1])
                rule = replace(shedding or Shedding(), seed=(shedding or Shedding()).seed + n) if (
                    when_full == "shed") else shedding
                self._sessions.append(StreamJoin(step, devices[n], lateness=delays, watermark=watermark,
                                                 limit=_UNBOUNDED, when_full=when_full, shedding=rule,
                                                 punctuation=True))
        except BaseException:
            self.close()
            raise
        self._steps = [step_of(select, n) for n in range(len(select.steps))]
        self._queue = ResultQueue(self.schema, False)
        self._delivered = DeliveredCounts(self._labels)
        self._lock = threads.condition()

    @property
    def schema(self) -> pa.Schema:
        return self._select.schema

    def push(self, stream: str, data: Any) -> None:
        """Deliver tuples of ``stream``, by its name in the statement, in order of time within the lateness.

        ``data`` is an Arrow table or batch, or anything with ``__arrow_c_stream__``. Raises `InputError` or
        `SchemaError` for what does not fit; then no tuple was taken.
        """
        n = self._number(stream)
        table = as_batch(data, "s" if n else "r", self._select.schemas[n])
        session, side = self._at(n)
        if side == "r":
            table = table.rename_columns([f"{stream}.{name}" for name in table.column_names])
        with self._lock:
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
        self._check_unreserved()
        parts = _ENVELOPE.unpacked(snapshot)
        wanted = {"rows", *(f"{what} {n}" for n in range(len(self._sessions)) for what in ("step", "held"))}
        if set(parts) != wanted:
            raise SnapshotError(f"the snapshot must be of a join of {len(self._labels)} streams; open the join as the "
                                f"other one was")
        with self._lock:
            rows = read_table(parts["rows"], self.schema)
            steps = [step_of(self._select, n, parts[f"held {n}"]) for n in range(len(self._sessions))]
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

    def __enter__(self) -> MultiwayJoin:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

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


def _nothing(lateness: Any) -> Any:
    """No lateness, of the same kind as ``lateness``."""
    return 0 if isinstance(lateness, int) else "0 SECONDS"
