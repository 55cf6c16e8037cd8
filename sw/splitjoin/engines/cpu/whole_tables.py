"""Pairs of whole tables that decide the rows of any kind of join, found at once: by partners, or by ranges.

A pair is one 64-bit number, the position of its later tuple and the row id of the other, so NumPy puts pairs in the
order of arrival (semantics, section 3) by sorting plain integers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from splitjoin.lang.query import Query

from ..arrival import Arrivals, R
from ..device import TablePairs
from .condition import Condition, Spans, visible_spans
from .partners import partners_of
from .runs_of_keys import Groups
from .ways import Way, pairs_of, ways

__all__ = ["suits_ranges", "table_pairs"]

Rows = npt.NDArray[np.int64]

#: Nanoseconds: a candidate that is made and verified, and what a tuple takes less than in a session.
_CANDIDATE, _SESSION = 30.0, 750.0


def table_pairs(query: Query, incoming: Arrivals, room: int) -> TablePairs | None:
    """As `Device.table_pairs`."""
    kind = query.kind
    if query.aggregates or query.order.kind not in ("total", "none", "left"):
        return None
    visible = visible_spans(query, incoming)
    condition = Condition(query, incoming)
    groups = condition.groups()
    found = None if kind.has_pairs else partners_of(kind, incoming, visible, condition, groups)
    if found is not None:
        mine = np.flatnonzero(found.partner >= 0)
        return _of_partners(query, incoming, visible, mine, found.partner[mine], f"rows without pairs, {found.how}",
                            found.tried)
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
    whole = not way.searches or visible.hold_all(len(incoming.s))
    exact = condition.decided and whole and not any(way.left(condition))
    return exact or way.candidates * _CANDIDATE < len(incoming) * _SESSION


def _of_partners(query: Query, incoming: Arrivals, visible: Spans, r: Rows, s: Rows, plan: str,
                 tried: int) -> TablePairs:
    """The pairs of the tuples ``r``, which rise, with the partners ``s`` that decide them."""
    of_r, of_s = np.flatnonzero(incoming.stream == R), np.flatnonzero(incoming.stream != R)
    at = np.maximum(of_r[r], of_s[s])
    if query.kind.how == "semi" and query.order.kind != "left":
        bits = max(1, len(of_r).bit_length())
        packed = at << bits | np.arange(len(r))
        packed.sort()
        order = packed & ((1 << bits) - 1)
        r, s, at = r[order], s[order], packed >> bits
    return _made(incoming, visible, r, s, at, plan, tried)


def _of_pairs(query: Query, incoming: Arrivals, visible: Spans, way: Way, condition: Condition,
              groups: Groups) -> TablePairs:
    """The pairs by ``way``."""
    stream, kind = incoming.stream, query.kind
    of_r, of_s = np.flatnonzero(stream == R), np.flatnonzero(stream != R)
    plan = f"rows of whole tables, by sorted keys, {way.name}"
    bits = max(1, max(len(of_r), len(of_s)).bit_length())
    if not kind.has_pairs:  # the first pair of each tuple of R
        none = 2**62
        first = np.full(len(of_r), none)
        tried = pairs_of(way, condition, groups, visible, lambda r, s: np.minimum.at(
            first, r, np.maximum(of_r[r], of_s[s]) << bits | s))
        mine = np.flatnonzero(first < none)
        return _of_partners(query, incoming, visible, mine, first[mine] & ((1 << bits) - 1), plan, tried)
    parts = [np.empty(0, np.int64)]
    if query.order.kind == "left" or (query.is_pairs and query.order.kind == "none"):
        tried = pairs_of(way, condition, groups, visible, lambda r, s: parts.append(r << bits | s))
        packed = np.concatenate(parts)
        parts.clear()
        if query.order.kind == "left":
            packed.sort()
        r, s = packed >> bits, packed & ((1 << bits) - 1)
        return _made(incoming, visible, r, s, np.maximum(of_r[r], of_s[s]), plan, tried)

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
    is_r, probe = (stream == R)[at], number[at]
    return _made(incoming, visible, np.where(is_r, probe, stored), np.where(is_r, stored, probe), at, plan, tried)


def _made(incoming: Arrivals, visible: Spans, r: Rows, s: Rows, at: Rows, plan: str, tried: int) -> TablePairs:
    counters = {"tuples_r": len(incoming.r), "tuples_s": len(incoming.s), "comparisons": visible.pairs,
                "candidates": tried, "matches": len(r)}
    return TablePairs(r, s, at, plan, counters)
