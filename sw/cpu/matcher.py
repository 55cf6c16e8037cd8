"""Which pairs of a block of probes and a stretch of window match: compiled interval tests, or whole expressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import UnsupportedError
from ..lang.codes import Coder
from ..lang.ir import Expr, columns
from ..lang.keys import Codes
from ..lang.plan import Plan, make_plan
from ..lang.vector import Vector, column, evaluate_columns
from .kernel import CHUNK, kernel, source, used_slots
from .store import ALIGNMENT

__all__ = ["ExpressionMatcher", "IntervalMatcher", "Matcher", "make_matcher"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]


class Matcher(ABC):
    """Prepares tuples as arrays, and finds the matches of probes in a window of prepared tuples."""

    @abstractmethod
    def prepare(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        """What the tuples of ``table`` are stored as, and what they probe with: arrays (n,) each."""

    @abstractmethod
    def find(self, side: str, probes: list[Array], stored: list[Array], start: Rows, end: Rows,
             base: int) -> tuple[Rows, Rows]:
        """The matches of probes of stream ``side``, sorted by (probe, stored row).

        ``stored`` are the other stream's tuples from row id ``base`` on; probe i sees rows ``start[i]`` to ``end[i]``,
        half open. Returns indices of probes and row ids.
        """


def make_matcher(predicate: Expr) -> Matcher:
    """Interval tests where the predicate maps onto them, else the expression itself over blocks of pairs."""
    try:
        return IntervalMatcher(make_plan(predicate))
    except UnsupportedError:
        return ExpressionMatcher(predicate)


class IntervalMatcher(Matcher):
    """Interval tests by a compiled kernel; keys of up to 32 bits are compared in 32-bit lanes."""

    def __init__(self, plan: Plan):
        self._plan = plan
        self._coder = Coder(plan)
        self._used = {side: used_slots(plan, side) for side in ("r", "s")}
        self._kernels = {side: kernel(source(plan, side)) for side in ("r", "s")}

    def prepare(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        plan, codes = self._plan, self._coder.codes(side, table)
        other = "s" if side == "r" else "r"
        keys = [_signed(codes.keys[n], plan.slots(side)[n].key.width) for n in self._used[side]]
        widths = [plan.slots(other)[t.s if side == "r" else t.r].key.width for t in plan.tests]
        bounds = [_signed(b, w) for part in (codes.lows, codes.highs) for b, w in zip(part, widths, strict=True)]
        return keys, bounds

    def find(self, side: str, probes: list[Array], stored: list[Array], start: Rows, end: Rows,
             base: int) -> tuple[Rows, Rows]:
        other = self._kernels["s" if side == "r" else "r"]
        # Chunks begin where vector loads are aligned; what is before a probe's window, its own start leaves out.
        first = base + (int(start.min()) - base) // ALIGNMENT * ALIGNMENT
        chunks = max(0, -(-(int(end.max()) - first) // CHUNK))
        counts = np.empty((len(start), chunks), np.int32)
        keys = [k[first - base:] for k in stored]
        other.count(*keys, *probes, start, end, first, CHUNK, counts)
        matches = int(counts.sum(dtype=np.int64))
        probe, rows = np.empty(matches, np.int64), np.empty(matches, np.int64)
        if matches:
            other.emit(*keys, *probes, start, end, first, CHUNK, counts, probe, rows)
        return probe, rows


#: Pairs that the expression matcher looks at at once.
_PAIRS = 1 << 18


class ExpressionMatcher(Matcher):
    """Evaluates the whole predicate with NumPy over blocks of pairs: for predicates that are no interval tests."""

    def __init__(self, predicate: Expr):
        self._predicate = predicate
        self._columns = {side: [c for c in columns(predicate) if c.side == side] for side in ("r", "s")}

    def prepare(self, side: str, table: pa.Table) -> tuple[list[Array], list[Array]]:
        arrays: list[Array] = []
        for c in self._columns[side]:
            v = column(table.column(c.name))
            arrays += [v.values, v.valid]
        return arrays, arrays

    def find(self, side: str, probes: list[Array], stored: list[Array], start: Rows, end: Rows,
             base: int) -> tuple[Rows, Rows]:
        other = "s" if side == "r" else "r"
        found: list[tuple[Rows, Rows]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        lengths = np.maximum(end - start, 0)
        first = 0
        while first < len(start):
            # As many probes as fill a block, or one.
            last = first + max(1, int(np.searchsorted(np.cumsum(lengths[first:]), _PAIRS, side="right")))
            sizes = lengths[first:last]
            probe = np.repeat(np.arange(first, last), sizes)
            rows = np.arange(len(probe)) + np.repeat(start[first:last] - (np.cumsum(sizes) - sizes), sizes)
            vectors = {}
            for of, arrays, index in ((side, probes, probe), (other, stored, rows - base)):
                for n, c in enumerate(self._columns[of]):
                    vectors[c] = Vector(arrays[2 * n][index], arrays[2 * n + 1][index])
            v = evaluate_columns(self._predicate, vectors, len(probe))
            true = v.valid & v.values
            found.append((probe[true], rows[true]))
            first = last
        return np.concatenate([p for p, _ in found]), np.concatenate([r for _, r in found])


def _signed(codes: Codes, width: int) -> Array:
    """Codes as signed lanes of the same order: 32 bits where they fit, else 64."""
    if width <= 32:
        return (codes.astype(np.uint32) ^ np.uint32(2**31)).view(np.int32)
    return (codes ^ np.uint64(2**63)).view(np.int64)
