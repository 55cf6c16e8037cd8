"""Loops that decide the rows of a batch of outer, semi and anti joins (`KindOperator`).

In place of some twenty steps of NumPy, arrivals, items and undecided tuples are passed once or twice, as all are in the
order of arrival.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..device import ITEM
from .jit import compiled

__all__ = ["note_items", "prepare", "spread", "write_rows"]

#: Numbers of a stream: 1 if its unmatched tuples are rows; 1 if time closes its window, and after how many ticks
#: (unsigned); the tuples of its window, 0 without a limit.
_EMIT, _HAS_LENGTH, _LENGTH, _ROWS = range(4)
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
               open_r: Any, open_s: Any, pairs: Any, closed_r: Any, closed_s: Any, at: Any) -> Any:
    """Note the pairs among the ``items`` (n,): their tuples are open no more. Writes for each item that is a row, or a
    star, the position of its probe to ``at`` (n,), −1 for others; returns how many there are, and how many of the first
    ``closed_r`` and ``closed_s`` tuples are open.

    ``position_r``, ``open_r``: of R's undecided tuples, the first with row id ``first_r``; ``open_r`` is empty if
    nobody waits for R. ``new_r``: the row id at whose place ``position_r`` begins. ``pairs``: 2 if all are rows, 1 if
    the first one of each tuple of R is, else 0.
    """
    kept = np.int64(0)
    for i in range(len(items)):
        item = items[i]
        position = position_s[item.s - new_s] if item.side else position_r[item.r - new_r]
        if item.kind == _PAIR:
            first = np.int64(0)
            if len(open_r) and item.r >= first_r:  # others have a pair, and were dropped
                first = open_r[item.r - first_r]
                open_r[item.r - first_r] = 0
            if len(open_s):
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
def _decided(closed: Any, opened: Any, position: Any, time: Any, about: Any, times: Any, base: Any, rows: Any, at: Any,
             last: Any) -> Any:
    """Write which of the first ``closed`` tuples are open to ``rows``, by number, the position of the arrival that
    decides each to ``at``, and its last time to ``last``; returns how many, 0 if they are no rows.
    """
    made = place = np.int64(0)
    if about[_EMIT] == 0:
        return made
    length = np.uint64(about[_LENGTH])
    for k in range(closed):
        if opened[k] == 0:
            continue
        until = by_time = by = np.int64(_NEVER)
        if about[_HAS_LENGTH]:
            room = np.uint64(_NEVER) - np.uint64(time[k])
            until = np.int64(np.uint64(time[k]) + min(length, room))
            while place < len(times) and times[place] <= until:
                place += 1
            if place < len(times):
                by_time = base + place
        if about[_ROWS] and k + about[_ROWS] < len(position):
            by = position[k + about[_ROWS]]
        rows[made], at[made], last[made] = k, min(by, by_time), until if by_time <= by else np.int64(_NEVER)
        made += 1
    return made


@compiled
def write_rows(items: Any, at: Any, semi: Any, times: Any, base: Any, first_r: Any, position_r: Any, time_r: Any,
               open_r: Any, closed_r: Any, about_r: Any, first_s: Any, position_s: Any, time_s: Any, open_s: Any,
               closed_s: Any, about_s: Any, out: Any) -> None:
    """Write what is kept of ``items`` (n,), and the open ones of the ``closed_r`` and ``closed_s`` tuples on which the
    window has closed, as rows without a partner if their stream emits these, to ``out``, in total order. Such a tuple
    is open no more.

    ``at``, ``open_r`` as of `note_items`; ``semi``: True if the rows of pairs have no S. ``times``: of the arrivals
    from position ``base`` on, which rise. ``position_r``, ``time_r``: of all undecided tuples. ``about_r`` (4,): what
    is known of the stream, `_EMIT` and so on.
    """
    # By stream; a last one behind all.
    most = max(closed_r, closed_s) + 1
    rows, by, last = np.empty((2, most), np.int64), np.empty((2, most), np.int64), np.empty((2, most), np.int64)
    n_r = _decided(closed_r, open_r, position_r, time_r, about_r, times, base, rows[0], by[0], last[0])
    n_s = _decided(closed_s, open_s, position_s, time_s, about_s, times, base, rows[1], by[1], last[1])
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
            out[made].kind, out[made].side, out[made].r, out[made].s = _PAIR, 0, first_r + rows[0, r], -1
            r += 1
        elif s < n_s:
            out[made].kind, out[made].side, out[made].r, out[made].s = _PAIR, 1, -1, first_s + rows[1, s]
            s += 1
        else:
            break
        made += 1
    open_r[:closed_r] = 0
    open_s[:closed_s] = 0


def prepare() -> None:
    """Have all loops compiled, or loaded."""
    none, items = np.empty(0, np.int64), np.empty(0, ITEM)
    spread(none.astype(np.uint8), none, 0, none, none, none, none)
    note_items(items, none, none, 0, 0, 0, 0, none, none, 0, 0, 0, none)
    side = 0, none, none, none, 0, np.zeros(4, np.int64)
    write_rows(items, none, False, none, 0, *side, *side, items)
