"""A worker that verifies the candidates of its interval tests by the rest of the condition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.memory import MatchMemory
from splitjoin.lang.ir import Expr
from splitjoin.lang.schema import other_side

from .atoms import AtomLanes
from .expression import ExpressionWorker
from .expression_kernel import Kernel
from .worker import Batch, Found, Worker

__all__ = ["VerifiedWorker", "slice_of"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: Candidates that are verified with NumPy at once.
_BLOCK = 1 << 18
#: Candidates that a part of a batch should have, and could have at most if the tests let everything through.
_WANTED, _LIMIT = 1 << 20, 1 << 27
#: Arrivals in the first part, and at most in any.
_FIRST, _MOST = 1024, 1 << 15


def slice_of(batch: Batch, start: int, stop: int) -> Batch:
    """The arrivals ``start`` to ``stop`` of ``batch``, as a batch."""
    ends = {}
    for at in (start, stop):
        s = int(np.count_nonzero(batch.stream[:at]))
        ends[at] = {"r": at - s, "s": s}
    part = {side: slice(ends[start][side], ends[stop][side]) for side in ("r", "s")}
    starts = dict(batch.starts)
    for side, other in (("r", "s"), ("s", "r")):
        later = batch.windows[other][0][part[other].stop:]
        if len(later):
            starts[side] = int(later[0])
    return Batch(
        stream=batch.stream[start:stop],
        first={side: batch.first[side] + ends[start][side] for side in ("r", "s")},
        stored={side: [a[part[side]] for a in batch.stored[side]] for side in ("r", "s")},
        probes={side: [a[part[side]] for a in batch.probes[side]] for side in ("r", "s")},
        windows={side: (a[part[side]], b[part[side]]) for side, (a, b) in batch.windows.items()},
        starts=starts, memory=batch.memory)


class VerifiedWorker(ExpressionWorker):
    """Has another worker, ``tests``, find candidates, and keeps those for which ``residual`` is true.

    With `kernel` the tests are left out, and the whole predicate is evaluated for every pair. Batches have what
    ``tests`` takes, then what `ExpressionWorker` takes.

    Attributes:
        check: What verifies candidates; NumPy if None.
        tested: Pairs that were tested.
        passed: Candidates that they let through.
    """

    def __init__(self, number: int, workers: int, predicate: Expr, residual: Expr, lanes: AtomLanes):
        super().__init__(number, workers, predicate)
        self._residual = residual
        self.tests: Worker | None = None
        self.check: Kernel | None = None
        self.tested = self.passed = 0
        self._size = _FIRST
        self._own = {side: 2 * len(of) + lanes.count(side) for side, of in self._columns.items()}

    def for_tests(self, batch: Batch) -> Batch:
        """The part of ``batch`` that ``tests`` takes."""
        return self._split(batch)[0]

    def process(self, batch: Batch) -> dict[str, Found]:
        """Store, find and verify, a part of the batch after the other, so that candidates do not pile up."""
        assert self.tests is not None
        keys, own = self._split(batch)
        if self.kernel is not None:
            self.tests.keep(keys)
            self.tests.expire(keys)
            return super().process(own)
        self.keep(own)
        parts = []
        for part, candidates in self._candidates(self.tests, keys, own):
            parts.append({side: self._verified(part, side, found) for side, found in candidates.items()})
            batch.memory.add(sum(len(rows) for _, rows in parts[-1].values()))
        self.expire(own)
        return {side: (np.concatenate([p[side][0] for p in parts]), np.concatenate([p[side][1] for p in parts]))
                for side in ("r", "s")}

    def _candidates(self, tests: Worker, keys: Batch, own: Batch) -> Iterator[tuple[Batch, dict[str, Found]]]:
        longest = max((int((end - start).max()) for start, end in keys.windows.values() if len(start)), default=0)
        most = max(1, _LIMIT * self.workers // max(longest, 1))
        at, n = 0, len(keys.stream)
        while at < n or at == 0:
            stop = min(at + min(self._size, most), n)
            whole = (at, stop) == (0, n)
            found = tests.process(keys if whole else slice_of(keys, at, stop))
            passed = sum(len(rows) for _, rows in found.values())
            self.passed += passed
            part = own if whole else slice_of(own, at, stop)
            self.tested += sum(int((end - start).sum()) for start, end in part.windows.values()) // self.workers
            yield part, found
            # Approach the target gradually: the next tuples may be distributed differently.
            self._size = max(1, min(2 * self._size, self._size * _WANTED // max(passed, 1), _MOST))
            at = max(stop, 1)

    def _split(self, batch: Batch) -> tuple[Batch, Batch]:
        def part(arrays: dict[str, list[Array]], first: bool) -> dict[str, list[Array]]:
            return {side: of[:-self._own[side] or None] if first else of[len(of) - self._own[side]:]
                    for side, of in arrays.items()}

        keys, own = (replace(batch, stored=part(batch.stored, first), probes=part(batch.probes, first))
                     for first in (True, False))
        return replace(keys, memory=MatchMemory(size=0)), own

    def _verified(self, batch: Batch, side: str, found: Found) -> Found:
        """The matches among the candidates of the probes of stream ``side``."""
        counts, rows = found
        if not len(rows):
            return found
        store = self.stores[other_side(side)]
        if self.check is not None:
            lanes = self._kernel_lanes(self.check, batch, side)
            n = self.check.modules[side].verify(self.workers, self.number, store.base, counts, rows, *lanes)
            return counts, rows[:n]
        probe, at = np.repeat(np.arange(len(counts)), counts), (rows - self.number) // self.workers - store.base
        true = np.concatenate([self.true(self._residual, batch, side, probe[first:first + _BLOCK],
                                         at[first:first + _BLOCK]) for first in range(0, len(rows), _BLOCK)])
        return np.bincount(probe[true], minlength=len(counts)), rows[true]
