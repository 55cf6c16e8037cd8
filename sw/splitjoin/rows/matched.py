"""`matched_rows`: the rows of semi and anti joins of whole tables, made of which tuples of R have a partner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, Items, TableMatches
from splitjoin.engines.slices import Slices
from splitjoin.lang.query import Query

from .kinds import OrderedRows, OwnSide, Places
from .table_rows import ChosenRows, TableRows

__all__ = ["matched_rows"]

Ints = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)


def matched_rows(query: Query, incoming: Arrivals, found: TableMatches) -> TableRows:
    """The rows of ``query`` over ``incoming``, all of whose tuples are in its windows, from the matches ``found``."""
    if query.kind.how == "semi":
        return _semi(query, incoming, found)
    # A tuple that its own side rules out is decided when it comes, and any other at the end.
    alone = found.met == 0
    ruled_out = OwnSide.of(query, "r").ruled_out(incoming.r)
    first, end = _NONE, len(incoming)
    if query.order.kind == "left":
        end = 0
    elif ruled_out.any():
        first = np.flatnonzero(alone & ruled_out)
        alone &= ~ruled_out

    def places(r: Ints) -> Places:
        at = np.full(len(r), end)
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


def _chosen(query: Query, incoming: Arrivals, rows: tuple[npt.NDArray[np.bool_], Ints, Ints],
            places: Callable[[Ints], Places], work: Slices) -> TableRows:
    """`ChosenRows` of these ``rows``, in the ``places`` of row ids. Its items do not keep the threads of ``work``."""
    def items() -> Items:
        found = ChosenRows(*rows, lambda: np.empty(0, ITEM), Slices())
        return OrderedRows(found.r, found.s, lambda: places(found.r)).items(query, incoming)

    return ChosenRows(*rows, items, work)
