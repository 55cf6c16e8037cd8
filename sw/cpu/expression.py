"""The engine for conditions without interval tests: the whole expression over blocks of pairs, with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..lang.ir import Expr, columns
from ..lang.vector import Vector, column, evaluate_columns
from .worker import Batch, Found, Worker

__all__ = ["ExpressionWorker", "column_arrays"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: Pairs that are looked at at once.
_PAIRS = 1 << 18


def column_arrays(predicate: Expr, side: str, table: pa.Table) -> list[Array]:
    """Values and validity of each column of stream ``side`` that ``predicate`` reads, (n,) each."""
    arrays: list[Array] = []
    for c in columns(predicate):
        if c.side == side:
            v = column(table.column(c.name))
            arrays += [v.values, v.valid]
    return arrays


class ExpressionWorker(Worker):
    """Evaluates ``predicate`` for every pair."""

    def __init__(self, number: int, workers: int, predicate: Expr):
        super().__init__(number, workers)
        self._predicate = predicate
        self._columns = {side: [c for c in columns(predicate) if c.side == side] for side in ("r", "s")}

    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches."""
        return {side: self._find(batch, side) for side in ("r", "s")}

    def _find(self, batch: Batch, side: str) -> Found:
        other = "s" if side == "r" else "r"
        start, end = self.seen(batch, side)
        store = self.stores[other]
        lengths = end - start
        self.candidates += int(lengths.sum())
        counts, found = np.zeros(len(start), np.int64), [np.empty(0, np.int64)]
        first = 0
        while first < len(start):
            # As many probes as fill a block, or one.
            last = first + max(1, int(np.searchsorted(np.cumsum(lengths[first:]), _PAIRS, side="right")))
            sizes = lengths[first:last]
            probe = np.repeat(np.arange(first, first + len(sizes)), sizes)
            rows = np.arange(len(probe)) + np.repeat(start[first:last] - (np.cumsum(sizes) - sizes), sizes)
            true = self._true(side, batch.probes[side], probe, store.arrays, rows - store.base)
            counts[first:last] = np.bincount(probe[true] - first, minlength=len(sizes))
            found.append(rows[true] * self.workers + self.number)
            first = last
        return counts, np.concatenate(found)

    def _true(self, side: str, probes: list[Array], probe: Rows, stored: list[Array],
              at: Rows) -> npt.NDArray[np.bool_]:
        vectors = {}
        for of, arrays, index in ((side, probes, probe), ("s" if side == "r" else "r", stored, at)):
            for n, c in enumerate(self._columns[of]):
                vectors[c] = Vector(arrays[2 * n][index], arrays[2 * n + 1][index])
        v = evaluate_columns(self._predicate, vectors, len(probe))
        true: npt.NDArray[np.bool_] = v.valid & v.values
        return true
