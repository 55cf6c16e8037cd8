"""Aggregates that are the value of one partner: the least, the greatest, the first, the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sqlglot import exp

from ..eval.scalar import RowValue
from ..ir import Expr
from ..types import Bool
from .function import AggregateFunction, Term, order_key


@dataclass(frozen=True)
class Pick(AggregateFunction):
    """The first argument of the first partner in which the last one is the least, or the ``greatest``."""

    greatest: bool = False

    def check(self, args: Sequence[Expr], text: str) -> None:
        if isinstance(args[0].type, Bool) and len(args) == 1:
            raise self.refused(text, "values with an order", "bool; write it with CASE")

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return (Term("greatest" if self.greatest else "least", args[-1], args[0]),)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        pick = max if self.greatest else min  # both take the first of equal ones
        found = pick((row for row in rows if None not in row), key=lambda row: order_key(row[-1]), default=None)
        return None if found is None else found[0]


class _PickBy(Pick):
    ordered: ClassVar[bool] = True


@dataclass(frozen=True)
class _End(AggregateFunction):
    """The value of the first or the last partner, even if it is NULL."""

    end: Literal["first", "last"] = "first"
    ordered: ClassVar[bool] = True

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return (Term(self.end, None, args[0]),)

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        return rows[0 if self.end == "first" else -1][0] if rows else None


PICK_FUNCTIONS: tuple[AggregateFunction, ...] = (
    Pick("min", ("min(x)",), (exp.Min,)),
    Pick("max", ("max(x)",), (exp.Max,), greatest=True),
    _End("first", ("first(x)",), (exp.First,)),
    _End("last", ("last(x)",), (exp.Last,), end="last"),
    _PickBy("argmin", ("argmin(x, by)",), (exp.ArgMin,), arities=(2,)),
    _PickBy("argmax", ("argmax(x, by)",), (exp.ArgMax,), arities=(2,), greatest=True),
)
