"""Scale-OIJ: a time-travel index, virtual teams with a dynamic schedule, and incremental aggregation.

"Scalable Online Interval Join on Modern Multicore Processors in OpenMLDB" (ICDE 2023), section V.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from splitjoin.base.arrays import Array, Ints
from splitjoin.engines.compiled.helpers import Team
from splitjoin.engines.compiled.jit import compiled

from ..bounds import IntervalLengths, before
from ..form import IntervalForm
from ..rows import StoredRows
from ..sliding import Bases
from ..state import FoldedBases, FoldState
from .schedule import PARTITIONS, Schedule
from .time_travel import LEVELS, TimeTravelIndex

_MIN, _MAX = np.int64(-(2**63)), np.int64(2**63 - 1)


class _Folded(NamedTuple):
    """Of each worker and key: the times of the interval that is folded, and whether there is one."""

    first: Array
    last: Array
    has: Array


class ScaleOijEngine:
    """Scale-OIJ, for input in any order.

    A tuple goes to a random member of its key's team, which writes it into its index; a base tuple to a random member,
    which reads the indexes of the whole team. From one base tuple of a key to its next one, a worker removes what left
    the interval and adds what came (section V-C); where the intervals do not overlap it begins anew.

    Attributes:
        incremental: False folds each interval anew, for comparison.
        block: Operations that a worker notes before it carries them out, at least.
        schedule: The teams.
        work: Operations of each worker.
    """

    name = "scale-oij"
    incremental: bool = True
    block: int = 1 << 16

    def __init__(self, form: IntervalForm, workers: int = 1, *, period: int = 1 << 16,
                 delta: float = 0.01, decay: float = 0.5):
        self._form, self._period = form, period  # S tuples from one schedule to the next
        self._lengths = IntervalLengths.of(form.query)
        self.schedule = Schedule(workers, delta, decay)
        self._index = TimeTravelIndex(workers)
        self._states = [FoldState(form, empties=True) for _ in range(workers)]
        self._folded = _Folded(*(np.zeros((workers, 64), kind) for kind in (np.int64, np.int64, np.bool_)))
        self._blocks = [(np.empty(self.block, np.int64), np.empty(self.block, np.int64)) for _ in range(workers)]
        self._visited = np.zeros(workers, np.int64)
        self._stored = self.needed = self._bases = self._noted = 0
        self._gone = int(_MIN)  # times before it were evicted
        self.work = np.zeros(workers, np.int64)

    def counters(self) -> dict[str, int]:
        """``candidates``: the tuples that were read from indexes; ``replications`` of partitions to other workers."""
        return {"candidates": int(self._visited.sum()), "replications": self.schedule.changes}

    def fold(self, rows: StoredRows, bases: Bases, slots: int, team: Team) -> FoldedBases:
        """Fold the partners of ``bases`` among ``rows``; ``slots``: the number of codes of keys."""
        out = FoldedBases.empty(len(bases.keys), self._form)
        workers = range(len(self._states))
        first, self._stored = max(self._stored, rows.first), rows.end
        self.needed = max(self.needed, rows.first)
        at = np.arange(first, rows.end) & rows.mask
        keys = rows.keys[at]
        if len(self._states) > 1:
            self.schedule.note(keys)
            self._noted += len(keys)
            if self._noted >= self._period:
                self._noted = 0
                self.schedule.update()
        writers = self._divided(keys, first, np.int32(-1))
        readers = self._divided(bases.keys, self._bases, np.int32(0))
        self._bases += len(bases.keys)
        for state in self._states:
            state.prepare(rows, slots)
        while slots > self._folded.has.shape[1]:
            self._folded = _Folded(*(np.concatenate([a, np.zeros_like(a)], axis=1) for a in self._folded))
        self._index.reserve(len(keys), slots)
        gone = self._evicted_before(int(bases.times[-1])) if len(bases.times) else None
        steps: list[Callable[[int], None]] = [
            lambda worker: self._index.insert(worker, rows, first, writers[worker]),
            lambda worker: self._work(worker, rows, bases, readers[worker], out)]
        if gone is not None:
            steps.append(lambda worker: self._evict(worker, rows, gone))
        if self.schedule.is_shared:
            for step in steps:
                team.map(step, workers)
        else:  # nobody reads what another writes
            team.map(lambda worker: [step(worker) for step in steps], workers)
        if gone is not None:
            self._gone = gone
            self.needed = _first_kept(rows.times, rows.mask, self.needed, rows.end, gone)
        return out

    def _divided(self, keys: Ints, first: int, keyless: np.int32) -> list[Ints]:
        """The tuples of each worker, by arrival: a random member of its key's team gets a tuple, the same in every run.
        The worker ``keyless`` gets those without a key, −1 for none.
        """
        order, ends = np.empty(len(keys), np.int64), np.zeros(len(self._states) + 1, np.int64)
        _choose(keys, first, self.schedule.teams, self.schedule.sizes, keyless, np.empty(len(keys), np.int32), order,
                ends)
        return [order[a:b] for a, b in pairwise(ends.tolist())]

    def _work(self, worker: int, rows: StoredRows, bases: Bases, mine: Ints, out: FoldedBases) -> None:
        folded, done = _Folded(*(array[worker] for array in self._folded)), 0
        while done < len(mine):
            ops, slots = self._blocks[worker]
            done, n, visited = _travel(
                (bases.keys, bases.times), mine, done, self.incremental, self._lengths,
                (self.schedule.teams, self.schedule.sizes), self._index.lists, folded, ops, slots)
            if not n:  # one base tuple has more operations than there is room for
                self._blocks[worker] = np.empty(2 * len(ops), np.int64), np.empty(2 * len(ops), np.int64)
                continue
            self._states[worker].run(ops, slots, n, rows, out)
            self.work[worker] += n
            self._visited[worker] += visited

    def _evicted_before(self, now: int) -> int | None:
        """The time before which tuples are evicted as base tuples from ``now`` on cannot see them, but for half a
        window: intervals that workers have folded then seldom begin before it. None if that is not worthwhile yet.
        """
        gone = before(now, self._lengths.before + self._lengths.before // 2)
        soon = self._gone > int(_MIN) and before(now, self._lengths.before) - self._gone < self._lengths.before
        return None if gone <= self._gone or soon else gone

    def _evict(self, worker: int, rows: StoredRows, gone: int) -> None:
        """Evict what ``worker`` has from before the time ``gone``."""
        stale = np.flatnonzero(self._folded.has[worker] & (self._folded.first[worker] < gone))
        if len(stale):  # before their rows are forgotten
            self._folded.has[worker, stale] = False
            self._states[worker].run(np.full(len(stale), 3, np.int64), stale, len(stale), rows,
                                     FoldedBases.empty(0, self._form))
        self._index.evict(worker, gone, np.ascontiguousarray(self.schedule.member[:, worker]))


@compiled
def _first_kept(times: Any, mask: Any, first: Any, end: Any, gone: Any) -> Any:
    while first < end and times[first & mask] < gone:
        first += 1
    return first


@compiled
def _choose(keys: Any, first: Any, teams: Any, sizes: Any, keyless: Any, members: Any, order: Any, ends: Any) -> None:
    """Write the numbers of each worker's tuples, by arrival, to ``order``: those of worker w from ``ends[w]`` to
    ``ends[w + 1]``. ``ends`` is 0 before; ``members`` is room for each tuple's worker.
    """
    for i in range(len(keys)):
        member = keyless
        if keys[i] >= 0:
            partition = keys[i] % PARTITIONS
            h = (first + i + 1) * np.int64(-7046029254386353131)
            h ^= h >> np.int64(31)
            member = np.int32(teams[partition, (h & np.int64(0x7FFF_FFFF)) % sizes[partition]])
        members[i] = member
        if member >= 0:
            ends[member + 1] += 1
    at = np.empty(len(ends), np.int64)
    for worker in range(1, len(ends)):
        ends[worker] += ends[worker - 1]
    at[:] = ends
    for i in range(len(keys)):
        member = members[i]
        if member >= 0:
            order[at[member]] = i
            at[member] += 1


@compiled
def _travel(bases: Any, mine: Any, done: Any, incremental: Any, lengths: Any, schedule: Any, lists: Any, interval: Any,
            ops: Any, slots: Any) -> Any:
    """Write the operations of one worker for its base tuples ``mine[done:]``, as far as there is room: how many are
    done, the number of operations, and the nodes that were read.
    """
    (keys, times), (pre, follow), (teams, sizes), (old_from, old_to, folded) = bases, lengths, schedule, interval
    head, following, node_times, node_rows = lists.head, lists.next, lists.times, lists.rows
    n, visited, room = np.int64(0), np.int64(0), len(ops)
    best_time, best_row = np.int64(0), np.int64(0)
    nodes = np.empty(teams.shape[1], np.int64)
    while done < len(mine) and n + 2 <= room:
        base = mine[done]
        key = keys[base]
        if key < 0:
            ops[n], slots[n] = base << 2 | 2, -1
            n += 1
            done += 1
            continue
        low = times[base] - pre if times[base] >= _MIN + pre else _MIN
        high = times[base] + follow if times[base] <= _MAX - follow else _MAX
        partition = key % PARTITIONS
        fresh = not incremental or not folded[key] or low > old_to[key]
        at = n
        if fresh and folded[key]:
            ops[at], slots[at] = 3, key
            at += 1
        begun = at
        # First what leaves, unless all does, then what comes.
        for adding in range(1 if fresh else 0, 2):
            if adding:
                start = low if fresh else old_to[key] + 1 if old_to[key] < _MAX else _MAX
                end = high
                if not fresh and old_to[key] >= high:
                    break
            else:
                start, end = old_from[key], low - 1
                if old_from[key] >= low:
                    continue
            for m in range(sizes[partition]):
                w = teams[partition, m]
                node = after = np.int64(-1)
                for level in range(LEVELS - 1, -1, -1):  # the first node whose time is not below `start`
                    after = head[w, key, level] if node < 0 else following[w, node, level]
                    while after >= 0 and node_times[w, after] < start:
                        node, after = after, following[w, after, level]
                nodes[m] = after
            while at < room:
                best = -1
                for m in range(sizes[partition]):  # by time, then by row id
                    if nodes[m] >= 0:
                        w = teams[partition, m]
                        time, row = node_times[w, nodes[m]], node_rows[w, nodes[m]]
                        if time <= end and (best < 0 or time < best_time or (time == best_time and row < best_row)):
                            best, best_time, best_row = m, time, row
                if best < 0:
                    break
                ops[at], slots[at] = best_row << 2 | (0 if adding else 1), key
                at += 1
                w = teams[partition, best]
                nodes[best] = following[w, nodes[best], 0]
        if at == room:
            break  # what was written for this base tuple does not count
        old_from[key], old_to[key], folded[key] = low, high, True
        visited += at - begun
        ops[at], slots[at] = base << 2 | 2, key
        n = at + 1
        done += 1
    return done, n, visited
