"""Counts, sums and averages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from ..eval.scalar import RowValue
from ..eval.vector import Vector
from ..ir import Expr
from ..types import Float, is_length, is_number
from .function import AggregateFunction, Term, order_key


class _Count(AggregateFunction):
    nullable: ClassVar[bool] = False

    def type(self, value: pa.DataType | None) -> pa.DataType:
        return pa.int64()

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return (Term("count", args[0]) if args else Term("rows"),)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        return sum(None not in row for row in rows)


class _CountDistinct(_Count):
    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return (Term("distinct", args[0]),)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        return len({order_key(value) for (value,) in rows if value is not None})


class _Sum(AggregateFunction):
    may_overflow: ClassVar[bool] = True
    takes = (lambda e: is_number(e.type) or is_length(e.type), "numbers or durations")

    def type(self, value: pa.DataType | None) -> pa.DataType:
        assert value is not None
        if pa.types.is_decimal(value):
            return pa.decimal128(38, value.scale)
        if pa.types.is_floating(value):
            return pa.float64()
        return pa.int64() if pa.types.is_integer(value) and value != pa.uint64() else value

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return (Term("sum", args[0]),)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        values: list[Any] = [value for (value,) in rows if value is not None]
        return total(values, args[0]) if values else None


class OfNumbers(AggregateFunction):
    """An aggregate that takes numbers and gives a float64."""

    takes = (lambda e: is_number(e.type), "numbers")

    def type(self, value: pa.DataType | None) -> pa.DataType:
        return pa.float64()


class _Average(OfNumbers):
    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return Term("sum", args[0]), Term("count", args[0])

    def finish(self, terms: Sequence[Vector]) -> Vector:
        total, counts = terms[0], np.maximum(terms[1].values, 1)
        if total.values.dtype.kind == "f":
            with np.errstate(all="ignore"):
                return Vector(total.values / counts, total.valid)
        return Vector(quotients(total.values, counts, total.denominator), total.valid)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        values: list[Any] = [value for (value,) in rows if value is not None]
        if not values:
            return None
        mean = total(values, args[0]) / len(values)
        return mean.numerator / mean.denominator if isinstance(mean, Fraction) else mean


def total(values: Sequence[Any], of: Expr) -> Any:
    """The sum of ``values`` of ``of``: exact, and of floats rounded once."""
    if not isinstance(of.type, Float):
        return sum((Fraction(value) for value in values), Fraction(0))
    floats = [float(value) for value in values]
    try:
        return math.fsum(floats)
    except (OverflowError, ValueError):  # of a partial sum; infinities of both signs
        return rounded_sum(floats)


def rounded_sum(values: list[Any]) -> float:
    """The exact sum of ``values``, rounded once, by rational numbers."""
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return float(sum(special))
    return rounded(sum(map(Fraction, values), Fraction(0)))


def rounded(exact: Fraction) -> float:
    """``exact`` as the nearest float, infinite if it is too large."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def quotients(sums: npt.NDArray[Any], counts: npt.NDArray[np.int64], denominator: int) -> npt.NDArray[np.float64]:
    """``sums / (counts · denominator)``, each rounded once."""
    exact = 2**53
    if sums.dtype == np.int64 and len(sums) and max(abs(int(sums.min())), abs(int(sums.max()))) < exact and (
            int(counts.max()) * denominator < exact):
        return np.asarray(sums / (counts * denominator), np.float64)
    return np.array([int(a) / (int(b) * denominator) for a, b in zip(sums.tolist(), counts.tolist(), strict=True)],
                    np.float64)


SUM_FUNCTIONS: tuple[AggregateFunction, ...] = (
    _Count("count", ("count(*)", "count(x)"), (exp.Count,), arities=(0, 1)),
    _CountDistinct("count distinct", ("count(DISTINCT x)",)),
    _Sum("sum", ("sum(x)",), (exp.Sum,)),
    _Average("avg", ("avg(x)",), (exp.Avg,)),
)
