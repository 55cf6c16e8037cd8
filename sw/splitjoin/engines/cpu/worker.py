"""A worker: SplitJoin's join core in software. It stores its round-robin share and probes it with every tuple."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from splitjoin.base.memory import MatchMemory

from .store import Store
from .timeline import Windows, extent

__all__ = ["Batch", "Found", "Worker", "in_sequence"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
A = TypeVar("A")
N = TypeVar("N", int, Rows)

#: Matches of one stream's probes: how many each has (n,), and the row ids, one probe's after the other's.
Found = tuple[Rows, Rows]


def in_sequence(function: Callable[[str], A]) -> dict[str, A]:
    """``function`` of R, and then of S."""
    return {side: function(side) for side in ("r", "s")}


@dataclass(frozen=True)
class Batch:
    """A batch of consecutive arrivals, the same for all workers.

    ``stream``: 0 = R, 1 = S, by arrival. Per stream: the row id of its first tuple, the arrays its tuples are stored
    as, the arrays they probe with, and their windows. ``starts``: the first row that probes to come may see.
    ``both`` does what a worker has to do for the probes of either stream, a join core's left and right region, which
    may run at the same time. ``memory`` counts the matches that workers find.
    """

    stream: npt.NDArray[np.uint8]
    first: dict[str, int]
    stored: dict[str, list[Array]]
    probes: dict[str, list[Array]]
    windows: Windows
    starts: dict[str, int]
    both: Callable[[Callable[[str], Found]], dict[str, Found]] = in_sequence
    memory: MatchMemory = field(default_factory=MatchMemory)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The number of pairs of probes and stored tuples in the windows, and the tuples of the longest window."""
        return extent(self.windows)


class Worker(ABC):
    """Worker ``number`` of ``workers``, which stores row i of each stream if i mod ``workers`` is its number.

    See semantics, section 5.
    """

    def __init__(self, number: int, workers: int):
        self.number, self.workers = number, workers
        self.stores = {side: Store() for side in ("r", "s")}
        self.candidates = 0
        self._lock = Lock()

    def process(self, batch: Batch) -> dict[str, Found]:
        """Store the worker's share of the batch, find the matches in its share for every probe, and expire."""
        self.keep(batch)
        found = self.find(batch)
        self.expire(batch)
        return found

    def keep(self, batch: Batch) -> None:
        """Store the worker's share of the batch."""
        for side, store in self.stores.items():
            skip, n = (self.number - batch.first[side]) % self.workers, len(batch.windows[side][0])
            mine = batch.stored[side] if self.workers == 1 else [a[skip::self.workers] for a in batch.stored[side]]
            store.append(self.extend(side, mine), max(0, -(-(n - skip) // self.workers)))

    def expire(self, batch: Batch) -> None:
        """Drop the tuples that no probe after the batch sees."""
        for side, store in self.stores.items():
            store.trim(min(self.local(batch.starts[side]), store.end))

    def extend(self, side: str, arrays: list[Array]) -> list[Array]:
        """The arrays to store for tuples of stream ``side``; narrow copies may be added."""
        return arrays

    @abstractmethod
    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches."""

    def count_candidates(self, pairs: int) -> None:
        """Count candidates; both regions do."""
        with self._lock:
            self.candidates += pairs

    def local(self, row: N) -> N:
        """The position in this worker's store of its first row from ``row`` on: as many rows below are its own. Also of
        arrays.
        """
        return (row - self.number + self.workers - 1) // self.workers

    def seen(self, batch: Batch, side: str) -> tuple[Rows, Rows]:
        """The windows of the probes of stream ``side``, as positions in the other stream's store."""
        start, end = batch.windows[side]
        if self.workers == 1:
            return start, end
        add = self.workers - 1 - self.number
        return (start + add) // self.workers, (end + add) // self.workers
