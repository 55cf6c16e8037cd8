"""The reference for kinds of join: plain Python, an arrival at a time (semantics, section 7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from splitjoin.engines.arrival import Arrivals, R
from splitjoin.engines.device import ITEM, PAIR, Items
from splitjoin.engines.golden import tuples_of
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side, other_side

from .own_side import OwnSide

Item = tuple[int, int, int, int]
#: The greatest event time: nothing comes after it.
_END = 2**63 - 1
#: The least one.
_FIRST = -(2**63)


@dataclass(eq=False)
class _Tuple:
    """A tuple that is not decided: its row id, its time (its position in arrival order without a time column), and the
    partners it was found with so far, as (time, row id).
    """

    side: Side
    row: int
    time: int
    ruled_out: bool
    partners: list[tuple[int, int]] = field(default_factory=list)


def reference_rows(query: Query, arrivals: Arrivals, items: Items, *, bases: bool = False,
                   changes: Sequence[tuple[int, Query, int | None]] = ()) -> Items:
    """The rows of ``query`` from all arrivals and all items of the inner join in total order, as items like those of
    `KindOperator`. ``bases``: the rows are the tuples of R, each when nothing can meet it any more; with an inner join,
    those that are in a pair.

    ``changes``: before the arrival at a position, the query with other windows from there on, and the event time below
    which nothing comes, as far as that is known.
    """
    changes, last = list(changes), _FIRST
    by_probe: dict[tuple[int, int], list[Item]] = defaultdict(list)
    for item in items.tolist():
        _, of, r, s = item
        by_probe[of, s if of else r].append(item)
    ruled_out = {side: [False] * len(arrivals.table(side)) if bases else _ruled_out(query, side, arrivals)
                 for side in SIDES}
    live: list[_Tuple] = []
    known: dict[tuple[Side, int], _Tuple] = {}
    counts = {"r": 0, "s": 0}
    rows: list[Item] = []
    for position, stream in enumerate(arrivals.stream.tolist()):
        side: Side = "r" if stream == R else "s"
        while changes and changes[0][0] == position:
            _, changed, now = changes.pop(0)
            last = last if now is None else max(last, now)
            if arrivals.ts is not None:
                rows += _decided(query, live, [one for one in live if _last_time(query, one, bases) < last], bases)
            query = changed
            rows += _decided(query, live, [one for one in live if _is_out(query, one, last, counts)], bases,
                             by_time=False)
        time = position if arrivals.ts is None else int(arrivals.ts[position])
        new = _Tuple(side, counts[side], time, ruled_out[side][counts[side]])
        counts[side] += 1
        live.append(new)
        known[side, new.row] = new
        if arrivals.ts is not None:
            last = time
            rows += _decided(query, live, [one for one in live if _last_time(query, one, bases) < time], bases)
        found: list[Item] = []
        for item in by_probe[stream, new.row]:
            found += _found(query, item, known, bases)
        own = [one for one in live if _is_decided_by(query, new, one, position, counts, bases)]
        rows += _decided(query, live, own, bases, by_time=False)
        rows += found
    rows += _decided(query, live, list(live), bases)
    return np.array(rows, ITEM)


def _is_out(query: Query, one: _Tuple, now: int, counts: dict[str, int]) -> bool:
    """True if no tuple from event time ``now`` on finds ``one``."""
    window = query.window(one.side)
    return (window.rows is not None and counts[one.side] - one.row > window.rows) or (
        window.length is not None and one.time + window.length < now)


def _last_time(query: Query, one: _Tuple, bases: bool) -> int:
    """The last event time of an arrival that may change the row of ``one``, as far as is known."""
    length = query.window(one.side).length
    last = _END if length is None else min(one.time + length, _END)
    if query.kind.is_asof and not bases and one.side == "r" and query.time is not None:
        if query.kind.direction == "backward":
            last = min(last, one.time)
        elif query.kind.direction == "nearest":
            last = min(last, _last_nearer(query, one))
    return last


def _last_nearer(query: Query, r: _Tuple) -> int:
    """The last time at which a partner would be nearer than the one before ``r``, or one can come at its own time."""
    back = max((time for time, _ in _allowed(query, r) if time <= r.time), default=None)
    return _END if back is None else min(max(2 * r.time - back - 1, r.time), _END)


def _is_decided_by(query: Query, new: _Tuple, one: _Tuple, position: int, counts: dict[str, int], bases: bool) -> bool:
    """True if the arrival ``new`` itself, not its time, decides ``one``."""
    rows, kind = query.window(one.side).rows, query.kind
    if (rows is not None and counts[one.side] - one.row > rows) or (one is new and one.ruled_out):
        return True
    if bases or one.side == "s":
        return False
    if not kind.is_asof:
        return bool(one.partners)
    if kind.direction == "backward":
        return query.time is None or not kind.allow_exact
    if kind.direction == "nearest" and query.time is None and _last_nearer(query, one) <= position:
        return True
    at_once = kind.direction == "forward"  # one at its own time is the nearest, but a later one may be there too
    return any(time >= one.time if at_once else time > one.time for time, _ in _allowed(query, one))


def _decided(query: Query, live: list[_Tuple], decided: list[_Tuple], bases: bool, *,
             by_time: bool = True) -> list[Item]:
    """Remove the tuples ``decided`` from the live ones, and give their rows in order."""
    rows: list[Item] = []
    for one in sorted(decided, key=lambda one: (_last_time(query, one, bases) if by_time else 0, one.side, one.row)):
        live.remove(one)
        rows += _row(query, one, bases)
    return rows


def _found(query: Query, item: Item, known: dict[tuple[Side, int], _Tuple], bases: bool) -> Iterable[Item]:
    """The rows for an item of the inner join, whose tuples are noted as partners."""
    kind, side, r_row, s_row = item
    if kind != PAIR:
        yield item
        return
    r, s = known["r", r_row], known["s", s_row]
    if bases:
        pass
    elif query.kind.has_pairs:
        yield item
    elif query.kind.how == "semi" and not r.partners:
        yield kind, side, r_row, -1
    r.partners.append((s.time, s.row))
    s.partners.append((r.time, r.row))


def _row(query: Query, one: _Tuple, bases: bool) -> Iterable[Item]:
    """The row of a tuple that is decided, if it is one."""
    if bases:
        if one.side == "r" and (one.partners or not query.kind.is_inner):
            yield PAIR, 0, one.row, -1
        return
    partner = None
    if query.kind.is_asof and one.side == "r":
        partner = _chosen(query, one)
    elif query.kind.is_asof or one.partners:
        return
    if partner is not None or query.kind.gives_unmatched(one.side):
        ids = {one.side: one.row, other_side(one.side): -1 if partner is None else partner}
        yield PAIR, "rs".index(one.side), ids["r"], ids["s"]


def _allowed(query: Query, r: _Tuple) -> list[tuple[int, int]]:
    """The partners of ``r`` that an as-of join may choose."""
    return [(time, row) for time, row in r.partners if query.kind.allow_exact or time != r.time]


def _chosen(query: Query, r: _Tuple) -> int | None:
    """The row id of the partner that an as-of join chooses for ``r``."""
    partners = _allowed(query, r)
    back = max(((time, row) for time, row in partners if time <= r.time), default=None)
    fore = min(((time, row) for time, row in partners if time >= r.time), default=None)
    if query.kind.direction == "backward" or (query.kind.direction == "nearest" and fore is None):
        return None if back is None else back[1]
    if query.kind.direction == "forward" or back is None:
        return None if fore is None else fore[1]
    assert fore is not None
    return back[1] if r.time - back[0] <= fore[0] - r.time else fore[1]


def _ruled_out(query: Query, side: Side, arrivals: Arrivals) -> list[bool]:
    """True for each tuple of ``side`` that its own side of the condition rules out."""
    own = OwnSide.of(query, side)
    tuples = tuples_of(arrivals.table(side), side, (c for e in (*own.conditions, *own.values) for c in columns(e)))
    conditions, nullable = ([compile_condition(e) for e in some] for some in (own.conditions, own.values))

    def given(evaluator: Callable[[Any, Any], object], one: dict[str, object]) -> object:
        return evaluator(one, {}) if side == "r" else evaluator({}, one)

    with np.errstate(all="ignore"):
        return [any(given(f, one) is not True for f in conditions) or any(given(f, one) is None for f in nullable)
                for one in tuples]
