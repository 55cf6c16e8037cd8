"""The device ``cpu``: the same joins at the speed of the machine, in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from ..arrival import Arrivals
from ..device.api import ITEM, STAR, Device, Items, Session
from ..errors import DeviceError, InputError
from ..lang.query import Query
from .gather import gather
from .search import EngineName, Search, make_search
from .timeline import Timeline
from .worker import Batch

__all__ = ["CpuDevice", "CpuSession"]

A = TypeVar("A")
B = TypeVar("B")

#: Arrivals that are worked on at once: their results are in memory together.
_BATCH = 1 << 15


@dataclass(frozen=True, kw_only=True)
class CpuDevice(Device):
    """Runs queries on the CPU. Takes every predicate, window and order.

    Attributes:
        engine: ``"index"`` looks stored tuples up by the keys of one or two conditions; ``"nested"`` compares every
            pair of a window, in vector code; ``"auto"`` takes what is cheaper for the selectivity it measures.
        threads: Workers that share the window by SplitJoin's scheme, 1 to 256; all processors of this process by
            default.
        prefilter: Whether nested loops may look at narrow copies of the keys first and verify what these suspect.
    """

    name: ClassVar[str] = "cpu"
    immediate: ClassVar[bool] = True
    engine: EngineName = "auto"
    threads: int | None = None
    prefilter: bool = True

    def __post_init__(self) -> None:
        if self.engine not in ("auto", "index", "nested"):
            raise DeviceError(f"engine must be 'auto', 'index' or 'nested', not {self.engine!r}")
        if self.threads is not None and not (type(self.threads) is int and 1 <= self.threads <= 256):
            raise DeviceError(f"threads must be a number from 1 to 256, or None for all processors, "
                              f"not {self.threads!r}")
        if not isinstance(self.prefilter, bool):
            raise DeviceError(f"prefilter must be True or False, not {self.prefilter!r}")

    def open(self, query: Query) -> Session:
        """Make what ``query`` needs, and start. Raises `UnsupportedError` where an index is asked for in vain."""
        return CpuSession(query, make_search(query, self.engine, self.prefilter, self.threads or _processors()))


class CpuSession(Session):
    """A query on the CPU engine. All of a pushed stretch is done when `push` returns."""

    def __init__(self, query: Query, search: Search):
        self._query, self._search = query, search
        self._timeline = Timeline(query)
        self._pool = ThreadPoolExecutor(search.threads, "splitjoin") if search.threads > 1 else None
        self._open = np.zeros(2, np.int64)  # probes since the last star
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
            s = int(np.count_nonzero(stream))
            counts = {"r": len(stream) - s, "s": s}
            part = Arrivals(stream, None if arrivals.ts is None else arrivals.ts[first:first + _BATCH],
                            arrivals.r.slice(done["r"], counts["r"]), arrivals.s.slice(done["s"], counts["s"]))
            self._items.append(self._batch(part))
            done = {side: done[side] + n for side, n in counts.items()}

    def poll(self) -> Items:
        """The items made since the last call."""
        items, self._items = self._items, []
        return items[0] if len(items) == 1 else np.concatenate([np.empty(0, ITEM), *items])

    def flush(self) -> Items:
        """Close open groups with a last star each, R's before S's, and return what was not polled yet."""
        if not self._flushed:
            self._flushed = True
            ends = self._timeline.ends
            last = [(STAR, 0, ends["r"] - 1, -1)] if self._open[0] else []
            last += [(STAR, 1, -1, ends["s"] - 1)] if self._open[1] else []
            self._items.append(np.array(last, ITEM))
        return self.poll()

    def counters(self) -> dict[str, int]:
        """``tuples_r``, ``tuples_s``, ``comparisons`` (pairs within the windows), ``candidates`` (those that the engine
        looked at), ``matches``.
        """
        return {"tuples_r": self._timeline.ends["r"], "tuples_s": self._timeline.ends["s"],
                "comparisons": self._comparisons, "candidates": self._search.candidates, "matches": self._matches}

    def plan(self) -> str:
        """What runs at present, in words."""
        return self._search.words

    def close(self) -> None:
        """Stop the worker threads."""
        if self._pool is not None:
            self._pool.shutdown()

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
        """Every worker stores its share of the batch and probes it; what they find is gathered in order."""
        first = dict(self._timeline.ends)
        encoded = dict(zip(("r", "s"), self._map(lambda side: self._search.encode(side, part.table(side)),
                                                 ("r", "s")), strict=True))
        windows = self._timeline.windows(part)
        batch = Batch(part.stream, first, {side: e[0] for side, e in encoded.items()},
                      {side: e[1] for side, e in encoded.items()}, windows, self._timeline.starts)
        workers = self._search.workers(batch)
        found = self._map(lambda worker: worker.process(batch), workers)
        self._timeline.trim()
        order = self._query.order
        every = {"none": 0, "outer": order.n, "inner": 1, "total": 1}[order.kind]
        items, matches = gather(batch, found, every, order.n if order.kind == "inner" else 0, self._open)
        self._matches += matches
        self._comparisons += sum(int((end - start).sum()) for start, end in windows.values())
        return items

    def _map(self, function: Callable[[A], B], over: Iterable[A]) -> list[B]:
        return list(map(function, over)) if self._pool is None else list(self._pool.map(function, over))


def _processors() -> int:
    return min(256, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
