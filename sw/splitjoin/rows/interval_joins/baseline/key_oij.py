"""Key-OIJ, the baseline of Scale-OIJ: workers by hash of the key, unsorted buffers, a full scan a base tuple."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.engines.compiled.helpers import Team
from splitjoin.engines.compiled.jit import compiled

from ..bounds import IntervalLengths, before
from ..form import IntervalForm
from ..rows import StoredRows
from ..sliding import Bases
from ..state import FoldedBases, FoldState

_BLOCK = 1 << 16
_MIN, _MAX = np.int64(-(2**63)), np.int64(2**63 - 1)


class KeyOijEngine:
    """Key-OIJ ("Scalable Online Interval Join", section II-C): worker ``key mod workers`` has the tuples of a key.

    A buffer holds a key's tuples as they were delivered. Base tuples are decided in order of time, so a scan also
    evicts what is older than the window; what is too young, as it was delivered early, stays and is visited in vain.

    Attributes:
        visited, effective: Tuples that scans visited, and the sum of each scan's share of tuples in the window.
        scans: Scans that visited a tuple.
        work: Operations of each worker.
    """

    name = "key-oij"

    def __init__(self, form: IntervalForm, workers: int = 1, *, in_order: bool = True):
        self._form = form
        self._lengths = IntervalLengths.of(form.query)
        self._sort = form.by_arrival and not in_order
        self._states = [FoldState(form, empties=True, removes=False) for _ in range(workers)]
        self._buffers = [_Buffers() for _ in range(workers)]
        #: Room for operations that no thread has; the last one is what a cache still holds.
        self._blocks: list[tuple[Ints, Ints]] = []
        self._figures = np.zeros((workers, 3))  # visited, sum of shares, scans
        self._stored, self._horizon = 0, -(2**63)
        self.work = np.zeros(workers, np.int64)

    @property
    def needed(self) -> int:
        """No row: the scan of a later base tuple evicts those that are gone."""
        return 2**62

    @property
    def effectiveness(self) -> float:
        """The mean share of visited tuples that were in the window (the paper's equation 1); 1 if none was visited."""
        _, shares, scans = self._figures.sum(axis=0).tolist()
        return float(shares / scans) if scans else 1.0

    def counters(self) -> dict[str, int]:
        """``candidates``: the tuples that scans visited."""
        return {"candidates": int(self._figures[:, 0].sum())}

    def fold(self, rows: StoredRows, bases: Bases, slots: int, team: Team) -> FoldedBases:
        """Fold the partners of ``bases`` among ``rows``; ``slots``: the number of codes of keys."""
        out = FoldedBases.empty(len(bases.keys), self._form)
        for state in self._states:
            state.prepare(rows, 1)
        first, self._stored = max(self._stored, rows.first), rows.end
        workers = len(self._states)
        new = np.arange(first, rows.end)
        stored = _divided(rows.keys[new & rows.mask], workers, -1)
        scanned = _divided(bases.keys, workers, 0)
        team.map(lambda worker: self._work(worker, rows, new[stored[worker]], bases, scanned[worker], slots, out),
                 range(workers))
        if len(bases.times):
            self._horizon = before(int(bases.times[-1]), self._lengths.before)
        return out

    def _work(self, worker: int, rows: StoredRows, new: Ints, bases: Bases, mine: Ints, slots: int,
              out: FoldedBases) -> None:
        """Store the rows ``new``, and fold for the base tuples ``mine``: those of the keys of ``worker``."""
        state, buffers = self._states[worker], self._buffers[worker]
        buffers.reserve(rows, new, slots, self._horizon)
        _store(rows.keys, rows.times, rows.mask, new, buffers.arrays)
        done = 0
        try:
            ops, marks = self._blocks.pop()
        except IndexError:
            ops, marks = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
        while done < len(mine):
            done, n = _scan(bases.keys, bases.times, mine, done, self._lengths, self._sort, buffers.arrays, ops, marks,
                            self._figures[worker])
            if not n and done < len(mine):  # one base tuple may have more partners than the block has room
                ops, marks = np.empty(2 * len(ops), np.int64), np.empty(2 * len(ops), np.int64)
            state.run(ops, marks, n, rows, out)
            self.work[worker] += n
        self._blocks.append((ops, marks))


class _Arrays(NamedTuple):
    """Of each key: where its buffer starts, and its length. ``times`` and ``rows``: of the tuples in all buffers."""

    start: Ints
    length: Ints
    times: Ints
    rows: Ints


class _Buffers:
    """The buffers of one worker's keys, one behind the other, each with room to grow."""

    def __init__(self) -> None:
        self.arrays, self._room = _Arrays(*(np.zeros(0, np.int64) for _ in range(4))), np.zeros(0, np.int64)

    def reserve(self, rows: StoredRows, added: Ints, slots: int, horizon: int) -> None:
        """Make room for the ``rows`` with ids ``added``; if buffers move, evict what is older than ``horizon``."""
        old, have = self.arrays, len(self._room)
        if slots > have:
            more = np.zeros(max(slots, 2 * have) - have, np.int64)
            start, length, self._room = (np.concatenate([a, more]) for a in (old.start, old.length, self._room))
            self.arrays = old = old._replace(start=start, length=length)
        new = np.zeros(len(old.start), np.int64)
        _count(rows.keys, rows.mask, added, new)
        if (old.length + new <= self._room).all():
            return
        kept = np.zeros(len(new), np.int64)
        _evict(old, horizon, kept)
        self._room = room = np.where(kept + new > 0, 2 * (kept + new), 0)
        self.arrays = _Arrays(np.cumsum(room) - room, kept, *(np.empty(int(room.sum()), np.int64) for _ in range(2)))
        _move(old, self.arrays)


def _divided(keys: Ints, workers: int, without: int) -> list[Ints]:
    """Per worker the places of its ``keys``, in their order; those without a key are of worker ``without``, or −1: of
    none. Once for all workers, each of which would look at all keys otherwise.
    """
    ends, places = np.zeros(workers + 2, np.int64), np.empty(len(keys), np.int64)
    _divide(keys, workers, without, ends, places)
    return [places[ends[worker]:ends[worker + 1]] for worker in range(workers)]


@compiled
def _divide(keys: Any, workers: Any, without: Any, ends: Any, places: Any) -> None:
    """Sort the places of ``keys`` by workers. Those of worker w are ``places[ends[w]:ends[w + 1]]``."""
    for key in keys:
        worker = key % workers if key >= 0 else without
        if worker >= 0:
            ends[worker + 2] += 1
    for worker in range(workers):
        ends[worker + 2] += ends[worker + 1]
    for at in range(len(keys)):
        worker = keys[at] % workers if keys[at] >= 0 else without
        if worker >= 0:
            places[ends[worker + 1]] = at
            ends[worker + 1] += 1


@compiled
def _count(keys: Any, mask: Any, added: Any, new: Any) -> None:
    for row in added:
        new[keys[row & mask]] += 1


@compiled
def _evict(buffers: Any, horizon: Any, kept: Any) -> None:
    times, rows = buffers.times, buffers.rows
    for key in range(len(kept)):
        first = to = buffers.start[key]
        for i in range(first, first + buffers.length[key]):
            if times[i] >= horizon:
                times[to], rows[to] = times[i], rows[i]
                to += 1
        kept[key] = to - first


@compiled
def _move(old: Any, new: Any) -> None:
    for key in range(len(new.start)):
        for i in range(new.length[key]):
            new.times[new.start[key] + i] = old.times[old.start[key] + i]
            new.rows[new.start[key] + i] = old.rows[old.start[key] + i]


@compiled
def _store(keys: Any, times: Any, mask: Any, added: Any, buffers: Any) -> None:
    for row in added:
        key = keys[row & mask]
        at = buffers.start[key] + buffers.length[key]
        buffers.times[at], buffers.rows[at] = times[row & mask], row
        buffers.length[key] += 1


@compiled
def _scan(keys: Any, times: Any, mine: Any, done: Any, lengths: Any, sort: Any, buffers: Any, ops: Any, slots: Any,
          figures: Any) -> Any:
    """Write the operations for the base tuples ``mine`` from ``done`` on: add each partner, emit, empty the slot."""
    start, length, in_times, in_rows = buffers
    pre, follow = lengths
    n = 0
    while done < len(mine):
        base = mine[done]
        key = keys[base]
        if key < 0:
            if n == len(ops):
                break
            ops[n], slots[n] = base << 2 | 2, -1
            n += 1
            done += 1
            continue
        count = length[key]
        if n + count + 2 > len(ops):
            break
        lowest = times[base] - pre if times[base] >= _MIN + pre else _MIN
        highest = times[base] + follow if times[base] <= _MAX - follow else _MAX
        first = n
        to = start[key]
        for i in range(start[key], start[key] + count):
            time = in_times[i]
            if time < lowest:
                continue  # evicted: no later base tuple sees it
            if to != i:
                in_times[to], in_rows[to] = time, in_rows[i]
            to += 1
            if time <= highest:
                ops[n], slots[n] = in_rows[i] << 2, 0
                n += 1
        length[key] = to - start[key]
        if sort and n - first > 1:
            # By time; a stable sort keeps the order of delivery at equal times.
            of = np.empty(n - first, np.int64)
            at = start[key]
            for j in range(n - first):
                while in_rows[at] != ops[first + j] >> 2:
                    at += 1
                of[j] = in_times[at]
            order = np.argsort(of, kind="mergesort")
            ops[first:n] = ops[first:n].copy()[order]
        if count:
            figures[0] += count
            figures[1] += (n - first) / count
            figures[2] += 1
        ops[n], slots[n] = base << 2 | 2, 0
        ops[n + 1], slots[n + 1] = 3, 0
        n += 2
        done += 1
    return done, n
