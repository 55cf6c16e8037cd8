"""Aggregates of truth values, and of the bits of whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_, xor
from typing import Any

from sqlglot import exp

from ..eval.scalar import RowValue
from ..ir import Expr
from ..properties import denominator
from ..types import Bool, Decimal, is_exact
from .function import AggregateFunction, Term, TermKind


@dataclass(frozen=True)
class _Logical(AggregateFunction):
    """True if the values of ``every`` partner are true, or of any."""

    every: bool = True
    takes = (lambda e: isinstance(e.type, Bool), "truth values, such as x > 0")

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return (Term("least" if self.every else "greatest", args[0], args[0]),)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        values = [value for (value,) in rows if value is not None]
        return None if not values else all(values) if self.every else any(values)


@dataclass(frozen=True)
class _Bits(AggregateFunction):
    """The whole numbers joined bit by bit, in two's complement: by ``operation``."""

    operation: Callable[[int, int], int] = and_
    kind: TermKind = "bit_and"

    takes = (lambda e: is_exact(e.type) and not isinstance(e.type, Decimal) and denominator(e) == 1, "whole numbers")

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return (Term(self.kind, args[0]),)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        values: list[Any] = [int(value) for (value,) in rows if value is not None]
        return reduce(self.operation, values) if values else None


BIT_FUNCTIONS: tuple[AggregateFunction, ...] = (
    _Logical("bool_and", ("bool_and(x)",), (exp.LogicalAnd,)),
    _Logical("bool_or", ("bool_or(x)",), (exp.LogicalOr,), every=False),
    _Bits("bit_and", ("bit_and(x)",), (exp.BitwiseAndAgg,), ("bit_and",)),
    _Bits("bit_or", ("bit_or(x)",), (exp.BitwiseOrAgg,), ("bit_or",), operation=or_, kind="bit_or"),
    _Bits("bit_xor", ("bit_xor(x)",), (exp.BitwiseXorAgg,), ("bit_xor",), operation=xor, kind="bit_xor"),
)
