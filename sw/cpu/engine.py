"""The device ``cpu``: joins in compiled loops, in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeVar, get_args

import numpy as np

from ..arrival import Arrivals
from ..device.api import ITEM, STAR, Device, Items, Session, check_inner
from ..errors import DeviceError, InputError, UnsupportedError
from ..lang.query import Query
from ..memory import MatchMemory, check_memory, too_large
from .gather import gather
from .search import Search, make_search
from .timeline import Timeline
from .worker import Batch, in_sequence

__all__ = ["INTERVAL_ENGINES", "CpuDevice", "CpuEngine", "CpuSession"]

CpuEngine = Literal["auto", "index", "nested", "sliding", "key-oij", "scale-oij"]
#: Engines that fold aggregates without making pairs (`splitjoin.oij`).
INTERVAL_ENGINES = ("sliding", "key-oij", "scale-oij")

A = TypeVar("A")
B = TypeVar("B")

#: Arrivals of a batch, whose results are in memory at the same time.
_BATCH = 1 << 16
#: Least nanoseconds of work for which threads are woken: the hand-over takes about a third of it.
_MIN_PARALLEL = 400_000.0


@dataclass(frozen=True, kw_only=True)
class CpuDevice(Device):
    """Runs queries on the CPU. Takes every predicate, window and order.

    Attributes:
        engine: ``"index"`` looks stored tuples up by the keys of one or two conditions; ``"nested"`` compares every
            pair of a window, in vector code; ``"auto"`` takes the cheaper one for the measured selectivity. Of
            aggregates over joins by equal keys, ``"sliding"``, ``"key-oij"`` and ``"scale-oij"`` make no pairs
            (docs/aggregates.md), and ``"auto"`` takes the first of these where it can.
        threads: 1 to 256; all processors of this process by default. Two of them are a worker, which has a region for
            each stream's probes as a join core has; the workers share the windows by SplitJoin's scheme.
        prefilter: True if nested loops may compare narrow copies of the keys first, and verify what passes.
    """

    name: ClassVar[str] = "cpu"
    immediate: ClassVar[bool] = True
    settles: ClassVar[bool] = True
    engine: CpuEngine = "auto"
    threads: int | None = None
    prefilter: bool = True

    def __post_init__(self) -> None:
        if self.engine not in get_args(CpuEngine):
            raise DeviceError(f"engine must be {', '.join(map(repr, get_args(CpuEngine)[:-1]))} or 'scale-oij', not "
                              f"{self.engine!r}")
        if self.threads is not None and not (type(self.threads) is int and 1 <= self.threads <= 256):
            raise DeviceError(f"threads must be a number from 1 to 256, or None for all processors, "
                              f"not {self.threads!r}")
        if not isinstance(self.prefilter, bool):
            raise DeviceError(f"prefilter must be True or False, not {self.prefilter!r}")

    def open(self, query: Query) -> Session:
        """Start a session of ``query``. Raises `UnsupportedError` if an index is required and no test suits one."""
        check_inner(query)
        if self.engine not in ("auto", "index", "nested"):
            raise UnsupportedError(f"engine={self.engine!r} folds aggregates, but the query gives pairs; use "
                                   f"engine='auto'")
        # A worker has two regions, one for each stream's probes, which are threads of their own.
        return CpuSession(query, make_search(query, self.engine, self.prefilter, -(-self.workers // 2)), self.workers)

    @property
    def workers(self) -> int:
        """The number of threads that may run."""
        return self.threads or _processors()


class CpuSession(Session):
    """A query on the CPU engine. All pushed arrivals are processed when `push` returns."""

    def __init__(self, query: Query, search: Search, threads: int = 1):
        self._query, self._search = query, search
        self._timeline = Timeline(query)
        # Beside the thread that calls: one for each other worker, and for every worker's second region.
        self._pool = ThreadPoolExecutor(search.threads - 1, "splitjoin worker") if search.threads > 1 else None
        self._regions = ThreadPoolExecutor(threads // 2, "splitjoin region") if threads > 1 else None
        self._open = np.zeros(2, np.int64)  # probes since the last star
        self._last: int | None = None
        self._items: list[Items] = []
        self._comparisons = self._matches = 0
        self._flushed = self._broken = self._closed = False
        self._process = os.getpid()

    def push(self, arrivals: Arrivals) -> None:
        """Take the next arrivals, in order.

        Raises `InputError` when event time decreases, and `CapacityError` when the results do not fit into memory.
        """
        self._check_usable()
        if self._flushed:
            raise DeviceError("nothing can be pushed after flush; open a new session")
        self._check_times(arrivals)
        self._broken = True  # until all is done: an interrupt may come at any point
        done = {"r": 0, "s": 0}
        for first in range(0, len(arrivals), _BATCH):
            stream = arrivals.stream[first:first + _BATCH]
            s = int(np.count_nonzero(stream))
            counts = {"r": len(stream) - s, "s": s}
            part = Arrivals(stream, None if arrivals.ts is None else arrivals.ts[first:first + _BATCH],
                            arrivals.r.slice(done["r"], counts["r"]), arrivals.s.slice(done["s"], counts["s"]))
            self._add(part)
            done = {side: done[side] + n for side, n in counts.items()}
        self._broken = False

    def poll(self) -> Items:
        """The result items since the last call. Raises `CapacityError` if they do not fit into memory."""
        self._check_usable()
        try:
            items = self._items[0] if len(self._items) == 1 else np.concatenate([np.empty(0, ITEM), *self._items])
        except MemoryError as error:
            raise too_large(self._matches) from error
        self._items = []
        return items

    def settle(self) -> Items:
        """As `poll`, since a push returns after all its results are there."""
        return self.poll()

    def flush(self) -> Items:
        """Close each open group with a last star, R's before S's, and return the items that were not polled yet."""
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
        """The engine that runs at present, in words."""
        return self._search.description

    def close(self) -> None:
        """Stop the worker threads, after they have finished."""
        self._closed = True
        for pool in (self._pool, self._regions):
            if pool is not None:
                pool.shutdown()

    def _check_usable(self) -> None:
        if self._closed:
            raise DeviceError("the session is closed; open a new one")
        if self._process != os.getpid():
            raise DeviceError("the session was opened before this process was forked, and its threads are not here; "
                              "open a new one")
        if self._broken:
            raise DeviceError("the session was stopped in the middle of a push, and part of its input is lost; open a "
                              "new one, or restart a streaming session")

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

    def _add(self, part: Arrivals) -> None:
        """Add the items of ``part``, as long as `poll` can give all that there are in one array."""
        try:
            self._items.append(self._batch(part))
        except MemoryError as error:
            raise too_large(self._matches) from error
        if len(self._items) > 1:
            check_memory(self._matches, sum(items.nbytes for items in self._items))

    def _batch(self, part: Arrivals) -> Items:
        """Every worker stores its share of the batch and probes its windows; their matches are gathered in order."""
        first = dict(self._timeline.ends)
        # In sequence: this takes less time than a hand-over of the interpreter's lock.
        encoded = in_sequence(lambda side: self._search.encode(side, part.table(side)))
        windows = self._timeline.windows(part)
        pairs = sum(int((end - start).sum()) for start, end in windows.values())
        batch = Batch(part.stream, first, {side: e[0] for side, e in encoded.items()},
                      {side: e[1] for side, e in encoded.items()}, windows, self._timeline.starts,
                      memory=MatchMemory(self._matches))
        workers = self._search.workers(batch)
        if self._regions is not None and self._search.cost(len(part), pairs) >= _MIN_PARALLEL:
            pool, sides = self._regions, ("r", "s")
            batch = replace(batch, both=lambda function: dict(
                zip(sides, _concurrently(pool, function, sides), strict=True)))
            found = _concurrently(self._pool, lambda worker: worker.process(batch), workers)
        else:
            found = [worker.process(batch) for worker in workers]
        self._timeline.trim()
        order = self._query.order
        every = {"none": 0, "outer": order.n, "inner": 1, "total": 1}[order.kind]
        items, matches = gather(batch, found, every, order.n if order.kind == "inner" else 0, self._open)
        self._matches += matches
        self._comparisons += pairs
        return items


def _concurrently(pool: Executor | None, function: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """``function`` of all ``items``, of the first one in this thread. Waits for all, also when one fails."""
    futures = [] if pool is None else [pool.submit(function, item) for item in items[1:]]
    try:
        first = function(items[0])
    finally:
        wait(futures)
    return [first, *(future.result() for future in futures)]


def _processors() -> int:
    return min(256, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
