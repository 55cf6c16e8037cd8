"""`Rows`: tuples of one stream inside a group, with their event times, in arrival order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]

#: Chunks of a table from which it is made one: `take` looks for the chunk of every row.
_MOST_CHUNKS = 8


@dataclass(frozen=True)
class Rows:
    """Tuples of one stream.

    Attributes:
        table: Their columns, (n,) rows.
        ts: Their event times in ticks, int64 (n,).
        ids: Their row ids, int64 (n,), or -1 for tuples that have none yet.
    """

    table: pa.Table
    ts: Numbers
    ids: Numbers

    def __len__(self) -> int:
        return len(self.ts)

    @classmethod
    def empty(cls, schema: pa.Schema) -> Rows:
        """No tuples of ``schema``."""
        none = np.empty(0, np.int64)
        return cls(schema.empty_table(), none, none)

    @classmethod
    def concat(cls, parts: Sequence[Rows]) -> Rows:
        """The tuples of all ``parts`` (one at least), one part after the other."""
        some = [p for p in parts if len(p)] or parts[:1]
        if len(some) == 1:
            return some[0]
        table = pa.concat_tables([p.table for p in some])
        if table.num_columns and table.column(0).num_chunks > _MOST_CHUNKS:
            table = table.combine_chunks()
        return cls(table, np.concatenate([p.ts for p in some]), np.concatenate([p.ids for p in some]))

    def slice(self, first: int, last: int) -> Rows:
        """Tuples ``first`` to ``last`` (excluded)."""
        if first <= 0 and last >= len(self):
            return self
        return Rows(self.table.slice(first, max(last - first, 0)), self.ts[first:last], self.ids[first:last])

    def where(self, mask: npt.NDArray[np.bool_]) -> Rows:
        """The tuples for which ``mask``, (n,), holds."""
        if mask.all():
            return self
        return Rows(self.table.filter(pa.array(mask)), self.ts[mask], self.ids[mask])

    def take(self, positions: Numbers) -> Rows:
        """The tuples at ``positions``."""
        return Rows(self.table.take(pa.array(positions)), self.ts[positions], self.ids[positions])

    def numbered(self, first: int) -> Rows:
        """The same tuples with the row ids ``first``, ``first`` + 1, …"""
        return Rows(self.table, self.ts, np.arange(first, first + len(self)))

    def sorted(self) -> Rows:
        """The tuples by event time; those with equal times keep their order."""
        if len(self) < 2 or not (self.ts[1:] < self.ts[:-1]).any():
            return self
        return self.take(np.argsort(self.ts, kind="stable"))


def arrival_order(rows: Rows, ties: Sequence[str], last: Numbers) -> Rows:
    """The tuples by event time, and at equal times by the columns ``ties`` as Spark sorts them (ascending, NULL first,
    NaN last), then by ``last``, int64 (n,).
    """
    order = np.argsort(rows.ts, kind="stable")
    ts = rows.ts[order]
    same = np.zeros(len(ts), np.bool_)
    same[1:] = ts[1:] == ts[:-1]
    same[:-1] |= same[1:]
    if same.any():  # only tuples with equal times are compared by more than their times
        tied = order[same]
        part = rows.table.select(ties).take(pa.array(tied)) if ties else None
        ranks = [] if part is None else [_ranks(part.column(name)) for name in ties]
        order[same] = tied[np.lexsort([last[tied], *ranks[::-1], rows.ts[tied]])]
    return rows if (order[1:] > order[:-1]).all() else rows.take(order)


def pair_order(r_ts: Numbers, s_ts: Numbers, r_id: Numbers, s_id: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """The positions (n,) of pairs by the arrival of the later tuple, then of the earlier one (semantics, section 4), by
    the times and ids (n,) of their tuples; and, bool (n,), whether the later one is that of S.
    """
    s_later = r_ts <= s_ts  # at equal times a tuple of R comes before one of S
    return np.lexsort((np.where(s_later, r_id, s_id), np.where(s_later, s_id, r_id), s_later,
                       np.where(s_later, s_ts, r_ts))), s_later


def _ranks(column: pa.ChunkedArray) -> Numbers:
    """Numbers that sort as the values of ``column`` do in Spark."""
    kind = column.type
    ranks: Numbers
    if pa.types.is_floating(kind):
        values = pc.fill_null(column, pa.scalar(0, kind)).to_numpy() + 0.0  # −0.0 becomes 0.0
        distinct = np.unique(values)  # NumPy sorts NaN last, and counts all NaN as one
        ranks = np.searchsorted(distinct, values).astype(np.int64)
        ranks[np.isnan(values)] = len(distinct)
        ranks[column.is_null().to_numpy()] = -1
        return ranks
    try:
        dense = pc.rank(column.combine_chunks(), sort_keys="ascending", tiebreaker="dense")
        ranks = dense.to_numpy().astype(np.int64)
        ranks[column.is_null().to_numpy()] = -1
        return ranks
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):  # lists and structs
        values = column.to_pylist()
        order = sorted(range(len(values)), key=lambda i: _KEY(values[i]))
        ranks = np.zeros(len(values), np.int64)
        for before, at in pairwise(order):
            ranks[at] = ranks[before] + (_compared(values[before], values[at]) != 0)
        return ranks


def _compared(a: Any, b: Any) -> int:
    """Negative, 0 or positive as ``a`` is before, equal to or after ``b`` in Spark's order of arrays and structs."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if isinstance(a, dict):
        a, b = list(a.values()), list(b.values())
    if isinstance(a, list):
        for x, y in zip(a, b, strict=False):
            if found := _compared(x, y):
                return found
        return len(a) - len(b)
    if isinstance(a, float) and (a != a or b != b):
        return int(a != a) - int(b != b)
    return int(a > b) - int(a < b)


_KEY: Callable[[Any], Any] = cmp_to_key(_compared)
