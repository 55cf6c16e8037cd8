"""Two whole tables in arrival order, and the rows as the user gave them: sorting, and order ``left``."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import InputError
from splitjoin.base.memory import check_window, size_text, window_bytes
from splitjoin.base.progress import tell
from splitjoin.engines.arrival import Arrivals, arrivals, check_rising, timed_arrivals
from splitjoin.engines.device import PAIR, Items, chosen_items
from splitjoin.engines.sorting import rises, stable_order
from splitjoin.engines.whole_times import whole_times
from splitjoin.lang.layouts import take, take_rows
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.types import plain
from splitjoin.lang.windows import Extent
from splitjoin.rows.table_rows import TableRows

Ints = npt.NDArray[np.int64]

#: Bytes of windows of all rows from which on they are told.
_TOLD = 1 << 26


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
        if len(r) and r[0] >= 0 and (r[1:] > r[:-1]).all():  # one row of each: places of rows, without a sort
            places = np.full(len(self.incoming.r), -1)
            places[mine] = np.arange(len(r))
            return places[places >= 0]
        return stable_order(np.where(r < 0, len(self.incoming.r), mine) * (len(self.incoming.s) + 1) + s + 1)

    def bounded(self, query: Query) -> Query:
        """``query`` with windows that hold all tuples where it limits neither these nor ticks, as by a RANGE of floats
        alone.
        """
        windows = [Extent(max(1, len(self.incoming.table(side))), None) if query.window(side) == Extent(None, None)
                   else query.window(side) for side in SIDES]
        return replace(query, window_r=windows[0], window_s=windows[1])

    def by_left(self, rows: TableRows, *, nearest_first: bool) -> TableRows:
        """``rows``, which are all, by R's rows as given, then by the arrival of S, or with ``nearest_first`` as they
        come; those of S alone last.
        """
        items = rows.items  # without the rows, which keep the threads

        def pairs() -> Items:
            found = items()
            return chosen_items(found, found["kind"] == PAIR)

        if rows.rises and self.rows["r"] is None:
            made = copy(rows)
            made.items = pairs
            return made
        order = self._left_order(rows.r, np.zeros_like(rows.s) if nearest_first else rows.s)
        places = pa.array(order)
        return TableRows(rows.r[order], rows.s[order], [take(values, places) for values in rows.values],
                         lambda: pairs()[order], rows.work)

    def numbered(self, items: Items) -> Items:
        """``items`` with the numbers of the rows as they were given."""
        made = items
        for side in SIDES:
            given = self.rows[side]
            if given is not None and len(given):
                made = chosen_items(made, np.ones(len(made), np.bool_)) if made is items else made
                made[side] = np.where(items[side] < 0, items[side], given[items[side]])
        return made


def arranged(query: Query, r: pa.Table, s: pa.Table, *, sort: bool) -> Arranged:
    """``r`` and ``s`` as they arrive; with ``sort``, sorted by their time columns first, where rows with equal times
    keep their order. Rows without a time come last.

    Raises `InputError` for times that decrease or do not fit 64 bits, and for ``sort`` without times.
    """
    tables: dict[Side, pa.Table] = {"r": r, "s": s}
    rows: dict[Side, Ints | None] = {"r": None, "s": None}
    if query.time is None:
        if sort:
            raise InputError("sort=True sorts by the time column, but there is none; name it with time=…, or leave "
                             "sort out")
        return Arranged(arrivals(query, r, s), rows)
    times = whole_times(query.time, tables)
    for side in SIDES:
        codes, table = times[side], tables[side]
        if rises(codes):
            continue
        if not sort:  # rows without a time may stand anywhere
            timed = np.flatnonzero(plain(table.column(query.time.name(side))).is_valid().to_numpy())
            check_rising(query.time, side, table, codes[timed], timed)
        rows[side] = order = np.argsort(codes, kind="stable")
        places = pa.array(order)
        tables[side] = take_rows(table, places)
        times[side] = codes[order]
    return Arranged(timed_arrivals(tables["r"], tables["s"], times["r"], times["s"]), rows)


def whole_window(r: pa.Table, s: pa.Table) -> tuple[str, str]:
    """Windows of all rows: every earlier tuple is in them. Raises `CapacityError` if their tuples do not fit."""
    rows = len(r) + len(s)
    check_window(rows)
    need = window_bytes(rows)
    if need > _TOLD:
        tell(f"without a window, all {rows:,} rows stay in memory: about {size_text(need)} beside the tables")
    return f"ROWS {max(1, len(r))}", f"ROWS {max(1, len(s))}"


def sorts(sort: Any) -> bool:
    """``sort``, which a user gave. Raises `InputError` unless it is True or False."""
    if not isinstance(sort, bool):
        raise InputError(f"sort must be True or False, not {sort!r}; the tables are sorted by the column that time=… "
                         f"names")
    return sort
