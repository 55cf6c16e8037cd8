"""The index engine: a worker's share in a grid of cells by one or two keys, with exact expiry in arrival order.

The idea of ESJ's main and secondary predicates and of online interval join's range index: a probe looks only into the
cells that its intervals touch. Cells hold tuples in arrival order, contiguous, so that they expire at one end and are
compared 64 at a time (`cells`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DeviceError
from ..lang.plan import Plan
from .cells import DONE, GROW, STATE, lay_out, search
from .choice import Choice, Selectivity, levels_for
from .jit import load
from .levels import Levels, hashed, learn
from .locate import owns, probes
from .store import Store
from .tests_source import is_equality, used_slots
from .verify_source import verify_source
from .worker import Batch, Found, Worker

__all__ = ["IndexWorker"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
Levels2 = npt.NDArray[np.int32]

#: Candidates that are found before they are handed over, beside those of one probe.
_ROOM = 1 << 16
#: Tuples by which cells can grow, at least, before the grid is laid out anew.
_SPARE = 1 << 12
#: Places in a grid, which are numbered in 32 bits; a cell that grows takes some beyond.
_MOST_SLOTS = 1 << 30
#: Arrivals that are stored before any of them looks: an eighth of the window, within these limits.
_LEAST, _MOST = 128, 8192


@dataclass
class _Grid:
    """One stream's cells: ``head`` (cells, 4), and slots: ``rows`` has row ids, ``pool`` blocks of bytes (`cells`).

    ``levels`` tell a tuple's cell and bytes; ``stride``: cells in the second dimension; ``used`` (1,): slots in use.
    """

    head: npt.NDArray[np.int32]
    rows: Rows
    pool: npt.NDArray[np.uint8]
    used: Rows
    levels: list[Levels]
    stride: int


class IndexWorker(Worker):
    """Looks up its share by the tests that ``choice`` names."""

    def __init__(self, number: int, workers: int, plan: Plan, choice: Choice, selectivity: Selectivity):
        super().__init__(number, workers)
        self._plan, self._tests, self._selectivity = plan, choice.tests, selectivity
        self._verify = {side: load(verify_source(plan, side)).verify for side in ("r", "s")}
        self._grids: dict[str, _Grid] = {}
        self._ends = {"r": 0, "s": 0}  # stored tuples that are in the grids

    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches."""
        found = batch.both(lambda side: self._region(batch, side, "s" if side == "r" else "r"))
        self._ends = {side: store.end for side, store in self.stores.items()}
        return found

    def _region(self, batch: Batch, side: str, stored: str) -> Found:
        """The matches of the probes of stream ``side`` among the tuples of ``stored``, which go into their grid."""
        state, start = np.zeros(STATE, np.int64), batch.windows[side][0]
        # Dead for the probes to come; those of the batch may see more.
        state[5] = start[0] if len(start) else batch.starts[stored]
        if stored not in self._grids:
            self._build(stored, int(state[5]), self._ends[stored])
        counts, bounds = np.zeros(len(start), np.int64), self._parts(batch, side)
        parts: list[Rows] = []
        done = 0
        grid, found, own, looked = self._prepared(batch, side, stored)
        while True:
            why = search(bounds, state, self.number, self.workers, self._ends[stored], start, own, looked, grid.stride,
                         grid.head, grid.rows, grid.pool, grid.used, counts, found)
            # At once, so that candidates do not pile up.
            parts.append(self._verified(batch, side, slice(done, int(state[2])), counts, found[: state[3]]))
            done, state[3] = int(state[2]), 0
            if why == DONE:
                break
            if why == GROW:
                self._build(stored, int(state[5]), self._ends[stored] + int(state[1]))
                grid, found, own, looked = self._prepared(batch, side, stored)
        self.looked_at(int(state[4]))
        return counts, np.concatenate(parts)

    def adopt(self, stores: dict[str, Store]) -> None:
        """Take over the keys that another engine's worker of the same number has stored."""
        for side, store in stores.items():
            if store.arrays:
                store.replace(store.arrays[: len(self._plan.slots(side))])
        self.stores = stores
        self._grids = {}
        self._ends = {side: store.end for side, store in stores.items()}

    def _slot(self, side: str, test: int) -> int:
        return self._plan.tests[test].r if side == "r" else self._plan.tests[test].s

    def _parts(self, batch: Batch, side: str) -> Rows:
        """Up to the end of each part of the batch: the other stream's tuples that are stored here, and the probes."""
        live = max((int(end[-1] - start[-1]) for start, end in batch.windows.values() if len(end)), default=0)
        part = min(max(live // 8, _LEAST), _MOST)
        n = len(batch.stream)
        ends = np.minimum(np.arange(part, n + part, part), n)
        s = np.cumsum(batch.stream, dtype=np.int64)[ends - 1]
        probing, stored, first = (ends - s, s, batch.first["s"]) if side == "r" else (s, ends - s, batch.first["r"])
        mine = (first + stored - self.number + self.workers - 1) // self.workers - self.local(first)
        return np.stack([mine, probing], axis=1)

    def _prepared(self, batch: Batch, side: str, stored: str) -> tuple[_Grid, Rows, Levels2, Levels2]:
        """The grid of stream ``stored``, room for candidates in it, where the batch's tuples that are stored here go,
        and where the probes of stream ``side`` look.
        """
        grid, store, lanes, tests = self._grids[stored], self.stores[stored], batch.probes[side], len(self._plan.tests)
        new = slice(self._ends[stored] - store.base, None)
        own = owns(grid.levels, [store.arrays[self._slot(stored, j)][new] for j in self._tests])
        looked = probes(grid.levels, [lanes[j] for j in self._tests], [lanes[tests + j] for j in self._tests])
        return grid, np.empty(len(grid.rows) + _ROOM, np.int64), own, looked

    def _verified(self, batch: Batch, side: str, of: slice, counts: Rows, rows: Rows) -> Rows:
        """The matches among the candidates ``rows`` of the probes ``of`` of stream ``side``; counts become theirs."""
        other, tests = "s" if side == "r" else "r", len(self._plan.tests)
        lanes, store = [a[of] for a in batch.probes[side]], self.stores[other]
        if store.end == store.base:  # what the grid still has is dead
            counts[of] = 0
            return rows[:0].copy()
        if not len(rows):
            return rows.copy()
        start, end = batch.windows[side]
        keys = [store.arrays[slot] for slot in used_slots(self._plan, other)]
        n = self._verify[other](self.workers, self.number, store.base, start[of], end[of], counts[of], rows, *keys,
                                *(a for pair in zip(lanes[:tests], lanes[tests:], strict=True) for a in pair))
        return rows[:n].copy()

    def _build(self, side: str, dead: int, end: int) -> None:
        """Learn how the keys are spread, and lay out a grid of the stored tuples from row ``dead`` to
        position ``end``.
        """
        store = self.stores[side]
        first = max(min(self.local(dead), end), store.base)
        keys = [store.arrays[self._slot(side, j)] for j in self._tests]
        # What has not arrived yet, but is in this batch, tells as much as what is stored.
        sample = [k[first - store.base:] if end - first >= 1024 else k for k in keys]
        counts = levels_for(self._plan, self._selectivity, self._tests, max(end - first, len(sample[0]) // 2))
        levels = [hashed((256 * n - 1).bit_length()) if is_equality(self._plan, j) else learn(s, 256 * n)
                  for j, n, s in zip(self._tests, counts, sample, strict=True)]
        own = owns(levels, [k[first - store.base:end - store.base] for k in keys])
        cells = [-(-x.count // 256) for x in levels] + [1]  # 256 levels to a cell
        head, used = np.empty((cells[0] * cells[1], 4), np.int32), np.zeros(1, np.int64)
        size = _SPARE // 64 * 64 + 64
        while True:
            rows, pool = np.empty(size, np.int64), np.empty(2 * size, np.uint8)
            if lay_out(own, cells[1], first, self.number, self.workers, head, rows, pool, used):
                break
            size = int(used[0]) // 64 * 96 + size
            if size > _MOST_SLOTS:
                raise DeviceError(f"an index holds up to {_MOST_SLOTS:,} places for tuples of a stream, but this "
                                  f"window needs {size:,}; use engine='nested', more threads, or a shorter window")
        self._grids[side] = _Grid(head, rows, pool, used, levels, cells[1])
