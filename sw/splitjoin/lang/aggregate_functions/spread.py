"""Variances and standard deviations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from ..eval.scalar import RowValue
from ..eval.vector import Vector, magnitude
from ..ir import Arith, Expr
from ..types import EXACT, Float
from .function import AggregateFunction, Term
from .sums import OfNumbers, rounded


@dataclass(frozen=True)
class _Spread(OfNumbers):
    """The sum of the squared distances from the average, over the count less ``less``; its ``root``.

    Of exact numbers it is computed exactly, and rounded once. Of floats, the exact sum of the squared distances from
    the exact average is rounded before it is divided.
    """

    less: int = 0
    root: bool = False

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        of = args[0]
        return (Term("deviation", of), Term("count", of)) if isinstance(of.type, Float) else (
            Term("sum", of), Term("sum", Arith(EXACT, "*", of, of)), Term("count", of))

    def finish(self, terms: Sequence[Vector]) -> Vector:
        if len(terms) == 2:
            counts = terms[1].values
            return self._rooted(terms[0].values / np.maximum(counts - self.less, 1), counts > self.less)
        sums, squares, counts = terms[0].values, terms[1].values, terms[2].values
        per, per_square, valid = terms[0].denominator, terms[1].denominator, counts > self.less
        most = int(counts.max(initial=0))
        if max(most * magnitude(squares) * per**2, magnitude(sums) ** 2 * per_square,
               most**2 * per**2 * per_square) < 2**53 and sums.dtype == squares.dtype == np.int64:
            above = counts * squares * per**2 - sums**2 * per_square
            below = np.where(valid, counts * (counts - self.less), 1) * per**2 * per_square
            return self._rooted(above / below, valid)
        values = np.zeros(len(counts))
        for n in np.flatnonzero(valid).tolist():
            count, one = int(counts[n]), int(sums[n])
            exact = count * int(squares[n]) * per**2 - one**2 * per_square
            values[n] = exact / (count * (count - self.less) * per**2 * per_square)
        return self._rooted(values, valid)

    def _rooted(self, values: npt.NDArray[np.float64], valid: npt.NDArray[np.bool_]) -> Vector:
        return Vector(np.sqrt(values) if self.root else values, valid)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        values: list[Any] = [value for (value,) in rows if value is not None]
        count = len(values)
        if count <= self.less:
            return None
        is_float = isinstance(args[0].type, Float)
        if is_float and not all(map(math.isfinite, values)):
            return math.nan if count > 1 else 0.0  # as in DuckDB
        exact_values = [Fraction(float(value) if is_float else value) for value in values]
        mean = sum(exact_values, Fraction(0)) / count
        exact = sum(((value - mean) ** 2 for value in exact_values), Fraction(0))
        found = rounded(exact) / (count - self.less) if is_float else rounded(exact / (count - self.less))
        return math.sqrt(found) if self.root else found


SPREAD_FUNCTIONS: tuple[AggregateFunction, ...] = (
    _Spread("stddev_samp", ("stddev_samp(x)",), (exp.StddevSamp, exp.Stddev), less=1, root=True),
    _Spread("stddev_pop", ("stddev_pop(x)",), (exp.StddevPop,), root=True),
    _Spread("var_samp", ("var_samp(x)",), (exp.Variance,), less=1),
    _Spread("var_pop", ("var_pop(x)",), (exp.VariancePop,)),
)
