"""Aggregates of different values: sum, avg, median and string_agg with DISTINCT, which take each value once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..eval.scalar import RowValue
from ..eval.vector import Vector, magnitude
from ..ir import Expr
from .function import AggregateFunction, Ints, PairSums, Term, order_key
from .ranked import RANKED_FUNCTIONS
from .sums import SUM_FUNCTIONS, quotients

__all__ = ["DISTINCT_FUNCTIONS", "SAME_OF_DISTINCT"]

#: Aggregates whose value does not depend on how often a value occurs.
SAME_OF_DISTINCT = {"min", "max", "bool_and", "bool_or", "bit_and", "bit_or"}

_PLAIN: dict[str, AggregateFunction] = {f.name: f for f in (*SUM_FUNCTIONS, *RANKED_FUNCTIONS)}


@dataclass(frozen=True)
class _Distinct(AggregateFunction):
    """The aggregate ``of`` the different values, each where it arrived first; only the host folds it, from pairs."""

    of: AggregateFunction = _PLAIN["median"]
    ordered: ClassVar[bool] = True

    def check(self, args: Sequence[Expr], text: str) -> None:
        self.of.check(args, text)

    def type(self, value: pa.DataType | None) -> pa.DataType:
        return self.of.type(value)

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return ()

    def of_pairs(self, args: Sequence[Expr], values: Vector, counts: Ints, sums: PairSums) -> Vector:
        kept = _first_places(values.values, counts)
        groups = np.repeat(np.arange(len(counts)), counts)[kept]
        once = Vector(values.values[kept], values.valid[kept], values.denominator)
        return self.of_once(args, once, np.bincount(groups, minlength=len(counts)), sums)

    def of_once(self, args: Sequence[Expr], values: Vector, counts: Ints, sums: PairSums) -> Vector:
        """`of_pairs` of values of which none occurs twice in a base tuple's partners."""
        return self.of.of_pairs(args, values, counts, sums)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        seen: dict[Any, Sequence[RowValue]] = {}
        for row in rows:
            if row[0] is not None:
                seen.setdefault(order_key(row[0]), row)
        return self.of.reference(list(seen.values()), args)


class _DistinctSum(_Distinct):
    may_overflow: ClassVar[bool] = True

    def of_once(self, args: Sequence[Expr], values: Vector, counts: Ints, sums: PairSums) -> Vector:
        return Vector(_sums(values.values, counts, sums), counts > 0, values.denominator)


class _DistinctAverage(_Distinct):
    def of_once(self, args: Sequence[Expr], values: Vector, counts: Ints, sums: PairSums) -> Vector:
        found, many = _sums(values.values, counts, sums), np.maximum(counts, 1)
        if found.dtype.kind == "f":
            with np.errstate(all="ignore"):
                return Vector(found / many, counts > 0)
        return Vector(quotients(found, many, values.denominator), counts > 0)


def _first_places(values: npt.NDArray[Any], counts: Ints) -> Ints:
    """The places at which the different ``values`` of each group first occur, rising; NaN is one value."""
    _, codes = np.unique(values, return_inverse=True)
    per = int(codes.max(initial=0)) + 1
    _, first = np.unique(np.repeat(np.arange(len(counts)), counts) * per + codes, return_index=True)
    return np.sort(first)


def _sums(values: npt.NDArray[Any], counts: Ints, sums: PairSums) -> npt.NDArray[Any]:
    """The sums of groups of ``counts`` values, 0 of none: exact, of floats rounded once."""
    if values.dtype.kind == "f":
        return sums(values.astype(np.float64), counts)
    fits = magnitude(values) * int(counts.max(initial=0)) < 2**63
    wide = values.astype(np.int64 if fits and values.dtype != object else object)
    found = np.zeros(len(counts), wide.dtype)
    if len(wide):
        found[counts > 0] = np.add.reduceat(wide, (np.cumsum(counts) - counts)[counts > 0])
    return found


#: Definitions with DISTINCT, by the name of that without.
DISTINCT_FUNCTIONS: dict[str, AggregateFunction] = {
    "count": _PLAIN["count distinct"],
    "sum": _DistinctSum("sum distinct", ("sum(DISTINCT x)",), of=_PLAIN["sum"]),
    "avg": _DistinctAverage("avg distinct", ("avg(DISTINCT x)",), of=_PLAIN["avg"]),
    "median": _Distinct("median distinct", ("median(DISTINCT x)",), of=_PLAIN["median"]),
    "string_agg": _Distinct("string_agg distinct", ("string_agg(DISTINCT x, ', ')",), arities=(1, 2),
                            of=_PLAIN["string_agg"]),
}
