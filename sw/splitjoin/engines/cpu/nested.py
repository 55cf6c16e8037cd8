"""The nested-loop engine: compiled interval tests over the whole windows of probes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan

from .choice import Choice
from .finder import Batch, Finder, Found, assembled
from .jit import compiled, load
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
        parts, size = batch.parts(_LEAST), batch.team.size
        slices = -(-size // len(parts)) if parts else 1  # few probes: threads divide the stored tuples, too
        tasks = [(*part, n, slices) for part in parts for n in range(slices)]
        found = batch.team.map(lambda task: self._find(batch, *task), tasks)
        return assembled(parts, [_merged(found[at:at + slices]) for at in range(0, len(found), slices)])

    def _find(self, batch: Batch, side: str, first: int, last: int, number: int, slices: int) -> tuple[Rows, Rows]:
        """The matches of the probes ``first`` to ``last`` of stream ``side`` in slice ``number`` of what they see."""
        other = other_side(side)
        store, mine, count = self.stores[other], slice(first, last), last - first
        counts = np.zeros(count, np.int64)
        if not store.end:
            return counts, np.empty(0, np.int64)
        start, end = (a[mine] for a in batch.windows[side])
        if slices > 1:
            begin, rows_seen = int(start[0]), int(end[-1] - start[0])
            low, high = begin + rows_seen * number // slices, begin + rows_seen * (number + 1) // slices
            start, end = np.clip(start, low, high), np.clip(end, low, high)
        slots, tests = len(self._plan.slots(other)), len(self._plan.tests)
        probes = [a[mine] for a in batch.probes[side]]
        lows, highs = probes[:tests], probes[tests:]
        narrow: list[Array] = []
        for d, (j, levels) in enumerate(zip(self._tests, self._levels[other], strict=True)):
            from_, to = levels.of(lows[j], self._kind), levels.of(highs[j], self._kind)
            narrow += [store.arrays[slots + d], from_, to - from_]
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


def _merged(found: list[tuple[Rows, Rows]]) -> tuple[Rows, Rows]:
    """The matches of the same probes in consecutive slices of what they see."""
    if len(found) == 1:
        return found[0]
    counts, rows = np.stack([of for of, _ in found]), np.concatenate([of for _, of in found])
    out = np.empty(len(rows), np.int64)
    _interleave(counts, rows, np.cumsum([0, *(len(of) for _, of in found[:-1])]), out)
    return counts.sum(axis=0), out


@compiled
def _interleave(counts: Any, rows: Any, at: Any, out: Any) -> None:
    """``counts`` (slices, n) by slice and probe; ``at`` (slices,): where each slice's rows begin; moves on."""
    n = np.int64(0)
    for p in range(counts.shape[1]):
        for k in range(counts.shape[0]):
            for _ in range(counts[k, p]):
                out[n] = rows[at[k]]
                at[k] += 1
                n += 1
