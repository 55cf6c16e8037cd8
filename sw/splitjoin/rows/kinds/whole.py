"""Rows of every kind of join of whole tables, from the pairs that decide them, at once (semantics, section 7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.cpu.sorting import stable_order
from splitjoin.engines.device import ITEM, PAIR, Items, TablePairs, stars
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side

from .own_side import OwnSide
from .undecided import NEVER, NONE, Ints, later

__all__ = ["OrderedRows", "table_rows"]


@dataclass(frozen=True)
class OrderedRows:
    """The rows of a query over whole tables, by row ids.

    Attributes:
        r, s: The row ids (n,), −1 for NULL.
        places: Finds, for each row, the arrival that brings it, or whose results it precedes, the number of arrivals at
            the end: int64 (n,); and its stream, as of `ITEM`.
    """

    r: Ints
    s: Ints
    places: Callable[[], tuple[Ints, npt.NDArray[np.uint8]]]

    def items(self, query: Query, incoming: Arrivals) -> Items:
        """The rows as items, with a star for each arrival where the order of ``query`` has them."""
        has_stars = query.order.kind != "left" and not (query.is_pairs and query.order.kind == "none")
        at, side = self.places()
        others = stars(incoming.stream) if has_stars else np.empty(0, ITEM)
        items = np.empty(len(self.r) + len(others), ITEM)
        mine = np.arange(len(self.r)) + (at if has_stars else 0)
        rest = np.ones(len(items), np.bool_)
        rest[mine] = False
        items[rest] = others
        items["kind"][mine], items["side"][mine], items["r"][mine], items["s"][mine] = PAIR, side, self.r, self.s
        return items


@dataclass(frozen=True)
class _Waiting:
    """Tuples of one stream whose rows wait for a decision, by row id, which rise, and their partners (n,).

    ``at``: the arrivals that decide them, twice, and one more where the arrival itself does, not its time. ``last``:
    the last event time at which they could still have changed, 0 for those that an arrival itself decides.
    """

    side: Side
    rows: Ints
    partner: Ints
    at: Ints
    last: Ints


def table_rows(query: Query, incoming: Arrivals, found: TablePairs) -> OrderedRows:
    """The rows of ``query`` over all ``incoming`` arrivals, whose pairs, or those that decide, are ``found``."""
    kind, r, s, at = query.kind, found.r, found.s, found.at

    def places() -> tuple[Ints, npt.NDArray[np.uint8]]:
        when = np.maximum(incoming.positions("r")[r], incoming.positions("s")[s]) if at is None else at
        return when, incoming.stream[when]

    pairs = OrderedRows(r, np.full(len(r), NONE) if kind.how == "semi" else s, places)
    if query.order.kind == "left":
        return _by_left(query, incoming, pairs)
    if not kind.is_asof:
        if not kind.has_pairs and kind.how != "semi":
            none = np.empty(0, np.int64)
            pairs = OrderedRows(none, none, lambda: (none, none.astype(np.uint8)))
        alone = []
        for side in SIDES:
            if kind.gives_unmatched(side):
                matched = np.zeros(len(incoming.table(side)), np.bool_)
                matched[r if side == "r" else s] = True
                alone.append(_waiting(query, incoming, side, np.flatnonzero(~matched), None))
        if not alone:
            return pairs
        waited = _ordered(alone)
        return _merged(pairs, waited) if len(pairs.r) else waited
    rows, partner = r, s
    if kind.how == "asof_left":
        rows, partner = np.arange(len(incoming.r)), np.full(len(incoming.r), NONE)
        partner[r] = s

    def ordered() -> OrderedRows:
        return _ordered([_waiting(query, incoming, "r", rows, partner)])

    if kind.direction == "backward" and (
            kind.how == "asof" or not OwnSide.of(query, "r").ruled_out(incoming.r).any()):
        # Windows close on tuples as these come, and times rise: tuples of R are decided in their order.
        return OrderedRows(rows, partner, lambda: ordered().places())
    if kind.how == "asof" and kind.direction == "forward":  # the partner decides, which comes within both windows
        order = stable_order(partner)
        return OrderedRows(rows[order], partner[order], lambda: ordered().places())
    return ordered()


def _by_left(query: Query, incoming: Arrivals, pairs: OrderedRows) -> OrderedRows:
    """The rows by the tuples of R, unmatched ones in their places; then those of S alone. ``pairs``: those that decide,
    by the tuples of R.
    """
    kind = query.kind
    matched = np.zeros(len(incoming.r), np.bool_)
    matched[pairs.r] = True
    alone = np.flatnonzero(~matched) if kind.gives_unmatched("r") else np.empty(0, np.int64)
    if kind.how == "anti":
        return OrderedRows(alone, np.full(len(alone), NONE), lambda: (alone, np.zeros(len(alone), np.uint8)))
    ends = np.empty(0, np.int64)
    if kind.gives_unmatched("s"):
        matched = np.zeros(len(incoming.s), np.bool_)
        matched[pairs.s] = True
        ends = np.flatnonzero(~matched)
    places = np.searchsorted(pairs.r, alone)

    def among(values: npt.NDArray[Any], alone: Ints | int, ends: Ints | int) -> npt.NDArray[Any]:
        return np.concatenate([np.insert(values, places, alone), np.broadcast_to(ends, some)])

    def sides() -> tuple[Ints, npt.NDArray[np.uint8]]:
        at, side = pairs.places()
        if kind.is_asof:  # whose rows are those of R's tuples
            side = np.zeros_like(side)
        return among(at, 0, 0), among(side, 0, SIDES.index("s")).astype(np.uint8)

    some = len(ends)
    return OrderedRows(among(pairs.r, alone, NONE), among(pairs.s, NONE, ends), sides)


def _waiting(query: Query, incoming: Arrivals, side: Side, rows: Ints, partner: Ints | None) -> _Waiting:
    """When the tuples ``rows`` of stream ``side`` are decided. ``partner``: those that an as-of join has chosen."""
    kind, n = query.kind, len(incoming)
    positions = {name: incoming.positions(name) for name in SIDES}
    of = positions[side]
    timed = incoming.is_timed
    times = {name: incoming.times(name) if timed else p for name, p in positions.items()}
    extent, own, time = query.window(side), of[rows], times[side][rows]
    last = np.full(len(rows), NEVER) if extent.length is None else later(
        time, np.uint64(min(extent.length, 2**64 - 1)))
    by = np.full(len(rows), n)  # the arrival that decides by itself
    if extent.rows is not None and extent.rows < len(of):
        there = np.flatnonzero(rows < len(of) - extent.rows)
        by[there] = of[rows[there] + extent.rows]
    ruled_out = OwnSide.of(query, side).ruled_out(incoming.table(side))[rows]
    by[ruled_out] = own[ruled_out]
    by_time: Ints | slice = slice(None)
    if partner is not None:
        has = np.flatnonzero(partner != NONE)
        mate = partner[has]
        met = np.maximum(own[has], positions["s"][mate])
        if kind.direction == "backward":
            last = np.minimum(last, time)
            by = np.minimum(by, own) if not timed or not kind.allow_exact else by
        elif kind.direction == "forward":
            by[has] = np.minimum(by[has], met)
        else:
            ahead = times["s"][mate] > time[has]
            by[has[ahead]] = np.minimum(by[has[ahead]], met[ahead])
            by_time = np.concatenate([np.flatnonzero(partner == NONE), has[~ahead]])  # others before windows close
            behind, mate = has[~ahead], mate[~ahead]
            gap = time[behind].view(np.uint64) - times["s"][mate].view(np.uint64)
            until = later(time[behind], np.maximum(gap, np.uint64(1)) - np.uint64(1))
            if timed:
                last[behind] = np.minimum(last[behind], until)
            else:
                by[behind] = np.minimum(by[behind], until)
    at_time = np.full(len(rows), n)
    if len(last) and int(last.min()) < NEVER and incoming.ts is not None:
        at_time[by_time] = np.searchsorted(incoming.ts, last[by_time], side="right")
    itself = by < at_time
    return _Waiting(side, rows, np.full(len(rows), NONE) if partner is None else partner,
                    np.minimum(by, at_time) * 2 + itself, np.where(itself, 0, last))


def _ordered(waiting: list[_Waiting]) -> OrderedRows:
    """The rows in order: by the arrival that decides, by time before itself, by the last time, R's before S's."""
    at, last = (np.concatenate([getattr(w, name) for w in waiting]) for name in ("at", "last"))
    r, s = (np.concatenate([w.rows if w.side == side else w.partner for w in waiting]) for side in SIDES)
    sides = np.concatenate([np.full(len(w.rows), SIDES.index(w.side), np.uint8) for w in waiting])
    rises = (at[1:] > at[:-1]) | ((at[1:] == at[:-1]) & (last[1:] >= last[:-1]))
    if rises.all():
        return OrderedRows(r, s, lambda: (at >> 1, sides))
    order = stable_order(last.view(np.uint64) ^ np.uint64(2**63))  # the order of times with a sign
    order = order[stable_order(at[order])]
    return OrderedRows(r[order], s[order], lambda: (at[order] >> 1, sides[order]))


def _merged(pairs: OrderedRows, alone: OrderedRows) -> OrderedRows:
    """``alone``, each before the first of ``pairs`` from its arrival on."""
    (at, side), (at_alone, side_alone) = pairs.places(), alone.places()
    mine = np.searchsorted(at, at_alone, side="left") + np.arange(len(at_alone))
    others = np.ones(len(at) + len(mine), np.bool_)
    others[mine] = False

    def both(of_pairs: npt.NDArray[Any], of_alone: npt.NDArray[Any]) -> npt.NDArray[Any]:
        out = np.empty(len(others), of_pairs.dtype)
        out[mine], out[others] = of_alone, of_pairs
        return out

    return OrderedRows(both(pairs.r, alone.r), both(pairs.s, alone.s),
                       lambda: (both(at, at_alone), both(side, side_alone)))
