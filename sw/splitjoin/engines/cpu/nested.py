"""The nested-loop engine: compiled interval tests over the whole windows of probes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan

from .choice import Choice
from .finder import Batch, Finder, Found, assembled
from .jit import load
from .levels import Levels, learn
from .nested_source import CHUNK, PROBES, nested_source
from .store import Store
from .tests_source import used_slots

__all__ = ["NestedFinder"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: Room for matches beside those of one probe.
_ROOM = 1 << 16
#: The least number of probes that a thread takes: fewer would read each chunk of the window too often.
_LEAST = PROBES // 2


class NestedFinder(Finder):
    """Compares probes with all that they see; ``choice`` says by which tests narrow copies of the keys are kept."""

    def __init__(self, plan: Plan, choice: Choice, samples: dict[str, list[Array]]):
        super().__init__()
        self._plan, self._tests = plan, choice.tests
        self._kind = np.uint8 if choice.levels[:1] == (256,) else np.uint16
        self._levels: dict[str, list[Levels]] = {side: [] for side in SIDES}
        self._modules = {}
        for side in SIDES:
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
        parts = batch.parts(_LEAST)
        return assembled(batch, parts, batch.team.map(lambda part: self._find(batch, *part), parts))

    def _find(self, batch: Batch, side: str, first: int, last: int) -> tuple[Rows, Rows]:
        """The matches of the probes ``first`` to ``last`` of stream ``side``."""
        other = other_side(side)
        store, mine, count = self.stores[other], slice(first, last), last - first
        counts = np.zeros(count, np.int64)
        if not store.end:
            return counts, np.empty(0, np.int64)
        start, end = (a[mine] for a in batch.windows[side])
        slots, tests = len(self._plan.slots(other)), len(self._plan.tests)
        probes = [a[mine] for a in batch.probes[side]]
        lows, highs = probes[:tests], probes[tests:]
        narrow: list[Array] = []
        for d, (j, levels) in enumerate(zip(self._tests, self._levels[other], strict=True)):
            low, high = levels.of(lows[j], self._kind), levels.of(highs[j], self._kind)
            narrow += [store.arrays[slots + d], low, high - low]
        seen = end - start
        rows = self.room(int(seen.max()) + _ROOM)
        flags = np.empty((PROBES, int(end[-1] - start[0]) // CHUNK + 2), np.bool_)
        keys = [store.arrays[slot] for slot in used_slots(self._plan, other)]
        parts, p = [], 0
        while p < count:
            p, at = self._modules[other].find(p, start, end, store.base, counts, rows, flags, *keys, *lows, *highs,
                                              *narrow)
            batch.memory.add(int(at))
            parts.append(rows[:at].copy())
        self.count_candidates(int(seen.sum()))
        return counts, parts[0] if len(parts) == 1 else np.concatenate(parts)

    def adopt(self, stores: dict[str, Store]) -> None:
        """Take over the keys that another engine has stored."""
        for side, store in stores.items():
            slots = len(self._plan.slots(side))
            if store.arrays:
                store.replace(self.extend(side, store.arrays[:slots]))
        self.stores = stores
