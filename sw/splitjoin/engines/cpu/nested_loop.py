"""The nested-loop join: every probe is compared with its whole window, 64 stored tuples at a time (``nested.hpp``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import cast

import numpy as np

from splitjoin.base.arrays import Array, Rows
from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan

from ..loops import loops
from ..tuning import DEFAULTS, Tuning
from .finder import Batch, Finder, Found, assembled
from .pair_tests import conditions, test_words, words_of
from .quantizer import Quantizer, learn
from .selectivity import Choice, SessionAlgorithm, ThreadWork

#: Parts of the probes for each thread, so that all end at about the same time. The least number of probes in
#: one if there are few.
_PARTS, _FEWEST = 4, 16
#: Nanoseconds of a pair, exact and with narrow keys.
_EXACT, _NARROW = 0.07, 0.03
#: Largest share of chunks in which narrow keys may find candidates.
_SUSPECTED = 0.3


class NestedFinder(Finder):
    """Compares probes with all that they see; ``choice`` says by which tests narrow copies of the keys are kept.
    ``work`` counts by threads.
    """

    def __init__(self, plan: Plan, choice: Choice, samples: Mapping[str, list[Array]], work: ThreadWork,
                 tuning: Tuning = DEFAULTS):
        super().__init__(tuning)
        self._work = work
        self._plan, self._narrow = plan, choice.tests
        self._tests, self._junctions = conditions(plan)
        self._kind = np.uint8 if choice.levels[:1] == (256,) else np.uint16
        self._levels: dict[str, list[Quantizer]] = {side: [
            learn(samples[side][plan.tests[j].slot(side)], count)
            for j, count in zip(choice.tests, choice.levels, strict=True)] for side in SIDES}
        self._threads = self._round = 0  # that have looked; batches

    def extend(self, side: str, arrays: list[Array]) -> list[Array]:
        """The keys, then their narrow copies."""
        return arrays + [levels.of(arrays[self._plan.tests[j].slot(side)], self._kind)
                         for j, levels in zip(self._narrow, self._levels[side], strict=True)]

    def find(self, batch: Batch) -> dict[str, Found]:
        self.candidates += batch.extent[0]
        self._round += 1
        parts = [(side, first, last) for side in SIDES for first, last in self._parts(batch, side)]
        return assembled(parts, batch.team.map(lambda part: self._find(batch, *part), parts))

    def _parts(self, batch: Batch, side: str) -> list[tuple[int, int]]:
        n, least = len(batch.windows[side][0]), self.tuning.part_probes
        least = least if n >= least * batch.team.size else _FEWEST
        parts = max(1, min(_PARTS * batch.team.size, n // least)) if batch.team.size > 1 else 1
        return [(n * i // parts, n * (i + 1) // parts) for i in range(parts if n else 0)]

    def _find(self, batch: Batch, side: str, first: int, last: int) -> tuple[Rows, Rows]:
        """The matches of the probes ``first`` to ``last`` of stream ``side``: how many each has, and their rows."""
        other, n = other_side(side), len(self._plan.tests)
        store, (start, end) = self.stores[other], (a[first:last] for a in batch.windows[side])
        counts, at = np.zeros(len(start), np.int64), np.zeros(1, np.int64)
        if not store.end:
            return counts, np.empty(0, np.int64)
        probes, stored = [a[first:last] for a in batch.probes[side]], store.arrays
        tests = test_words(self._plan, other, dict(enumerate(stored)), probes, self._tests)
        copies = [(stored[len(self._plan.slots(other)) + d], levels.of(probes[j], self._kind),
                   levels.of(probes[n + j], self._kind))
                  for d, (j, levels) in enumerate(zip(self._narrow, self._levels[other], strict=True))]
        longest, parts = int((end - start).max()), []
        while at[0] < len(start):
            rows = self._space(longest)
            found = loops()["nested_loops"](store.base, start, end, counts, tests, self._junctions, words_of(copies),
                                            at, rows)
            if found < 0:
                raise MemoryError
            batch.memory.add(found)
            parts.append(rows[:found])
            self._buffer.used += found
        self._count(other, int((end - start).sum()), int(counts.sum()))
        return counts, parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _space(self, n: int) -> Rows:
        """Room for ``n`` rows or more behind those that this thread has found for the batch."""
        own = self._buffer
        if getattr(own, "round", None) != self._round:
            own.round, own.used = self._round, 0
        if not hasattr(own, "rows") or len(own.rows) - own.used < n:
            own.rows, own.used = np.empty(n + self.tuning.room, np.int64), 0
        return cast(Rows, own.rows[own.used:])

    def _count(self, stored: str, comparisons: int, matches: int) -> None:
        with self._lock:
            if not hasattr(self._buffer, "number"):
                self._threads += 1
                self._buffer.number = self._threads - 1
            self._work.add(SIDES.index(stored), self._buffer.number, comparisons, matches)


class NestedLoop(SessionAlgorithm):
    """Compares every pair of a window, in vector code."""

    name, engine, suits = "nested loop join", "nested", True

    @cached_property
    def choice(self) -> Choice:
        live, best = self.job.live, self.job.known[:2]
        for levels in (256, 65536) if self.job.prefilter and best else ():
            suspected = 2048.0 * math.prod(f + 1 / levels for f, _ in best)
            if suspected < _SUSPECTED:
                cost = live * (_NARROW * levels.bit_length() / 9 + suspected * _EXACT)
                tests = tuple(j for _, j in best)
                return Choice(tests, (levels,) * len(tests),
                              f"nested loops over {levels.bit_length() - 1}-bit copies of the keys, verified", cost)
        return Choice((), (), "nested loops over the keys", live * _EXACT)

    def run(self) -> NestedFinder:
        return NestedFinder(self.job.plan, self.choice, self.job.samples, self.job.work, self.job.tuning)
