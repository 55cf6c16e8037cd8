"""The number of pairs of whole tables, counted from sorted keys without making one.

A tuple's partners are a range of the other stream, sorted by equal keys, then by another key or by arrival, so its
length is their number. Where two keys, or a key and the windows, limit them, a wavelet matrix counts the positions of
each range whose other key lies in an interval (Claude and Navarro, The wavelet matrix, 2012). Of alternatives (OR),
those of several at once are counted once by inclusion and exclusion; pairs of different values are all of which neither
is NULL, but those of equal ones.
"""

from __future__ import annotations

import numpy as np

from splitjoin.base.arrays import Rows
from splitjoin.lang.query import Query
from splitjoin.plan.keys import Codes

from ..arrival import Arrivals
from .coded_nulls import with_coded_nulls
from .condition import Condition
from .key_ranges import ranges_by_row
from .table_windows import Spans
from .table_work import Work

#: The most alternatives, as each set of some is counted.
_MOST = 4


def counted_pairs(query: Query, incoming: Arrivals, room: int, work: Work) -> int | None:
    """The number of pairs of ``query`` over ``incoming``, which are whole tables.

    None where there cannot be more than ``room``, or they cannot be counted without comparing pairs: where more than
    two keys besides equal ones limit a tuple's partners, or an expression must be verified.
    """
    visible = Spans(query, incoming, work)
    if visible.pairs <= room:
        return None
    condition, total = Condition(*with_coded_nulls(query, incoming), work), 0
    terms = condition.alternatives(_MOST)
    # Each set of alternatives with its sign; none beyond a set that has no pairs.
    sets = [(at, frozenset(term.tests), 1) for at, term in enumerate(terms)]
    while sets:
        at, tests, sign = sets.pop()
        found = _counted(condition.only(tests, decide=terms[at].decided), len(incoming.s), visible, work)
        if found is None:
            return None
        total += sign * found
        sets += [(more, tests.union(terms[more].tests), -sign) for more in range(at + 1, len(terms)) if found]
    return total


def _counted(condition: Condition, rows: int, visible: Spans, work: Work) -> int | None:
    """The number of pairs of a condition without OR, with so many rows of S; None if too many keys limit them."""
    bounds = [(b.keys, b.low, b.high) for b in condition.bounds("s")]
    if not visible.hold_all:
        bounds.append((np.arange(rows, dtype=np.uint64), *visible.intervals))
    if not condition.decided or len(bounds) > 2:
        return None
    groups = condition.groups()
    if groups.is_one and not bounds:
        return visible.pairs
    r, s = groups.numbers("r"), groups.numbers("s")
    if not bounds:
        counts = np.bincount(s[s >= 0], minlength=groups.count)
        return int(counts[r[r >= 0]].sum())
    (keys, low, high), *others = bounds
    ranges = ranges_by_row((r, s), groups.count, keys, low, high, work)
    for other_keys, other_low, other_high in others:
        return _within(other_keys[ranges.order], ranges.start, ranges.end, other_low, other_high)
    return ranges.pairs


def _within(keys: Codes, start: Rows, end: Rows, low: Codes, high: Codes) -> int:
    """The number of positions, over all of ``start`` to before ``end`` (m,), whose ``keys`` (n,) are from ``low`` to
    ``high`` (m,).
    """
    some = np.flatnonzero((end > start) & (low <= high))
    start, end, ordered = start[some], end[some], np.sort(keys)
    ranks = np.searchsorted(ordered, keys)
    first, behind = np.searchsorted(ordered, low[some]), np.searchsorted(ordered, high[some], side="right")
    return _below(ranks, start, end, behind) - _below(ranks, start, end, first)


def _below(ranks: Rows, start: Rows, end: Rows, limit: Rows) -> int:
    """The number of positions, over all of ``start`` to before ``end`` (m,), whose ``ranks`` (n,) are below ``limit``
    (m,), which is at most n. Bit by bit, from the highest on, the ranks are parted into those with 0 and with 1.
    """
    total = 0
    for bit in reversed(range(len(ranks).bit_length())):
        zero = (ranks >> bit & 1) == 0
        zeros = np.concatenate([[0], np.cumsum(zero)])
        ones, left, right = (limit >> bit & 1).astype(np.bool_), zeros[start], zeros[end]
        total += int((right - left)[ones].sum())
        start = np.where(ones, zeros[-1] + start - left, left)
        end = np.where(ones, zeros[-1] + end - right, right)
        ranks = np.concatenate([ranks[zero], ranks[~zero]])
    return total
