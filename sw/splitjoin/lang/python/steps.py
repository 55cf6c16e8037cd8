"""Values of a compiled Python function as steps: columns that are computed before they are read."""

from __future__ import annotations

from fractions import Fraction

from splitjoin.base.errors import PredicateError

from ..fold import Program, Width, scaled
from ..ir import Arith, Col, Expr, Lit, check_depth, columns
from ..properties import denominator, may_be_null, value_range
from ..types import EXACT, Bool, Float, Int, is_exact
from .values import Value
from .variables import Variables

_INT64 = Int(64).range


class Steps(Variables):
    """Keeps values as columns that are computed before they are read, so that no expression grows deep."""

    def __init__(self) -> None:
        self.steps: list[tuple[Col, Expr]] = []
        self._known: dict[Expr, Expr] = {}

    def stored(self, e: Expr) -> Expr:
        """``e`` as a column, or that times a constant."""
        return self.column(e)

    def whole(self, value: Value) -> Value:
        """``value`` with an integer type. Raises `PredicateError` for fractions and more than 64 bits."""
        if isinstance(value.expr.type, Int):
            return value
        if not is_exact(value.expr.type) or denominator(value.expr) != 1:
            raise PredicateError(f"{value.text!r}: shifts and bit operations need whole numbers; multiply by a power "
                                 f"of two instead, or write // 1")
        atom = self.kept(value)
        if not isinstance(atom.expr, Lit) and not isinstance(atom.expr.type, Int):
            low, high = map(int, value_range(value.expr))
            raise PredicateError(f"{value.text!r}: shifts and bit operations need whole numbers of 64 bits, but this "
                                 f"can be {low} to {high}; bound it with min and max")
        return atom

    def column(self, e: Expr) -> Expr:
        """``e`` as a column."""
        check_depth(e)
        if isinstance(e, (Col, Lit)) or (isinstance(e, Arith) and isinstance(e.a, Col) and e == scaled(
                e.a, denominator(e))):
            return e
        if e not in self._known:
            self._known[e] = self._new(e)
        return self._known[e]

    def _new(self, e: Expr) -> Expr:
        name, nullable = f"${len(self.steps)}", may_be_null(e)
        if isinstance(e.type, (Bool, Float)):
            column = Col(e.type, "s", name, nullable)
            self.steps.append((column, e))
            return column
        per = denominator(e)
        quotient = e if per == 1 else Arith(EXACT, "//", e, Lit(EXACT, Fraction(1, per)))
        low, high = map(int, value_range(quotient))
        fits = _INT64[0] <= low <= high <= _INT64[1]
        column = Col(Int(64) if fits else EXACT, "s", name, nullable, (low, high))
        self.steps.append((column, quotient))
        return scaled(column, per)

    def fitted(self, e: Expr, width: Width) -> Expr:
        """The whole number ``e``, which is stored in ``width``, as a column."""
        return self.column(e)

    def raw(self, e: Expr, width: Width) -> Expr:
        """The whole number, without the point, that ``e`` is in ``width``: rounded down."""
        per = 2**width.fraction
        if isinstance(e, Lit):
            assert isinstance(e.value, (int, Fraction))
            return Lit(EXACT, e.value * per // 1)
        if per == 1:
            return e
        if isinstance(e, Arith) and isinstance(e.a, Col) and e == scaled(e.a, per):
            return e.a
        return self.column(Arith(EXACT, "//", e, Lit(EXACT, Fraction(1, per))))


def pruned(program: Program) -> Program:
    """``program`` without steps that no output needs."""
    needed = {c.name for e in program.outputs for c in columns(e) if c.side == "s"}
    kept = []
    for column, e in reversed(program.steps):
        if column.name in needed:
            kept.append((column, e))
            needed |= {c.name for c in columns(e) if c.side == "s"}
    return Program(tuple(reversed(kept)), program.outputs)
