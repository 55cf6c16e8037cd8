"""Loops that decide the rows of a batch of outer, semi, anti and backward as-of joins (`KindOperator`).

In place of some twenty steps of NumPy, arrivals, items and undecided tuples are passed once or twice, as all are in the
order of arrival.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..device import ITEM
from .jit import compiled

__all__ = ["note_items", "prepare", "spread", "write_rows"]

#: Numbers of a stream: which of its decided tuples are rows, 1 for all, 2 for those that have chosen a partner; 1 if
#: time closes its window, and after how many ticks (unsigned); the tuples of its window, 0 without a limit; 1 if its
#: tuples are decided as they arrive.
_EMIT, _HAS_LENGTH, _LENGTH, _ROWS, _AT_ONCE = range(5)
#: Kind of an item that is a pair.
_PAIR = 0
_NEVER = 2**63 - 1


@compiled
def spread(stream: Any, times: Any, base: Any, position_r: Any, time_r: Any, position_s: Any, time_s: Any) -> None:
    """Write the positions, from ``base`` on, and the ``times`` of the arrivals ``stream`` (n,), each to those of its
    stream.
    """
    r = s = np.int64(0)
    for k in range(len(stream)):
        if stream[k] == 0:
            position_r[r], time_r[r] = base + k, times[k]
            r += 1
        else:
            position_s[s], time_s[s] = base + k, times[k]
            s += 1


@compiled
def note_items(items: Any, position_r: Any, position_s: Any, new_r: Any, new_s: Any, first_r: Any, first_s: Any,
               open_r: Any, open_s: Any, pairs: Any, closed_r: Any, closed_s: Any, back: Any, time_r: Any,
               time_s: Any, exact: Any, at: Any) -> Any:
    """Note the pairs among the ``items`` (n,): their tuples are open no more. Writes for each item that is a row, or a
    star, the position of its probe to ``at`` (n,), −1 for others; returns how many there are, and how many of the first
    ``closed_r`` and ``closed_s`` tuples are open.

    ``position_r``, ``open_r``: of R's undecided tuples, the first with row id ``first_r``; ``open_r`` is empty if
    nobody waits for R. ``new_r``: the row id at whose place ``position_r`` begins. ``pairs``: 2 if all are rows, 1 if
    the first one of each tuple of R is, else 0. ``back``: of R's tuples the partner that an as-of join has chosen so
    far, the last one before it (``time_r``, ``time_s``), or at its time if ``exact``; empty for others.
    """
    kept = np.int64(0)
    for i in range(len(items)):
        item = items[i]
        position = position_s[item.s - new_s] if item.side else position_r[item.r - new_r]
        if item.kind == _PAIR:
            first = np.int64(0)
            if len(back):
                r, s = item.r - first_r, item.s - first_s
                if r >= 0 and s >= 0 and open_r[r] and (
                        time_s[s] < time_r[r] or (exact and time_s[s] == time_r[r])):
                    back[r] = item.s
            elif len(open_r) and item.r >= first_r:  # others have a pair, and were dropped
                first = open_r[item.r - first_r]
                open_r[item.r - first_r] = 0
            if len(open_s) and len(back) == 0:
                open_s[item.s - first_s] = 0
            if pairs == 0 or (pairs == 1 and first == 0):
                position = np.int64(-1)
        at[i] = position
        kept += position >= 0
    left_r = left_s = np.int64(0)
    for k in range(min(closed_r, len(open_r))):
        left_r += open_r[k]
    for k in range(min(closed_s, len(open_s))):
        left_s += open_s[k]
    return kept, left_r, left_s


@compiled
def _decided(closed: Any, opened: Any, position: Any, time: Any, about: Any, back: Any, times: Any, base: Any,
             rows: Any, at: Any, last: Any) -> Any:
    """Write which of the first ``closed`` tuples are rows to ``rows``, by number, the position of the arrival that
    decides each to ``at``, and its last time to ``last``; returns how many. None is open any more, but those behind
    the first one that no arrival decides.
    """
    made = place = np.int64(0)
    length = np.uint64(about[_LENGTH])
    for k in range(min(closed, len(opened))):
        if opened[k] == 0:
            continue
        until = by_time = by = np.int64(_NEVER)
        if about[_AT_ONCE]:
            by = position[k]
        elif about[_HAS_LENGTH]:
            room = np.uint64(_NEVER) - np.uint64(time[k])
            until = np.int64(np.uint64(time[k]) + min(length, room))
            while place < len(times) and times[place] <= until:
                place += 1
            if place < len(times):
                by_time = base + place
        if about[_ROWS] and about[_AT_ONCE] == 0 and k + about[_ROWS] < len(position):
            by = position[k + about[_ROWS]]
        if by == _NEVER and by_time == _NEVER:
            break
        opened[k] = 0
        if about[_EMIT] == 1 or (about[_EMIT] == 2 and back[k] >= 0):
            rows[made], at[made], last[made] = k, min(by, by_time), until if by_time <= by else np.int64(_NEVER)
            made += 1
    return made


@compiled
def write_rows(items: Any, at: Any, semi: Any, times: Any, base: Any, back: Any, first_r: Any, position_r: Any,
               time_r: Any, open_r: Any, closed_r: Any, about_r: Any, first_s: Any, position_s: Any, time_s: Any,
               open_s: Any, closed_s: Any, about_s: Any, out: Any) -> Any:
    """Write what is kept of ``items`` (n,), and those of the open ones among the ``closed_r`` and ``closed_s`` first
    tuples that are decided and rows, to ``out``, in total order. Returns how many.

    ``at``, ``open_r``, ``back`` as of `note_items`; ``semi``: True if the rows of pairs have no S. ``times``: of the
    arrivals from position ``base`` on, which rise. ``position_r``, ``time_r``: of all undecided tuples. ``about_r``
    (5,): what is known of the stream, `_EMIT` and so on.
    """
    # By stream; a last one behind all.
    most = max(closed_r, closed_s) + 1
    rows, by, last = np.empty((2, most), np.int64), np.empty((2, most), np.int64), np.empty((2, most), np.int64)
    n_r = _decided(closed_r, open_r, position_r, time_r, about_r, back, times, base, rows[0], by[0], last[0])
    n_s = _decided(closed_s, open_s, position_s, time_s, about_s, back, times, base, rows[1], by[1], last[1])
    by[0, n_r] = by[1, n_s] = _NEVER
    i = made = r = s = np.int64(0)
    while True:
        of_r = r < n_r and (s == n_s or by[0, r] < by[1, s] or (by[0, r] == by[1, s] and last[0, r] <= last[1, s]))
        waited = by[0, r] if of_r else by[1, s]
        while i < len(items) and at[i] < waited:
            if at[i] >= 0:
                item = items[i]
                out[made].kind, out[made].side, out[made].r = item.kind, item.side, item.r
                out[made].s = np.int64(-1) if semi and item.kind == _PAIR else item.s
                made += 1
            i += 1
        if of_r:
            k = rows[0, r]
            out[made].kind, out[made].side, out[made].r = _PAIR, 0, first_r + k
            out[made].s = back[k] if len(back) else np.int64(-1)
            r += 1
        elif s < n_s:
            out[made].kind, out[made].side, out[made].r, out[made].s = _PAIR, 1, -1, first_s + rows[1, s]
            s += 1
        else:
            break
        made += 1
    return made


def prepare() -> None:
    """Have all loops compiled, or loaded."""
    none, items = np.empty(0, np.int64), np.empty(0, ITEM)
    spread(none.astype(np.uint8), none, 0, none, none, none, none)
    note_items(items, none, none, 0, 0, 0, 0, none, none, 0, 0, 0, none, none, none, True, none)
    side = 0, none, none, none, 0, np.zeros(5, np.int64)
    write_rows(items, none, False, none, 0, none, *side, *side, items)
