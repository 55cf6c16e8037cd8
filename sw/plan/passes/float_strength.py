"""Comparisons of floats over both streams as simpler ones, exactly as IEEE 754 rounds them, or as what they imply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from ...lang.ir import MIRRORED, Abs, Arith, Cast, Cmp, CmpOp, Expr, Lit, Neg
from ...lang.traversal import sides
from ...lang.types import BOOL, Float
from ..forms import Both
from .bounds import NoInterval, direct, isolated
from .roots import root_bound

__all__ = ["SimplerFloat", "simpler_float"]


@dataclass(frozen=True)
class SimplerFloat:
    """Comparisons of which all ("and") or one ("or") must be true; of a tuple among them, one. "false": there is no
    way. ``why``: set if they are implied only.
    """

    op: Literal["and", "or", "false"]
    args: tuple[Cmp | tuple[Cmp, ...], ...] = ()
    why: str | None = None


def simpler_float(cmp: Cmp) -> SimplerFloat | None:
    """``cmp``, op any but ``<>``, as simpler comparisons; None if it is an interval test, or implies one best."""
    a, b, op = cmp.a, cmp.b, cmp.op
    if not _is_mixed_abs(a) and _is_mixed_abs(b):
        a, b, op = b, a, MIRRORED[op]
    if _is_mixed_abs(a):
        return _without_abs(a, op, b)
    try:
        direct(Both(cmp), [])
        return None
    except NoInterval as error:
        why = str(error)
    if isinstance(a, Lit):
        a, b, op = b, a, MIRRORED[op]
    if isinstance(b, Lit):
        bound = root_bound(a, op, float(cast(float, b.value)))
        if bound is not None:
            return SimplerFloat(bound.op, bound.args)
        addends = _positive_addends(a) if op in ("<", "<=", "=") else ()
        if len(addends) > 1:
            return SimplerFloat("and", tuple(Cmp(BOOL, "<" if op == "<" else "<=", x, b) for x in addends),
                                "of a float sum of what is never negative, each is compared alone")
    if isolated(Cmp(BOOL, op, a, b)) is None:
        return SimplerFloat("and", (), why)
    return SimplerFloat("and", (Cmp(BOOL, "<=", a, b), Cmp(BOOL, ">=", a, b))) if op == "=" else None


def _is_mixed_abs(e: Expr) -> bool:
    inner = e.a if isinstance(e, Cast) else e
    return isinstance(inner, Abs) and len(sides(inner)) == 2


def _without_abs(a: Expr, op: CmpOp, b: Expr) -> SimplerFloat:
    """``a op b`` of floats, ``a`` an abs under the cast that may stand outside it (which is exact and keeps signs)."""
    inner: Expr = Cast(a.type, cast(Abs, a.a).a) if isinstance(a, Cast) else cast(Abs, a).a
    minus: Expr = Neg(b.type, b)
    if isinstance(b, Lit):
        minus = Lit(b.type, -cast(float, b.value))

    def halves(op: CmpOp) -> tuple[Cmp, Cmp]:
        # E op F, and −E op F written as E op' −F: then both say something of the same keys. Where E is NaN, which is
        # greater than everything, the first half decides as abs(NaN) does, whatever the second says.
        return Cmp(BOOL, op, inner, b), Cmp(BOOL, MIRRORED[op], inner, minus)

    if op in ("<", "<="):
        return SimplerFloat("and", halves(op))
    if op in (">", ">="):
        return SimplerFloat("or", halves(op))
    return SimplerFloat("and", (*halves("<="), halves(">=")))


def _positive_addends(e: Expr) -> tuple[Expr, ...]:
    """Parts of both streams of the float ``e`` that do not exceed it, as rounding is monotone; none if it may have
    negative ones.
    """
    if isinstance(e, Cast):
        return tuple(Cast(e.type, x) if isinstance(e.a.type, Float) else x for x in _positive_addends(e.a))
    if isinstance(e, Arith) and e.op == "+":
        if not (_is_never_negative(e.a) and _is_never_negative(e.b)):
            return ()
        return tuple(y for x in (e.a, e.b) for y in (_positive_addends(x) if _adds(x) else (x,)) if len(sides(y)) == 2)
    return ()


def _adds(e: Expr) -> bool:
    inner = e.a if isinstance(e, Cast) else e
    return isinstance(inner, Arith) and inner.op == "+" and isinstance(inner.type, Float)


def _is_never_negative(e: Expr) -> bool:
    """Whether the float ``e`` is at least 0 or NaN, which is greater than everything."""
    match e:
        case Abs():
            return True
        case Lit():
            return cast(float, e.value) >= 0
        case Cast():
            return isinstance(e.a.type, Float) and _is_never_negative(e.a)
        case Arith(op="*") if e.a == e.b:
            return True
        case Arith(op="+" | "*"):
            return _is_never_negative(e.a) and _is_never_negative(e.b)
    return False
