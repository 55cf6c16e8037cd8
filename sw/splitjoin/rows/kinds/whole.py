"""Rows of every kind of join of whole tables, from the pairs that decide them, at once (semantics, section 7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
        at: For each row the arrival that brings it, or whose results it precedes; the number of arrivals at the end.
        side: Its stream, as of `ITEM`; None where it is that of the arrival.
    """

    r: Ints
    s: Ints
    at: Ints
    side: npt.NDArray[np.uint8] | None

    def sides(self, incoming: Arrivals) -> npt.NDArray[np.uint8]:
        """`side`, of each row of ``incoming``."""
        return incoming.stream[self.at] if self.side is None else self.side

    def items(self, query: Query, incoming: Arrivals) -> Items:
        """The rows as items, with a star for each arrival where the order of ``query`` has them."""
        has_stars = query.order.kind != "left" and not (query.is_pairs and query.order.kind == "none")
        others = stars(incoming.stream) if has_stars else np.empty(0, ITEM)
        items = np.empty(len(self.r) + len(others), ITEM)
        mine = np.arange(len(self.r)) + (self.at if has_stars else 0)
        rest = np.ones(len(items), np.bool_)
        rest[mine] = False
        items[rest] = others
        items["kind"][mine], items["side"][mine], items["r"][mine], items["s"][mine] = (
            PAIR, self.sides(incoming), self.r, self.s)
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
    kind = query.kind
    r, s, at = found.r, found.s, found.at
    pairs = OrderedRows(r, np.full(len(r), NONE) if kind.how == "semi" else s, at, None)
    if query.order.kind == "left":
        return _by_left(query, incoming, pairs)
    if not kind.is_asof:
        if not kind.has_pairs and kind.how != "semi":
            none = np.empty(0, np.int64)
            pairs = OrderedRows(none, none, none, None)
        alone = []
        for side in SIDES:
            if kind.gives_unmatched(side):
                matched = np.zeros(len(incoming.table(side)), np.bool_)
                matched[r if side == "r" else s] = True
                alone.append(_waiting(query, incoming, side, np.flatnonzero(~matched), None))
        if not alone:
            return pairs
        waited = _ordered(alone)
        return _merged(replace(pairs, side=pairs.sides(incoming)), waited) if len(pairs.r) else waited
    partner = np.full(len(incoming.r), NONE)
    partner[r] = s
    rows = np.arange(len(partner)) if kind.how == "asof_left" else np.flatnonzero(partner != NONE)
    return _ordered([_waiting(query, incoming, "r", rows, partner[rows])])


def _by_left(query: Query, incoming: Arrivals, pairs: OrderedRows) -> OrderedRows:
    """The rows by the tuples of R, unmatched ones in their places; then those of S alone. ``pairs``: those that decide,
    by the tuples of R.
    """
    kind = query.kind
    matched = np.zeros(len(incoming.r), np.bool_)
    matched[pairs.r] = True
    alone = np.flatnonzero(~matched) if kind.gives_unmatched("r") else np.empty(0, np.int64)
    if kind.how == "anti":
        return OrderedRows(alone, np.full(len(alone), NONE), alone, np.zeros(len(alone), np.uint8))
    ends = np.empty(0, np.int64)
    if kind.gives_unmatched("s"):
        matched = np.zeros(len(incoming.s), np.bool_)
        matched[pairs.s] = True
        ends = np.flatnonzero(~matched)
    places = np.searchsorted(pairs.r, alone)

    def among(values: npt.NDArray[Any], alone: Ints | int, ends: Ints | int) -> npt.NDArray[Any]:
        return np.concatenate([np.insert(values, places, alone), np.broadcast_to(ends, some)])

    some = len(ends)
    return OrderedRows(among(pairs.r, alone, NONE), among(pairs.s, NONE, ends), among(pairs.at, 0, 0),
                       among(pairs.sides(incoming), 0, SIDES.index("s")).astype(np.uint8))


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
            behind, mate = has[~ahead], mate[~ahead]
            gap = time[behind].view(np.uint64) - times["s"][mate].view(np.uint64)
            until = later(time[behind], np.maximum(gap, np.uint64(1)) - np.uint64(1))
            if timed:
                last[behind] = np.minimum(last[behind], until)
            else:
                by[behind] = np.minimum(by[behind], until)
    at_time = np.searchsorted(incoming.ts, last, side="right") if incoming.ts is not None else np.full(len(rows), n)
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
        return OrderedRows(r, s, at >> 1, sides)
    order = stable_order(last.view(np.uint64) ^ np.uint64(2**63))  # the order of times with a sign
    order = order[stable_order(at[order])]
    return OrderedRows(r[order], s[order], at[order] >> 1, sides[order])


def _merged(pairs: OrderedRows, alone: OrderedRows) -> OrderedRows:
    """``alone``, each before the first of ``pairs`` from its arrival on."""
    mine = np.searchsorted(pairs.at, alone.at, side="left") + np.arange(len(alone.at))
    others = np.ones(len(pairs.at) + len(mine), np.bool_)
    others[mine] = False

    def both(name: str) -> npt.NDArray[np.int64]:
        out = np.empty(len(others), getattr(pairs, name).dtype)
        out[mine], out[others] = getattr(alone, name), getattr(pairs, name)
        return out

    return OrderedRows(both("r"), both("s"), both("at"), both("side").astype(np.uint8))
