"""The order of the rows of nearest partners over whole tables, by event times alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Ints
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.loops import loops
from splitjoin.engines.sorting import stable_order
from splitjoin.engines.whole_times import decided_by_times
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from .decisions import nearest_until
from .own_side import OwnSide
from .undecided import NEVER, NONE, later

#: Rows whose times are looked at together, so that they stay in a cache.
_SLICE = 1 << 16
#: Times up to which four times as much fits 64 bits.
_FAR = 1 << 60


def order_by_times(query: Query, incoming: Arrivals, rows: Ints, partner: Ints) -> Ints | slice | None:
    """The order of `ordered` for tuples ``rows`` of R, which rise, and their nearest partners, in a third of the time:
    no arrival is looked up by its time. None where times do not tell it, or twice a time does not fit 64 bits.

    A row that waits for its partner to come is decided by that, at its time; any other row that waits by the first
    arrival behind the last time at which it can change, so behind all that arrive at that time and before all others.
    A tuple that its own side rules out decides its row itself.
    """
    if not decided_by_times(query, incoming) or not len(incoming.s) or not len(rows):
        return None
    times, times_s = (np.ascontiguousarray(incoming.times(side)) for side in SIDES)
    base, n = min(int(times[0]), int(times_s[0])), len(rows)
    length = query.window_r.length
    alone = np.flatnonzero(partner == NONE)
    if not len(alone) and base > -_FAR and max(int(times[-1]), int(times_s[-1])) < _FAR:
        # All have a partner, and no sum or difference of times overflows.
        by_times = partial(loops()["decision_times"], times, times_s, rows, partner, base,
                           _FAR if length is None else min(length, _FAR))
        if by_times(np.empty(0, np.int64)):  # as where there are no keys
            return slice(None)
        by_times(when := np.empty(n, np.int64))
        return _in_turn(when, np.where(when & 1, 0, partner))
    ruled_out = np.zeros(n, np.bool_)
    ruled_out[alone] = OwnSide.of(query, "r").ruled_out(incoming.r)[rows[alone]]
    whens, itself, last = np.empty(n, np.uint64), np.empty(n, np.bool_), 0
    for start in range(0, n, _SLICE):
        mine = slice(start, start + _SLICE)
        time, mate = times[rows[mine]], times_s[partner[mine]]
        has, out = partner[mine] != NONE, ruled_out[mine]
        ahead = has & (mate > time)
        until = np.full(len(time), NEVER) if length is None else later(time, np.uint64(min(length, 2**64 - 1)))
        np.minimum(until, nearest_until(time, mate), out=until, where=has & ~ahead)
        until = np.where(ahead, mate, np.where(out, time, until))
        itself[mine] = ahead | out
        last = max(last, int(until.max()) - base)
        whens[mine] = (until.view(np.uint64) - np.uint64(base % 2**64)) * np.uint64(2) + ~itself[mine]
    if last >= 2**63:
        return None
    # At one time, tuples of R decide before those of S, which do so as they come.
    return _in_turn(whens, np.where(itself, np.where(partner == NONE, rows, len(incoming.r) + partner), 0))


def _in_turn(when: npt.NDArray[Any], turn: Ints) -> Ints:
    """The order by ``when``, and at one of these by ``turn``."""
    order = stable_order(when)
    in_order, turns = when[order], turn[order]
    if ((in_order[1:] == in_order[:-1]) & (turns[1:] < turns[:-1])).any():
        order = stable_order(turn)
        order = order[stable_order(when[order])]
    return order
