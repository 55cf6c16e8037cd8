"""The tuples of one stream that a later pair, or a fresh device session, may need."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..lang.windows import Extent
from ..output import take
from .growing import FixedColumn, Growing

__all__ = ["Retained"]

Rows = npt.NDArray[np.int64]

#: Chunks up to this many rows together are made one.
_SMALL = 1 << 15


class Retained:
    """Rows ``base`` to ``end`` of a stream, by row id: columns of fixed width as arrays, the others in chunks.

    Beside the columns: ``ts``, the event times in ticks (empty without a time column), and ``seen``, how many tuples of
    the other stream precede each tuple in arrival order (kept for R only, which tells all of arrival order).
    """

    def __init__(self, schema: pa.Schema, extent: Extent, first: int = 0):
        self._schema, self._extent = schema, extent
        self._fixed = {f.name: FixedColumn(f.type) for f in schema if FixedColumn.holds(f.type)}
        self._other = pa.schema([f for f in schema if f.name not in self._fixed])
        self._chunks: list[pa.RecordBatch] = []  # of the other columns, if there are any
        self._starts: list[int] = []
        self.base = self.end = first
        self.ts = Growing()
        self.seen = Growing()

    def __len__(self) -> int:
        return self.end - self.base

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return sum(int(c.nbytes) for c in self._chunks) + sum(c.nbytes for c in self._fixed.values())

    def append(self, table: pa.Table, ts: Rows | None, seen: Rows | None) -> None:
        """Add tuples at the end."""
        if not len(table):
            return
        for name, column in self._fixed.items():
            column.append(table.column(name))
        if ts is not None:
            self.ts.append(ts)
        if seen is not None:
            self.seen.append(seen)
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
            if len(a) + len(b) > _SMALL or 2 * len(b) < len(a):
                break
            merged = pa.Table.from_batches([a, b]).combine_chunks().to_batches()
            if len(merged) > 1:  # too many bytes for one array
                break
            self._chunks[-2:] = merged
            self._starts.pop()

    def needed(self, now: int | None) -> int:
        """The first row that a probe can still see which comes after all tuples so far, at event time ``now`` or
        later.
        """
        first = self.base
        if self._extent.rows is not None:
            first = max(first, self.end - self._extent.rows)
        if self._extent.length is not None and now is not None:
            oldest = max(now - self._extent.length, -(2**63))
            first = max(first, self.base + (len(self.ts) if oldest >= 2**63 else
                                            int(np.searchsorted(self.ts.values, oldest))))
        return first

    def trim(self, first: int) -> None:
        """Let go of the rows before ``first``."""
        if first <= self.base:
            return
        drop = first - self.base
        for kept in (self.ts, self.seen):
            if len(kept):
                kept.drop(drop)
        for column in self._fixed.values():
            column.drop(drop)
        self.base = first
        gone = bisect_right(self._starts, first) - 1 if first < self.end else len(self._starts)
        del self._chunks[:gone], self._starts[:gone]
        if self._chunks and (dead := first - self._starts[0]) > len(self._chunks[0]) // 2:
            # A slice would keep the whole chunk alive; a copy of less than half of it is soon paid off.
            rows = pa.array(np.arange(dead, len(self._chunks[0])))
            self._chunks[0] = pa.RecordBatch.from_arrays([_flat(take(pa.chunked_array([c]), rows))
                                                          for c in self._chunks[0].columns], schema=self._other)
            self._starts[0] = first

    def table(self) -> pa.Table:
        """All rows, from ``base`` on."""
        if not len(self):
            return self._schema.empty_table()
        others = pa.Table.from_batches(self._chunks, self._other)
        if self._chunks:
            others = others.slice(self.base - self._starts[0])
        return pa.table([self._fixed[name].gather(slice(None)) if name in self._fixed else others.column(name)
                         for name in self._schema.names], schema=self._schema)

    def gather(self, names: Sequence[str], rows: Rows) -> list[pa.Array]:
        """Columns ``names`` of the rows with these ids, in this order, each id from ``base`` to ``end``."""
        local = rows - self.base
        others = [name for name in names if name not in self._fixed]
        found = dict(zip(others, self._gather_chunks(others, rows), strict=True))
        return [self._fixed[name].gather(local) if name in self._fixed else found[name] for name in names]

    def _gather_chunks(self, names: Sequence[str], rows: Rows) -> list[pa.Array]:
        if not len(rows):
            return [pa.array([], self._schema.field(name).type) for name in names]
        if not names:
            return []
        first, last = (bisect_right(self._starts, int(row)) - 1 for row in (rows.min(), rows.max()))
        if first == last:
            chunk, local = self._chunks[first], pa.array(rows - self._starts[first])
            return [_flat(take(pa.chunked_array([chunk.column(name)]), local)) for name in names]
        # Chunk by chunk, as Arrow would join all chunks into one first; then back into the order asked for.
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


def _flat(column: pa.ChunkedArray) -> pa.Array:
    """``column`` as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    flat = column.combine_chunks()
    return flat if isinstance(flat, pa.Array) else pa.concat_arrays(flat.chunks)
