"""Aggregates that users define, in the form of the built-in ones: `UserFunction`, whose only term is its fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa

from ..eval.scalar import RowValue
from ..fold import Fold, Overflow
from ..ir import Col, Expr
from ..types import Float
from .function import AggregateFunction, Term


@dataclass(frozen=True, kw_only=True)
class FoldTerm(Term):
    """The result of ``fold`` over the partners in which none of ``args`` is NULL, NULL if there is none. ``args``:
    whole numbers without their points, or floats. ``text``: what the user wrote, for errors.
    """

    fold: Fold
    args: tuple[Expr, ...]
    text: str = field(compare=False)

    @property
    def arguments(self) -> tuple[Expr, ...]:
        return self.args


class FoldFailure(Exception):
    """What a fold cannot take: base tuple number ``base``, and ``partner``, the number of one of its partners or None.

    ``argument``: the number of an argument with a ``value`` outside its width, as its expression has it; or ``slot``:
    that of a state which left its width for ``value``, without its point; a result otherwise.
    """

    def __init__(self, base: int, partner: int | None, value: Any, *, argument: int | None = None,
                 slot: int | None = None):
        super().__init__()
        self.base, self.partner, self.value, self.argument, self.slot = base, partner, value, argument, slot


@dataclass(frozen=True, kw_only=True)
class UserFunction(AggregateFunction):
    """A user-defined aggregate: ``fold``, called as ``text``."""

    name: str = "user"
    usages: tuple[str, ...] = ()
    fold: Fold
    text: str = field(compare=False)

    ordered: ClassVar[bool] = True
    named: ClassVar[bool] = False
    computed: ClassVar[bool] = True

    @property
    def digest_text(self) -> str:
        return f" {self.fold.digest_text}"

    def result(self, args: Sequence[Expr]) -> Expr | None:
        width = self.fold.width
        return self.fold.result.outputs[0] if width is None else Col(width.type, "s", "result", True)

    def result_text(self, text: str) -> str:
        return f"{self.fold.name}.result()"

    def type(self, value: pa.DataType | None) -> pa.DataType:
        width = self.fold.width
        return pa.float64() if width is not None and width.fraction else super().type(value)

    def terms(self, args: Sequence[Expr]) -> tuple[Term, ...]:
        return (FoldTerm("fold", fold=self.fold, args=tuple(args), text=self.text),)

    def references(self, bases: Sequence[Sequence[Sequence[RowValue]]], args: Sequence[Expr]) -> list[Any]:
        """The user's own methods, a partner at a time: all states come before the first result. Raises `FoldFailure`
        for what does not fit.
        """
        fold = self.fold
        states = [last_state(fold, rows, args, base) for base, rows in enumerate(bases)]
        run, found = fold.result.evaluator(), list[Any]()
        for base, state in enumerate(states):
            value = None if state is None else run(fold.row(state), {})[0]
            if value is not None and fold.width is not None:
                low, high = fold.width.range
                if not low <= value <= high:
                    raise FoldFailure(base, None, int(value))
                value = float(Fraction(int(value), 2**fold.width.fraction)) if fold.width.fraction else int(value)
            found.append(value)
        return found

    def reference(self, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr]) -> Any:
        return self.references([rows], args)[0]


def last_state(fold: Fold, rows: Sequence[Sequence[RowValue]], args: Sequence[Expr], base: int = 0
               ) -> list[int] | None:
    """The state of ``fold`` behind all partners, by the user's own method, from the values of ``args`` for each: of
    base tuple number ``base``. None without a partner. Raises `FoldFailure` for what does not fit.
    """
    add, state = fold.add.evaluator(), None
    for partner, row in enumerate(rows):
        if None in row:
            continue
        values: list[Any] = list(row)
        whole = [a.width.whole(float(v) if isinstance(e.type, Float) else v)
                 for e, a, v in zip(args, fold.arguments, values, strict=True)]
        if None in whole:
            number = whole.index(None)
            raise FoldFailure(base, partner, values[number], argument=number)
        incoming = {a.name: v for a, v in zip(fold.arguments, whole, strict=True)}
        try:
            state = fold.checked(add(fold.row(fold.init if state is None else state), incoming))
        except Overflow as error:
            raise FoldFailure(base, partner, error.value, slot=error.slot) from None
    return state
