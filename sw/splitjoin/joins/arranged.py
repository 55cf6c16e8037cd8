"""Two whole tables in arrival order, and the rows as the user gave them: sorting, and order ``left``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import InputError
from splitjoin.engines.arrival import Arrivals, arrivals, event_ticks
from splitjoin.engines.cpu.sorting import stable_order
from splitjoin.engines.device import PAIR, Items, chosen_items
from splitjoin.lang.layouts import take
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.whole import TableRows

__all__ = ["Arranged", "arranged"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Arranged:
    """Two whole tables in arrival order.

    Attributes:
        incoming: Their tuples, as they arrive.
        rows: The row, as it was given, of each tuple of a stream, int64 (n,); None where these are in the same order.
    """

    incoming: Arrivals
    rows: Mapping[Side, Ints | None]

    def _left_order(self, r: Ints, s: Ints) -> Ints:
        given = self.rows["r"]
        mine = r if given is None or not len(given) else given[r]
        return stable_order(np.where(r < 0, len(self.incoming.r), mine) * (len(self.incoming.s) + 1) + s + 1)

    def by_left(self, rows: TableRows) -> TableRows:
        """``rows``, which are all, by R's rows as given, then by the arrival of S; those of S alone last."""
        order = self._left_order(rows.r, rows.s)
        places = pa.array(order)
        return TableRows(rows.r[order], rows.s[order], [take(values, places) for values in rows.values],
                         lambda: _pairs(rows.items())[order], rows.map)

    def numbered(self, items: Items) -> Items:
        """``items`` with the numbers of the rows as they were given."""
        made = items
        for side in SIDES:
            given = self.rows[side]
            if given is not None and len(given):
                made = chosen_items(made, np.ones(len(made), np.bool_)) if made is items else made
                made[side] = np.where(items[side] < 0, items[side], given[items[side]])
        return made


def _pairs(items: Items) -> Items:
    return chosen_items(items, items["kind"] == PAIR)


def arranged(query: Query, r: pa.Table, s: pa.Table, *, sort: bool) -> Arranged:
    """``r`` and ``s`` as they arrive; with ``sort``, sorted by their time columns first, where rows with equal times
    keep their order.

    Raises `InputError` for NULL in a time column, for times that decrease, and for ``sort`` without times.
    """
    tables: dict[Side, pa.Table] = {"r": r, "s": s}
    rows: dict[Side, Ints | None] = {"r": None, "s": None}
    if sort:
        if query.time is None:
            raise InputError("sort=True sorts by the time column, but there is none; name it with time=…, or leave "
                             "sort out")
        for side in SIDES:
            ticks = event_ticks(query.time, side, tables[side])
            if (ticks[1:] < ticks[:-1]).any():
                rows[side] = order = np.argsort(ticks, kind="stable")
                places = pa.array(order)
                tables[side] = pa.table([take(column, places) for column in tables[side].columns],
                                        schema=tables[side].schema)
    return Arranged(arrivals(query, tables["r"], tables["s"]), rows)
