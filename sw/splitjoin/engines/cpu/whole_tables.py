"""Pairs of whole tables that decide the rows of any kind of join, found at once: by partners, or by ranges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from splitjoin.base import threads
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, other_side

from ..arrival import Arrivals, MergedTables
from ..device import TableAnswer, TableMatches, TableNeighbours, TablePairs
from .alternatives import Alternative, alternatives_of
from .buckets import in_buckets
from .condition import Condition, Planned
from .equal_pairs import equal_pairs
from .matches import matches_of
from .pair_order import NO_PAIR, PairOrder, decided_by_times, place
from .partners import neighbours_of, partners_of
from .range_folds import table_folds
from .reach import Reach
from .spans import Spans
from .table_work import Work
from .ways import TooMany, Way, pairs_of, way_of_kind, ways

__all__ = ["join_tables", "suits_ranges"]

Rows = npt.NDArray[np.int64]

T = TypeVar("T")

#: Nanoseconds: a candidate that is made and verified.
_CANDIDATE = 30.0
#: What a tuple takes less than in a session, and a pair that one without an index compares.
_SESSION, _COMPARED = 750.0, 0.2
#: Candidates that are verified for each pair that there is room for.
_VERIFIED = 16
#: Times as many candidates as a sample has told, from which on another way is looked for.
_WRONG = 4
#: Times that a table is longer than the other one from which on it is joined slice by slice, and slices of the usual
#: size in each of these.
_UNEVEN, _SLICES = 16, 2
#: Nanoseconds of compiled loops: a tuple; a candidate, and its row.
_TUPLE, _PAIR = 40.0, 60.0


def join_tables(query: Query, incoming: Arrivals, room: int, work: Work) -> TableAnswer | None:
    """As `Device.join_tables`."""
    if query.aggregates:
        return table_folds(query, incoming, work)
    if query.chooses_by_distance:
        return _neighbours(query, incoming, work)
    return _pairs(query, incoming, room, work)


def _pairs(query: Query, incoming: Arrivals, room: int, work: Work) -> TablePairs | TableMatches | None:
    kind = query.kind
    if query.order.kind not in ("total", "none", "left"):
        return None
    work.share(len(incoming) * _TUPLE)
    visible = Spans(query, incoming, work)
    if not kind.needs_few_pairs and (pairs := equal_pairs(query, incoming, visible, room, work)) is not None:
        return pairs
    if kind.needs_few_pairs and not visible.limits and (matches := matches_of(query, incoming, work)) is not None:
        return matches
    if not kind.needs_few_pairs and not visible.limits and _is_uneven(incoming, work) and (
            pairs := _in_slices(query, incoming, visible, room, work)) is not None:
        return pairs
    reach = Reach.of(query)
    condition = Condition(reach.query, incoming, work)
    groups = condition.groups()
    found = None if not kind.needs_few_pairs else partners_of(kind, incoming, visible, condition, groups, work)
    if found is not None:
        plan = f"rows without pairs, {found.how}{work.text}"
        work.begin(plan)
        if kind.how != "asof" or (kind.direction == "nearest" and not decided_by_times(query, incoming)):
            place(incoming, work)  # the order of rows depends on it
        partner = reach.within(incoming, found.partner)
        mine = work.where(len(partner), lambda some: partner[some] >= 0)
        if len(mine) and int(mine[-1]) - int(mine[0]) == len(mine) - 1:  # they follow each other
            partner = partner[mine[0]:mine[-1] + 1]
        else:
            partner = work.taken(partner, mine)
        return _of_partners(query, incoming, visible, mine, partner, plan, found.tried, work)
    if kind.is_asof:
        return None
    left = [way for way in ways(condition, groups, visible, work) if _fits(way, condition, visible, room)]
    while left:
        way = left.pop(0)
        if not suits_ranges(way, condition, incoming, visible):
            break
        work.share(len(incoming) * _TUPLE + way.candidates * _PAIR)
        with suppress(TooMany):  # the sample told too little: the next way, from the beginning
            return _of_pairs(query, incoming, visible, [Alternative(way, condition, groups)], work,
                             _allowed(way, left, condition, incoming, visible), room)
    halves = in_buckets(condition, visible, work)
    candidates = sum(one.way.candidates for one in halves)
    if halves and candidates * _CANDIDATE < _session(incoming) and all(
            _fits(one.way, one.condition, visible, room) for one in halves):
        work.share(len(incoming) * _TUPLE + candidates * _PAIR)
        with suppress(TooMany):
            return _of_pairs(query, incoming, visible, halves, work, max(len(incoming), _WRONG * candidates),
                             room)
    alternatives = alternatives_of(reach.query, incoming, visible, work)
    candidates = sum(one.way.candidates for one in alternatives)
    if not alternatives or not _suit(alternatives, incoming, visible) or not all(
            _fits(one.way, one.condition, visible, room) for one in alternatives):
        return None
    work.share(len(incoming) * _TUPLE + candidates * _PAIR)
    with suppress(TooMany):
        return _of_pairs(query, incoming, visible, alternatives, work, max(len(incoming), _WRONG * candidates),
                         room)
    return None


def _is_uneven(incoming: Arrivals, work: Work) -> bool:
    """True if one table is so much longer that to join the other one with each of its slices costs little."""
    few, many = sorted((len(incoming.r), len(incoming.s)))
    return many >= 2 * _SLICES * work.size and many >= _UNEVEN * few


def _in_slices(query: Query, incoming: Arrivals, visible: Spans, room: int, work: Work) -> TablePairs | None:
    """The pairs of the shorter table with each slice of the longer one, so that codes and partitions are those of a
    slice. All are found in the way that suits the first one; None if there is none, or it turns out to have too many
    candidates.
    """
    side = SIDES[len(incoming.s) > len(incoming.r)]
    rows, few, least = len(incoming.table(side)), len(incoming.table(other_side(side))), _SLICES * work.size
    size = max(least * min(work.threads, max(1, rows // (2 * least))), _UNEVEN // 4 * few)
    every, order, way, most = Planned.of(query.predicate, incoming, work), PairOrder(query, incoming, work), None, 0.0
    packed, tried = list[Rows](), 0

    def find(at: int) -> bool:
        """Find the pairs of a slice. Returns False if they are better found otherwise."""
        nonlocal way, most, tried
        planned = every.slice(side, at, size)
        part = MergedTables(None, *(planned.tables[of] for of in SIDES))
        shown, condition = Spans(query, part, work), Condition(query, part, work, planned)
        groups = condition.groups()
        if way is None:
            mine = ways(condition, groups, shown, work)[0]
            way, most = mine.kind, max(len(part), _WRONG * mine.candidates)
            if not _fits(mine, condition, shown, room) or not suits_ranges(mine, condition, part, shown):
                return False
            work.begin(_plan_of([way.name], work), mine.candidates * rows / min(size, rows))
        else:
            mine = way_of_kind(way, condition, work) or ways(condition, groups, shown, work)[0]
        with suppress(TooMany):
            made, seen = pairs_of(mine, condition, groups, shown, lambda r, s: order.packed(
                r + at if side == "r" else r, s + at if side == "s" else s), work, most)
            packed.extend(made)
            tried += seen
            return sum(map(len, packed)) <= room
        return False

    if not all(find(at) for at in range(0, rows, size)) or way is None:
        return None
    r, s, at = order.unpacked(packed)
    return _made(incoming, visible, r, s, None if query.is_pairs else at, _plan_of([way.name], work), tried, work)


def _fits(way: Way, condition: Condition, visible: Spans, room: int) -> bool:
    """True if memory with ``room`` for so many pairs seems to hold those of ``way``, which are some of its candidates
    if these are verified.
    """
    return way.candidates <= (room if _is_exact(way, condition, visible) else _VERIFIED * room)


def _suit(alternatives: Sequence[Alternative], incoming: Arrivals, visible: Spans) -> bool:
    """True if the ``alternatives`` are expected to take less than a session, which would compare all pairs."""
    if not all(one.way.searches or one.condition.points for one in alternatives):
        return False
    tried = sum(one.way.candidates for one in alternatives if not _is_exact(one.way, one.condition, visible))
    return tried * _CANDIDATE < _session(incoming) + visible.pairs * _COMPARED


def _session(incoming: Arrivals) -> float:
    """Nanoseconds that a session takes for the tuples, beside their candidates."""
    return len(incoming) * _SESSION


def _allowed(way: Way, others: list[Way], condition: Condition, incoming: Arrivals,
             visible: Spans) -> float:
    """The candidates of ``way`` up to which it goes on: what is little work, or not many times what was expected, or
    less than what one of the ``others`` or a session is expected to take.
    """
    better = others[0].candidates if others else math.inf
    if not _is_exact(way, condition, visible):
        better = min(better, _session(incoming) / _CANDIDATE)
    return max(len(incoming), _WRONG * way.candidates, better)


def _neighbours(query: Query, incoming: Arrivals, work: Work) -> TableNeighbours:
    work.share(len(incoming) * _TUPLE)
    plan = "rows without pairs, by the nearest partners"
    work.begin(plan)
    visible = Spans(query, incoming, work)
    reach = Reach.of(query)
    condition = Condition(reach.query, incoming, work)
    found = neighbours_of(query.kind, incoming, visible, condition, condition.groups(), work,
                          floats=query.time is not None and not query.time.has_ticks)
    back, fore = (reach.within(incoming, partners) for partners in (found.back, found.fore))
    counters = {"tuples_r": len(incoming.r), "tuples_s": len(incoming.s), "comparisons": visible.pairs,
                "candidates": found.tried, "matches": sum(int((f >= 0).sum()) for f in (back, fore))}
    return TableNeighbours(back, fore, plan=plan, counters=counters, work=work)


def suits_ranges(way: Way, condition: Condition, incoming: Arrivals, visible: Spans) -> bool:
    """True if ``way`` is expected to take less than a session."""
    if not way.searches and not condition.points:
        return False  # every pair, which compiled loops compare far faster
    return _is_exact(way, condition, visible) or way.candidates * _CANDIDATE < _session(incoming)


def _is_exact(way: Way, condition: Condition, visible: Spans) -> bool:
    """True if all candidates of ``way`` are pairs."""
    return condition.decided and (not way.searches or visible.hold_all) and not any(way.left(condition))


def _of_partners(query: Query, incoming: Arrivals, visible: Spans, r: Rows, s: Rows, plan: str,
                 tried: int, work: Work) -> TablePairs:
    """The pairs of the tuples ``r``, which rise, with the partners ``s`` that decide them."""
    if query.kind.is_asof or query.kind.how == "anti":
        return _made(incoming, visible, r, s, None, plan, tried, work)
    found = PairOrder(query, incoming, work, partners=True).of_partners(r, s)
    return _made(incoming, visible, *found, plan, tried, work)


def _of_pairs(query: Query, incoming: Arrivals, visible: Spans, alternatives: Sequence[Alternative], work: Work,
              most: float, room: int) -> TablePairs:
    """The pairs of all ``alternatives``. Raises `TooMany` once one of them has more candidates than ``most``, or there
    are more pairs than ``room``.
    """
    plan = _plan_of([name for name, _ in groupby(one.way.name for one in alternatives)], work)
    work.begin(plan, sum(one.way.candidates for one in alternatives))
    order = PairOrder(query, incoming, work)

    def each(take: Callable[[Rows, Rows], T]) -> tuple[list[T], int]:
        def own(one: Alternative, r: Rows, s: Rows) -> T:
            return take(*one.own(r, s))

        taken, tried = list[T](), 0
        for one in alternatives:
            some, looked_at = pairs_of(one.way, one.condition, one.groups, visible, partial(own, one), work, most)
            taken += some
            tried += looked_at
        return taken, tried

    lock, made = threads.lock(), [0]

    def pack(r: Rows, s: Rows) -> Rows:
        with lock:
            made[0] += len(r)
        if made[0] > room:
            raise TooMany
        return order.packed(r, s)

    if not query.kind.needs_few_pairs:
        parts, tried = each(pack)
        r, s, at = order.unpacked(parts)
        # Of rows that are the pairs, positions are asked for with items only.
        return _made(incoming, visible, r, s, None if query.is_pairs else at, plan, tried, work)
    first = np.full(len(incoming.r), NO_PAIR)  # the first pair of each tuple of R

    def note(r: Rows, s: Rows) -> None:
        packed = order.packed(r, s)
        with lock:
            np.minimum.at(first, r, packed)

    _, tried = each(note)
    return _made(incoming, visible, *order.unpacked([first[first < NO_PAIR]]), plan, tried, work)


def _plan_of(names: Sequence[str], work: Work) -> str:
    """A plan by the ways with these ``names``, in words."""
    return f"rows of whole tables, by sorted keys, {' or '.join(names)}{work.text}"


def _made(incoming: Arrivals, visible: Spans, r: Rows, s: Rows, at: Rows | None, plan: str, tried: int,
          work: Work) -> TablePairs:
    counters = {"tuples_r": len(incoming.r), "tuples_s": len(incoming.s), "comparisons": visible.pairs,
                "candidates": tried, "matches": len(r)}
    return TablePairs(r, s, at, plan=plan, counters=counters, work=work)
