"""`DeviceTimes`: event times that never fall, for tuples that reach a device out of order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from splitjoin.base.arrays import Mask, Ticks
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import PAIR, Items, chosen_items
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side


def is_unordered(query: Query, *, early: bool = False) -> bool:
    """True if the rows of ``query`` do not depend on arrival order, so that a tuple may be joined as it comes: RANGE
    windows without ROWS, and order ``"none"``. Those of as-of joins depend on the order of S, and so do aggregates,
    which are joined as they come only if rows come ``early``, as they are folded without pairs otherwise.
    """
    return (query.time is not None and query.order.kind == "none" and (early or not query.aggregates)
            and all(w.rows is None and w.length is not None for w in (query.window_r, query.window_s)))


def widened(query: Query, slack: int) -> Query:
    """The pairs of ``query`` in order "none", whose RANGE windows are longer by ``slack`` ticks."""
    r, s = (window if window.length is None else replace(window, length=window.length + slack)
            for window in (query.window_r, query.window_s))
    return replace(query.pairs, order=Order("none"), window_r=r, window_s=s)


def within_windows(query: Query, r: Ticks, s: Ticks) -> Mask:
    """True for the pairs of event times that are within the RANGE windows, whichever tuple came first: bool (n,)."""
    length_r, length_s = query.window_r.length, query.window_s.length
    assert length_r is not None
    assert length_s is not None
    # Differences of int64 are right as uint64 where they are not negative.
    apart = np.where(r <= s, s.astype(np.uint64) - r.astype(np.uint64), r.astype(np.uint64) - s.astype(np.uint64))
    longest = 2**64 - 1
    near: Mask = apart <= np.where(r <= s, np.uint64(min(length_r, longest)), np.uint64(min(length_s, longest)))
    return near


class DeviceTimes:
    """The times of tuples on a device, which needs times that do not decrease.

    A tuple that comes after younger ones gets the time of the youngest one instead. ``slack`` is the most by which that
    may change a time: the device's windows are longer by so much, and its pairs are checked by the true times.

    Args:
        query: The query.
        late: The most ticks by which a tuple may come late.
        kept: The row ids of the first tuples of both streams that later pairs may have, and the event times from these
            tuples on.
    """

    def __init__(self, query: Query, late: int, kept: Callable[[], Mapping[Side, tuple[int, Ticks]]]):
        self._query, self._kept = query, kept
        # What streams of one source each can come to be apart, as the gate lets them through.
        self._usual = max(window.length or 0 for window in (query.window_r, query.window_s)) + late
        self._last: int | None = None
        self.slack = 0

    @property
    def query(self) -> Query:
        """The query of the device."""
        return widened(self._query, self.slack)

    def begin(self, replayed: Arrivals | None) -> None:
        """Begin anew, on a device that gets the tuples ``replayed`` first; raises the slack as they need it."""
        self._last = None
        if replayed is not None:
            self.slack = max(self.slack, self._displaced(replayed))

    def has_room(self, arrivals: Arrivals) -> bool:
        """True if the slack is enough for the next tuples; otherwise it is made greater, for a fresh device."""
        displaced = self._displaced(arrivals)
        if displaced <= self.slack:
            return True
        self.slack = 2 * displaced if displaced > self._usual else min(2 * displaced, self._usual)
        return False

    def timed(self, arrivals: Arrivals) -> Arrivals:
        """The next tuples with the times that the device gets."""
        ts = self._times(arrivals)
        if len(ts):
            self._last = int(ts[-1])
        return Arrivals(arrivals.stream, ts, arrivals.r, arrivals.s)

    def pairs(self, items: Items) -> Items:
        """Those of ``items`` that are no pairs, or pairs within the windows by the true times."""
        if not self.slack or not len(items):
            return items
        (first_r, ts_r), (first_s, ts_s) = (self._kept()[side] for side in SIDES)
        kept: Mask = (items["kind"] != PAIR) | ((items["r"] >= first_r) & (items["s"] >= first_s))
        at = np.flatnonzero(kept & (items["kind"] == PAIR))
        kept[at] = within_windows(self._query, ts_r[items["r"][at] - first_r], ts_s[items["s"][at] - first_s])
        return chosen_items(items, kept)

    def _times(self, arrivals: Arrivals) -> Ticks:
        assert arrivals.ts is not None
        ts = arrivals.ts if self._last is None else np.maximum(arrivals.ts, self._last)
        found: Ticks = np.maximum.accumulate(ts)
        return found

    def _displaced(self, arrivals: Arrivals) -> int:
        assert arrivals.ts is not None
        if not len(arrivals):
            return 0
        return int((self._times(arrivals).astype(np.uint64) - arrivals.ts.astype(np.uint64)).max())
