"""The CPU engine: joins in compiled loops, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TypeVar

from ..arrival import Arrivals
from ..lang.query import Query
from ..memory import MatchMemory
from .gather import gather
from .search import Search
from .session import BatchSession, Joined
from .timeline import Timeline
from .worker import Batch, in_sequence

__all__ = ["CpuSession"]

A = TypeVar("A")
B = TypeVar("B")

#: Least nanoseconds of work for which threads are woken: the hand-over takes about a third of it.
_MIN_PARALLEL = 400_000.0


class CpuSession(BatchSession):
    """A query in compiled loops."""

    def __init__(self, query: Query, search: Search, threads: int = 1):
        super().__init__(query)
        self._search = search
        self._timeline = Timeline(query)
        # Beside the thread that calls: one for each other worker, and for every worker's second region.
        self._pool = ThreadPoolExecutor(search.threads - 1, "splitjoin worker") if search.threads > 1 else None
        self._regions = ThreadPoolExecutor(threads // 2, "splitjoin region") if threads > 1 else None

    @property
    def ends(self) -> dict[str, int]:
        """Per stream the number of its tuples so far."""
        return self._timeline.ends

    @property
    def candidates(self) -> int:
        """The number of candidate pairs that the engine has compared."""
        return self._search.candidates

    def plan(self) -> str:
        """The engine that runs at present, in words."""
        return self._search.description

    def close(self) -> None:
        """Stop the worker threads, after they have finished."""
        super().close()
        for pool in (self._pool, self._regions):
            if pool is not None:
                pool.shutdown()

    def join_batch(self, part: Arrivals) -> Joined:
        """Every worker stores its share of the batch and probes its windows; their matches are gathered in order."""
        first = dict(self._timeline.ends)
        # In sequence: this takes less time than a hand-over of the interpreter's lock.
        encoded = in_sequence(lambda side: self._search.encode(side, part.table(side)))
        windows = self._timeline.windows(part)
        batch = Batch(part.stream, first, {side: e[0] for side, e in encoded.items()},
                      {side: e[1] for side, e in encoded.items()}, windows, self._timeline.starts,
                      memory=MatchMemory(self._matches))
        pairs, _ = batch.extent
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
        items, matches = gather(batch, found, every, order.n if order.kind == "inner" else 0, self.open_probes)
        return Joined(items, matches, pairs)


def _concurrently(pool: Executor | None, function: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """``function`` of all ``items``, of the first one in this thread. Waits for all, also when one fails."""
    futures = [] if pool is None else [pool.submit(function, item) for item in items[1:]]
    try:
        first = function(items[0])
    finally:
        wait(futures)
    return [first, *(future.result() for future in futures)]
