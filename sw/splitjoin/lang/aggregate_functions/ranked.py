"""Aggregates of all values of a base tuple: quantiles, the most frequent value, products, texts and lists."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import PredicateError

from ..eval.scalar import RowValue
from ..eval.vector import Vector, constant, widen
from ..ir import Expr, columns
from ..types import Bool, String, is_exact, is_number
from .function import AggregateFunction, PairFold, Term, order_key, place_of
from .sums import OfNumbers, quotients

_HALF = Fraction(1, 2)


class _OfAll(AggregateFunction):
    """An aggregate that needs the values of all partners at once, by arrival."""

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return ()


class _Quantile(AggregateFunction):
    """The least value that at least the share q of the values do not exceed (DuckDB's ``quantile_disc``)."""

    compares: ClassVar[bool] = True

    def check(self, args: Sequence[Expr], text: str) -> None:
        if isinstance(args[0].type, Bool):
            raise self.refused(text, "values with an order", "bool; write it with CASE")
        if columns(args[1]) or not is_number(args[1].type) or not 0 <= _share(args) <= 1:
            raise PredicateError(f"{text!r}: the second value of {self.name} must be a number from 0 to 1, such as "
                                 f"0.9, not {args[1]}")

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return (Term("quantile", args[0], share=_share(args)),)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        values = sorted((row[0] for row in rows if row[0] is not None), key=order_key)
        return values[place_of(_share(args), len(values))] if values else None


class _Median(OfNumbers):
    """The middle value, or the mean of the two in the middle, rounded once."""

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return Term("quantile", args[0], share=_HALF), Term("upper quantile", args[0], share=_HALF)

    def finish(self, terms: Sequence[Vector]) -> Vector:
        low, high, present = terms[0].values, terms[1].values, terms[0].valid
        if low.dtype.kind == "f":
            return Vector(_middle(low.astype(np.float64), high.astype(np.float64)), present)
        both = widen(low, 2**63) + widen(high, 2**63)
        return Vector(quotients(both, np.full(len(both), 2), terms[0].denominator), present)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        values: list[Any] = sorted((row[0] for row in rows if row[0] is not None), key=order_key)
        if not values:
            return None
        low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
        if is_exact(args[0].type):
            mean = (Fraction(low) + Fraction(high)) / 2
            return mean.numerator / mean.denominator
        return float(_middle(np.array([float(low)]), np.array([float(high)]))[0])


class _Mode(AggregateFunction):
    """The most frequent value; of several, the one that arrived first."""

    ordered: ClassVar[bool] = True

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return (Term("mode", args[0]),)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        values = [row[0] for row in rows if row[0] is not None]
        times = Counter(order_key(value) for value in values)
        return max(values, key=lambda value: times[order_key(value)], default=None)


class _Product(OfNumbers, _OfAll):
    """The product as a float64: each value as the nearest float, multiplied by arrival, rounded each time."""

    ordered: ClassVar[bool] = True

    def of_pairs(self, args: Sequence[Expr], values: Vector, counts: Ints, fold: PairFold) -> Vector:
        floats, present = values.values, counts > 0
        if floats.dtype.kind != "f":
            floats = quotients(floats, np.ones(len(floats), np.int64), values.denominator)
        found = np.zeros(len(counts))
        if len(floats):
            with np.errstate(all="ignore"):
                found[present] = np.multiply.reduceat(floats.astype(np.float64), (np.cumsum(counts) - counts)[present])
        return Vector(found, present)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        values: list[Any] = [row[0] for row in rows if row[0] is not None]
        return math.prod(float(value) for value in values) if values else None


class _JoinedTexts(_OfAll):
    """The texts by arrival, with a separator between them."""

    ordered: ClassVar[bool] = True
    takes = (lambda e: isinstance(e.type, String), "text")

    def check(self, args: Sequence[Expr], text: str) -> None:
        super().check(args, text)
        if len(args) > 1 and (columns(args[1]) or not isinstance(args[1].type, String)):
            raise PredicateError(f"{text!r}: the second value of {self.name} must be a text, such as ', ', not "
                                 f"{args[1]}")

    def of_pairs(self, args: Sequence[Expr], values: Vector, counts: Ints, fold: PairFold) -> Vector:
        found, between, at = np.full(len(counts), "", object), _separator(args), 0
        for n, count in enumerate(counts.tolist()):
            found[n] = between.join(values.values[at:at + count])
            at += count
        return Vector(found, counts > 0)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        values = [str(row[0]) for row in rows if row[0] is not None]
        return _separator(args).join(values) if values else None


class _Listed(_OfAll):
    """The values by arrival, as a list."""

    ordered: ClassVar[bool] = True
    listed: ClassVar[bool] = True

    def type(self, value: pa.DataType | None) -> pa.DataType:
        assert value is not None
        return pa.list_(value)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        return [row[0] for row in rows] or None


def _share(args: Sequence[Expr]) -> Fraction:
    """The constant q of a quantile; -1 for NULL, NaN and infinities."""
    value = constant(args[1])
    return Fraction(value) if value is not None and abs(value) <= 1 else Fraction(-1)


def _separator(args: Sequence[Expr]) -> str:
    """The constant text between texts: a comma if none is given."""
    return str(constant(args[1])) if len(args) > 1 else ","


def _middle(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The means of ``low`` and ``high``, which is not less, without overflow or lost bits."""
    with np.errstate(all="ignore"):
        return np.where(np.abs(low) < 1, (low + high) / 2, low / 2 + high / 2)


RANKED_FUNCTIONS: tuple[AggregateFunction, ...] = (
    _Median("median", ("median(x)",), (exp.Median,)),
    _Quantile("quantile", ("quantile(x, q)",), (exp.Quantile,), ("quantile_disc",), arities=(2,)),
    _Mode("mode", ("mode(x)",), (exp.Mode,)),
    _Product("product", ("product(x)",), words=("product",)),
    _JoinedTexts("string_agg", ("string_agg(x, ', ')",), (exp.GroupConcat,), arities=(1, 2)),
    _Listed("list", ("list(x)",), (exp.List, exp.ArrayAgg)),
)
