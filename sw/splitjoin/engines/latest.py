"""The last tuple of each key: all that as-of joins without a window keep of S."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.lang.equalities import Equalities
from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side

__all__ = ["KeyNumbers"]

Ints = npt.NDArray[np.int64]
Key = tuple[Hashable, ...]


class KeyNumbers:
    """Numbers the keys that a query's condition compares, in whole tables: equal keys get equal numbers.

    ``query``: its condition must consist of equalities between the streams and conditions on one of them.
    """

    def __init__(self, query: Query):
        self._equal = Equalities.of(query.predicate)

    def of(self, side: Side, table: pa.Table) -> tuple[Ints, list[Key]]:
        """The number of the key of each row of ``table``, tuples of stream ``side``, and the keys by number, each of
        which occurs: int64 (n,), −1 for a row that is in no pair, as its own side of the condition rules it out.
        """
        usable = np.ones(len(table), np.bool_)
        with np.errstate(all="ignore"):
            for term in self._equal.selections[side]:
                found = evaluate(term, table)
                usable &= found.valid & found.values.astype(np.bool_)
            columns = [evaluate(key, table) for key in self._equal.key(side)]
        for column in columns:
            usable &= column.valid
        at = np.flatnonzero(usable)
        numbers = np.full(len(table), -1, np.int64)
        combined, first = np.zeros(len(at), np.int64), np.zeros(min(len(at), 1), np.int64)
        parts = []
        for column in columns:
            distinct, inverse = np.unique(column.values[at], return_inverse=True)
            parts.append((_hashable(column, distinct), inverse))
            # Numbered anew after each column, so that the products stay small.
            _, first, combined = np.unique(combined * len(distinct) + inverse, return_index=True, return_inverse=True)
        numbers[at] = combined
        return numbers, [tuple(names[inverse[row]] for names, inverse in parts) for row in first.tolist()]

    def last_of_each(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """True for each row of ``table``, tuples of S in arrival order, that is the last one of its key: bool (n,)."""
        numbers, keys = self.of("s", table)
        last = np.full(len(keys), -1, np.int64)
        at = np.flatnonzero(numbers >= 0)
        last[numbers[at]] = at  # of several values for one place the last one stays
        kept = np.zeros(len(table), np.bool_)
        kept[last] = True
        return kept


def _hashable(column: Vector, values: npt.NDArray[Any]) -> list[Hashable]:
    """``values`` of ``column`` as Python values that are equal where SQL says so."""
    if values.dtype.kind == "f":
        return [None if value != value else value for value in values.tolist()]  # NaN equals NaN
    if column.denominator != 1:
        return [Fraction(value, column.denominator) for value in values.tolist()]
    found: list[Hashable] = values.tolist()
    return found
