"""Joins of files larger than memory: times after times, with what the windows reach back to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError
from splitjoin.base.progress import progress_bar
from splitjoin.engines.arrival import Arrivals, event_ticks, timed_arrivals
from splitjoin.engines.device import Device
from splitjoin.lang.layouts import is_encoded
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.output import needed_columns
from splitjoin.rows.result import JoinResult
from splitjoin.rows.table_rows import TableRows
from splitjoin.rows.whole import WholeRows
from splitjoin.tables import TableFiles, TableWriter

from .computed import with_computed
from .execution import Output, gathered, rows_schema
from .sorted_parts import sorted_parts

#: Bytes of the columns of both tables in memory, from which on they are read in parts.
LARGE = 1 << 28
#: Rows of a part of a table.
PART = 1 << 18
#: Result rows that are written at once.
_WRITTEN = 1 << 20
#: The tuples of the first part that is joined, of which nobody knows how many rows they give.
_FIRST = 1 << 14


def suits_parts(query: Query, files: Mapping[Side, TableFiles], output: Output, *, sort: bool = False) -> bool:
    """True if the files are large, and times after times of them can be joined: by windows of RANGE alone, in an order
    of arrival. ``sort``: True if they are to be sorted first, for which their columns must have no dictionaries.
    """
    windows = [query.window(side) for side in SIDES]
    if query.time is None or not query.time.has_ticks or query.order.kind not in ("total", "none") or any(
            w.rows is not None or w.length is None for w in windows) or query.chooses_by_distance or query.prevailing:
        return False
    if sort and any(is_encoded(files[side].schema().field(name).type) for side in SIDES
                    for name in _needed(query, side, output)):
        return False
    return all(f.columnar for f in files.values()) and sum(
        files[side].nbytes(_needed(query, side, output)) for side in SIDES) > LARGE


def join_in_parts(query: Query, files: Mapping[Side, TableFiles], output: Output, device: Device,
                  to: Path, *, sort: bool = False) -> JoinResult:
    """Join ``files``, which are sorted by their time columns, or with ``sort`` are sorted first, to the file ``to``.
    Memory holds what both windows reach back to, some parts of the tables, and the rows of as many tuples as give few
    enough.

    Raises `InputError` for NULL in a time column and, without ``sort``, for times that decrease.
    """
    readers = {side: _PartReader(query, side, files[side], _needed(query, side, output), to.parent if sort else None)
               for side in SIDES}
    reach = sum(query.window(side).length or 0 for side in SIDES)
    facts: dict[str, Any] = {}
    counters: dict[str, int] = {}
    start: int | None = None
    tuples = _FIRST
    with TableWriter(to, output.schema or rows_schema(query, output)) as writer, progress_bar(
            None, "join", "rows") as bar:
        while True:
            end = _end(readers, start, tuples)
            incoming, warm = _arrivals(readers, start, end)
            found, facts = _rows(query, device, incoming, warm, start, end)
            tables = {side: incoming.table(side) for side in SIDES}
            for part in found.parts(_WRITTEN):
                if len(part):
                    writer.write(output.finish(gathered(query, tables, output, part)))
            done = len(incoming) - sum(warm)
            bar.update(done)
            for name, n in facts["counters"].items():
                counters[name] = counters.get(name, 0) + n
            if end is None:
                break
            tuples = int(min(2 * tuples, PART, max(1, _WRITTEN * done // max(len(found), 1))))
            for reader in readers.values():
                reader.forget(end - reach)
            start = end
    counters |= {f"tuples_{side}": reader.rows for side, reader in readers.items()}
    return JoinResult(writer.stored(), None, counters, plan=f"in parts, by time; {facts.get('plan') or 'by pairs'}")


def _rows(query: Query, device: Device, incoming: Arrivals, warm: tuple[int, int], start: int | None,
          end: int | None) -> tuple[TableRows, dict[str, Any]]:
    """The rows that times from ``start`` to before ``end`` decide or bring, and what the device tells of itself.
    ``warm``: how many tuples of R and of S lie before ``start``.
    """
    if not query.is_pairs:
        rows = WholeRows(query, device, incoming, between=(sum(warm), start, end))
        return rows.table(), rows.facts
    rows = WholeRows(query, device, incoming)
    found = rows.table()
    mine = (found.r >= warm[0]) | (found.s >= warm[1])
    return (found if mine.all() else TableRows(found.r[mine], found.s[mine], (), found.items, found.work)), rows.facts


def _end(readers: Mapping[Side, _PartReader], start: int | None, tuples: int) -> int | None:
    """A time after ``start`` up to which both tables are read, with about so many ``tuples`` in between; None if all of
    them are.
    """
    while True:
        open_ones = [reader for reader in readers.values() if not reader.is_done]
        # All rows below the lesser of the last times are there; at this time more may come.
        until = min((reader.last for reader in open_ones if reader.last is not None), default=None)
        if not open_ones or (until is not None and (start is None or until > start)
                             and all(reader.last is not None for reader in open_ones)):
            break
        min(open_ones, key=lambda reader: (reader.last is not None, reader.last or 0)).read()
    new = np.concatenate([reader.between(start, until) for reader in readers.values()])
    if len(new) <= tuples:
        return until
    cut = int(np.partition(new, tuples)[tuples])
    if start is None or cut > start:
        return cut
    later = new[new > start]  # many tuples at one time
    return int(later.min()) if len(later) else until


def _arrivals(readers: Mapping[Side, _PartReader], start: int | None,
              end: int | None) -> tuple[Arrivals, tuple[int, int]]:
    """The tuples before ``end`` that are not forgotten, and how many of R's and of S's lie before ``start``."""
    (r, times_r), (s, times_s) = (readers[side].before(end) for side in SIDES)
    warm = (0, 0) if start is None else (int(np.searchsorted(times_r, start)), int(np.searchsorted(times_s, start)))
    return timed_arrivals(r, s, times_r, times_s), warm


def _needed(query: Query, side: Side, output: Output) -> list[str]:
    """The columns to read of a table, in its order; all where columns are computed, whose texts may name any."""
    given = query.given(side)
    return given if query.computed else needed_columns(query, side, output.columns, given)


class _PartReader:
    """The rows of one table that are read and not forgotten, and their times in ticks. ``folder``: where they are to be
    sorted; None if they are.

    Attributes:
        rows: The number of rows so far.
        last: The time of the last one; None before there is one.
        is_done: True if there are no more.
    """

    def __init__(self, query: Query, side: Side, files: TableFiles, names: Sequence[str], folder: Path | None):
        self._query, self._side = query, side
        self._parts = files.batches(names, PART)
        schema = pa.schema([files.schema().field(name) for name in names])
        if folder is not None:
            self._parts = sorted_parts(self._parts, schema, self._ticks, folder, PART)
        self._table = with_computed(query, side, schema.empty_table())
        self._times = np.empty(0, np.int64)
        self.rows, self.is_done = 0, False
        self.last: int | None = None

    def read(self) -> None:
        """Read the next part."""
        part = next(self._parts, None)
        if part is None:
            self.is_done = True
            return
        query, time = self._query, self._query.time
        assert time is not None
        query.schema(self._side).check(part)
        ticks = self._ticks(part)
        known = ticks if self.last is None else np.concatenate([[self.last], ticks])
        falls = np.flatnonzero(known[1:] < known[:-1])
        if len(falls):
            row = self.rows + int(falls[0]) + 1 - (len(known) - len(ticks))
            raise InputError(f"the time column {self._side}.{time.name(self._side)} must not decrease, but row {row} "
                             f"has a lesser time than the row before it; sort stream {self._side} by it first, or pass "
                             f"sort=True")
        self._table = pa.concat_tables([self._table, with_computed(query, self._side, part)])
        self._times = np.concatenate([self._times, ticks])
        self.rows += len(ticks)
        self.last = int(ticks[-1]) if len(ticks) else self.last

    def _ticks(self, part: pa.Table) -> Ints:
        """The times of the rows of ``part`` in ticks."""
        assert self._query.time is not None
        return event_ticks(self._query.time, self._side, part)

    def between(self, start: int | None, end: int | None) -> Ints:
        """The times from ``start`` to before ``end``."""
        return self._times[0 if start is None else np.searchsorted(self._times, start):self._before(end)]

    def before(self, end: int | None) -> tuple[pa.Table, Ints]:
        """The rows before ``end``, and their times."""
        n = self._before(end)
        return self._table.slice(0, n), self._times[:n]

    def forget(self, time: int) -> None:
        """Forget the rows before ``time``."""
        n = int(np.searchsorted(self._times, time))
        self._table, self._times = self._table.slice(n), self._times[n:]

    def _before(self, end: int | None) -> int:
        return len(self._times) if end is None else int(np.searchsorted(self._times, end))
