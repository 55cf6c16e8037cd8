"""Linear forms of exact expressions: what a comparison of both streams says, as whole numbers.

``abs(2 * r.x - s.a) <= 10`` becomes relations ``g·R + h·S + c (≤ | = | ≥) 0`` between one key of each stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from .ir import MIRRORED, Abs, Arith, Cast, Cmp, CmpOp, Expr, Lit, Neg, sides, walk
from .logic import FALSE, Both, Form, Junction
from .schema import Side
from .types import BOOL, Duration, Timestamp, units_per

__all__ = ["ExactRelation", "NoRelation", "Term", "relations", "strip_abs"]


class NoRelation(Exception):
    """Why a comparison is no relation of one key of each stream."""


@dataclass(frozen=True)
class Term:
    """``factor`` times a one-sided expression; both are such that the product is a whole number for every tuple.

    ``scale`` makes the expression itself whole (decimal literals): the value used is ``expr · scale``.
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


def strip_abs(cmp: Cmp) -> Form | None:
    """``abs(E) op F`` as comparisons without abs; None if no operand is an abs over both streams."""
    a, b, op = cmp.a, cmp.b, cmp.op
    if not _is_mixed_abs(a) and _is_mixed_abs(b):
        a, b, op = b, a, MIRRORED[op]
    if not _is_mixed_abs(a):
        return None
    inner = _abs_operand(a)
    minus: Expr = Neg(b.type, b)
    if isinstance(b, Lit):
        minus = Lit(b.type, -cast(Fraction, b.value))

    def both(op: CmpOp) -> tuple[Form, Form]:
        # E op F, and −E op F written as E op' −F: then both say something of the same keys. Where E is NaN, which is
        # greater than everything, the first half decides as abs(NaN) does, whatever the second says.
        return Both(Cmp(BOOL, op, inner, b)), Both(Cmp(BOOL, MIRRORED[op], inner, minus))

    match op:
        case "<" | "<=":
            return Junction("and", both(op))
        case ">" | ">=":
            return Junction("or", both(op))
        case "=":
            return Junction("and", (*both("<="), Junction("or", both(">="))))
        case "<>":
            return Junction("or", (*both(">"), Junction("and", both("<"))))
    return FALSE


def relations(cmp: Cmp) -> ExactRelation:
    """The relation that a comparison of exact values of both streams states. ``op`` must not be ``<>``.

    Raises `NoRelation` that quotes what does not fit: a nested abs of both streams, or one stream cancelling out.
    """
    terms: dict[Expr, Fraction] = {}
    constant = _collect(cmp.a, Fraction(1), terms) + _collect(cmp.b, Fraction(-1), terms)
    scales = {e: _denominator(e) for e in terms}
    whole = {e: f / scales[e] for e, f in terms.items() if f}
    lcm = math.lcm(constant.denominator, *(f.denominator for f in whole.values()))
    parts: dict[Side, tuple[tuple[Term, ...], int]] = {}
    for side in ("r", "s"):
        mine = {e: int(f * lcm) for e, f in whole.items() if sides(e) == {side}}
        if not mine:
            raise NoRelation(f"the columns of {side} cancel out, so that it is no condition on both streams")
        g = math.gcd(*mine.values())
        g = -g if next(iter(mine.values())) < 0 else g
        parts[side] = tuple(Term(f // g, e, scales[e]) for e, f in mine.items()), g
    c = int(constant * lcm)
    op = cmp.op
    if op in ("<", ">"):  # whole numbers: strictly less is at most one less
        op, c = ("<=", c + 1) if op == "<" else (">=", c - 1)
    (r, g), (s, h) = parts["r"], parts["s"]
    return ExactRelation(r, s, g, h, c, op)


def _is_mixed_abs(e: Expr) -> bool:
    inner = e.a if isinstance(e, Cast) else e
    return isinstance(inner, Abs) and len(sides(inner)) == 2


def _abs_operand(e: Expr) -> Expr:
    """The operand of an abs, under the cast that may stand outside it (which is exact and keeps signs)."""
    if isinstance(e, Cast):
        assert isinstance(e.a, Abs)
        return Cast(e.type, e.a.a)
    assert isinstance(e, Abs)
    return e.a


def _collect(e: Expr, factor: Fraction, terms: dict[Expr, Fraction]) -> Fraction:
    """Add ``factor · e`` to ``terms``; return the constant part."""
    match e:
        case Lit():
            return factor * Fraction(cast(Fraction, e.value))
        case Neg():
            return _collect(e.a, -factor, terms)
        case Cast(a=Expr(type=Timestamp() | Duration() as fine)) if isinstance(e.type, (Timestamp, Duration)):
            return _collect(e.a, factor * units_per(fine.unit, e.type.unit), terms)
        case Arith(op="+" | "-"):
            second = factor if e.op == "+" else -factor
            return _collect(e.a, factor, terms) + _collect(e.b, second, terms)
        case Arith(a=Lit() as c, b=x) | Arith(a=x, b=Lit() as c):
            return _collect(x, factor * Fraction(cast(Fraction, c.value)), terms)
    if len(sides(e)) == 1:
        terms[e] = terms.get(e, Fraction(0)) + factor
        return Fraction(0)
    if not sides(e):
        raise NoRelation(f"the constant '{e}' is not written as a number")
    raise NoRelation(f"'{e}' over both streams is no whole side of the comparison")


def _denominator(e: Expr) -> int:
    """A whole number that makes every value of ``e`` whole when multiplied with it."""
    match e:
        case Lit():
            return Fraction(cast(Fraction, e.value)).denominator if e.value is not None else 1
        case Arith(op="*"):
            return _denominator(e.a) * _denominator(e.b)
        case Arith():
            return math.lcm(_denominator(e.a), _denominator(e.b))
        case Neg() | Abs():
            return _denominator(e.a)
    assert not any(isinstance(n, Lit) and isinstance(n.value, Fraction) for n in walk(e))
    return 1
