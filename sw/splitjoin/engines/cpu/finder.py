"""`Finder`: what every way to find matches has in common. All threads share one store of each stream's tuples."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from threading import local

import numpy as np
import numpy.typing as npt

from splitjoin.base import threads
from splitjoin.base.arrays import Array, Rows
from splitjoin.base.memory import MatchMemory
from splitjoin.lang.schema import SIDES
from splitjoin.plan.plan import Plan

from ..compiled.helpers import Team
from ..compiled.store import Store
from ..device import Items
from ..tuning import DEFAULTS, Tuning
from .timeline import Arriving, Windows, extent

#: Parts into which a batch is divided for each thread that runs, so that all end at about the same time.
_PARTS = 4


@dataclass(frozen=True)
class Joined:
    """Results of a batch: its items, how many of them are pairs, and the pairs that its windows hold."""

    items: Items
    matches: int
    pairs: int


@dataclass(frozen=True)
class Found:
    """Matches of one stream's probes.

    Attributes:
        counts: How many each probe has, int64 (n,).
        pieces: Where their row ids lie, one probe's after the other's: int64 (k, 4 or more) with the first probe of
            each piece, the one behind its last, the address of its first row id in memory, and the number of its row
            ids.
        memory: The arrays that hold them.
        matches: How many there are.
    """

    counts: Rows
    pieces: Rows
    memory: Sequence[Array]
    matches: int

    @classmethod
    def of(cls, counts: Rows, parts: Iterable[tuple[int, int, Rows]]) -> Found:
        """Of ``parts`` in the order of probes: the first probe, the one behind the last, and the row ids."""
        kept = [(p, until, rows) for p, until, rows in parts if len(rows)]
        pieces = [(p, until, rows.__array_interface__["data"][0], len(rows)) for p, until, rows in kept]
        return cls(counts, np.array(pieces, np.int64).reshape(-1, 4), [rows for *_, rows in kept],
                   sum(len(rows) for *_, rows in kept))

    def rows(self, piece: int) -> Rows:
        """The row ids of a piece."""
        address, n = self.pieces[piece, 2:4]
        return np.ctypeslib.as_array((ctypes.c_int64 * int(n)).from_address(int(address)))


@dataclass(frozen=True)
class Batch:
    """A batch of consecutive arrivals.

    ``stream``: 0 = R, 1 = S, by arrival. Per stream: the row id of its first tuple, the arrays its tuples are stored
    as, the arrays they probe with, and their windows. ``starts``: the first row that probes to come may see. ``team``
    shares the work, and ``memory`` counts the matches that are found. ``arrived``: what is known of a whole batch.
    """

    stream: npt.NDArray[np.uint8]
    first: dict[str, int]
    stored: dict[str, list[Array]]
    probes: dict[str, list[Array]]
    windows: Windows
    starts: dict[str, int]
    team: Team = field(default_factory=lambda: Team(1))
    memory: MatchMemory = field(default_factory=MatchMemory)
    arrived: Arriving | None = None

    @cached_property
    def extent(self) -> tuple[int, int]:
        """The number of pairs of probes and stored tuples in the windows, and the tuples of the longest window."""
        if self.arrived is None:
            return extent(self.windows)
        extents = self.arrived.extents
        return int(extents[::2].sum()), int(extents[1::2].max(initial=0))

    def parts(self, least: int) -> list[tuple[str, int, int]]:
        """Parts of the probes, which threads may take at the same time: the stream, the first probe, and the one behind
        the last. A part has ``least`` probes or more, as far as there are so many.
        """
        found: list[tuple[str, int, int]] = []
        for side in SIDES:
            n = len(self.windows[side][0])
            threads = min(self.team.size, self.team.awake)
            parts = max(1, min(_PARTS * threads if threads > 1 else 1, n // least))
            cuts = [n * i // parts for i in range(parts + 1)]
            found += [(side, a, b) for a, b in pairwise(cuts) if a < b]
        return found


class Finder(ABC):
    """Stores the tuples of both streams, and finds the matches of probes among them. A tuple's position in the store of
    its stream is its row id.
    """

    def __init__(self, tuning: Tuning = DEFAULTS) -> None:
        self.tuning = tuning
        self.stores: dict[str, Store] = {side: Store(tuning.slack) for side in SIDES}
        self.candidates = 0
        self._lock = threads.lock()
        self._buffer = local()

    def process(self, batch: Batch) -> dict[str, Found]:
        """Store the batch, find the matches of every probe, and expire."""
        self.keep(batch)
        found = self.find(batch)
        self.expire(batch)
        return found

    def keep(self, batch: Batch) -> None:
        """Store the tuples of the batch."""
        for side, store in self.stores.items():
            store.append(self.extend(side, batch.stored[side]), len(batch.windows[side][0]))

    def expire(self, batch: Batch) -> None:
        """Drop the tuples that no probe after the batch sees."""
        self.forget(batch.starts)

    def forget(self, starts: dict[str, int]) -> None:
        """Drop the tuples before the row ids ``starts``."""
        for side, store in self.stores.items():
            store.trim(min(starts[side], store.end))

    def extend(self, side: str, arrays: list[Array]) -> list[Array]:
        """The arrays to store for tuples of stream ``side``; narrow copies may be added."""
        return arrays

    def adopt(self, stores: dict[str, Store], plan: Plan) -> None:
        """Take over the keys that another finder of ``plan`` has stored."""
        for side, store in stores.items():
            if store.arrays:
                store.replace(self.extend(side, store.arrays[:len(plan.slots(side))]))
        self.stores = stores

    @abstractmethod
    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches."""

    def room(self, n: int) -> Rows:
        """Room for ``n`` rows or more, which this thread overwrites with its next call: new memory for each part of a
        batch would cost more than what is written to it.
        """
        rows: Rows | None = getattr(self._buffer, "rows", None)
        if rows is None or len(rows) < n:
            self._buffer.rows = rows = np.empty(n, np.int64)
        return rows

    def count_candidates(self, pairs: int) -> None:
        """Count candidates; every thread does."""
        with self._lock:
            self.candidates += pairs


def assembled(parts: Sequence[tuple[str, int, int]], found: Sequence[tuple[Rows, Rows]]) -> dict[str, Found]:
    """The matches of all ``parts`` of the probes, of each of which are given how many each probe has, and the rows."""
    made: dict[str, Found] = {}
    for side in SIDES:
        mine = [(a, b, *of) for (where, a, b), of in zip(parts, found, strict=True) if where == side]
        counts = [np.empty(0, np.int64)] if not mine else [of for _, _, of, _ in mine]
        made[side] = Found.of(counts[0] if len(counts) == 1 else np.concatenate(counts),
                              [(a, b, rows) for a, b, _, rows in mine])
    return made


def in_task_order(rounds: Sequence[Rows]) -> Rows:
    """The pieces (k, 5) that tasks found in all rounds, in the order of tasks, whose numbers are in the last column."""
    if len(rounds) == 1:
        return rounds[0]
    every = np.concatenate(rounds)
    return every[np.argsort(every[:, 4], kind="stable")]
