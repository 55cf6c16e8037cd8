"""Compiled loops over whole tables, by time: merges of both, and the nearest partners (`table_loop` tells how they are
compiled).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import compiled
from .table_loop import loop

__all__ = ["drop_far", "first_of_group", "last_of_group", "merge_positions", "merged_counts", "nearer", "note_rows"]


@compiled
def _count_below(ordered: Any, wanted: Any, equal: Any) -> Any:
    """The number of values of ``ordered``, which ascends, below ``wanted``, or with ``equal`` at most it."""
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) >> 1
        if ordered[middle] < wanted or (equal and ordered[middle] == wanted):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _is_below(a: Any, b: Any, equal: Any) -> Any:
    return np.int64((a < b) | (equal & (a == b)))  # without a branch


@compiled
def _merge(ordered: Any, wanted: Any, equal: Any, counts: Any) -> None:
    """As `merged_counts`. No branch depends on which of two numbers is less, as that cannot be foreseen; and the halves
    of ``wanted`` take turns, as a step waits for the one before it, but not for that of the other half.
    """
    last, half, end = np.int64(len(ordered)), len(wanted) // 2, len(wanted)
    if not end:
        return
    i, j = np.int64(0), np.int64(half)
    at, to = _count_below(ordered, wanted[i], equal), _count_below(ordered, wanted[j], equal)
    while i < half and j < end and to < last:  # so `at` is not behind the end either
        counts[i] = at
        counts[j] = to
        first = _is_below(ordered[at], wanted[i], equal)
        second = _is_below(ordered[to], wanted[j], equal)
        at += first
        i += 1 - first
        to += second
        j += 1 - second
    while i < half and at < last:
        counts[i] = at
        first = _is_below(ordered[at], wanted[i], equal)
        at += first
        i += 1 - first
    while j < end and to < last:
        counts[j] = to
        second = _is_below(ordered[to], wanted[j], equal)
        to += second
        j += 1 - second
    while i < half:  # no slices, which would have to be checked
        counts[i] = last
        i += 1
    while j < end:
        counts[j] = last
        j += 1


@loop("iinI")
def merged_counts(ordered: Any, wanted: Any, equal: Any, counts: Any) -> None:
    """For each of ``wanted`` how many of ``ordered`` are below it, or with ``equal`` not above it; both rise."""
    _merge(ordered, wanted, equal != 0, counts)


@loop("iinnnIB")
def merge_positions(times: Any, others: Any, equal: Any, first: Any, side: Any, of: Any, stream: Any) -> None:
    """The positions ``of`` rows from ``first`` on, with ``times``, when they are merged with ``others``, of which those
    at the same time come first if ``equal``; and in the merged order the ``stream`` of each.
    """
    _merge(others, times, equal != 0, of)
    for i in range(len(times)):
        of[i] += first + i
        stream[of[i]] = side


@loop("iiiinII")
def last_of_group(upto: Any, floor: Any, groups_r: Any, groups_s: Any, seen: Any, last: Any, partner: Any) -> None:
    """For each tuple of R the last row of S of its group before row ``upto``, which rises, and from ``floor`` on, if
    that is not empty; −1 for none. ``last``: for each group its last row before row ``seen``.
    """
    at = seen
    for i in range(len(upto)):
        end = upto[i]
        while at < end:
            group = groups_s[at]
            if group >= 0:
                last[group] = at
            at += 1
        group = groups_r[i]
        row = last[group] if group >= 0 else -1
        partner[i] = row if len(floor) == 0 or row >= floor[i] else -1


@loop("iiiinII")
def first_of_group(start: Any, ceiling: Any, groups_r: Any, groups_s: Any, seen: Any, first: Any,
                   partner: Any) -> None:
    """For each tuple of R the first row of S of its group from row ``start`` on, which rises, and before ``ceiling``,
    if that is not empty; −1 for none. ``first``: for each group its first row from row ``seen`` on.
    """
    at = seen
    for i in range(len(start) - 1, -1, -1):
        begin = start[i]
        while at > begin:
            at -= 1
            group = groups_s[at]
            if group >= 0:
                first[group] = at
        group = groups_r[i]
        row = first[group] if group >= 0 else -1
        partner[i] = row if len(ceiling) == 0 or row < ceiling[i] else -1


@loop("innI")
def note_rows(groups_s: Any, begin: Any, step: Any, rows: Any) -> None:
    """Note in ``rows`` for each group its last row, or with ``step`` −1 its first one; rows begin at ``begin``."""
    n = len(groups_s)
    for k in range(n):
        i = k if step > 0 else n - 1 - k
        if groups_s[i] >= 0:
            rows[groups_s[i]] = begin + i


@loop("iiiiwwI")
def nearer(times: Any, times_s: Any, back: Any, fore: Any, earlier: Any, later: Any, partner: Any) -> None:
    """Of the rows ``back``, not after each of ``times``, and ``fore``, not before it, the nearer that is at most so
    much ``earlier`` or ``later``, −1 if none is; of equally near ones the former. As unsigned numbers, since the
    difference of two times may not fit 64 bits with a sign.
    """
    for i in range(len(times)):
        b, f = back[i], fore[i]
        before = np.uint64(times[i] - times_s[b]) if b >= 0 else np.uint64(0)
        behind = np.uint64(times_s[f] - times[i]) if f >= 0 else np.uint64(0)
        if before > earlier:
            b = -1
        if behind > later:
            f = -1
        partner[i] = f if b < 0 or (f >= 0 and behind < before) else b


@loop("iiwwI")
def drop_far(times: Any, times_s: Any, earlier: Any, later: Any, partner: Any) -> None:
    """Have no ``partner`` that is more than so much ``earlier`` or ``later`` than ``times``."""
    for i in range(len(times)):
        if partner[i] >= 0:
            time_s = times_s[partner[i]]
            far = np.uint64(times[i] - time_s) > earlier if time_s < times[i] else np.uint64(time_s - times[i]) > later
            if far:
                partner[i] = -1
