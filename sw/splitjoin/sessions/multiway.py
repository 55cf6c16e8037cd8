"""`MultiwayJoin`: a running join of three streams or more, as a chain of sessions of two (semantics, section 11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from threading import RLock
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.errors import InputError, SnapshotError, first_line
from splitjoin.base.ipc import read_ipc_stream
from splitjoin.engines.device import ITEM, PAIR, STAR, Device, Items
from splitjoin.joins.statement import MultiwaySelect
from splitjoin.joins.statement.multiway import NUMBER, TIME
from splitjoin.lang.schema import suggest
from splitjoin.tables.inputs import as_batch

from .envelope import Envelope, damaged, ipc_bytes
from .gate import Watermark
from .limit import Limit
from .session import StreamJoin

__all__ = ["MultiwayJoin"]

#: A snapshot holds those of the steps, what is held between them, and the rows that were not polled.
_ENVELOPE = Envelope(b"SPLJMANY", 1, "a join of several streams")
#: Sessions between two steps hold what they are given: only the input of the whole join is bounded.
_UNBOUNDED = Limit(rows=None, nbytes=None, waiting=None)


class MultiwayJoin:
    """A running join of three streams or more; `splitjoin.open_multiway` starts it.

    A combination of tuples, one of each stream, is a row when the condition is true of it, and each tuple but the
    latest lies in its own stream's window as the latest sees it. Rows come by the arrival of their latest tuple, and
    then by the arrivals of the others, stream by stream. Use as a context manager. Several threads may call its
    methods.

    Args:
        select: The statement, checked.
        devices: A device for each step; the first joins the first two streams.
        lateness: The time by which tuples may be out of order, as of `splitjoin.open`: of all streams, or a mapping by
            their names.
        watermark: As of `splitjoin.open`, "min" by default, and in each step by itself.
    """

    def __init__(self, select: MultiwaySelect, devices: Sequence[Device], *, lateness: Any = None,
                 watermark: Watermark | None = None):
        self._select = select
        self._labels = [t.label for t in select.statement.tables]
        late = self._by_name(lateness)
        self._sessions: list[StreamJoin] = []
        try:
            for n, (_, step) in enumerate(select.steps):
                delays = None if lateness is None else (late[0] if n == 0 else _nothing(late[n + 1]), late[n + 1])
                self._sessions.append(StreamJoin(step, devices[n], lateness=delays, watermark=watermark,
                                                 limit=_UNBOUNDED, punctuation=True))
        except BaseException:
            self.close()
            raise
        self._steps = [_Step(select, n) for n in range(len(select.steps))]
        self._rows: list[pa.RecordBatch] = []
        self._lock = RLock()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the results."""
        return self._select.schema

    def push(self, stream: str, data: Any) -> None:
        """Deliver tuples of ``stream``, by its name in the statement, in order of time within the lateness.

        ``data`` is an Arrow table or batch, or anything with ``__arrow_c_stream__``. Raises `InputError` or
        `SchemaError` for what does not fit; then no tuple was taken.
        """
        n = self._number(stream)
        table = as_batch(data, "s" if n else "r", self._select.schemas[n])
        with self._lock:
            if n == 0:
                self._sessions[0].push_r(table.rename_columns([f"{self._labels[0]}.{c}" for c in table.column_names]))
            else:
                self._sessions[n - 1].push_s(table)
            self._work()

    def heartbeat(self, time: Any, stream: str | None = None) -> None:
        """Promise that ``stream`` (None: every stream) delivers no more tuples below ``time``; as `StreamJoin`'s."""
        with self._lock:
            for n in range(len(self._labels)) if stream is None else [self._number(stream)]:
                self._sessions[max(n - 1, 0)].heartbeat(time, "s" if n else "r")
            self._work()

    def idle(self, stream: str) -> None:
        """Declare ``stream`` silent: no other waits for it until it pushes or promises."""
        n = self._number(stream)
        with self._lock:
            self._sessions[max(n - 1, 0)].idle("s" if n else "r")
            self._work()

    def finish(self, stream: str) -> None:
        """Close ``stream``: it delivers no more tuples, so no other waits for it."""
        with self._lock:
            self._finish(self._number(stream))
            self._work()

    def poll(self) -> pa.RecordBatch:
        """The rows that are complete and were not returned yet, in order; an empty batch if there are none."""
        with self._lock:
            self._work()
            table = pa.Table.from_batches(self._rows, self.schema).combine_chunks()
            batches = table.to_batches()
            self._rows = batches[1:]
            return batches[0] if batches else pa.RecordBatch.from_pylist([], self.schema)

    def flush(self) -> pa.RecordBatch:
        """End all streams, and return all remaining rows."""
        with self._lock:
            for n in range(len(self._labels)):
                self._finish(n)
            return self.poll()

    @property
    def finished(self) -> bool:
        """True if all streams are closed and all rows have been given out."""
        with self._lock:
            return self._sessions[-1].finished and not self._rows

    def late(self, stream: str) -> pa.Table:
        """The late tuples of ``stream`` since the last call, in the order in which they were delivered."""
        n = self._number(stream)
        with self._lock:
            if n:
                return self._sessions[n - 1].late_s()
            found = self._sessions[0].late_r()
            return found.rename_columns(self._select.schemas[0].names)

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
            parts["rows"] = ipc_bytes(pa.Table.from_batches(self._rows, self.schema))
            return _ENVELOPE.packed(parts)

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot of a join of the same statement.

        Raises `SnapshotError` when the bytes are none; if a step's part is damaged, the join is closed, as the steps
        before it have gone on.
        """
        parts = _ENVELOPE.unpacked(snapshot)
        wanted = {"rows", *(f"{what} {n}" for n in range(len(self._sessions)) for what in ("step", "held"))}
        if set(parts) != wanted:
            raise SnapshotError(f"the snapshot must be of a join of {len(self._labels)} streams; open the join as the "
                                f"other one was")
        with self._lock:
            rows = _table(parts["rows"], self.schema)
            steps = [_Step(self._select, n, parts[f"held {n}"]) for n in range(len(self._sessions))]
            for n, session in enumerate(self._sessions):
                try:
                    session.restore(parts[f"step {n}"])
                except BaseException:
                    if n:
                        self.close()
                    raise
            self._rows, self._steps = rows.to_batches(), steps

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

    def _number(self, stream: str) -> int:
        if stream not in self._labels:
            raise InputError(f"there is no stream {stream!r}{suggest(str(stream), self._labels)}; the streams are "
                             f"{', '.join(self._labels)}")
        return self._labels.index(stream)

    def _finish(self, n: int) -> None:
        (self._sessions[max(n - 1, 0)].close_s if n else self._sessions[0].close_r)()

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
                    self._rows += [batch for batch in made.select(self.schema.names).to_batches() if len(batch)]
                elif len(made):
                    after.push_r(made)
            if after is not None:
                if session.finished:
                    after.close_r()
                elif session.frontier is not None:
                    after.heartbeat(session.frontier, "r")


class _Step:
    """What comes between a step and the next one: rows of one probe are put in order, and numbers and times are added.

    A probe's rows are complete when its star has come; until then they are held.
    """

    def __init__(self, select: MultiwaySelect, n: int, state: bytes | None = None):
        step, made = select.steps[n]
        self._last = n == len(select.steps) - 1
        self._first = n == 0
        self._numbers = [f"{t.label}.{NUMBER}" for t in (*step.left, step.right)]
        self._times = [f"{t.label}.{time}" for t, time in zip((*step.left, step.right), select.windows.times,
                                                              strict=False)]
        self._schema = made.schema
        self._held: tuple[Items, pa.Table] = (np.empty(0, ITEM), self._schema.empty_table())
        if state is not None:
            size = int.from_bytes(state[:8], "little")
            try:
                self._held = np.frombuffer(state[8:8 + size], ITEM).copy(), _table(state[8 + size:], self._schema)
            except ValueError as error:
                raise damaged(first_line(error)) from None

    def state(self) -> bytes:
        """The rows that are held."""
        items, rows = self._held
        return len(items.tobytes()).to_bytes(8, "little") + items.tobytes() + ipc_bytes(rows)

    def complete(self, items: Items, rows: pa.RecordBatch) -> pa.Table:
        """The rows of the probes whose stars have come, with what the next step needs behind the columns."""
        items = np.concatenate([self._held[0], items])
        table = pa.concat_tables([self._held[1], pa.Table.from_batches([rows])])
        stars = np.flatnonzero(items["kind"] == STAR)
        end = int(stars[-1]) + 1 if len(stars) else 0
        n = int(np.count_nonzero(items["kind"][:end] == PAIR))
        self._held = items[end:], table.slice(n)
        pairs = items[:end][items["kind"][:end] == PAIR]
        table = table.slice(0, n)
        numbers = [pairs["r"].copy()] if self._first else [table.column(name).to_numpy() for name in self._numbers[:-1]]
        numbers.append(pairs["s"].copy())
        group = np.cumsum(items["kind"][:end] == STAR)[items["kind"][:end] == PAIR]
        order = np.lexsort([*reversed(numbers), group])
        if self._last:
            return table.take(pa.array(order))
        table = table.select([name for name in self._schema.names if name not in self._numbers])
        for name, of in zip(self._numbers, numbers, strict=True):
            table = table.append_column(pa.field(name, pa.int64(), nullable=False), pa.array(of.astype(np.int64)))
        time = pc.max_element_wise(*(table.column(name) for name in self._times))
        table = table.append_column(pa.field(TIME, time.type, nullable=False), time)
        return table.take(pa.array(order))


def _nothing(lateness: Any) -> Any:
    """No lateness, of the same kind as ``lateness``."""
    return 0 if isinstance(lateness, int) else "0 SECONDS"


def _table(data: bytes, schema: pa.Schema) -> pa.Table:
    try:
        table = read_ipc_stream(data)
    except (pa.ArrowException, OSError) as error:
        raise damaged(f"a table cannot be read ({first_line(error)})") from None
    if (table.schema.names, table.schema.types) != (schema.names, schema.types):
        raise SnapshotError("the snapshot is of another statement: a table has other columns; open the join as the "
                            "other one was")
    return table

