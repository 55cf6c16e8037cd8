"""The engine for whole conditions: compiled nested loops over the expression, or NumPy over blocks of pairs.

NumPy evaluates what is not compiled: texts of both streams, and whole numbers that could overflow with the values that
are there now. It also evaluates the first pairs, as compiling takes longer than those.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.ir import Expr, columns
from splitjoin.lang.schema import other_side

from .atoms import AtomLanes, ValueRange
from .exact_source import NotCompiled
from .expression_kernel import CHUNK, PROBES, STEP, Kernel, make_kernel
from .finder import Batch, Finder, Found, assembled
from .pairs import PairTest
from .tuning import DEFAULTS, Tuning

__all__ = ["Compiler", "ExpressionFinder", "live_ranges"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]


class Compiler:
    """Supplies the kernel of ``condition`` for each batch, and compiles a new one when the values require it.

    ``verify``: for candidates, else for nested loops.
    """

    def __init__(self, condition: Expr, lanes: AtomLanes, tuning: Tuning = DEFAULTS, *, verify: bool = False):
        self._interpreted = tuning.interpreted_pairs
        self._condition, self._lanes, self._verify = condition, lanes, verify
        self._ranges: object = None
        self._kernel: Kernel | None = None
        self.why = "by NumPy as long as there are few pairs"

    def kernel(self, batch: Batch, pairs: int) -> Kernel | None:
        """The kernel for every pair of the batch; None where NumPy evaluates them, and `why` says so.

        ``pairs``: how many there were so far; NumPy is done with a few before anything is compiled.
        """
        if pairs < self._interpreted:
            return None
        ranges = live_ranges(batch, self._lanes)
        if ranges != self._ranges:
            self._ranges = ranges
            try:
                self._kernel = make_kernel(self._condition, self._lanes.atoms, ranges, verify=self._verify)
                self.why = f"compiled, whole numbers in {self._kernel.width} bits"
            except NotCompiled as reason:
                self._kernel, self.why = None, f"by NumPy, as there is no compiled code for {reason}"
        return self._kernel


def live_ranges(batch: Batch, lanes: AtomLanes) -> dict[Expr, ValueRange]:
    """The ranges of the values of ``lanes`` that ``batch`` stores, probes with, or sees."""
    first = {"r": batch.first["r"], "s": batch.first["s"]}
    for side, other in (("r", "s"), ("s", "r")):
        start = batch.windows[other][0]
        first[side] = min(first[side], int(start[0])) if len(start) else first[side]
    return lanes.ranges(first)


class ExpressionFinder(Finder):
    """Evaluates ``predicate`` for every pair, with `kernel` if there is one.

    Stores, and probes with, the predicate's columns (`column_arrays`), then its lanes (`AtomLanes`).
    """

    def __init__(self, predicate: Expr, tuning: Tuning = DEFAULTS):
        super().__init__(tuning)
        self._predicate, self._pairs = predicate, PairTest(predicate)
        self._columns = {side: [c for c in columns(predicate) if c.side == side] for side in ("r", "s")}
        self.kernel: Kernel | None = None

    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches."""
        parts = batch.parts(PROBES)
        return assembled(parts, batch.team.map(lambda part: self._find(batch, *part), parts))

    def _lanes(self, side: str, arrays: list[Array]) -> list[Array]:
        return arrays[2 * len(self._columns[side]):]

    def _find(self, batch: Batch, side: str, first: int, last: int) -> tuple[Rows, Rows]:
        """The matches of the probes ``first`` to ``last`` of stream ``side`` among all that they see."""
        start, end = (a[first:last] for a in batch.windows[side])
        self.count_candidates(int((end - start).sum()))
        if self.kernel is None:
            return self._by_numpy(batch, side, first, start, end)
        store, counts = self.stores[other_side(side)], np.zeros(len(start), np.int64)
        if int(end[-1]) == int(start[0]):
            return counts, np.empty(0, np.int64)
        rows = self.room(int((end - start).max()) + self.tuning.room)
        flags = np.empty((PROBES, int(end[-1] - start[0]) // CHUNK + 2), np.bool_)
        lanes = self._kernel_lanes(self.kernel, batch, side, first, last)
        find, parts, p = self.kernel.modules[side].find, [], 0
        while p < len(start):
            p, at = find(p, start, end, store.base, store.end - store.base, counts, rows, flags,
                         np.zeros(STEP, np.bool_), *lanes)
            batch.memory.add(int(at))
            parts.append(rows[:at].copy())
        return counts, parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _kernel_lanes(self, kernel: Kernel, batch: Batch, side: str, first: int, last: int) -> list[Array]:
        other = other_side(side)
        return kernel.lanes(side, [a[first:last] for a in self._lanes(side, batch.probes[side])],
                            self._lanes(other, self.stores[other].arrays))

    def _by_numpy(self, batch: Batch, side: str, before: int, start: Rows, end: Rows) -> tuple[Rows, Rows]:
        """The matches of the probes behind the first ``before``, which have these windows."""
        store = self.stores[other_side(side)]
        lengths, most = end - start, self.tuning.numpy_pairs
        counts, found = np.zeros(len(start), np.int64), [np.empty(0, np.int64)]
        first = 0
        while first < len(start):
            # The probes that fill a block, at least one.
            last = first + max(1, int(np.searchsorted(np.cumsum(lengths[first:]), most, side="right")))
            sizes = lengths[first:last]
            probe = np.repeat(np.arange(first, first + len(sizes)), sizes)
            rows = np.arange(len(probe)) + np.repeat(start[first:last] - (np.cumsum(sizes) - sizes), sizes)
            true = self.true(self._predicate, batch, side, probe + before, rows - store.base)
            counts[first:last] = np.bincount(probe[true] - first, minlength=len(sizes))
            found.append(rows[true])
            batch.memory.add(len(found[-1]))
            first = last
        return counts, np.concatenate(found)

    def true(self, condition: Expr, batch: Batch, side: str, probe: Rows, at: Rows) -> npt.NDArray[np.bool_]:
        """True for each pair (n,) of which ``condition``, of the predicate's columns, is true: with NumPy.

        ``probe``: positions among the batch's probes of stream ``side``; ``at``: among the other one's stored arrays.
        """
        stored = self.stores[other_side(side)].arrays
        return self._pairs.true(side, batch.probes[side], probe, stored, at, condition)
