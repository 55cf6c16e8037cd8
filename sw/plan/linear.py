"""Linear forms of exact comparisons: ``total op 0`` in whole numbers, and as a relation of one key of each stream.

``2 * r.x - s.a <= 10`` becomes the relation ``g·R + h·S + c (≤ | = | ≥) 0``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..lang.denominator import denominator
from ..lang.eval.vector import constant
from ..lang.ir import MIRRORED, Arith, Cast, Cmp, CmpOp, Expr, Lit, Neg
from ..lang.ranges import value_range
from ..lang.schema import Side
from ..lang.traversal import sides
from ..lang.types import BOOL, EXACT, Duration, Int, Timestamp, units_per

__all__ = ["ExactRelation", "Term", "Total", "relation"]


@dataclass(frozen=True)
class Term:
    """``factor`` times a one-sided expression; both are such that the product is a whole number for every tuple.

    ``scale`` makes the expression itself whole (decimals): the value used is ``expr · scale``.
    """

    factor: int
    expr: Expr
    scale: int = 1


@dataclass(frozen=True)
class ExactRelation:
    """``g·R + h·S + c op 0`` with R and S the sums of the terms of each stream; g, h ≠ 0, op one of ``<= >= =``."""

    r: tuple[Term, ...]
    s: tuple[Term, ...]
    g: int
    h: int
    c: int
    op: CmpOp

    def terms(self, side: str) -> tuple[Term, ...]:
        """The key of stream ``side``."""
        return self.r if side == "r" else self.s

    def factors(self, side: str) -> tuple[int, int]:
        """The factors of (stream ``side``'s key, the other stream's key)."""
        return (self.g, self.h) if side == "r" else (self.h, self.g)


class Total:
    """``constant`` plus factors times expressions: ``terms``, each of one stream, or of both and not linear."""

    def __init__(self, terms: Mapping[Expr, Fraction], constant: Fraction):
        self.terms = {e: f for e, f in terms.items() if f}
        self.constant = constant

    @classmethod
    def of(cls, e: Expr) -> Total:
        """``e``, which is exact, added up."""
        terms: dict[Expr, Fraction] = {}
        rest = _collect(e, Fraction(1), terms)
        return cls(terms, rest)

    @classmethod
    def compared(cls, cmp: Cmp) -> tuple[Total, CmpOp]:
        """``cmp`` of exact values, but for ``<>``, as ``total op 0`` with op ``<=`` or ``=``; the total is whole."""
        a, b = Total.of(cmp.a), Total.of(cmp.b)
        if cmp.op in (">", ">="):
            a, b = b, a
        total = a.plus(b, -1).whole()
        strict = cmp.op in ("<", ">")  # of whole numbers: at most one less
        return Total(total.terms, total.constant + strict), "=" if cmp.op == "=" else "<="

    @property
    def mixed(self) -> tuple[Expr, ...]:
        """The terms of both streams."""
        return tuple(e for e in self.terms if len(sides(e)) == 2)

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest value."""
        low = high = self.constant
        for e, f in self.terms.items():
            a, b = sorted(f * x for x in value_range(e))
            low, high = low + a, high + b
        return low, high

    def plus(self, other: Total, factor: int | Fraction = 1) -> Total:
        """``self + factor · other``."""
        terms = dict(self.terms)
        for e, f in other.terms.items():
            terms[e] = terms.get(e, Fraction(0)) + factor * f
        return Total(terms, self.constant + factor * other.constant)

    def times(self, factor: int | Fraction) -> Total:
        """``factor · self``."""
        return Total({e: f * factor for e, f in self.terms.items()}, self.constant * factor)

    def ratio(self, other: Total) -> Fraction | None:
        """The factor that makes ``other`` the same as ``self``; None if none does."""
        if self.terms.keys() != other.terms.keys() or not self.terms:
            return None
        first = next(iter(self.terms))
        factor = self.terms[first] / other.terms[first]
        same = other.times(factor)
        return factor if same.terms == self.terms and same.constant == self.constant else None

    def only(self, side: Side) -> Total:
        """The terms of stream ``side`` alone, without the constant."""
        return Total({e: f for e, f in self.terms.items() if sides(e) == {side}}, Fraction(0))

    def without(self, *terms: Expr) -> Total:
        """All but ``terms``."""
        return Total({e: f for e, f in self.terms.items() if e not in terms}, self.constant)

    def whole(self) -> Total:
        """A positive multiple that is a whole number for every pair of tuples, as are its terms and its constant."""
        parts = [f / denominator(e) for e, f in self.terms.items()]
        return self.times(math.lcm(self.constant.denominator, *(p.denominator for p in parts)))

    def expr(self) -> Expr:
        """As an expression."""
        parts = [e if f == 1 else Arith(EXACT, "*", e, _number(f)) for e, f in self.terms.items()]
        if self.constant or not parts:
            parts.append(_number(self.constant))
        made = parts[0]
        for part in parts[1:]:
            made = Arith(EXACT, "+", made, part)
        return made

    def cmp(self, op: CmpOp) -> Cmp:
        """``self op 0`` as a comparison."""
        return Cmp(BOOL, op, Total(self.terms, Fraction(0)).expr(), _number(-self.constant))


def relation(total: Total, op: CmpOp) -> ExactRelation:
    """``total op 0`` of a whole total that has linear terms of both streams only."""
    parts: dict[Side, tuple[tuple[Term, ...], int]] = {}
    for side in ("r", "s"):
        mine = {e: (int(f / denominator(e)), denominator(e)) for e, f in total.only(side).terms.items()}
        g = math.gcd(*(f for f, _ in mine.values()))
        g = -g if next(iter(mine.values()))[0] < 0 else g
        parts[side] = tuple(Term(f // g, e, scale) for e, (f, scale) in mine.items()), g
    (r, g), (s, h) = parts["r"], parts["s"]
    c = int(total.constant)
    # As bands come out alike: the first stream's factor is positive.
    return ExactRelation(r, s, g, h, c, op) if g > 0 else ExactRelation(r, s, -g, -h, -c, MIRRORED[op])


def _number(value: Fraction) -> Lit:
    return Lit(EXACT, value.numerator if value.denominator == 1 else value)


def _collect(e: Expr, factor: Fraction, terms: dict[Expr, Fraction]) -> Fraction:
    """Add ``factor · e`` to ``terms``; return the constant part."""
    if not sides(e):
        return factor * Fraction(constant(e))
    match e:
        case Neg():
            return _collect(e.a, -factor, terms)
        case Cast(a=Expr(type=Timestamp() | Duration() as fine)) if isinstance(e.type, (Timestamp, Duration)):
            return _collect(e.a, factor * units_per(fine.unit, e.type.unit), terms)
        case Cast(type=Int()):
            return _collect(e.a, factor, terms)
        case Arith(op="+" | "-"):
            second = factor if e.op == "+" else -factor
            return _collect(e.a, factor, terms) + _collect(e.b, second, terms)
        case Arith(op="*") if not sides(e.b):
            return _collect(e.a, factor * Fraction(constant(e.b)), terms)
        case Arith(op="*") if not sides(e.a):
            return _collect(e.b, factor * Fraction(constant(e.a)), terms)
    if isinstance(e, Arith) and e.op == "*" and e.a != e.b and len(sides(e)) == 2:
        # A product of multiples of one thing is a multiple of its square.
        ratio = Total.of(e.a).ratio(Total.of(e.b))
        if ratio is not None:
            e, factor = Arith(EXACT, "*", e.b, e.b), factor * ratio
    terms[e] = terms.get(e, Fraction(0)) + factor
    return Fraction(0)
