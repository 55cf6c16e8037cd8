"""Aggregates of different values: sum, avg, median and string_agg with DISTINCT, which take each value once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.arrays import Ints

from ..eval.scalar import RowValue
from ..eval.vector import Vector
from ..ir import Expr
from .function import AggregateFunction, PairFold, Term, order_key
from .ranked import RANKED_FUNCTIONS
from .sums import SUM_FUNCTIONS

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

    def of_pairs(self, args: Sequence[Expr], values: Vector, counts: Ints, fold: PairFold) -> Vector:
        kept = _first_places(values.values, counts)
        groups = np.repeat(np.arange(len(counts)), counts)[kept]
        once = Vector(values.values[kept], values.valid[kept], values.denominator)
        counts, terms = np.bincount(groups, minlength=len(counts)), self.of.terms(args)
        if not terms:
            return self.of.of_pairs(args, once, counts, fold)
        return self.of.finish([fold(term, once, counts) for term in terms])

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        seen: dict[Any, Sequence[RowValue]] = {}
        for row in rows:
            if row[0] is not None:
                seen.setdefault(order_key(row[0]), row)
        return self.of.reference(list(seen.values()), args)


class _DistinctSum(_Distinct):
    may_overflow: ClassVar[bool] = True


def _first_places(values: npt.NDArray[Any], counts: Ints) -> Ints:
    """The places at which the different ``values`` of each group first occur, rising; NaN is one value."""
    _, codes = np.unique(values, return_inverse=True)
    per = int(codes.max(initial=0)) + 1
    _, first = np.unique(np.repeat(np.arange(len(counts)), counts) * per + codes, return_index=True)
    return np.sort(first)


#: Definitions with DISTINCT, by the name of that without.
DISTINCT_FUNCTIONS: dict[str, AggregateFunction] = {
    "count": _PLAIN["count distinct"],
    "sum": _DistinctSum("sum distinct", ("sum(DISTINCT x)",), of=_PLAIN["sum"]),
    "avg": _Distinct("avg distinct", ("avg(DISTINCT x)",), of=_PLAIN["avg"]),
    "median": _Distinct("median distinct", ("median(DISTINCT x)",), of=_PLAIN["median"]),
    "string_agg": _Distinct("string_agg distinct", ("string_agg(DISTINCT x, ', ')",), arities=(1, 2),
                            of=_PLAIN["string_agg"]),
}
