"""Rows of as-of joins that choose partners by their distance among several: the k nearest, and the nearest by times
that are no ticks. They are by the tuples of R, the nearest partner first.
"""

from __future__ import annotations

import math

import numpy as np

from splitjoin.base.arrays import Array, Ints
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import PAIR, Items, TableNeighbours
from splitjoin.engines.sorting import float_of_bits
from splitjoin.engines.whole_times import distances
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side

from .decisions import OrderedRows
from .undecided import NONE


def neighbour_rows(query: Query, incoming: Arrivals, found: TableNeighbours) -> OrderedRows:
    """The rows of ``query`` over all ``incoming`` arrivals, of whose partners the nearest are ``found``."""
    kind = query.kind
    partners = found.back if kind.direction == "backward" else found.fore
    if kind.direction == "nearest":
        first = [found.fore, found.back] if kind.ties == "last" else [found.back, found.fore]  # of equally near ones
        partners = np.concatenate(first, axis=1)
        if partners.shape[1]:
            times = [_times(query, incoming, of) for of in SIDES]
            apart = distances(times[0][:, None], times[1][partners])
            order = np.lexsort((apart, partners == NONE), axis=1)[:, :kind.k]
            partners = np.take_along_axis(partners, order, axis=1)
    shown = partners != NONE
    if kind.how == "asof_left":  # a first column for tuples that have no partner
        shown = np.concatenate([~shown.any(axis=1, keepdims=True), shown], axis=1)
        partners = np.concatenate([np.full((len(partners), 1), NONE), partners], axis=1)
    r, at = np.nonzero(shown)
    return _rows(r, partners[r, at])


def reference_neighbours(query: Query, incoming: Arrivals, items: Items) -> OrderedRows:
    """The same rows from ``items``, all pairs of the inner join: plain Python, a tuple at a time."""
    kind = query.kind
    times, times_s = (_times(query, incoming, of).tolist() for of in SIDES)
    partners: list[list[int]] = [[] for _ in times]
    for is_pair, _, r, s in items.tolist():
        if is_pair == PAIR:
            partners[r].append(s)
    rows = []
    for r, mine in enumerate(partners):
        time = times[r]
        allowed = [s for s in sorted(mine) if kind.allow_exact or not _same(times_s[s], time)]
        back = [s for s in reversed(allowed) if _not_after(times_s[s], time)]
        fore = [s for s in allowed if s not in back or (kind.direction == "forward" and _same(times_s[s], time))]
        if kind.direction == "nearest":
            near = sorted(allowed, reverse=True) if kind.ties == "last" else back + fore
            chosen = sorted(near, key=lambda s: _apart(times_s[s], time))
        else:
            chosen = back if kind.direction == "backward" else fore
        rows += [(r, s) for s in chosen[:kind.k]] or ([(r, NONE)] if kind.how == "asof_left" else [])
    made = np.array(rows, np.int64).reshape(-1, 2)
    return _rows(made[:, 0], made[:, 1])


def _rows(r: Ints, s: Ints) -> OrderedRows:
    return OrderedRows(r, s, lambda: (np.zeros(len(r), np.int64), np.zeros(len(r), np.uint8)))


def _times(query: Query, incoming: Arrivals, of: Side) -> Array:
    """The times of a stream, with their distances; the positions in arrival order without a time column."""
    if query.time is None:
        return incoming.positions(of)
    return incoming.times(of) if query.time.has_ticks else float_of_bits(incoming.times(of))


def _same(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)


def _not_after(a: float, b: float) -> bool:
    """True if ``a`` is not after ``b``; NaN is after all numbers."""
    return _same(a, b) or b != b or a < b


def _apart(a: float, b: float) -> float:
    apart = 0 if _same(a, b) else abs(a - b)
    return math.inf if apart != apart else apart
