"""`matched_rows`: rows of semi and anti joins of whole tables, by which tuples of R have a partner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import Items, TableMatches
from splitjoin.engines.slices import Slices
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from .kinds import OrderedRows, OwnSide, Places
from .table_rows import ChosenRows, TableRows

__all__ = ["matched_rows"]

Ints = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)


def matched_rows(query: Query, incoming: Arrivals, found: TableMatches) -> TableRows:
    """The rows of ``query``, whose windows hold all tuples of ``incoming``, by what was ``found`` of R's."""
    def items(rows: TableRows, places: Places) -> Items:
        return OrderedRows(rows.r, rows.s, lambda: places).items(query, incoming)

    def chosen(mine: npt.NDArray[np.bool_], late: Ints, before: Ints,
               places: Callable[[TableRows], Places]) -> TableRows:
        # The result keeps what makes its items, but not the threads of ``found``.
        kept = ChosenRows(mine, late, before, lambda: items(kept, places(kept)), Slices())
        return ChosenRows(mine, late, before, kept.items, found.work)

    by_left = query.order.kind == "left"
    if query.kind.how == "semi":
        met, late, partners = found.met, found.late, found.partners
        partner = np.full(len(incoming.r), -1)
        partner[late] = partners

        def places(rows: TableRows) -> Places:
            r = rows.r
            side = (met[r] == 1).astype(np.uint8)
            if by_left:
                return r, side
            at = incoming.positions("r")[r]
            behind = np.flatnonzero(side)
            at[behind] = incoming.positions("s")[partner[r[behind]]]
            return at, side

        return chosen(met != 0 if by_left else met == 2, late, found.before, places)
    # A tuple that its own side rules out is decided when it comes, and any other at the end.
    alone = found.met == 0
    ruled_out = OwnSide.of(query, SIDES[0]).ruled_out(incoming.r)
    if by_left or not ruled_out.any():
        end = 0 if by_left else len(incoming)
        return chosen(alone, _NONE, _NONE, lambda rows: (np.full(len(rows), end), np.zeros(len(rows), np.uint8)))
    first = np.flatnonzero(alone & ruled_out)
    r = np.concatenate([first, np.flatnonzero(alone & ~ruled_out)])

    def decided() -> Places:
        at = np.full(len(r), len(incoming))
        at[:len(first)] = incoming.positions("r")[first]
        return at, np.zeros(len(r), np.uint8)

    lacking = np.broadcast_to(np.int64(-1), len(r))
    without_threads = TableRows(r, lacking, (), lambda: items(without_threads, decided()))
    return TableRows(r, lacking, (), without_threads.items, found.work)
