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
#: A column of keys: its values, those that differ, and for each usable row which of these it has.
_Column = tuple[Vector, npt.NDArray[Any], Ints]


class KeyNumbers:
    """Numbers the keys that a query's condition compares, in whole tables: equal keys get equal numbers.

    ``query``: its condition must consist of equalities between the streams and conditions on one of them.
    """

    def __init__(self, query: Query):
        self._equal = Equalities.of(query.predicate)

    def of(self, side: Side, table: pa.Table) -> tuple[Ints, list[Hashable]]:
        """The number of the key of each row of ``table``, tuples of stream ``side``, and the keys by number, each of
        which occurs: int64 (n,), −1 for a row that is in no pair, as its own side of the condition rules it out.
        """
        numbers, first, columns = self._numbered(side, table)
        parts = [_hashable(column, distinct[inverse[first]]) for column, distinct, inverse in columns]
        return numbers, parts[0] if len(parts) == 1 else [*zip(*parts, strict=True)] if parts else [()] * len(first)

    def last_of_each(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """True for each row of ``table``, tuples of S in arrival order, that is the last one of its key: bool (n,)."""
        numbers, first, _ = self._numbered("s", table)
        last = np.full(len(first), -1, np.int64)
        at = np.flatnonzero(numbers >= 0)
        last[numbers[at]] = at  # of several values for one place the last one stays
        kept = np.zeros(len(table), np.bool_)
        kept[last] = True
        return kept

    def _numbered(self, side: Side, table: pa.Table) -> tuple[Ints, Ints, list[_Column]]:
        """The numbers as of `of`, one usable row for each number, and the keys of the usable rows, column by column."""
        usable = np.ones(len(table), np.bool_)
        with np.errstate(all="ignore"):
            for term in self._equal.selections[side]:
                found = evaluate(term, table)
                usable &= found.valid & found.values.astype(np.bool_)
            values = [evaluate(key, table) for key in self._equal.key(side)]
        for column in values:
            usable &= column.valid
        at = np.flatnonzero(usable)
        numbers = np.full(len(table), -1, np.int64)
        combined, first = np.zeros(len(at), np.int64), np.zeros(min(len(at), 1), np.int64)
        columns: list[_Column] = []
        for column in values:
            distinct, its_first, inverse = np.unique(column.values[at], return_index=True, return_inverse=True)
            if columns:  # numbered anew, so that the products stay small
                _, first, combined = np.unique(combined * len(distinct) + inverse, return_index=True,
                                               return_inverse=True)
            else:
                first, combined = its_first, inverse
            columns.append((column, distinct, inverse))
        numbers[at] = combined
        return numbers, first, columns


def _hashable(column: Vector, values: npt.NDArray[Any]) -> list[Hashable]:
    """``values`` of ``column`` as Python values that are equal where SQL says so."""
    if values.dtype.kind == "f":
        return [None if value != value else value for value in values.tolist()]  # NaN equals NaN
    if column.denominator != 1:
        return [Fraction(value, column.denominator) for value in values.tolist()]
    found: list[Hashable] = values.tolist()
    return found
