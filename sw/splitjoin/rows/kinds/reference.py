"""The reference for kinds of join: plain Python, an arrival at a time (semantics, section 7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from splitjoin.engines.arrival import Arrivals, R
from splitjoin.engines.device import ITEM, PAIR, Items
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side, other_side

__all__ = ["reference_rows"]

Item = tuple[int, int, int, int]


@dataclass
class _Tuple:
    """A tuple that is not decided: its row id, its time (its position in arrival order without a time column), and the
    partners it was found with so far, as (time, row id).
    """

    side: Side
    row: int
    time: int
    partners: list[tuple[int, int]] = field(default_factory=list)


def reference_rows(query: Query, arrivals: Arrivals, items: Items, *, bases: bool = False) -> Items:
    """The rows of ``query`` from all arrivals and all items of the inner join in total order, as items like those of
    `KindOperator`. ``bases``: the rows are the tuples of R, each when it is decided; with an inner join, those that are
    in a pair.
    """
    by_probe: dict[tuple[int, int], list[Item]] = defaultdict(list)
    for item in items.tolist():
        _, of, r, s = item
        by_probe[of, s if of else r].append(item)
    live: dict[Side, list[_Tuple]] = {"r": [], "s": []}
    known: dict[tuple[Side, int], _Tuple] = {}
    counts = {"r": 0, "s": 0}
    rows: list[Item] = []
    for position, stream in enumerate(arrivals.stream.tolist()):
        side: Side = "r" if stream == R else "s"
        time = position if arrivals.ts is None else int(arrivals.ts[position])
        new = _Tuple(side, counts[side], time)
        counts[side] += 1
        live[side].append(new)
        known[side, new.row] = new
        rows += _decide(query, live, time, bases)
        for item in by_probe[stream, new.row]:
            rows += _found(query, item, known, bases)
    for one_side in live.values():
        for one in one_side:
            rows += _row(query, one, bases)
    return np.array(rows, ITEM)


def _decide(query: Query, live: dict[Side, list[_Tuple]], now: int, bases: bool) -> Iterable[Item]:
    """Remove the tuples that an arrival at time ``now``, itself among them, no longer finds, and give their rows."""
    for side, tuples in live.items():
        extent = query.window(side)
        while tuples and ((extent.rows is not None and len(tuples) > extent.rows)
                          or (extent.length is not None and now - tuples[0].time > extent.length)):
            yield from _row(query, tuples.pop(0), bases)


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


def _chosen(query: Query, r: _Tuple) -> int | None:
    """The row id of the partner that an as-of join chooses for ``r``."""
    partners = [(time, row) for time, row in r.partners if query.kind.allow_exact or time != r.time]
    back = max(((time, row) for time, row in partners if time <= r.time), default=None)
    fore = min(((time, row) for time, row in partners if time >= r.time), default=None)
    if query.kind.direction == "backward" or (query.kind.direction == "nearest" and fore is None):
        return None if back is None else back[1]
    if query.kind.direction == "forward" or back is None:
        return None if fore is None else fore[1]
    assert fore is not None
    return back[1] if r.time - back[0] <= fore[0] - r.time else fore[1]
