"""A device session within a stream: rows numbered over the whole stream, whatever session they run in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrival import Arrivals
from ..device.api import ITEM, STAR, Device, Items
from ..errors import WindowOverflow
from ..lang.order import Order
from ..lang.query import Query
from ..lang.schema import SIDES

__all__ = ["Runner"]



class Runner:
    """Runs ``query`` in a fresh session of ``device`` whose first tuples are ``first`` = (R's, S's row id).

    Items of probes before ``settled`` were given out by an earlier session and are dropped. Groups of ``outer(N)``
    count from the beginning of the stream, not of the session: the device closes every probe's group, and the stars
    that are not due are left out here. That also tells which probes a device is done with where its results lag behind.
    """

    def __init__(self, query: Query, device: Device, first: tuple[int, int] = (0, 0),
                 settled: tuple[int, int] = (0, 0)):
        self._order = query.order
        kind = query.order.kind
        if kind == "outer" or (kind == "none" and not device.immediate):
            query = replace(query, order=Order("outer", 1))
        self._immediate = device.immediate
        self._session = device.open(query)
        self._first = dict(zip(SIDES, first, strict=True))
        self._emitted = np.array(settled, np.int64)
        self._settled = np.array(settled, np.int64)
        self.pushed = dict(self._first)
        self._held = np.empty(0, ITEM)

    @property
    def settled(self) -> tuple[int, int]:
        """Row ids (R's, S's) before which all probes' items have been given out."""
        return int(self._settled[0]), int(self._settled[1])

    @property
    def lags(self) -> bool:
        """Whether items may come without a push."""
        return not self._immediate

    def fits(self, arrivals: Arrivals) -> bool:
        """Whether the session can number ``arrivals`` too."""
        limit = self._session.row_limit
        return limit is None or all(self.pushed[side] - self._first[side] + len(arrivals.table(side)) <= limit
                                    for side in SIDES)

    def push(self, arrivals: Arrivals) -> Items:
        """Take the next stretch of arrival order; the items that are settled since the last call."""
        try:
            self._session.push(arrivals)
        except WindowOverflow as error:
            first = self._first["r" if error.stream == "r" else "s"]
            raise WindowOverflow(error.stream, first + error.row, error.capacity) from error
        for side in SIDES:
            self.pushed[side] += len(arrivals.table(side))
        return self.poll()

    def poll(self) -> Items:
        """The items that are settled since the last call."""
        return self._settle(self._session.poll())

    def flush(self) -> Items:
        """End the input; the remaining items."""
        try:
            items = self._session.flush()
        except WindowOverflow as error:
            raise WindowOverflow(error.stream, self._first["r" if error.stream == "r" else "s"] + error.row,
                                 error.capacity) from error
        self._immediate = True  # nothing lags behind any more
        items = self._settle(items)
        ends = [self.pushed[side] for side in SIDES]
        last = [(STAR, n, -1 if n else end - 1, end - 1 if n else -1) for n, end in enumerate(ends)
                if self._order.kind == "outer" and end % self._order.n]
        return np.concatenate([items, np.array(last, ITEM)]) if last else items

    def counters(self) -> dict[str, int]:
        """The device's counters since its session began."""
        return self._session.counters()

    def close(self) -> None:
        """Close the device session."""
        self._session.close()

    def _settle(self, items: Items) -> Items:
        items = self._numbered(items)
        if self._immediate:
            self._settled = np.maximum(self._settled, [self.pushed[side] for side in SIDES])
            if len(self._held):
                items, self._held = np.concatenate([self._held, items]), self._held[:0]
        elif len(items):
            stars = items[items["kind"] == STAR]
            for n, field in enumerate(SIDES):
                done = stars[field][stars["side"] == n]
                if len(done):
                    # With inner order the last star of a probe looks like those within it.
                    self._settled[n] = max(int(self._settled[n]), int(done[-1]) + (self._order.kind != "inner"))
            items = np.concatenate([self._held, items])
            done = _probes(items) < self._settled[items["side"]]
            items, self._held = items[done], items[~done]
        return self._thinned(items)

    def _numbered(self, items: Items) -> Items:
        """With row ids of the stream, and without what an earlier session gave out."""
        if not self._emitted.any() or not len(items):
            return items
        items = items.copy()
        for side in SIDES:
            items[side] += np.where(items[side] >= 0, self._first[side], 0)
        again = _probes(items) < self._emitted[items["side"]]
        return items[~again] if again.any() else items

    def _thinned(self, items: Items) -> Items:
        """Without the stars that are not due."""
        kind, n = self._order.kind, self._order.n
        if kind in ("inner", "total") or (kind == "outer" and n == 1) or not len(items):
            return items
        stars = items["kind"] == STAR
        if kind == "outer":
            stars &= (_probes(items) + 1) % n != 0
        return items[~stars] if stars.any() else items


def _probes(items: Items) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The row id of each item's probe."""
    return np.where(items["side"] == 0, items["r"], items["s"])
