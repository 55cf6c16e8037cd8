"""The tuples of both streams that a later pair, or a fresh device session, may need."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints, Mask
from splitjoin.base.sliding import FixedWidthColumn, SlidingArray, bitmap_of
from splitjoin.engines.arrival import Arrivals, interleave
from splitjoin.engines.latest import KeyNumbers
from splitjoin.engines.merging import taken
from splitjoin.lang.layouts import take, take_rows
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side, other_side
from splitjoin.lang.windows import Extent

RowIds = Ints

#: Chunks of up to this many rows together are merged.
_SMALL_CHUNK = 1 << 15
#: Rows that are looked at together for those that no later probe sees: most often few are, at the beginning.
_EXPIRED_AT_ONCE = 1 << 12
#: Rows that may be retained although no later probe sees them, where it takes time to find them.
_SPARE_ROWS = 1 << 10


@dataclass(frozen=True)
class RetainedState:
    """The retained rows of a stream from row id ``first`` on, their event times in ticks (None without a time column),
    and the number of S tuples that precede each R tuple (None for S). ``ids``: as of `LatestRows`; None for others.
    """

    first: int
    table: pa.Table
    ts: Ints | None
    s_before: Ints | None
    ids: Ints | None = None


class RetainedWindows:
    """The retained rows of both streams: those that a later probe can still see, and those whose probes' results the
    device has not delivered yet.

    Attributes:
        streams: The rows of each stream.
        now: For each stream the event time in ticks below which no tuple of the other stream will arrive any more;
            None at first.
    """

    def __init__(self, query: Query, schemas: Mapping[Side, pa.Schema], *, in_order: bool = True):
        self._query, self._in_order = query, in_order
        self.streams = {side: RetainedRows(schemas[side], query.narrowed.window(side), in_order=in_order)
                        for side in SIDES}
        if query.is_unbounded:
            self.streams["s"] = LatestRows(schemas["s"], query)
        self.now: dict[Side, int | None] = dict.fromkeys(SIDES)
        #: After each slice: the number of rows (R's, S's) so far, and the first rows that later probes need.
        self._checkpoints: deque[tuple[tuple[int, int], tuple[int, int]]] = deque()
        #: The first rows (R's, S's) that later probes need.
        self.needed = (0, 0)
        #: Rows before these had expired when windows changed: whatever windows are now, no device gets them any more.
        self.first_live = (0, 0)

    def live(self, side: Side) -> int:
        """The number of the stream's tuples that a later probe may see by its time; 0 where ROWS bounds the window."""
        return 0 if self._query.narrowed.window(side).rows is not None else (
            self.streams[side].end - self.needed[SIDES.index(side)])

    @property
    def first(self) -> tuple[int, int]:
        """The row ids of the first rows that a device session gets: R's, S's."""
        r, s = (max(self.streams[side].first, row) for side, row in zip(SIDES, self.first_live, strict=True))
        return r, s

    @property
    def stored_s(self) -> RowIds | None:
        """The row ids of the retained rows of S; None if they are adjacent."""
        s = self.streams["s"]
        return s.ids.values if isinstance(s, LatestRows) else None

    def append(self, arrivals: Arrivals) -> None:
        """Retain the next slice of arrival order."""
        s = self.streams["s"].end
        for side in SIDES:
            ts = None if arrivals.ts is None else arrivals.times(side)
            s_before = arrivals.s_before + s if side == "r" else None
            self.streams[side].append(arrivals.table(side), ts, s_before)
        if arrivals.ts is not None and len(arrivals) and self._in_order:
            self.now = dict.fromkeys(SIDES, int(arrivals.ts[-1]))
        self._checkpoint()

    def advance(self, passed: Mapping[Side, int | None]) -> None:
        """Note that after the appended rows each stream delivers no tuple below its event time in ``passed``."""
        before = dict(self.now)
        for side in SIDES:
            times = [t for t in (self.now[side], passed[other_side(side)]) if t is not None]
            self.now[side] = max(times, default=None)
        if self.now != before:
            self._checkpoint()

    def trim(self, settled: tuple[int, int], needed: tuple[int, int] | None = None, rotation: int = 1) -> None:
        """Drop the rows that only probes before row ids ``settled`` needed, whose results have all been delivered; none
        from the row ids ``needed`` on. Where few pairs decide, probes need no tuple of R that is decided. The rows that
        stay begin at a multiple of ``rotation`` (`Session.rotation`).
        """
        first = None
        while self._checkpoints and all(a <= b for a, b in zip(self._checkpoints[0][0], settled, strict=True)):
            first = self._checkpoints.popleft()[1]
        if first is not None:
            for side, row, limit in zip(SIDES, first, needed or first, strict=True):
                decided, rows = side == "r" and self._query.needs_few_pairs, self.streams[side]
                if not isinstance(rows, LatestRows):
                    rows.trim((limit if decided else min(row, limit)) // rotation * rotation)
                elif rows.is_due:
                    rows.prune()

    def resize(self, query: Query, live: tuple[int, int]) -> None:
        """Take the windows of ``query``, which has these streams, once all results of the appended rows have been
        delivered. Rows before ``live`` (R's, S's), which had expired, do not come back where windows are longer now.
        """
        self.first_live = live
        for side in SIDES:
            self.streams[side].extent = query.narrowed.window(side)
        self._query = query
        self._checkpoints.clear()
        self._checkpoint()

    def prune(self) -> None:
        """Drop what may be dropped later, so that a snapshot is small."""
        if isinstance(rows := self.streams["s"], LatestRows):
            rows.prune()

    def clear(self) -> None:
        """Drop all rows: there will be no more probes."""
        self._checkpoints.clear()
        for rows in self.streams.values():
            rows.trim(rows.end)

    def arrivals(self) -> Arrivals:
        """The rows that a device session gets, in arrival order."""
        r, s = self.streams["r"], self.streams["s"]
        dead_r, dead_s = (first - rows.first for first, rows in zip(self.first, (r, s), strict=True))
        before = r.s_before.values[dead_r:]
        ts = None if self._query.time is None else (r.ts.values[dead_r:], s.ts.values[dead_s:])
        if (ids := self.stored_s) is None:
            s_before = np.clip(before - self.first[1], 0, len(s) - dead_s)  # of these
        else:
            s_before = np.searchsorted(ids, before)
        return interleave(r.table().slice(dead_r), s.table().slice(dead_s), ts, s_before)

    def restore(self, states: Mapping[Side, RetainedState], now: Mapping[Side, int | None],
                live: tuple[int, int] = (0, 0)) -> None:
        """Replace the retained rows by ``states``, of windows whose times were ``now``; ``live`` is `first_live`.

        Raises `ValueError` unless these rows have come.
        """
        for side, state in states.items():
            self.streams[side].restore(state)
        if live[0] > self.streams["r"].end or live[1] > self.streams["s"].end:
            raise ValueError("no tuple that has not come has expired")
        self.now, self.first_live = dict(now), live
        self._checkpoint()

    def _checkpoint(self) -> None:
        rows = [self.streams[side] for side in SIDES]
        if self._checkpoints and self._checkpoints[-1][0] == (rows[0].end, rows[1].end):
            self._checkpoints.pop()  # time advanced without tuples: heartbeats must not pile up
        self.needed = (max(rows[0].needed(self.now["r"]), self.first_live[0]),
                       max(rows[1].needed(self.now["s"]), self.first_live[1]))
        self._checkpoints.append(((rows[0].end, rows[1].end), self.needed))


class RetainedRows:
    """The rows ``first`` to before ``end`` of a stream, by row id: columns of fixed width as arrays, the others in
    chunks.

    Beside the columns: ``ts``, the event times in ticks (empty without a time column), and ``s_before``, the number of
    S tuples that precede each R tuple in arrival order (kept for R only, which determines the whole arrival order).
    ``extent``: the stream's window. ``in_order``: True if the times rise.
    """

    def __init__(self, schema: pa.Schema, extent: Extent, *, in_order: bool = True):
        self._schema, self.extent, self._in_order = schema, extent, in_order
        self._fixed = {f.name: FixedWidthColumn(f.type) for f in schema if FixedWidthColumn.holds(f.type)}
        self._other = pa.schema([f for f in schema if f.name not in self._fixed])
        self._chunks: list[pa.RecordBatch] = []  # of the other columns, if there are any
        self._starts: list[int] = []
        self.first = self.end = 0
        self.ts = SlidingArray()
        self.s_before = SlidingArray()

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return sum(int(c.nbytes) for c in self._chunks) + sum(c.nbytes for c in self._fixed.values())

    def append(self, table: pa.Table, ts: RowIds | None, s_before: RowIds | None) -> None:
        """Add tuples at the end."""
        if not len(table):
            return
        for name, column in self._fixed.items():
            column.append(table.column(name))
        if ts is not None:
            self.ts.append(ts)
        if s_before is not None:
            self.s_before.append(s_before)
        if len(self._other):
            self._append_chunks(table.select(self._other.names))
        self.end += len(table)

    def _append_chunks(self, table: pa.Table) -> None:
        start = self.end
        for batch in table.combine_chunks().to_batches():
            self._starts.append(start)
            self._chunks.append(batch)
            start += len(batch)
        while len(self._chunks) > 1:
            a, b = self._chunks[-2:]
            if len(a) + len(b) > _SMALL_CHUNK or 2 * len(b) < len(a):
                break
            merged = pa.Table.from_batches([a, b]).combine_chunks().to_batches()
            if len(merged) > 1:  # too many bytes for one array
                break
            self._chunks[-2:] = merged
            self._starts.pop()

    def needed(self, now: int | None, extent: Extent | None = None) -> int:
        """The id of the first row that a future probe, at event time ``now`` or later, can still see; by the window
        ``extent`` instead of the rows' own if it is given.
        """
        first, extent = self.first, extent or self.extent
        if extent.rows is not None:
            first = max(first, self.end - extent.rows)
        if extent.length is not None and now is not None:
            oldest = max(now - extent.length, -(2**63))
            first = max(first, self.first + self._expired(oldest))
        return first

    def _expired(self, oldest: int) -> int:
        """The number of the first rows that are all below event time ``oldest``."""
        ts = self.ts.values
        if oldest >= 2**63:
            return len(ts)
        if self._in_order:
            return int(np.searchsorted(ts, oldest))
        for start in range(0, len(ts), _EXPIRED_AT_ONCE):
            live = ts[start:start + _EXPIRED_AT_ONCE] >= oldest
            if live.any():
                return start + int(live.argmax())
        return len(ts)

    def trim(self, first: int) -> None:
        """Drop the rows before row id ``first``."""
        if first <= self.first:
            return
        drop = first - self.first
        for kept in (self.ts, self.s_before):
            if len(kept):
                kept.drop(drop)
        for column in self._fixed.values():
            column.drop(drop)
        self.first = first
        gone = bisect_right(self._starts, first) - 1 if first < self.end else len(self._starts)
        del self._chunks[:gone], self._starts[:gone]
        if self._chunks and (dead := first - self._starts[0]) > len(self._chunks[0]) // 2:
            # A slice would keep the whole chunk alive; a copy of less than half of it soon pays off.
            rows = pa.array(np.arange(dead, len(self._chunks[0])))
            self._chunks[0] = pa.RecordBatch.from_arrays([_flat(take(pa.chunked_array([c]), rows))
                                                          for c in self._chunks[0].columns], schema=self._other)
            self._starts[0] = first

    def restore(self, state: RetainedState) -> None:
        """Take over the rows of ``state``; there must be no rows yet."""
        self.first = self.end = state.first
        self.append(state.table, state.ts, state.s_before)

    def table(self) -> pa.Table:
        """All rows, from ``first`` on."""
        if not len(self):
            return self._schema.empty_table()
        others = pa.Table.from_batches(self._chunks, self._other)
        if self._chunks:
            others = others.slice(self.first - self._starts[0])
        return pa.table([self._fixed[name].gather(slice(None)) if name in self._fixed else others.column(name)
                         for name in self._schema.names], schema=self._schema)

    def gather(self, names: Sequence[str], rows: RowIds) -> list[pa.Array]:
        """Columns ``names`` of the rows with these ids, in this order, each id from ``first`` to ``end``, or −1 for a
        row of NULL.
        """
        lacking: Mask | None = rows < 0
        if lacking is not None and not lacking.any():
            lacking = None
        others = [name for name in names if name not in self._fixed]
        found: dict[str, pa.Array] = {}
        if others:
            given = self._adjacent(rows if lacking is None else rows[~lacking])
            found = dict(zip(others, self._gather_chunks(others, given), strict=True))
        if others and lacking is not None:
            at = pa.array(np.cumsum(~lacking) - 1, mask=lacking)
            found = {name: _flat(take(pa.chunked_array([column]), at)) for name, column in found.items()}
        if len(others) < len(names):
            local = self._adjacent(rows) - self.first
            if lacking is not None:
                local[lacking] = 0
            there = None if lacking is None else bitmap_of(~lacking)
            fixed = [name for name in names if name in self._fixed]
            found |= {name: self._fixed[name].gather(local, lacking, there, taken) for name in fixed}
        return [found[name] for name in names]

    def _adjacent(self, rows: RowIds) -> RowIds:
        """The numbers of rows with these ids, counted from ``first`` on."""
        return rows

    def _gather_chunks(self, names: Sequence[str], rows: RowIds) -> list[pa.Array]:
        if not len(rows):
            return [pa.array([], self._schema.field(name).type) for name in names]
        if not names:
            return []
        first, last = (bisect_right(self._starts, int(row)) - 1 for row in (rows.min(), rows.max()))
        if first == last:
            chunk, local = self._chunks[first], pa.array(rows - self._starts[first])
            return [_flat(take(pa.chunked_array([chunk.column(name)]), local)) for name in names]
        # Gather chunk by chunk, as Arrow would first join all chunks into one; then restore the requested order.
        which = np.searchsorted(np.array(self._starts[first:last + 1]), rows, side="right") - 1
        order = None
        if not (which[1:] >= which[:-1]).all():
            order = np.argsort(which.astype(np.uint16) if last - first < 2**16 else which, kind="stable")
            which, rows = which[order], rows[order]
        cuts = np.searchsorted(which, np.arange(last - first + 2)).tolist()
        parts = [(self._chunks[first + i], pa.array(rows[a:b] - self._starts[first + i]))
                 for i, (a, b) in enumerate(pairwise(cuts)) if a < b]
        back = None
        if order is not None:
            inverse = np.empty(len(order), np.int64)
            inverse[order] = np.arange(len(order))
            back = pa.array(inverse)
        out = []
        for name in names:
            found = pa.chunked_array([_flat(take(pa.chunked_array([c.column(name)]), local)) for c, local in parts])
            out.append(_flat(found if back is None else take(found, back)))
        return out


class LatestRows(RetainedRows):
    """The rows of S that an as-of join without a window may still need: the last one of each key, and newer ones.

    Their row ids are not adjacent. ``first`` and ``end`` are those of as many rows, of which the last one has the id
    before ``end``; ``ids`` are the true ones, int64 (n,).
    """

    def __init__(self, schema: pa.Schema, query: Query):
        super().__init__(schema, Extent(None, None))
        self._keys = KeyNumbers(query)
        self.ids = SlidingArray()
        self._needed = 0

    @property
    def is_due(self) -> bool:
        """True if so many rows came since the last `prune` that another one is worth its time."""
        return len(self) >= 2 * self._needed + _SPARE_ROWS

    def append(self, table: pa.Table, ts: RowIds | None, s_before: RowIds | None) -> None:
        self.ids.append(np.arange(self.end, self.end + len(table)))
        super().append(table, ts, s_before)

    def prune(self) -> None:
        """Drop the rows of which the key has a later one, and those that are in no pair."""
        table = self.table()
        at = np.flatnonzero(self._keys.last_of_each(table))
        self._needed = len(at)
        if len(at) < len(table):
            ts = self.ts.values[at] if len(self.ts) else None
            ids, end = self.ids.values[at], self.end
            self.trim(end)
            self._fill(RetainedState(end - len(at), take_rows(table, at), ts, None, ids))

    def restore(self, state: RetainedState) -> None:
        self._fill(state)

    def trim(self, first: int) -> None:
        self.ids.drop(max(first - self.first, 0))
        super().trim(first)

    def _adjacent(self, rows: RowIds) -> RowIds:
        return np.searchsorted(self.ids.values, rows) + self.first

    def _fill(self, state: RetainedState) -> None:
        """Take over the rows of ``state``; there must be no rows."""
        super().restore(state)
        self.ids.drop(len(self.ids))
        assert state.ids is not None
        self.ids.append(state.ids)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    """``column`` as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    flat = column.combine_chunks()
    return flat if isinstance(flat, pa.Array) else pa.concat_arrays(flat.chunks)
