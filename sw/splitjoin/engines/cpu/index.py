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

from splitjoin.base.errors import DeviceError
from splitjoin.lang.schema import other_side
from splitjoin.plan.plan import Plan, is_equality

from .cells import build_grid
from .choice import Choice, Selectivity, levels_for
from .intrinsics import BLOCK
from .jit import load
from .levels import constant, cyclic, has_trend, hashed, learn
from .region_source import DONE, GROW, STATE, region_source
from .store import Store, aligned
from .tests_source import used_slots
from .worker import Batch, Found, Worker

__all__ = ["IndexWorker"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]

#: Room for candidates beside those of one probe.
_ROOM = 1 << 16
#: Tuples by which cells can grow, at least, before the grid is built anew.
_SPARE = 1 << 12
#: Places in a grid, which are numbered in 32 bits; a cell that grows takes some beyond. So are the tuples since it was
#: built.
_MOST_SLOTS = _MOST_TUPLES = 1 << 30
#: Arrivals that are stored before any of them probes: an eighth of the window, within these limits.
_LEAST, _MOST = 128, 8192


@dataclass
class _Grid:
    """One stream's cells: ``head`` (cells, 4), and slots: ``rows`` has tuples' numbers, ``pool`` blocks of bytes
    (`cells`).

    ``first``: the position of the tuple that has number 0. ``levels``: the fields of two `Levels`, which tell a tuple's
    cell and bytes; ``stride``: cells in the second dimension; ``used`` (1,): slots in use. ``found``, ``probe_of``,
    ``out``: room for candidates, their probes, and matches.
    """

    first: int
    levels: list[Any]
    stride: int
    head: Numbers
    rows: Numbers
    pool: npt.NDArray[np.uint8]
    used: Rows
    found: Numbers
    probe_of: Numbers
    out: Rows


class IndexWorker(Worker):
    """Looks up its share by the tests that ``choice`` names."""

    def __init__(self, number: int, workers: int, plan: Plan, choice: Choice, selectivity: Selectivity):
        super().__init__(number, workers)
        self._plan, self._tests, self._selectivity = plan, choice.tests, selectivity
        self._kernels = {side: load(region_source(plan, side, choice.tests)).region for side in ("r", "s")}
        self._used = {side: used_slots(plan, side) for side in ("r", "s")}
        self._grids: dict[str, _Grid] = {}
        self._scratch = {side: np.empty((4, _MOST), np.int32) for side in ("r", "s")}  # levels, for a part of a batch
        self._ends = {"r": 0, "s": 0}  # stored tuples that are in the grids

    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches."""
        longest = batch.extent[1]
        size = min(max(longest // 8, _LEAST), _MOST)
        found = batch.both(lambda side: self._region(batch, side, other_side(side), size))
        self._ends = {side: store.end for side, store in self.stores.items()}
        return found

    def _region(self, batch: Batch, side: str, stored: str, size: int) -> Found:
        """The matches of the probes of stream ``side`` among the tuples of ``stored``, which go into their grid, parts
        of ``size`` arrivals at a time.
        """
        start, end = batch.windows[side]
        count, found = np.zeros(len(start), np.int64), list[Rows]()
        store = self.stores[stored]
        if store.end == store.base:  # the grid's remaining tuples are expired
            return count, np.empty(0, np.int64)
        state = np.zeros(STATE, np.int64)
        state[6] = start[0] if len(start) else batch.starts[stored]
        if stored not in self._grids or store.end - self._grids[stored].first > _MOST_TUPLES:
            self._build(stored, self.local(int(state[6])), self._ends[stored])
        keys, kernel = store.arrays, self._kernels[side]
        while True:
            grid = self._grids[stored]
            why = kernel(
                batch.stream, size, batch.first[stored], state, self.workers, self.number, store.base, grid.first,
                self._ends[stored], start, end, *grid.levels, grid.stride, grid.head, grid.rows, grid.pool, grid.used,
                self._scratch[side], grid.found, grid.probe_of, count, grid.out,
                *(keys[slot] for slot in self._used[stored]), *batch.probes[side])
            matches = int(state[4])
            batch.memory.add(matches)
            found.append(grid.out[:matches].copy())
            state[4] = 0
            if why == DONE:
                break
            if why == GROW:
                self._build(stored, self.local(int(state[6])), self._ends[stored] + int(state[2]))
        self.count_candidates(int(state[5]))
        return count, found[0] if len(found) == 1 else np.concatenate(found)

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

    def _build(self, side: str, dead: int, end: int) -> None:
        """Learn how the keys are spread, and lay out a grid of the stored tuples from position ``dead`` to ``end``."""
        store = self.stores[side]
        first = max(min(dead, end), store.base)
        keys = [store.arrays[self._slot(side, j)] for j in self._tests]
        # The batch's later arrivals are as good a sample as the stored tuples.
        sample = [k[first - store.base:] if end - first >= 1024 else k for k in keys]
        counts = levels_for(self._plan, self._selectivity, self._tests, max(end - first, len(sample[0]) // 2))
        levels = [hashed((256 * n - 1).bit_length()) if is_equality(self._plan, j)
                  else cyclic(s, 256 * n) if has_trend(s) else learn(s, 256 * n)
                  for j, n, s in zip(self._tests, counts, sample, strict=True)]
        levels = levels if len(levels) == 2 else [*levels, constant()]
        lines, stride = (-(-x.count // 256) for x in levels)  # 256 levels to a cell
        span = slice(first - store.base, end - store.base)
        found = np.stack([y.of(k[span]) for y, k in zip(levels, (keys[0], keys[-1]), strict=True)])
        head, used = np.empty((lines * stride, 4), np.int32), np.zeros(1, np.int64)
        size = _SPARE // BLOCK * BLOCK + BLOCK
        while True:
            rows, pool = np.empty(size, np.int32), aligned(2 * size, np.uint8)
            if build_grid(found, stride, head, rows, pool, used):
                break
            size = int(used[0]) // 64 * 96 + size
            if size > _MOST_SLOTS:
                raise DeviceError(f"an index holds up to {_MOST_SLOTS:,} places for tuples of a stream, but this "
                                  f"window needs {size:,}; use engine='nested', more threads, or a shorter window")
        room = size + _ROOM
        self._grids[side] = _Grid(
            first, [x for y in levels for x in (y.numbers, y.reals, y.table, y.count)], stride, head, rows, pool, used,
            np.empty(room, np.int32), np.empty(room, np.int32), np.empty(2 * room, np.int64))

