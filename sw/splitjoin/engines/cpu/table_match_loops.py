"""Compiled loops over whole tables that tell which tuples of R have a partner in S, by equal keys, by one inequality,
or by both, and which of them have an earlier one; and that give the pairs by equal keys (`table_loop` tells how they
are compiled).

A key less ``least`` is the number of a group, if it is from 0 to before ``count``; empty keys stand for group 0. A
value of R has a partner if it is less than one of its group in S, or with ``equal`` not above it; ``flip``, −1 in place
of 0, turns all values around.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import compiled
from .table_loop import loop

__all__ = ["count_in_order", "first_beyond", "first_rows", "fold_greatest", "group_sums", "mark_equal", "mark_late",
           "mark_met", "pairs_in_order", "pairs_in_time"]


@compiled
def _group(row: Any, keys: Any, least: Any, count: Any) -> Any:
    """The group of a row, and 1 if it has one; else 0 and 0. Without a branch."""
    group = keys[row] - least if len(keys) else 0
    has = np.int64((group >= 0) & (group < count))
    return group * has, has


@compiled
def _meets(row: Any, keys: Any, least: Any, count: Any, values: Any, flip: Any, equal: Any, best: Any,
           seen: Any) -> Any:
    """1 if a row of R has a partner by ``best`` and ``seen``. No branch depends on it, as that cannot be foreseen."""
    group, has = _group(row, keys, least, count)
    value, bound = values[row] ^ flip, best[group]
    return has & seen[group] & (np.int64(value < bound) | (equal & np.int64(value == bound)))


@compiled
def _rises(row: Any, keys: Any, least: Any, count: Any, values: Any, flip: Any, best: Any, seen: Any) -> Any:
    """Have a row of S in the greatest value of its group. Returns True if this has risen."""
    group, has = _group(row, keys, least, count)
    if not has:
        return False
    value = values[row] ^ flip
    if seen[group] and value <= best[group]:
        return False
    best[group], seen[group] = value, 1
    return True


@loop("inninIB")
def fold_greatest(keys: Any, least: Any, count: Any, values: Any, flip: Any, best: Any, seen: Any) -> None:
    """The greatest value of each group in ``best`` (count,), and 1 in ``seen`` for groups with one."""
    for row in range(len(values)):
        _rises(row, keys, least, count, values, flip, best, seen)


@loop("iinniinniiIBBI")
def mark_met(keys_r: Any, keys_s: Any, least: Any, count: Any, values_r: Any, values_s: Any, flip: Any, equal: Any,
             times_r: Any, times_s: Any, best: Any, seen: Any, met: Any, risen: Any) -> Any:
    """As `fold_greatest`, in the order of arrival, by times if there are some and by turns otherwise; and in ``met`` 2
    for tuples of R with an earlier partner. ``risen`` gets the rows that raised the greatest value of their group;
    returns how many these are.
    """
    at, n, timed, end = 0, 0, len(times_r) > 0, len(values_s)
    for i in range(len(met)):
        while at < end and (times_s[at] < times_r[i] if timed else at < i):
            if _rises(at, keys_s, least, count, values_s, flip, best, seen):
                risen[n] = at
                n += 1
            at += 1
        met[i] = 2 * _meets(i, keys_r, least, count, values_r, flip, equal, best, seen)
    while at < end:
        if _rises(at, keys_s, least, count, values_s, flip, best, seen):
            risen[n] = at
            n += 1
        at += 1
    return n


@loop("inninnibB")
def mark_late(keys: Any, least: Any, count: Any, values: Any, flip: Any, equal: Any, best: Any, seen: Any,
              met: Any) -> Any:
    """Write 1 to ``met`` for tuples of R that have a partner at all, and 0 there. Returns how many are not 0."""
    n = 0
    for i in range(len(met)):
        meets = _meets(i, keys, least, count, values, flip, equal, best, seen)
        met[i] = max(met[i], meets)
        n += meets
    return n


@loop("iininniiiI")
def first_beyond(rows: Any, keys: Any, least: Any, values: Any, flip: Any, equal: Any, begins: Any, risen: Any,
                 values_s: Any, partner: Any) -> None:
    """The first ``partner`` of each of ``rows`` of R, which have one: a row of S. ``risen``: rows of S by group, of
    rising values, from ``begins`` (count + 1,) on.
    """
    for i in range(len(rows)):
        row = rows[i]
        group = keys[row] - least if len(keys) else 0
        low, high = begins[group], begins[group + 1] - 1
        value = values[row] ^ flip
        while low < high:
            middle = (low + high) >> 1
            bound = values_s[risen[middle]] ^ flip
            if value < bound or (equal and value == bound):
                high = middle
            else:
                low = middle + 1
        partner[i] = risen[low]


@loop("innI")
def first_rows(keys: Any, least: Any, count: Any, first: Any) -> None:
    """The ``first`` row of S of each group (count,), which keeps what it has for groups without one."""
    for row in range(len(keys) - 1, -1, -1):
        group = keys[row] - least
        if group >= 0 and group < count:
            first[group] = row


@loop("inninniB")
def mark_equal(keys: Any, least: Any, count: Any, first: Any, rows_s: Any, offset: Any, upto: Any, met: Any) -> Any:
    """Write 2 to ``met`` for tuples of R whose group has its ``first`` row of S before row ``upto``, or by turns, if
    that is empty, before their own, which begin at ``offset``; 1 if only later; 0 if it has none, and is ``rows_s``, as
    the last of ``first`` (count + 1,) is. Returns how many are not 0.
    """
    n = 0
    for i in range(len(met)):
        group = keys[i] - least
        row = first[group if group >= 0 and group < count else count]
        # Signs of differences: the compiler would make branches of comparisons, which wait for ``row``.
        found = (row - rows_s) >> 63
        met[i] = -found - ((row - (upto[i] if len(upto) else min(i + offset, rows_s))) >> 63)
        n -= found
    return n


@compiled
def _waiting(row: Any, keys: Any, least: Any, count: Any, heads: Any, side: Any, met: Any, before: Any) -> Any:
    """Have a row wait for others with its key: note whom it meets, and whom those that come later meet behind it.
    Returns how many it meets. No branch depends on keys, so that reads of several rows overlap.
    """
    group, has = _group(row, keys, least, count)
    slot = 2 * (group + (1 - has) * count)  # the last one is that of no group
    others, mine = heads[slot + 1 - side] * has, heads[slot + side]
    met[row], before[row] = others, mine
    heads[slot + side] = ((row + 1) << 32) | ((mine & 0xFFFFFFFF) + 1)
    return others & 0xFFFFFFFF


@loop("iinniiIIIII")
def count_in_order(keys_r: Any, keys_s: Any, least: Any, count: Any, times_r: Any, times_s: Any, heads: Any,
                   met_r: Any, met_s: Any, before_r: Any, before_s: Any) -> Any:
    """Whom each row meets of those with its key that arrive earlier, by times if there are some and by turns otherwise.
    Returns how many pairs there are.

    ``heads`` (2 · count + 2,), which are 0: for each group of R and of S one more than the last row, and in the low 32
    bits how many there are. ``met_r``, ``met_s`` get the heads of the other stream that each row meets, 0 for none, and
    ``before_r``, ``before_s`` those of its own before it.
    """
    total, j, end, timed = 0, 0, len(keys_s), len(times_r) > 0
    for i in range(len(keys_r)):
        while j < end and (times_s[j] < times_r[i] if timed else j < i):
            total += _waiting(j, keys_s, least, count, heads, 1, met_s, before_s)
            j += 1
        total += _waiting(i, keys_r, least, count, heads, 0, met_r, before_r)
    while j < end:
        total += _waiting(j, keys_s, least, count, heads, 1, met_s, before_s)
        j += 1
    return total


@compiled
def _paired(row: Any, met: Any, before: Any, at: Any, mine: Any, theirs: Any) -> Any:
    """Write the pairs of a row from ``at`` on, from the last to the first. Returns their end."""
    n, other = met[row] & 0xFFFFFFFF, met[row] >> 32
    for k in range(n):
        place = at + n - 1 - k
        mine[place] = row
        theirs[place] = other - 1
        if k + 1 < n:
            other = before[other - 1] >> 32
    return at + n


@loop("iiiiiiII")
def pairs_in_order(times_r: Any, times_s: Any, met_r: Any, met_s: Any, before_r: Any, before_s: Any, r: Any,
                   s: Any) -> None:
    """The pairs that `count_in_order` has counted, in order of arrival."""
    at, j, end, timed = 0, 0, len(met_s), len(times_r) > 0
    for i in range(len(met_r)):
        while j < end and (times_s[j] < times_r[i] if timed else j < i):
            at = _paired(j, met_s, before_r, at, s, r)
            j += 1
        at = _paired(i, met_r, before_s, at, r, s)
    while j < end:
        at = _paired(j, met_s, before_r, at, s, r)
        j += 1


@compiled
def _paired_in_time(row: Any, time: Any, other: Any, before: Any, times: Any, length: Any, at: Any, mine: Any,
                    theirs: Any) -> Any:
    """Write the pairs of a row from ``at`` on, as far as there is room. Returns their end."""
    first = at
    while other and at < len(mine) and np.uint64(time) - np.uint64(times[other - 1]) <= length:
        mine[at], theirs[at] = row, other - 1
        at += 1
        other = before[other - 1]
    last = at - 1  # they were found from the last to the first
    while first < last:
        theirs[first], theirs[last] = theirs[last], theirs[first]
        first += 1
        last -= 1
    return at


@loop("iinniiwwIIIII")
def pairs_in_time(keys_r: Any, keys_s: Any, least: Any, count: Any, times_r: Any, times_s: Any, early: Any, late: Any,
                  heads: Any, before_r: Any, before_s: Any, r: Any, s: Any) -> Any:
    """The pairs with equal keys in order of arrival, of which the tuple of S comes at most ``early`` ticks earlier than
    that of R, or at most ``late`` ticks later. Returns how many there are; if ``r`` and ``s`` have no more room than
    for these, there may be more.

    ``heads`` (2 · count,), which are 0: for each group of R and of S one more than the last row. ``before_r`` and
    ``before_s`` get one more than the row of the same group before each row, 0 for none.
    """
    at, j, end = 0, 0, len(times_s)
    for i in range(len(times_r) + 1):
        while j < end and (i == len(times_r) or times_s[j] < times_r[i]):
            group, has = _group(j, keys_s, least, count)
            if has:
                at = _paired_in_time(j, times_s[j], heads[2 * group], before_r, times_r, late, at, s, r)
                before_s[j], heads[2 * group + 1] = heads[2 * group + 1], j + 1
            j += 1
        if i < len(times_r):
            group, has = _group(i, keys_r, least, count)
            if has:
                at = _paired_in_time(i, times_r[i], heads[2 * group + 1], before_s, times_s, early, at, r, s)
                before_r[i], heads[2 * group] = heads[2 * group], i + 1
        if at == len(r):
            return at
    return at


@loop("inniIII")
def group_sums(keys: Any, least: Any, count: Any, values: Any, counts: Any, lows: Any, highs: Any) -> None:
    """Add for each group its rows of S to ``counts``, and of their ``values``, if that is not empty, the low 32 bits to
    ``lows`` and the others to ``highs``.
    """
    for row in range(len(keys)):
        group, has = _group(row, keys, least, count)
        counts[group] += has
        if len(values):
            lows[group] += (values[row] & 0xFFFFFFFF) * has
            highs[group] += (values[row] >> 32) * has
