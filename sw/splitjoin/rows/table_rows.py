"""`TableRows`: the rows of a query over whole tables, by row ids, in memory or made part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints, Mask
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, Items, TableMatches, chosen_items
from splitjoin.engines.slices import Slices
from splitjoin.lang.query import Query

from .kinds import OrderedRows, OwnSide, Places, Segments
from .operator import RowBatch

_NONE = np.empty(0, np.int64)


class TableRows(Segments):
    """Rows over whole tables.

    Args:
        r, s: The row ids of R's and S's tuples, int64 (n,), −1 for NULL.
        values: For each aggregate its values, one a row.
        items: Makes items of the rows, with the stars among them.
        work: As of `TablePairs`.
        behind: Further segments, of rows without values.
    """

    def __init__(self, r: Ints, s: Ints, values: Sequence[pa.ChunkedArray], items: Callable[[], Items],
                 work: Slices | None = None, behind: Sequence[tuple[Ints, Ints]] = ()):
        super().__init__([(r, s), *behind])
        self.values, self.items, self.work = values, items, work or Slices()

    @property
    def rises(self) -> bool:
        """True if the rows are known to be in the order of R, one of each tuple, without a look at them."""
        return False

    @classmethod
    def of(cls, batch: RowBatch) -> TableRows:
        """The rows of ``batch``."""
        rows = batch.rows()
        return cls(rows.items["r"], rows.items["s"], rows.values, lambda: batch.items)

    @classmethod
    def ordered(cls, rows: OrderedRows, query: Query, incoming: Arrivals, work: Slices) -> TableRows:
        """The ``rows`` of ``query``, in the order of their places among all ``incoming`` arrivals."""
        return cls(*rows.segments[0], (), lambda: rows.items(query, incoming), work, rows.segments[1:])

    def parts(self, size: int) -> Iterator[TableRows]:
        """The same rows in parts of at most ``size``, one part at least."""
        for r, s in [segment for segment in self.segments if len(segment[0])] or self.segments[:1]:
            for at in range(0, max(len(r), 1), size):
                yield TableRows(r[at:at + size], s[at:at + size], [v.slice(at, size) for v in self.values], self.items,
                                self.work)

    def without(self, left_out: Mask, *, alone: bool) -> TableRows:
        """The same rows, which have no values, but for those with tuples of S that are ``left_out`` (s,): with
        ``alone`` these have NULL in place of it.
        """
        lost, items = self.s >= 0, self.items
        lost[lost] = left_out[self.s[lost]]
        kept = np.ones(len(lost), np.bool_) if alone else ~lost

        def made() -> Items:
            of_rows = chosen_items(items(), items()["kind"] == PAIR)
            of_rows["s"][lost] = -1
            return of_rows[kept]

        return TableRows(self.r[kept], np.where(lost, -1, self.s)[kept], (), made, self.work)


class ChosenRows(TableRows):
    """The rows of a semi or anti join: tuples of R alone, most of them in the order of R. Row ids are made part by
    part, as all at once would take more memory and time than the flags that they follow from.

    ``chosen``: True for the tuples that come in the order of R (r,). ``late``: the row ids of the other tuples (n,);
    each comes before the first chosen one from row ``before`` (n,) on. ``before`` rises.
    """

    def __init__(self, chosen: Mask, late: Ints, before: Ints, items: Callable[[], Items], work: Slices):
        self._chosen, self._late, self._before = chosen, late, before
        self._count = int(np.count_nonzero(chosen)) + len(late)
        self.values, self.items, self.work = (), items, work

    def __len__(self) -> int:
        return self._count

    @property
    def rises(self) -> bool:
        return not len(self._late)

    def _whole(self, side: int) -> Ints:
        if side:
            return np.broadcast_to(np.int64(-1), len(self))
        return np.concatenate([part.r for part in self.parts(max(len(self._chosen), 1))])

    def parts(self, size: int) -> Iterator[TableRows]:
        chosen, late, before = self._chosen, self._late, self._before
        for at in range(0, max(len(chosen), 1), size):
            end = at + size
            rows = np.flatnonzero(chosen[at:end])
            rows += at
            first, last = np.searchsorted(before, [at, end]) if end < len(chosen) else (
                np.searchsorted(before, at), len(before))
            if first < last:
                rows = np.insert(rows, np.searchsorted(rows, before[first:last]), late[first:last])
            for start in range(0, max(len(rows), 1), size):  # late ones may be more than there is room for
                part = rows[start:start + size]
                yield TableRows(part, np.broadcast_to(np.int64(-1), len(part)), (), self.items, self.work)


def matched_rows(query: Query, incoming: Arrivals, found: TableMatches) -> TableRows:
    """The rows of ``query`` over ``incoming``, all of whose tuples are in its windows, from the matches ``found``."""
    if query.kind.how == "semi":
        return _semi(query, incoming, found)
    # A tuple that its own side rules out is decided when it comes, and any other at the end.
    alone = found.met == 0
    ruled_out = OwnSide.of(query, "r").ruled_out(incoming.r)
    first = _NONE
    if query.order.kind != "left" and ruled_out.any():
        first = np.flatnonzero(alone & ruled_out)
        alone &= ~ruled_out

    def places(r: Ints) -> Places:
        at = np.full(len(r), len(incoming))
        at[:len(first)] = incoming.positions("r")[first]
        return at, np.zeros(len(r), np.uint8)

    return _chosen(query, incoming, (alone, first, np.zeros(len(first), np.int64)), places, found.work)


def _semi(query: Query, incoming: Arrivals, found: TableMatches) -> TableRows:
    met, late, partners = found.met, found.late, found.partners
    by_left = query.order.kind == "left"

    def places(r: Ints) -> Places:
        side = (met[r] == 1).astype(np.uint8)
        if by_left:
            return r, side
        partner = np.zeros(len(met), np.int64)
        partner[late] = partners
        at, behind = incoming.positions("r")[r], np.flatnonzero(side)
        at[behind] = incoming.positions("s")[partner[r[behind]]]
        return at, side

    return _chosen(query, incoming, (met != 0 if by_left else met == 2, late, found.before), places, found.work)


def _chosen(query: Query, incoming: Arrivals, rows: tuple[Mask, Ints, Ints],
            places: Callable[[Ints], Places], work: Slices) -> TableRows:
    """`ChosenRows` of these ``rows``, in the ``places`` of row ids. Its items do not keep the threads of ``work``."""
    def items() -> Items:
        found = ChosenRows(*rows, lambda: np.empty(0, ITEM), Slices())
        return OrderedRows(found.r, found.s, lambda: places(found.r)).items(query, incoming)

    return ChosenRows(*rows, items, work)
