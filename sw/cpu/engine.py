"""The device ``cpu``: SplitJoin's answer from compiled nested loops, in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ..arrival import Arrivals, R, S
from ..device.api import ITEM, PAIR, STAR, Device, Items, Session
from ..errors import DeviceError, InputError
from ..lang.query import Query
from .matcher import Matcher, make_matcher
from .store import Store

__all__ = ["CpuDevice", "CpuSession"]

Rows = npt.NDArray[np.int64]

#: Arrivals that are worked on at once: their results are in memory together.
_BATCH = 1 << 15
#: Probes that share each chunk of the window.
_PROBES = 256


@dataclass(frozen=True)
class CpuDevice(Device):
    """Runs queries on one core of the CPU. Takes every predicate, window and order."""

    name: ClassVar[str] = "cpu"

    def open(self, query: Query) -> Session:
        """Compile the kernel for ``query``, or find it in the cache, and start."""
        return CpuSession(query, make_matcher(query.predicate))


class CpuSession(Session):
    """A query on the CPU engine. All of a pushed stretch is done when `push` returns."""

    def __init__(self, query: Query, matcher: Matcher):
        self._query, self._matcher = query, matcher
        self._stores = {side: Store(query.window(side)) for side in ("r", "s")}
        self._open = {"r": 0, "s": 0}  # probes since the last star
        self._last: int | None = None
        self._items: list[Items] = []
        self._comparisons = self._matches = 0
        self._flushed = False

    def push(self, arrivals: Arrivals) -> None:
        """Take the next stretch of arrival order. Raises `InputError` when event time decreases."""
        if self._flushed:
            raise DeviceError("nothing can be pushed after flush; open a new session")
        self._check_times(arrivals)
        done = {"r": 0, "s": 0}
        for first in range(0, len(arrivals), _BATCH):
            stream = arrivals.stream[first:first + _BATCH]
            counts = {"r": int((stream == R).sum()), "s": int((stream == S).sum())}
            part = Arrivals(stream, None if arrivals.ts is None else arrivals.ts[first:first + _BATCH],
                            arrivals.r.slice(done["r"], counts["r"]), arrivals.s.slice(done["s"], counts["s"]))
            self._items.append(self._batch(part))
            done = {side: done[side] + n for side, n in counts.items()}

    def poll(self) -> Items:
        """The items made since the last call."""
        items = np.concatenate(self._items) if self._items else np.empty(0, ITEM)
        self._items = []
        return items

    def flush(self) -> Items:
        """Close open groups with a last star each, R's before S's, and return what was not polled yet."""
        if not self._flushed:
            self._flushed = True
            if self._query.order.kind != "none":
                last = [(STAR, R, self._stores["r"].end - 1, -1)] if self._open["r"] else []
                last += [(STAR, S, -1, self._stores["s"].end - 1)] if self._open["s"] else []
                self._items.append(np.array(last, ITEM))
        return self.poll()

    def counters(self) -> dict[str, int]:
        """``tuples_r``, ``tuples_s``, ``comparisons`` (pairs within the windows), ``matches``."""
        return {"tuples_r": self._stores["r"].end, "tuples_s": self._stores["s"].end,
                "comparisons": self._comparisons, "matches": self._matches}

    def _check_times(self, arrivals: Arrivals) -> None:
        ts = arrivals.ts
        if ts is None:
            if any(self._query.window(side).length is not None for side in ("r", "s")) and len(arrivals):
                raise InputError("a RANGE window needs event times, but these arrivals have none")
            return
        if len(ts):
            if (ts[1:] < ts[:-1]).any() or (self._last is not None and int(ts[0]) < self._last):
                raise InputError("event time must not decrease in arrival order; sort both streams by it first")
            self._last = int(ts[-1])

    def _batch(self, part: Arrivals) -> Items:
        """Store the tuples of both streams, then let each probe the other's window as it was when it came."""
        before = {side: self._stores[side].end for side in ("r", "s")}
        probes = {}
        for number, side in ((R, "r"), (S, "s")):
            stored, probes[side] = self._matcher.prepare(side, part.table(side))
            ts = None if part.ts is None else part.ts[part.stream == number]
            self._stores[side].append(stored, ts, len(part.table(side)))
        found = []
        for number, side, other in ((R, "r", "s"), (S, "s", "r")):
            at = np.flatnonzero(part.stream == number)  # positions of the probes within the batch
            seen = before[other] + np.cumsum(part.stream != number)[at]
            start, end = self._stores[other].window(seen, None if part.ts is None else part.ts[at])
            self._comparisons += int((end - start).sum())
            found.append(self._probe(side, at, before[side], probes[side], start, end))
        items = self._ordered(found)
        for store in self._stores.values():
            store.trim(None if part.ts is None or not len(part) else int(part.ts[-1]))
        return items

    def _probe(self, side: str, at: Rows, first_row: int, probes: list[npt.NDArray[np.generic]], start: Rows,
               end: Rows) -> tuple[Rows, Rows, Items]:
        """One stream's items, in order, and their sort keys: the probe's position, the place in its window."""
        store = self._stores["s" if side == "r" else "r"]
        stored = store.arrays
        indices, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for lo in range(0, len(at), _PROBES):
            hi = lo + _PROBES
            index, row = self._matcher.find(side, [p[lo:hi] for p in probes], stored, start[lo:hi], end[lo:hi],
                                            store.base)
            indices.append(index + lo)
            rows.append(row)
        index, row = np.concatenate(indices), np.concatenate(rows)
        self._matches += len(row)
        pairs = _items(PAIR, side, first_row + index, row)
        star_at, star_place = self._stars(side, start, end)
        stars = _items(STAR, side, first_row + star_at, np.full(len(star_at), -1))
        # Twice the place, so that a star stands between two tuples.
        return (np.concatenate([at[index], at[star_at]]), np.concatenate([2 * (row - start[index]), star_place]),
                np.concatenate([pairs, stars]))

    def _stars(self, side: str, start: Rows, end: Rows) -> tuple[Rows, Rows]:
        """The probes (index) after which a star stands, and its place within the probe's window."""
        order, n = self._query.order, len(start)
        if order.kind == "none" or n == 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        every = order.n if order.kind == "outer" else 1
        at = np.arange(n)[(self._open[side] + np.arange(1, n + 1)) % every == 0]
        self._open[side] = (self._open[side] + n) % every
        place = 2 * (end - start)[at]
        if order.kind != "inner":
            return at, place
        # One star between each two slices of n tuples of the window, besides the one behind the last.
        slices = np.maximum(-(-(end - start) // order.n) - 1, 0)
        within = np.arange(int(slices.sum())) - np.repeat(np.cumsum(slices) - slices, slices)
        return (np.concatenate([at, np.repeat(np.arange(n), slices)]),
                np.concatenate([place, 2 * order.n * (within + 1) - 1]))

    def _ordered(self, found: list[tuple[Rows, Rows, Items]]) -> Items:
        """Both streams' items by the probe's arrival, then by place in the window."""
        at, place, items = (np.concatenate([f[n] for f in found]) for n in range(3))
        ordered: Items = items[np.lexsort((place, at))]
        return ordered


def _items(kind: int, side: str, probe: Rows, stored: Rows) -> Items:
    out = np.empty(len(probe), ITEM)
    out["kind"], out["side"] = kind, R if side == "r" else S
    out["r"], out["s"] = (probe, stored) if side == "r" else (stored, probe)
    return out
