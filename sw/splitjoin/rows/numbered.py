"""A device session within a stream, with row ids that count over the whole stream instead of the session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from splitjoin.base.arrays import Ints, Mask
from splitjoin.base.errors import CoreLost, WindowOverflow, plural
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, STAR, Device, Fault, Items, chosen_items, joined_items
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from .changes import Changes
from .device_times import DeviceTimes

if TYPE_CHECKING:
    from splitjoin.circuit.driver import CircuitSession
    from splitjoin.circuit.folded_states import FoldedStates

#: A row id of R, and one of S.
RowIds = tuple[int, int]


class NumberedSession:
    """Runs the pairs that decide ``query`` in a fresh session of ``device`` whose first tuples have row ids ``first``,
    R's and S's.

    Items of probes before ``settled`` were delivered by an earlier session and are dropped. Groups of ``outer(N)``
    count from the beginning of the stream, not of the session: the device closes every probe's group, and this class
    drops the stars that are not due. On devices whose results lag, these stars also tell which probes are finished.

    ``folds``: True if the device folds the aggregates of ``query`` (`states`). ``times``: the times on the device of
    tuples that come in any order; then the device finds more pairs (`checked`). ``stars``: False if nobody looks at
    stars: then a device that can leave them out does.

    Attributes:
        pushed: The row ids (R's, S's) of the next tuples.
        stored_s: The row ids of the tuples of S that are pushed first; None if those from ``first`` on are.
        changes: Masks and precisions, which apply to the items of any device.
        stops_at_faults: True if a core that the device leaves out is to end the session, by `CoreLost`, ahead of the
            first probe that would lack pairs.
    """

    stops_at_faults = False

    def __init__(self, query: Query, device: Device, first: RowIds = (0, 0), settled: RowIds = (0, 0), *,
                 folds: bool = False, times: DeviceTimes | None = None, changes: Changes | None = None,
                 stars: bool = True):
        if times is not None:
            query = times.query
        self._order = query.pairs.order
        kind = self._order.kind
        self.changes = changes or Changes(self._order.n)
        if kind == "outer" or (kind == "none" and not device.immediate):
            query = replace(query, order=Order("outer", 1))
        elif kind == "inner":
            query = replace(query, order=Order("inner", self.changes.n))
        self._immediate, self._times = device.immediate, times
        opened = device.open if folds else device.open_latest if query.is_unbounded else device.open_deciding
        needless = not stars and kind in ("outer", "total") and device.immediate and device.in_total_order
        if needless and opened == device.open_deciding:
            opened, query = device.open, replace(query.narrowed.pairs, order=Order("none"))
        self._session = opened(query)
        self._first = dict(zip(SIDES, first, strict=True))
        self._given_out = np.array(settled, np.int64)  # by earlier sessions
        self._settled = np.array(settled, np.int64)
        self.pushed = dict(self._first)
        self.stored_s: Ints | None = None
        self._unsettled, self._left = np.empty(0, ITEM), np.empty(0, ITEM)

    @property
    def settled(self) -> tuple[int, int]:
        """Row ids (R's, S's) before which all probes' items have been delivered."""
        return int(self._settled[0]), int(self._settled[1])

    @property
    def rotation(self) -> int:
        """Row ids at which retained rows may begin are multiples of this (`Session.rotation`)."""
        return self._session.rotation

    @property
    def hides_pairs(self) -> bool:
        """True if cores are masked in the device, or were left out while the stream went on."""
        return self.rotation > 1 or (not self.stops_at_faults and bool(self._session.faults))

    @property
    def lags(self) -> bool:
        """True if items may arrive without a push."""
        return not self._immediate

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The cores that the device has left out, with row ids of the stream."""
        found = []
        for fault in self._session.faults:
            r, s = (max(self._first[side] + row, int(self._given_out[n]))
                    for n, (side, row) in enumerate(zip(SIDES, (fault.r, fault.s), strict=True)))
            found.append(replace(fault, r=r, s=s, lost_r=(fault.lost_r + self._first["r"]) % fault.cores,
                                 lost_s=(fault.lost_s + self._first["s"]) % fault.cores))
        return tuple(found)

    def fits(self, arrivals: Arrivals) -> bool:
        """True if the device session can number ``arrivals`` too, and their times are near enough."""
        if self._times is not None and not self._times.has_room(arrivals):
            return False
        limit = self._session.row_limit
        return limit is None or all(self.pushed[side] - self._first[side] + len(arrivals.table(side)) <= limit
                                    for side in SIDES)

    def push(self, arrivals: Arrivals) -> Items:
        """Push the next slice of arrival order, and return the items that are settled since the last call."""
        try:
            self._session.push(arrivals if self._times is None else self._times.timed(arrivals))
        except WindowOverflow as error:
            raise self._numbered_overflow(error) from error
        for side in SIDES:
            self.pushed[side] += len(arrivals.table(side))
        return self.poll()

    def checked(self, items: Items) -> Items:
        """``items``, whose tuples are kept, without pairs that are too far apart by their own times."""
        return items if self._times is None else self._times.pairs(items)

    def poll(self) -> Items:
        """The items that are settled since the last call."""
        return self._settle(self._checked(self._session.poll))

    def settle(self) -> Items:
        """Wait until all pushed tuples are settled, and return the items since the last call (`Session.settle`)."""
        return self._all(self._checked(self._session.settle))

    def precision(self, n: int) -> Items:
        """Let slices of order ``inner`` have ``n`` comparisons from the next tuple on (`Session.precision`), and return
        the items since the last call: all tuples before are settled.
        """
        self._session.precision(n)
        return self._all(self._checked(self._session.poll))

    def waiting(self) -> float | None:
        """The share of the time in which the device waited for results to leave (`Session.waiting`)."""
        return self._session.waiting()

    def _all(self, items: Items) -> Items:
        """The settled items among ``items``, where all that was pushed is done."""
        if self._order.kind == "inner":  # no star says so
            self._settled = np.maximum(self._settled, [self.pushed[side] for side in SIDES])
        return self._settle(items)

    def advance(self, now: int) -> None:
        """Tell a device whose states leave whole that no tuple below event time ``now`` will be pushed."""
        cast("CircuitSession", self._session).advance(now)

    def settled_to(self, rows: tuple[int, int]) -> None:
        """Note that all tuples before row ids ``rows`` are settled, as the states tell where they leave whole."""
        self._settled = np.maximum(self._settled, rows)

    def flush(self) -> Items:
        """End the input, and return the remaining items."""
        try:
            items = self._checked(self._session.flush)
        except WindowOverflow as error:
            raise self._numbered_overflow(error) from error
        self._immediate = True  # nothing lags any more
        items = self._settle(items)
        ends = [self.pushed[side] for side in SIDES]
        last = [(STAR, n, -1 if n else end - 1, end - 1 if n else -1) for n, end in enumerate(ends)
                if self._order.kind == "outer" and self.changes.is_open(n, end)]
        return np.concatenate([items, np.array(last, ITEM)]) if last else items

    def end(self) -> Items:
        """As `flush`, where the stream goes on in another session: without stars of groups that only an end closes."""
        items = self.flush()
        return chosen_items(items, ~self._closing(items))

    def states(self, end: int | None = None) -> FoldedStates:
        """The states since the last call, with row ids of the stream: of settled tuples of R, without those that an
        earlier session delivered; or, where states leave whole, of all expired ones. ``end``: the first row id whose
        state is dropped, as are all after it.
        """
        session = cast("CircuitSession", self._session)
        assert session.folding is not None
        found = session.states()
        first = found.first + self._first["r"]
        again = 0 if session.folding.whole else min(max(int(self._given_out[0]) - first, 0), len(found))
        stop = len(found) if end is None else max(again, end - first)
        return replace(found, first=first + again,
                       fields={name: values[again:stop] for name, values in found.fields.items()})

    def rescued(self, limit: tuple[int, int]) -> Items:
        """The items that the device gave before it lost the session, as far as they are settled, of probes with row ids
        below ``limit``; there is no use of the session afterwards.
        """
        if self._immediate:
            return np.empty(0, ITEM)
        items = joined_items([self._left, self._session.poll()])
        below = np.array([limit[n] - self._first[side] for n, side in enumerate(SIDES)])
        for fault in self._session.faults if self.stops_at_faults else ():
            below = np.minimum(below, (fault.r, fault.s))
        return self._settle(items[_probes(items) < below[items["side"]]])

    def _checked(self, call: Callable[[], Items]) -> Items:
        """The items of ``call``. Raises `CoreLost`, and keeps them for `rescued`, if faults are to end the session."""
        items = call()
        if self.stops_at_faults and (faults := self._session.faults):
            self._left = items
            numbers = ", ".join(str(fault.core) for fault in faults)
            raise CoreLost(f"{plural(len(faults), 'core')} {numbers}")
        return items

    def counters(self) -> dict[str, int]:
        """The device's counters since its session began."""
        return self._session.counters()

    def plan(self) -> str:
        """The way in which the device answers the query, in words."""
        return self._session.plan()

    def close(self) -> None:
        """Close the device session."""
        self._session.close()

    def _closing(self, items: Items) -> Mask:
        """True for stars that only the end of input sets."""
        found: Mask = items["kind"] == STAR
        if self._order.kind != "outer":
            return np.zeros(len(items), np.bool_)
        for side in range(len(SIDES)):
            mine = found & (items["side"] == side)
            found[mine] = ~self.changes.due(side, items[SIDES[side]][mine])
        return found

    def _settle(self, items: Items) -> Items:
        """The settled items among ``items`` and those held back before, without the stars that are not due."""
        items = self.changes.visible(self._numbered(items))
        if self._immediate:
            self._settled = np.maximum(self._settled, [self.pushed[side] for side in SIDES])
            if len(self._unsettled):
                items, self._unsettled = np.concatenate([self._unsettled, items]), self._unsettled[:0]
        elif len(items):
            stars = items[items["kind"] == STAR]
            for n, side in enumerate(SIDES):
                done = stars[side][stars["side"] == n]
                if len(done):
                    # In inner order the last star of a probe looks like the stars between its slices.
                    self._settled[n] = max(int(self._settled[n]), int(done[-1]) + (self._order.kind != "inner"))
            items = np.concatenate([self._unsettled, items])
            done = _probes(items) < self._settled[items["side"]]
            items, self._unsettled = items[done], items[~done]
        return self._without_early_stars(items)

    def _numbered(self, items: Items) -> Items:
        """``items`` with row ids of the stream, without those that an earlier session delivered."""
        if not self._given_out.any() or not len(items):
            return items
        items = items.copy()
        for side in SIDES:
            items[side] += np.where(items[side] >= 0, self._first[side], 0)
        if self.stored_s is not None:
            old = items["s"] - self._first["s"]
            mine = (old >= 0) & (old < len(self.stored_s))
            items["s"][mine] = self.stored_s[old[mine]]
        again = _probes(items) < self._given_out[items["side"]]
        return items[~again] if again.any() else items

    def _numbered_overflow(self, error: WindowOverflow) -> WindowOverflow:
        return WindowOverflow(error.stream, self._first["r" if error.stream == "r" else "s"] + error.row,
                              error.capacity)

    def _without_early_stars(self, items: Items) -> Items:
        """``items`` without the stars that are not due by the query's order."""
        kind = self._order.kind
        if kind in ("inner", "total") or (kind == "outer" and self.changes.closes_each) or not len(items):
            return items
        stars = items["kind"] == STAR
        if kind == "outer":
            at = np.flatnonzero(stars)
            sides, probes = items["side"][at], _probes(items[at])
            for side in range(len(SIDES)):
                mine = sides == side
                stars[at[mine][self.changes.due(side, probes[mine])]] = False
        return items[~stars] if stars.any() else items


def _probes(items: Items) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The row id of each item's probe."""
    return np.where(items["side"] == 0, items["r"], items["s"])
