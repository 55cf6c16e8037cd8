"""Rows of every kind of join of whole tables, from the pairs that decide them, at once (semantics, section 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Ints
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import TablePairs
from splitjoin.engines.slices import Slices
from splitjoin.engines.sorting import rises, stable_order
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side

from .decisions import Decisions, OrderedRows, Places, choice_limits, deciding_arrivals, ordered
from .nearest_order import order_by_times
from .own_side import OwnSide
from .undecided import NEVER, NONE, later

#: What divides the work on rows after their join, when its threads are gone.
_ALONE = Slices()


def table_rows(query: Query, incoming: Arrivals, found: TablePairs) -> OrderedRows:
    """The rows of ``query`` over all ``incoming`` arrivals, whose pairs, or those that decide, are ``found``."""
    made = _rows(query, incoming, found)
    incoming.forget()  # before columns take as much memory
    return made


def _rows(query: Query, incoming: Arrivals, found: TablePairs) -> OrderedRows:
    kind, r, s, at, work = query.kind, found.r, found.s, found.at, found.work

    def places(work: Slices = _ALONE) -> Places:
        if at is None:
            of_r, of_s = incoming.positions("r"), incoming.positions("s")
            when = work.made(len(r), np.int64, lambda mine: np.maximum(of_r[r[mine]], of_s[s[mine]]))
        else:
            when = at
        return when, work.taken(incoming.stream, when)

    pairs = OrderedRows(r, np.broadcast_to(np.int64(NONE), len(r)) if kind.how == "semi" else s, places)
    if query.order.kind == "left":
        return _by_left(query, incoming, pairs, work)
    if not kind.is_asof:
        if not kind.has_pairs and kind.how != "semi":
            none = np.empty(0, np.int64)
            pairs = OrderedRows(none, none, lambda: (none, none.astype(np.uint8)))
        sides = [side for side in SIDES if kind.gives_unmatched(side)]
        lone = {side: _unmatched(len(incoming.table(side)), r if side == "r" else s, work) for side in sides}
        if not lone:
            return pairs
        if all(_wait_for_the_end(query, incoming, side) for side in lone):
            return _behind(pairs, lone, len(incoming))
        alone = [_waiting(query, incoming, side, rows, None) for side, rows in lone.items()]
        waited = ordered(alone, len(incoming))
        return _merged(pairs, places(work), waited, work) if len(pairs.r) else waited
    rows, partner = r, s
    if kind.how == "asof_left":
        rows, partner = np.arange(len(incoming.r)), np.full(len(incoming.r), NONE)
        partner[r] = s

    def decided() -> OrderedRows:
        return ordered([_waiting(query, incoming, "r", rows, partner)], len(incoming))

    if kind.direction == "backward" and (
            kind.how == "asof" or not OwnSide.of(query, "r").ruled_out(incoming.r).any()):
        # Windows close on tuples as these come, and times rise: tuples of R are decided in their order.
        return OrderedRows(rows, partner, lambda: decided().places())
    if kind.how == "asof" and kind.direction == "forward":  # the partner decides, which comes within both windows
        if rises(partner):  # as where there are no keys
            return OrderedRows(rows, partner, lambda: decided().places())
        order = stable_order(partner)
        return OrderedRows(rows[order], partner[order], lambda: decided().places())
    if kind.direction == "nearest" and (by_times := order_by_times(query, incoming, rows, partner)) is not None:
        return OrderedRows(rows[by_times], partner[by_times], lambda: decided().places())
    return decided()


def _unmatched(rows: int, matched: Ints, work: Slices) -> Ints:
    """Those of so many rows that are not among ``matched``."""
    is_matched = np.zeros(rows, np.bool_)
    work.each(len(matched), lambda mine: is_matched.__setitem__(matched[mine], True))  # each thread writes the same
    return work.where(rows, lambda mine: ~is_matched[mine])


def _wait_for_the_end(query: Query, incoming: Arrivals, side: Side) -> bool:
    """True if no tuple of stream ``side`` without a pair is decided before the end of input."""
    extent, table = query.window(side), incoming.table(side)
    return (extent.rows is None or extent.rows >= len(table)) and extent.length is None and not bool(
        OwnSide.of(query, side).ruled_out(table).any())


def _behind(pairs: OrderedRows, lone: dict[Side, Ints], end: int) -> OrderedRows:
    """``pairs``, and the ``lone`` rows of each stream behind them, at the position ``end``."""
    nothing = {side: np.broadcast_to(np.int64(NONE), len(rows)) for side, rows in lone.items()}

    def places() -> Places:
        at, side = pairs.places()
        more = [np.full(len(rows), SIDES.index(name), np.uint8) for name, rows in lone.items()]
        return (np.concatenate([at, np.full(sum(map(len, more)), end)]), np.concatenate([side, *more]))

    return OrderedRows(pairs.r, pairs.s, places, [(rows, nothing[side]) if side == "r" else (nothing[side], rows)
                                                  for side, rows in lone.items()])


def _by_left(query: Query, incoming: Arrivals, pairs: OrderedRows, work: Slices) -> OrderedRows:
    """The rows by the tuples of R, unmatched ones in their places; then those of S alone. ``pairs``: those that decide,
    by the tuples of R.
    """
    kind = query.kind
    alone = _unmatched(len(incoming.r), pairs.r, work) if kind.gives_unmatched("r") else np.empty(0, np.int64)
    if kind.how == "anti":
        return OrderedRows(alone, np.full(len(alone), NONE), lambda: (alone, np.zeros(len(alone), np.uint8)))
    ends = np.empty(0, np.int64)
    if kind.gives_unmatched("s"):
        ends = _unmatched(len(incoming.s), pairs.s, work)
    places = np.searchsorted(pairs.r, alone)

    def among(values: npt.NDArray[Any], alone: Ints | int, ends: Ints | int) -> npt.NDArray[Any]:
        return np.concatenate([np.insert(values, places, alone), np.broadcast_to(ends, some)])

    def sides() -> Places:
        at, side = pairs.places()
        if kind.is_asof:  # whose rows are those of R's tuples
            side = np.zeros_like(side)
        return among(at, 0, 0), among(side, 0, SIDES.index("s")).astype(np.uint8)

    some = len(ends)
    return OrderedRows(among(pairs.r, alone, NONE), among(pairs.s, NONE, ends), sides)


def _waiting(query: Query, incoming: Arrivals, side: Side, rows: Ints, partner: Ints | None) -> Decisions:
    """When the tuples ``rows`` of stream ``side``, which rise, are decided. ``partner``: those that an as-of join has
    chosen.
    """
    kind, timed = query.kind, incoming.is_timed
    positions = {name: incoming.positions(name) for name in SIDES}
    of = positions[side]
    times = {name: incoming.times(name) if timed else p for name, p in positions.items()}
    extent, own, time = query.narrowed.window(side), of[rows], times[side][rows]
    last = np.full(len(rows), NEVER) if extent.length is None else later(
        time, np.uint64(min(extent.length, 2**64 - 1)))
    by = np.full(len(rows), NEVER)
    if extent.rows is not None and extent.rows < len(of):
        there = np.flatnonzero(rows < len(of) - extent.rows)
        by[there] = of[rows[there] + extent.rows]
    ruled_out = OwnSide.of(query, side).ruled_out(incoming.table(side))[rows]
    by[ruled_out] = own[ruled_out]
    if partner is not None:
        has = np.flatnonzero(partner != NONE)
        back = times["s"][partner[has]] <= time[has] if kind.direction == "nearest" else np.zeros(len(has), np.bool_)
        by, last = choice_limits(kind, timed, own, time, by, last, has[back], times["s"][partner[has[back]]])
        if kind.direction != "backward":  # a partner behind a tuple comes before time decides
            has = has[~back]
            by[has] = np.minimum(by[has], np.maximum(own[has], positions["s"][partner[has]]))
            last[has] = NEVER
    at, last = deciding_arrivals(by, last, incoming.ts, 0, len(incoming))
    return Decisions(side, rows, np.full(len(rows), NONE) if partner is None else partner, at, last)


def _merged(pairs: OrderedRows, places: Places, alone: OrderedRows, work: Slices) -> OrderedRows:
    """``alone``, each before the first of ``pairs``, with these ``places``, from its arrival on."""
    (at, side), (at_alone, side_alone) = places, alone.places()
    before = work.made(len(at_alone), np.int64, lambda mine: np.searchsorted(at, at_alone[mine]))

    def both(of_pairs: npt.NDArray[Any], of_alone: npt.NDArray[Any], work: Slices = _ALONE) -> npt.NDArray[Any]:
        out, n = np.empty(len(at) + len(before), of_pairs.dtype), len(at)

        def some(mine: slice) -> None:  # a slice of the pairs, with the lone rows before each pair
            low, high = np.searchsorted(before, [mine.start, mine.stop]) if mine.stop < n else (
                np.searchsorted(before, mine.start), len(before))
            out[mine.start + low:mine.stop + high] = np.insert(
                of_pairs[mine], before[low:high] - mine.start, of_alone[low:high])

        work.each(n, some)
        return out

    return OrderedRows(both(pairs.r, alone.r, work), both(pairs.s, alone.s, work),
                       lambda: (both(at, at_alone), both(side, side_alone)))
