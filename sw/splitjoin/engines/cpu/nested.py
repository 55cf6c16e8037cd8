"""The nested-loop engine: compiled interval tests over a worker's whole share of the window."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import other_side
from splitjoin.plan.plan import Plan

from .choice import Choice
from .jit import load
from .levels import Levels, learn
from .nested_source import CHUNK, PROBES, nested_source
from .store import Store
from .tests_source import used_slots
from .worker import Batch, Found, Worker

__all__ = ["NestedWorker"]

Array = npt.NDArray[Any]

#: Room for matches beside those of one probe.
_ROOM = 1 << 16


class NestedWorker(Worker):
    """Scans its share for every probe; ``choice`` says by which tests narrow copies of the keys are kept."""

    def __init__(self, number: int, workers: int, plan: Plan, choice: Choice, samples: dict[str, list[Array]]):
        super().__init__(number, workers)
        self._plan, self._tests = plan, choice.tests
        self._kind = np.uint8 if choice.levels[:1] == (256,) else np.uint16
        self._levels: dict[str, list[Levels]] = {side: [] for side in ("r", "s")}
        self._modules = {}
        for side in ("r", "s"):
            for j, count in zip(choice.tests, choice.levels, strict=True):
                sample = samples[side][self._slot(side, j)]
                self._levels[side].append(learn(sample, count))
            self._modules[side] = load(nested_source(plan, side, choice.tests, self._kind.__name__))

    def _slot(self, side: str, test: int) -> int:
        return self._plan.tests[test].r if side == "r" else self._plan.tests[test].s

    def extend(self, side: str, arrays: list[Array]) -> list[Array]:
        """The keys, then their narrow copies."""
        return arrays + [levels.of(arrays[self._slot(side, j)], self._kind)
                         for j, levels in zip(self._tests, self._levels[side], strict=True)]

    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches."""
        return batch.both(lambda side: self._find(batch, side))

    def _find(self, batch: Batch, side: str) -> Found:
        other = other_side(side)
        store, count = self.stores[other], len(batch.windows[side][0])
        counts = np.zeros(count, np.int64)
        if not count or not store.end:
            return counts, np.empty(0, np.int64)
        start, end = self.seen(batch, side)
        slots, tests = len(self._plan.slots(other)), len(self._plan.tests)
        lows, highs = batch.probes[side][:tests], batch.probes[side][tests:]
        narrow: list[Array] = []
        for d, (j, levels) in enumerate(zip(self._tests, self._levels[other], strict=True)):
            low, high = levels.of(lows[j], self._kind), levels.of(highs[j], self._kind)
            narrow += [store.arrays[slots + d], low, high - low]
        seen = end - start
        rows = np.empty(int(seen.max()) + _ROOM, np.int64)
        flags = np.empty((PROBES, int(end[-1] - start[0]) // CHUNK + 2), np.bool_)
        keys = [store.arrays[slot] for slot in used_slots(self._plan, other)]
        parts, p = [], 0
        while p < count:
            p, at = self._modules[other].find(p, start, end, store.base, counts, rows, flags, *keys, *lows, *highs,
                                              *narrow)
            batch.memory.add(int(at))
            parts.append(rows[:at] * self.workers + self.number)
        self.count_candidates(int(seen.sum()))
        return counts, np.concatenate(parts)

    def adopt(self, stores: dict[str, Store]) -> None:
        """Take over the keys that another engine's worker of the same number has stored."""
        for side, store in stores.items():
            slots = len(self._plan.slots(side))
            if store.arrays:
                store.replace(self.extend(side, store.arrays[:slots]))
        self.stores = stores
