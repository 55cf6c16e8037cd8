"""Rows of whole tables found at once, of every kind of join: by partners that decide, or by pairs in ranges.

Rows come in the order that streams have (semantics, sections 3 and 7): a pair with its later tuple, a row that waits
for a decision before the results of the arrival that decides it. A pair is one 64-bit number, the position of its later
tuple and the row id of the other, so NumPy puts pairs in order by sorting plain integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side

from ..arrival import Arrivals, R
from ..device import TableRows
from .condition import Condition, Spans, visible_spans
from .partners import Partners, partners_of
from .runs_of_keys import Groups
from .table_pairs import Way, pairs_of, ways

__all__ = ["decided_at", "table_rows"]

Rows = npt.NDArray[np.int64]

_MAX = 2**63 - 1
#: Nanoseconds: a candidate that is made and verified, and what a tuple takes less than in a session.
_CANDIDATE, _SESSION = 30.0, 750.0


def table_rows(query: Query, incoming: Arrivals, room: int) -> TableRows | None:
    """The rows of ``query`` over all ``incoming`` arrivals; None where a session is expected to take less, or where
    more than ``room`` rows may come.
    """
    kind = query.kind
    if query.aggregates or query.order.kind not in ("total", "none"):
        return None
    visible = visible_spans(query, incoming)
    condition = Condition(query, incoming)
    groups = condition.groups()
    found = None if kind.has_pairs else partners_of(kind, incoming, visible, condition, groups)
    if found is not None:
        return _of_partners(query, incoming, visible, found)
    if kind.is_asof:
        return None
    way = ways(condition, groups, visible)[0]
    if not suits_ranges(way, condition, incoming, visible) or way.candidates > room:
        return None
    return _of_pairs(query, incoming, visible, way, condition, groups)


def suits_ranges(way: Way, condition: Condition, incoming: Arrivals, visible: Spans) -> bool:
    """True if ``way`` is expected to take less than a session."""
    if not way.searches and not condition.points:
        return False  # every pair, which compiled loops compare far faster
    left = [b for b in condition.bounds("s") if not b.slots_s <= way.decides]
    exact = condition.decided and not left and (not way.searches or visible.hold_all(len(incoming.s)))
    return exact or way.candidates * _CANDIDATE < len(incoming) * _SESSION


def decided_at(query: Query, incoming: Arrivals, side: Side) -> Rows:
    """The arrival that decides each tuple of stream ``side`` (n,); the number of arrivals where none does."""
    at = np.flatnonzero(incoming.stream == SIDES.index(side))
    extent = query.window(side)
    found = np.full(len(at), len(incoming), np.int64)
    if extent.rows is not None and extent.rows < len(at):
        found[:len(at) - extent.rows] = at[extent.rows:]
    if extent.length is not None:
        assert incoming.ts is not None, "a RANGE window has event times"
        length, times = min(extent.length, _MAX), incoming.ts[at]
        ends = np.where(times > _MAX - length, _MAX, times + length)
        found = np.minimum(found, np.searchsorted(incoming.ts, ends, side="right"))
    return found


def _of_partners(query: Query, incoming: Arrivals, visible: Spans, found: Partners) -> TableRows:
    """The rows of a semi, anti or as-of join by the partners that decide them."""
    partner, kind = found.partner, query.kind
    if kind.how == "semi":
        mine = np.flatnonzero(partner >= 0)
        of_r, of_s = np.flatnonzero(incoming.stream == R), np.flatnonzero(incoming.stream != R)
        at = np.maximum(of_r[mine], of_s[partner[mine]])
        return _semi(query, incoming, visible, mine, at, found.how, found.tried)
    mine = np.arange(len(partner)) if kind.how == "asof_left" else np.flatnonzero(
        partner < 0 if kind.how == "anti" else partner >= 0)
    s = np.full(len(mine), -1) if kind.how == "anti" else partner[mine]
    at = decided_at(query, incoming, "r")[mine]
    return _rows(query, incoming, visible, mine, s, at, np.zeros(len(mine), np.uint8), found.how, found.tried)


def _semi(query: Query, incoming: Arrivals, visible: Spans, r: Rows, at: Rows, how: str, tried: int) -> TableRows:
    """The rows of a semi join: the tuples ``r``, which rise, with their first pairs at ``at``."""
    bits = max(1, len(incoming.r).bit_length())
    packed = at << bits | r
    packed.sort()
    at, r = packed >> bits, packed & ((1 << bits) - 1)
    return _rows(query, incoming, visible, r, np.full(len(r), -1), at, incoming.stream[at], how, tried)


def _of_pairs(query: Query, incoming: Arrivals, visible: Spans, way: Way, condition: Condition,
              groups: Groups) -> TableRows:
    """The rows of any kind but as-of by their pairs."""
    stream, kind = incoming.stream, query.kind
    of_r, of_s = np.flatnonzero(stream == R), np.flatnonzero(stream != R)
    how = f"by sorted keys, {way.name}"
    if not kind.has_pairs:
        first = np.full(len(of_r), len(stream), np.int64)
        tried = pairs_of(way, condition, groups, visible, lambda r, s: np.minimum.at(
            first, r, np.maximum(of_r[r], of_s[s])))
        if kind.how == "semi":
            mine = np.flatnonzero(first < len(stream))
            return _semi(query, incoming, visible, mine, first[mine], how, tried)
        return _of_partners(query, incoming, visible, Partners(np.where(first < len(stream), 0, -1), how, tried))
    bits = max(1, max(len(of_r), len(of_s)).bit_length())
    parts = [np.empty(0, np.int64)]

    def take(r: Rows, s: Rows) -> None:
        at_r, at_s = of_r[r], of_s[s]
        parts.append(np.maximum(at_r, at_s) << bits | np.where(at_r > at_s, s, r))

    tried = pairs_of(way, condition, groups, visible, take)
    packed = np.concatenate(parts)
    parts.clear()
    packed.sort()
    at, stored = packed >> bits, packed & ((1 << bits) - 1)
    number = np.empty(len(stream), np.int64)
    number[of_r], number[of_s] = np.arange(len(of_r)), np.arange(len(of_s))
    side, probe = stream[at], number[at]
    r, s = np.where(side == R, probe, stored), np.where(side == R, stored, probe)
    waiting = [w for w in SIDES if kind.gives_unmatched(w)]
    if waiting:
        r, s, at, side = _with_unmatched(query, incoming, waiting, r, s, at, side)
    return _rows(query, incoming, visible, r, s, at, side, how, tried)


def _with_unmatched(query: Query, incoming: Arrivals, waiting: Sequence[Side], r: Rows, s: Rows, at: Rows,
                    side: npt.NDArray[np.uint8]) -> tuple[Rows, Rows, Rows, npt.NDArray[np.uint8]]:
    """The pairs and, before the results of the arrivals that decide them, the tuples of ``waiting`` in no pair."""
    rows: dict[Side, list[Rows]] = {"r": [], "s": []}
    decided, sides = list[Rows](), list[Rows]()
    for of in waiting:
        matched = np.zeros(len(incoming.table(of)), np.bool_)
        matched[r if of == "r" else s] = True
        alone = np.flatnonzero(~matched)
        for name in SIDES:
            rows[name].append(alone if name == of else np.full(len(alone), -1))
        decided.append(decided_at(query, incoming, of)[alone])
        sides.append(np.full(len(alone), SIDES.index(of)))
    waited = np.concatenate(decided)
    order = np.argsort(waited, kind="stable")  # R's rows stand before S's; each rise already
    waited = waited[order]
    mine = np.searchsorted(at, waited, side="left") + np.arange(len(waited))
    others = np.ones(len(at) + len(waited), np.bool_)
    others[mine] = False

    def merged(pairs: npt.NDArray[np.generic], alone: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        out = np.empty(len(others), pairs.dtype)
        out[mine], out[others] = alone, pairs
        return out

    return (merged(r, np.concatenate(rows["r"])[order]), merged(s, np.concatenate(rows["s"])[order]),  # type: ignore[return-value]
            merged(at, waited), merged(side, np.concatenate(sides)[order]))


def _rows(query: Query, incoming: Arrivals, visible: Spans, r: Rows, s: Rows, at: Rows, side: npt.NDArray[np.uint8],
          how: str, tried: int) -> TableRows:
    counters = {"tuples_r": len(incoming.r), "tuples_s": len(incoming.s), "comparisons": visible.pairs,
                "candidates": tried, "matches": int(np.count_nonzero((r >= 0) & (s >= 0)))}
    return TableRows(r, s, at, side, incoming.stream, not (query.is_pairs and query.order.kind == "none"),
                     f"{'rows of whole tables' if query.kind.has_pairs else 'rows without pairs'}, {how}", counters)
