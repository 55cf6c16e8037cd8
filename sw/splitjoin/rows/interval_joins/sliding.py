"""Our own engine for interval joins: two fronts over arrival order.

Base tuples are decided in arrival order, and both ends of their intervals only move forward. So each S tuple is added
once to its key's state, when the later end passes it, and removed once, when the earlier end does; a base tuple reads
the state of its key. Nothing is searched, and the work a tuple does not depend on windows or lateness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.engines.cpu.jit import compiled

from .form import IntervalForm
from .rows import StoredRows
from .state import FoldedBases, FoldState

__all__ = ["Bases", "SlidingEngine", "on_all"]

Ints = npt.NDArray[np.int64]

#: Operations that are written down before they are carried out.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Bases:
    """Base tuples in the order in which they are decided, with codes of keys (−1: no partner), event times, and the row
    ids of S between which their partners lie, ``low`` to before ``high``.
    """

    keys: Ints
    times: Ints
    low: Ints
    high: Ints


class SlidingEngine:
    """Folds the partners of base tuples; ``workers`` share the keys. ``work``: the operations of each worker."""

    name = "sliding"

    def __init__(self, form: IntervalForm, workers: int = 1):
        self._form = form
        self._states = [FoldState(form, links=False) for _ in range(workers)]
        self._fronts = [np.zeros(2, np.int64) for _ in range(workers)]  # rows before which all left, and came
        self.work = np.zeros(workers, np.int64)
        self._blocks = [(np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)) for _ in range(workers)]

    @property
    def needed(self) -> int:
        """The first row id of S that is still folded."""
        return int(min(front[0] for front in self._fronts))

    def fold(self, rows: StoredRows, bases: Bases, slots: int, pool: Executor | None) -> FoldedBases:
        """Fold the partners of ``bases`` among ``rows``; ``slots``: the number of codes of keys."""
        out = FoldedBases.empty(len(bases.keys), self._form)
        for state in self._states:
            state.prepare(rows, slots)
        on_all(pool, lambda worker: self._work(worker, rows, bases, out), range(len(self._states)))
        return out

    def counters(self) -> dict[str, int]:
        """None: every tuple costs the same."""
        return {}

    def _work(self, worker: int, rows: StoredRows, bases: Bases, out: FoldedBases) -> None:
        done, fronts, state = 0, self._fronts[worker], self._states[worker]
        fronts[:] = np.maximum(fronts, rows.first)
        ops, slots = self._blocks[worker]
        while done < len(bases.keys):
            done, n = _operations(bases.keys, bases.low, bases.high, done, rows.keys, rows.mask, fronts, worker,
                                  len(self._states), ops, slots)
            state.run(ops, slots, n, rows, out)
            self.work[worker] += n


def on_all(pool: Executor | None, function: Callable[[int], None], numbers: Sequence[int]) -> None:
    """Call ``function`` with all ``numbers``, the first one in this thread. Waits for all, also when one fails."""
    futures = [] if pool is None else [pool.submit(function, n) for n in numbers[1:]]
    try:
        for n in numbers[:1] if pool is not None else numbers:
            function(n)
    finally:
        wait(futures)
    for future in futures:
        future.result()


@compiled
def _operations(keys: Any, low: Any, high: Any, done: Any, row_keys: Any, mask: Any, fronts: Any, worker: Any,
                workers: Any, ops: Any, slots: Any) -> Any:
    """Write the operations of one worker for the base tuples from ``done`` on, as many as fit; how many are done, and
    the number of operations.
    """
    left, came = fronts[0], fronts[1]
    n, room = 0, len(ops)
    base = done
    while base < len(keys):
        while left < low[base] and left < came and n < room:
            key = row_keys[left & mask]
            if key >= 0 and key % workers == worker:
                ops[n], slots[n] = left << 2 | 1, key
                n += 1
            left += 1
        if left < low[base] and left == came:
            left = came = low[base]  # nobody needed those between
        while came < high[base] and n < room:
            key = row_keys[came & mask]
            if key >= 0 and key % workers == worker:
                ops[n], slots[n] = came << 2, key
                n += 1
            came += 1
        if n == room:
            break
        key = keys[base]
        if key % workers == worker if key >= 0 else worker == 0:
            ops[n], slots[n] = base << 2 | 2, key
            n += 1
        base += 1
    fronts[0], fronts[1] = left, came
    return base, n
