"""Conditions on pairs by NumPy: the columns that they read, and their truth for pairs of stored tuples and probes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from splitjoin.base.arrays import Array, Mask, Rows
from splitjoin.lang.eval.vector import Vector, column, evaluate_columns
from splitjoin.lang.ir import Expr, columns
from splitjoin.lang.schema import SIDES, other_side


def column_arrays(predicate: Expr, side: str, table: pa.Table) -> list[Array]:
    """Values and validity of each column of stream ``side`` that ``predicate`` reads, (n,) each."""
    arrays: list[Array] = []
    for c in columns(predicate):
        if c.side == side:
            v = column(table.column(c.name))
            arrays += [v.values, v.valid]
    return arrays


class PairTest:
    """Evaluates conditions of the columns of ``predicate``, given as `column_arrays`."""

    def __init__(self, predicate: Expr):
        self._predicate = predicate
        self._columns = {side: [c for c in columns(predicate) if c.side == side] for side in SIDES}

    def true(self, side: str, probes: Sequence[Array], probe: Rows, stored: Sequence[Array], at: Rows,
             condition: Expr | None = None) -> Mask:
        """True for each pair (n,) of which the ``condition`` (the predicate by default) is true.

        ``probe``: positions in ``probes``, of stream ``side``; ``at``: in ``stored``, of the other one.
        """
        vectors = {}
        for of, arrays, index in ((side, probes, probe), (other_side(side), stored, at)):
            for n, c in enumerate(self._columns[of]):  # type: ignore[index]  # "r" or "s"
                vectors[c] = Vector(arrays[2 * n][index], arrays[2 * n + 1][index])
        v = evaluate_columns(self._predicate if condition is None else condition, vectors, len(probe))
        holds: Mask = v.valid & v.values
        return holds
