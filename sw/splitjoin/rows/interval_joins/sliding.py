"""Our own engine for interval joins: two fronts over arrival order.

Base tuples are decided in arrival order, and both ends of their intervals only move forward. So each S tuple is added
once to its key's state, when the later end passes it, and removed once, when the earlier end does; a base tuple reads
the state of its key. Nothing is searched, and the work a tuple does not depend on windows or lateness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.engines.compiled.helpers import Team
from splitjoin.engines.compiled.jit import compiled

from .form import IntervalForm
from .rows import StoredRows
from .state import FoldedBases, FoldState

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
        self._states = [FoldState(form, empties=False) for _ in range(workers)]
        self._fronts = np.zeros(2, np.int64)  # rows before which all left, and came
        self.work = np.zeros(workers, np.int64)
        self._ops, self._slots = (np.empty((workers, _BLOCK), np.int64) for _ in range(2))

    @property
    def needed(self) -> int:
        """The first row id of S that is still folded."""
        return int(self._fronts[0])

    def fold(self, rows: StoredRows, bases: Bases, slots: int, team: Team) -> FoldedBases:
        """Fold the partners of ``bases`` among ``rows``; ``slots``: the number of codes of keys."""
        out, done, numbers = FoldedBases.empty(len(bases.keys), self._form), 0, np.zeros(len(self._states), np.int64)
        for state in self._states:
            state.prepare(rows, slots)
        self._fronts[:] = np.maximum(self._fronts, rows.first)
        while done < len(bases.keys):
            done = _operations(bases.keys, bases.low, bases.high, done, rows.keys, rows.mask, self._fronts, self._ops,
                               self._slots, numbers)
            team.map(lambda worker: self._states[worker].run(
                self._ops[worker], self._slots[worker], numbers[worker], rows, out), range(len(self._states)))
            self.work += numbers
        return out

    def counters(self) -> dict[str, int]:
        """None: every tuple costs the same."""
        return {}


@compiled
def _operations(keys: Any, low: Any, high: Any, done: Any, row_keys: Any, mask: Any, fronts: Any, ops: Any, slots: Any,
                numbers: Any) -> Any:
    """Write the operations for the base tuples from ``done`` on, as many as fit, to ``ops`` and ``slots`` (workers, …):
    those of each worker's keys. Returns how many base tuples are done; ``numbers`` (workers,) gets how many operations
    each worker has.

    One pass for all workers: if each looked at all tuples for its own, 16 would take more time for that than for what
    they fold.
    """
    left, came = fronts[0], fronts[1]
    workers, room, full = len(ops), ops.shape[1], False
    numbers[:] = 0
    base = done
    while base < len(keys) and not full:
        while left < low[base] and left < came and not full:
            key = row_keys[left & mask]
            if key >= 0:
                full = _note(ops, slots, numbers, key % workers, room, left << 2 | 1, key)
            left += 1
        if full:
            break
        if left < low[base] and left == came:
            left = came = low[base]  # nobody needed those between
        while came < high[base] and not full:
            key = row_keys[came & mask]
            if key >= 0:
                full = _note(ops, slots, numbers, key % workers, room, came << 2, key)
            came += 1
        if full:
            break
        key = keys[base]
        full = _note(ops, slots, numbers, key % workers if key >= 0 else 0, room, base << 2 | 2, key)
        base += 1
    fronts[0], fronts[1] = left, came
    return base


@compiled
def _note(ops: Any, slots: Any, numbers: Any, worker: Any, room: Any, operation: Any, key: Any) -> Any:
    """Note an operation of ``worker``. Returns True if there is no room for another one."""
    n = numbers[worker]
    ops[worker, n], slots[worker, n] = operation, key
    numbers[worker] = n + 1
    return n + 1 == room
