"""The time-travel index of Scale-OIJ (section V-A): tuples by key, then by time, of each worker.

The paper's first layer is a skip list of keys; codes of keys are dense here, so an array does. The second layer is a
skip list for each key, by time, at equal times by row id. Each worker writes its own lists, and all members of a team
read them: writes and reads are separate phases, so a reader never meets a writer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from splitjoin.base.arrays import Ints, Mask
from splitjoin.engines.compiled.jit import compiled

from ..rows import StoredRows

#: Levels of a skip list; a node is on the next one with a probability of 1/4.
LEVELS = 8
_MIN_NODES, _MIN_SLOTS = 1 << 10, 64


class Lists(NamedTuple):
    """Skip lists of all workers; without the first axis, of one.

    ``head``, ``tail``: first and last node of each level of each key's list, −1 for none: (workers, slots, levels).
    ``next``: the node behind each node, on each level: (workers, nodes, levels). ``times``, ``rows``: of each node;
    ``free``: nodes that were removed: (workers, nodes). ``sizes``: nodes ever made, and free ones: (workers, 2).
    """

    head: Ints
    tail: Ints
    next: Ints
    times: Ints
    rows: Ints
    free: Ints
    sizes: Ints


class TimeTravelIndex:
    """The indexes of all workers: their ``lists``."""

    def __init__(self, workers: int):
        head = np.full((workers, _MIN_SLOTS, LEVELS), -1, np.int64)
        times, rows, free = np.empty((3, workers, _MIN_NODES), np.int64)
        self.lists = Lists(head, head.copy(), np.empty((workers, _MIN_NODES, LEVELS), np.int64), times, rows, free,
                           np.zeros((workers, 2), np.int64))

    def reserve(self, new: int, slots: int) -> None:
        """Make room for ``new`` more nodes of each worker, and for ``slots`` keys."""
        used = int((self.lists.sizes[:, 0] - self.lists.sizes[:, 1]).max())
        for names, kind, needed in ((("head", "tail"), "head", slots), (("next", "times", "rows", "free"), "times",
                                                                        used + new)):
            while needed > getattr(self.lists, kind).shape[1]:
                self.lists = self.lists._replace(**{name: np.concatenate([a, np.full_like(a, -1)], axis=1)
                                                    for name in names for a in (getattr(self.lists, name),)})

    def insert(self, worker: int, rows: StoredRows, first: int, mine: Ints) -> None:
        """Insert the ``rows`` ``first + mine`` into the lists of ``worker``; ``mine`` rises."""
        _insert(rows.keys, rows.times, rows.mask, first, mine, self._of(worker))

    def evict(self, worker: int, horizon: int, member: Mask) -> None:
        """Remove the nodes of ``worker`` with times before ``horizon``. ``member``: True for the ranges of keys, codes
        modulo its length, of which it has some.
        """
        _evict(horizon, member, self._of(worker))

    def _of(self, worker: int) -> Lists:
        return Lists(*(array[worker] for array in self.lists))


@compiled
def _height(row: Any) -> Any:
    """The number of levels of a row's node: pseudo-random, and the same in every run."""
    h = row * np.int64(-7046029254386353131)
    h ^= h >> np.int64(29)
    h *= np.int64(-4658895280553007687)
    h ^= h >> np.int64(32)
    levels = 1
    while levels < LEVELS and h & 3 == 0:
        levels += 1
        h >>= np.int64(2)
    return levels


@compiled
def _insert(keys: Any, row_times: Any, mask: Any, first: Any, mine: Any, lists: Any) -> None:
    head, tail, following, times, rows, free, sizes = lists
    for i in range(len(mine)):
        row = first + mine[i]
        key, time = keys[row & mask], row_times[row & mask]
        if sizes[1]:
            sizes[1] -= 1
            node = free[sizes[1]]
        else:
            node = sizes[0]
            sizes[0] += 1
        times[node], rows[node] = time, row
        levels = _height(row)
        last = tail[key, 0]
        if last < 0 or times[last] <= time:  # in order: behind the last node of each level
            for level in range(levels):
                before = tail[key, level]
                if before < 0:
                    head[key, level] = node
                else:
                    following[before, level] = node
                following[node, level] = -1
                tail[key, level] = node
            continue
        before = np.int64(-1)
        for level in range(LEVELS - 1, -1, -1):  # Algorithm 2, "Put A New Tuple"
            after = head[key, level] if before < 0 else following[before, level]
            while after >= 0 and times[after] <= time:
                before, after = after, following[after, level]
            if level < levels:
                following[node, level] = after
                if before < 0:
                    head[key, level] = node
                else:
                    following[before, level] = node
                if after < 0:
                    tail[key, level] = node


@compiled
def _evict(horizon: Any, member: Any, lists: Any) -> None:
    head, tail, following, times, _, free, sizes = lists
    for partition in range(len(member)):
        if not member[partition]:
            continue
        for key in range(partition, len(head), len(member)):
            node = head[key, 0]
            while node >= 0 and times[node] < horizon:
                for level in range(LEVELS):
                    if head[key, level] != node:
                        break
                    head[key, level] = following[node, level]
                    if head[key, level] < 0:
                        tail[key, level] = -1
                free[sizes[1]] = node
                sizes[1] += 1
                node = head[key, 0]
