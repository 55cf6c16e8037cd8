"""`VerifiedFinder` verifies the candidates of interval tests by the rest of the condition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.memory import MatchMemory
from splitjoin.lang.ir import Expr
from splitjoin.lang.schema import SIDES, other_side

from .atoms import AtomLanes
from .expression import ExpressionFinder
from .expression_kernel import Kernel
from .finder import Batch, Finder, Found
from .index import IndexFinder
from .tuning import DEFAULTS, Tuning

__all__ = ["VerifiedFinder", "slice_of"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
#: Matches of some probes: the first, the one behind the last, and the row ids.
_Piece = tuple[int, int, Rows]

#: Arrivals in a part at most.
_MOST = 1 << 15
#: Parts that an index may give up, and how many times shorter the next try is: each time its grids are built anew.
_FAILURES, _SHORTER = 4, 16


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
        starts=starts, team=batch.team, memory=batch.memory)


class _TooMany(Exception):
    """A part has more candidates than memory should hold."""


class _Limited(MatchMemory):
    """Counts candidates; raises `_TooMany` once there are more than ``most``."""

    def __init__(self, most: int):
        super().__init__(size=0)
        self._most = most

    def add(self, matches: int) -> None:
        """Count ``matches`` more."""
        super().add(matches)
        if self._matches > self._most:
            raise _TooMany


class VerifiedFinder(ExpressionFinder):
    """Has another finder, ``tests``, find candidates, and keeps those for which ``residual`` is true.

    With `kernel` the tests are left out, and the whole predicate is evaluated for every pair. Batches have what
    ``tests`` takes, then what `ExpressionFinder` takes.

    Attributes:
        check: What verifies candidates; NumPy if None.
        tested: Pairs that were tested.
        passed: Candidates that they let through.
    """

    def __init__(self, predicate: Expr, residual: Expr, lanes: AtomLanes, tuning: Tuning = DEFAULTS):
        super().__init__(predicate, tuning)
        self._residual = residual
        self.tests: Finder | None = None
        self.check: Kernel | None = None
        self.tested = self.passed = 0
        self._size = tuning.verified_first
        self._failures = 0
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
            batch.memory.add(sum(len(rows) for of in parts[-1].values() for *_, rows in of[1]))
        self.expire(own)
        return {side: _joined([part[side] for part in parts]) for side in SIDES}

    def _candidates(self, tests: Finder, keys: Batch, own: Batch) -> Iterator[tuple[Batch, dict[str, Found]]]:
        longest = max((int((end - start).max()) for start, end in keys.windows.values() if len(start)), default=0)
        limit = self.tuning.verified_limit
        few = max(1, limit // max(longest, 1))  # which have no more, even if tests let everything through
        at, n = 0, len(keys.stream)
        while at < n or at == 0:
            # An index gives up a part that has too many, so it may have as long ones as others had few candidates.
            may_fail = isinstance(tests, IndexFinder) and self._failures < _FAILURES
            stop = min(at + (self._size if may_fail else min(self._size, few)), n)
            whole = (at, stop) == (0, n)
            ends = {side: store.end for side, store in tests.stores.items()}
            try:
                found = tests.process(replace(keys if whole else slice_of(keys, at, stop), memory=_Limited(
                    limit if may_fail and stop - at > few else 2**62)))
            except _TooMany:
                assert isinstance(tests, IndexFinder)
                tests.take_back(ends)
                self._failures += 1
                self._size = max(few, (stop - at) // _SHORTER)
                continue
            passed = sum(of.matches for of in found.values())
            self.passed += passed
            part = own if whole else slice_of(own, at, stop)
            self.tested += sum(int((end - start).sum()) for start, end in part.windows.values())
            yield part, found
            # Approach the target gradually: the next tuples may be distributed differently.
            self._size = max(1, min(2 * self._size, self._size * self.tuning.verified // max(passed, 1), _MOST))
            at = max(stop, 1)

    def _split(self, batch: Batch) -> tuple[Batch, Batch]:
        def part(arrays: dict[str, list[Array]], first: bool) -> dict[str, list[Array]]:
            return {side: of[:-self._own[side] or None] if first else of[len(of) - self._own[side]:]
                    for side, of in arrays.items()}

        keys, own = (replace(batch, stored=part(batch.stored, first), probes=part(batch.probes, first))
                     for first in (True, False))
        return replace(keys, memory=MatchMemory(size=0)), own

    def _verified(self, batch: Batch, side: str, found: Found) -> tuple[Rows, list[_Piece]]:
        """The matches among the candidates of the probes of stream ``side``: how many each has, and where they lie."""
        pieces = batch.team.map(lambda n: self._true_of(batch, side, found, n), range(len(found.pieces)))
        return found.counts.copy(), pieces  # the finder's own are those of the next part

    def _true_of(self, batch: Batch, side: str, found: Found, n: int) -> _Piece:
        """The matches of piece ``n``, whose counts become theirs."""
        first, last = int(found.pieces[n, 0]), int(found.pieces[n, 1])
        counts, rows, store = found.counts[first:last], found.rows(n), self.stores[other_side(side)]
        if self.check is not None:
            lanes = self._kernel_lanes(self.check, batch, side, first, last)
            return first, last, rows[:self.check.modules[side].verify(store.base, counts, rows, *lanes)].copy()
        probe, block = np.repeat(np.arange(len(counts)), counts), self.tuning.numpy_pairs
        true = np.concatenate([self.true(self._residual, batch, side, probe[at:at + block] + first,
                                         rows[at:at + block] - store.base) for at in range(0, len(rows), block)])
        counts[:] = np.bincount(probe[true], minlength=len(counts))
        return first, last, rows[true]


def _joined(parts: list[tuple[Rows, list[_Piece]]]) -> Found:
    """The matches of parts of the probes, one after the other."""
    before, pieces = 0, []
    for counts, of in parts:
        pieces += [(before + first, before + last, rows) for first, last, rows in of]
        before += len(counts)
    return Found.of(np.concatenate([counts for counts, _ in parts]), pieces)
