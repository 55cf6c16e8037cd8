"""The rows between two steps of a join of several streams: they get numbers and times, and are put in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.errors import SnapshotError, first_line
from splitjoin.base.ipc import read_ipc_stream
from splitjoin.engines.arrival import event_ticks
from splitjoin.engines.device import ITEM, PAIR, STAR, Items
from splitjoin.joins.sql import MultiwaySelect
from splitjoin.joins.sql.multiway import NUMBER, TIME, latest
from splitjoin.lang.layouts import take_rows

from .envelope import damaged, ipc_bytes
from .gate.times import time_value

__all__ = ["RowStep", "read_table", "step_of"]

Ints = npt.NDArray[np.int64]


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
                self._held = np.frombuffer(state[8:8 + size], ITEM).copy(), read_table(state[8 + size:], self._schema)
            except ValueError as error:
                raise damaged(first_line(error)) from None

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
        self._held = self._after.empty_table() if state is None else read_table(state, self._after)

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


def step_of(select: MultiwaySelect, n: int, state: bytes | None = None) -> RowStep:
    """What comes behind step ``n``, from 0 on, in the ``state`` of another one."""
    step, _ = select.steps[n]
    if step.delay is None or n == len(select.steps) - 1:
        return _ByProbes(select, n, state)
    return _ByTime(select, n, step.delay, state)


def read_table(data: bytes, schema: pa.Schema) -> pa.Table:
    """The table in ``data``. Raises `SnapshotError` if it is none of ``schema``."""
    try:
        table = read_ipc_stream(data)
    except (pa.ArrowException, OSError) as error:
        raise damaged(f"a table cannot be read ({first_line(error)})") from None
    if (table.schema.names, table.schema.types) != (schema.names, schema.types):
        raise SnapshotError("the snapshot is of another statement: a table has other columns; open the join as the "
                            "other one was")
    return table

