"""The CPU engine: joins in compiled loops, in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from splitjoin.base.memory import MatchMemory
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals
from .gather import gather
from .helpers import Helper, concurrently
from .search import Search
from .session import BatchSession, Joined
from .timeline import Timeline
from .worker import Batch, in_sequence

__all__ = ["CpuSession"]

A = TypeVar("A")
B = TypeVar("B")

#: Least nanoseconds of work for which threads are woken: the hand-over takes about a third of it.
_MIN_PARALLEL = 200_000.0
#: Nanoseconds for keys, bounds and window of an arrival, and for its result items.
_ENCODE_NS, _GATHER_NS = 6.0, 4.0


class CpuSession(BatchSession):
    """A query in compiled loops."""

    def __init__(self, query: Query, search: Search, threads: int = 1):
        super().__init__(query)
        self._search = search
        self._timeline = Timeline(query)
        # Beside the thread that calls: one for each other worker, and for every worker's second region.
        self._helpers = [Helper("splitjoin worker") for _ in range(search.threads - 1)]
        self._regions = [Helper("splitjoin region") for _ in range(threads // 2)]
        self._free = list(self._regions)

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
        for helper in (*self._helpers, *self._regions):
            helper.close()

    def join_batch(self, part: Arrivals) -> Joined:
        """Every worker stores its share of the batch and probes its windows; their matches are gathered in order."""
        first = dict(self._timeline.ends)
        prepare = self._both if self._is_worth(len(part) * _ENCODE_NS) else in_sequence
        windows = self._timeline.windows(part, prepare)
        encoded = prepare(lambda side: self._search.encode(side, part.table(side)))
        stream = part.stream if part.stream.flags.writeable else part.stream.copy()  # one type in compiled loops
        batch = Batch(stream, first, {side: e[0] for side, e in encoded.items()},
                      {side: e[1] for side, e in encoded.items()}, windows, self._timeline.starts,
                      memory=MatchMemory(self._matches))
        pairs, _ = batch.extent
        workers = self._search.workers(batch)
        if self._is_worth(self._search.cost(len(part), pairs)):
            batch = replace(batch, both=self._both)
            found = concurrently(self._helpers, lambda worker: worker.process(batch), workers)
        else:
            found = [worker.process(batch) for worker in workers]
        self._timeline.trim()
        order = self._query.order
        every = {"none": 0, "outer": order.n, "inner": 1, "total": 1}[order.kind]
        two = self._two if self._is_worth(len(part) * _GATHER_NS) else None
        items, matches = gather(batch, found, every, order.n if order.kind == "inner" else 0, self.open_probes, two)
        return Joined(items, matches, pairs)

    def _is_worth(self, nanoseconds: float) -> bool:
        """True if so much work is worth a hand-over, and there are threads."""
        return bool(self._regions) and nanoseconds >= _MIN_PARALLEL

    def _both(self, function: Callable[[str], A]) -> dict[str, A]:
        return dict(zip(SIDES, self._two(function, SIDES), strict=True))

    def _two(self, function: Callable[[B], A], items: tuple[B, B]) -> list[A]:
        """``function`` of two ``items``, at the same time if a helper is free. Workers may call it at the same time."""
        try:
            helper = self._free.pop()
        except IndexError:  # an odd number of threads
            return [function(item) for item in items]
        try:
            return concurrently([helper], function, items)
        finally:
            self._free.append(helper)
