"""`BatchSession`: what every engine on the CPU has in common, whether its loops are compiled or not."""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import DeviceError, InputError
from splitjoin.base.memory import check_memory, too_large
from splitjoin.lang.query import Query

from ..arrival import Arrivals, MergedSlices
from ..device import ITEM, STAR, Items, Session
from ..tuning import DEFAULTS, Tuning

__all__ = ["BatchSession", "Joined"]


@dataclass(frozen=True)
class Joined:
    """Results of a batch: its items, how many of them are pairs, and the pairs that its windows hold."""

    items: Items
    matches: int
    pairs: int


class BatchSession(Session):
    """A query in this process, a batch of arrivals at a time. All pushed arrivals are processed when `push` returns."""

    def __init__(self, query: Query, tuning: Tuning = DEFAULTS) -> None:
        self._query, self._tuning = query, tuning
        self._is_timed = any(query.window(side).length is not None for side in ("r", "s"))
        self.open_probes: npt.NDArray[np.int64] = np.zeros(2, np.int64)  # of R and of S, since the last star
        self.last_time: int | None = None
        self._items: list[Items] = []
        self._comparisons = self._matches = 0
        self._flushed = self._broken = self._closed = False
        self._process = os.getpid()

    @property
    @abstractmethod
    def ends(self) -> dict[str, int]:
        """Per stream the number of its tuples so far."""

    @property
    @abstractmethod
    def candidates(self) -> int:
        """The number of candidate pairs that the engine has compared."""

    @abstractmethod
    def join_batch(self, part: Arrivals) -> Joined:
        """Store the tuples of ``part``, find their partners, and expire what no later tuple sees."""

    def push(self, arrivals: Arrivals) -> None:
        """Take the next arrivals, in order.

        Raises `InputError` when event time decreases, and `CapacityError` when the results do not fit into memory.
        """
        self._check_usable()
        if self._flushed:
            raise DeviceError("nothing can be pushed after flush; open a new session")
        self._check_times(arrivals)
        self._broken = True  # until all is done: an interrupt may come at any point
        rest: Arrivals | None = arrivals if len(arrivals) else None
        while rest is not None:
            part, rest = rest.split(self._tuning.batch)
            self._add(part)
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
            ends = self.ends
            last = [(STAR, 0, ends["r"] - 1, -1)] if self.open_probes[0] else []
            last += [(STAR, 1, -1, ends["s"] - 1)] if self.open_probes[1] else []
            self._items.append(np.array(last, ITEM))
        return self.poll()

    def counters(self) -> dict[str, int]:
        """``tuples_r``, ``tuples_s``, ``comparisons`` (pairs within the windows), ``candidates`` (those that the engine
        looked at), ``matches``.
        """
        return {"tuples_r": self.ends["r"], "tuples_s": self.ends["s"], "comparisons": self._comparisons,
                "candidates": self.candidates, "matches": self._matches}

    def close(self) -> None:
        """Release what the session holds."""
        self._closed = True

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
            if self._is_timed and len(arrivals):
                raise InputError("a RANGE window needs event times, but these arrivals have none")
            return
        if len(ts):
            rises = isinstance(arrivals, MergedSlices) or not (ts[1:] < ts[:-1]).any()
            if not rises or (self.last_time is not None and int(ts[0]) < self.last_time):
                raise InputError("event time must not decrease in arrival order; sort both streams by it first")
            self.last_time = int(ts[-1])

    def _add(self, part: Arrivals) -> None:
        """Add the items of ``part``, as long as `poll` can give all that there are in one array."""
        try:
            joined = self.join_batch(part)
        except MemoryError as error:
            raise too_large(self._matches) from error
        self._matches += joined.matches
        self._comparisons += joined.pairs
        self._items.append(joined.items)
        if len(self._items) > 1:
            check_memory(self._matches, sum(items.nbytes for items in self._items))
