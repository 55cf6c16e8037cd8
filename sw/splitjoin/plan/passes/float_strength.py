"""Pass ``strength`` on floats: replaces comparisons over both streams by simpler ones, exactly as IEEE 754 rounds them,
or by simpler ones that they imply.

``(y - b) * (y - b) <= c`` is equivalent to ``abs(y - b) <= t``, where t is the largest float whose square, rounded as
the expression rounds, is at most c. Bisection over the floats finds t exactly, because rounding is monotone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from splitjoin.lang.ir import MIRRORED, Abs, Arith, Cast, Cmp, CmpOp, Expr, Lit, Neg, Or, sides
from splitjoin.lang.types import BOOL, Float

from ..forms import Both
from .bounds import NoInterval, direct, isolated


@dataclass(frozen=True)
class Simpler:
    """Conditions, comparisons joined by AND and OR, of which all ("and") or one ("or") must be true; "false": never
    true. ``why``: the reason, if they are implied but not equivalent.
    """

    op: Literal["and", "or", "false"]
    args: tuple[Expr, ...] = ()
    why: str | None = None


def root_bound(e: Expr, op: CmpOp, constant: float) -> Simpler | None:
    """``e op constant``, op one of ``< <= > >= =``, as comparisons of the absolute value in which ``e`` is monotone.

    None if ``e`` is no such expression. If that value is NaN, so is ``e``, and both are greater than everything.
    """
    found = _rising(e)
    if found is None:
        return None
    inner, value = found
    if op == "=":
        halves = [root_bound(e, half, constant) for half in ("<=", ">=")]
        if any(h is not None and h.op == "false" for h in halves):
            return Simpler("false")
        return Simpler("and", tuple(c for h in halves if h is not None for c in h.args))
    assert isinstance(inner.type, Float)
    last = _last(value, op, constant, inner.type)
    above = op in (">", ">=")
    if last is None:  # not even 0 is below the bound: every value is above it, NaN too
        zero = Lit(inner.type, 0.0)
        return Simpler("and", (Cmp(BOOL, ">=", Abs(inner.type, inner), zero),)) if above else Simpler("false")
    return Simpler("and", (Cmp(BOOL, ">" if above else "<=", Abs(inner.type, inner), Lit(inner.type, last)),))


def _last(value: Callable[[Any], Any], op: CmpOp, constant: float, type_: Float) -> float | None:
    """The largest float x from 0 to infinity for which ``value(x)`` is below the bound; None if there is none, not even
    0.
    """
    wide = type_.bits == 64
    float_, bits = (np.float64, np.uint64) if wide else (np.float32, np.uint32)

    def below(code: int) -> bool:
        with np.errstate(all="ignore"):
            v = value(np.array(code, bits).view(float_))
        if np.isnan(v):
            return False
        return bool({"<": v < constant, "<=": v <= constant, ">": v <= constant, ">=": v < constant}[op])

    low, high = 0, int(np.array(np.inf, float_).view(bits))
    if not below(low):
        return None
    if below(high):
        return float("inf")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return float(np.array(low, bits).view(float_))


def _rising(e: Expr) -> tuple[Expr, Callable[[Any], Any]] | None:
    """The value over both streams in whose absolute value ``e`` is monotone, and that function; or None."""
    match e:
        case Abs():
            return (e.a, lambda v: v) if len(sides(e.a)) == 2 else None
        case Arith(op="*") if e.a == e.b and len(sides(e.a)) == 2:
            return e.a, lambda v: v * v
        case Cast(a=Expr(type=Float())) if isinstance(e.type, Float):
            return _then(e.a, np.float64 if e.type.bits == 64 else np.float32)
        case Arith(op="*", a=Lit() as c, b=x) | Arith(op="*", a=x, b=Lit() as c) if cast(float, c.value) > 0:
            by = _literal(c)
            return _then(x, lambda v: v * by)
        case Arith(op="+", a=Lit() as c, b=x) | Arith(op="+", a=x, b=Lit() as c):
            more = _literal(c)
            return _then(x, lambda v: v + more)
        case Arith(op="-", a=x, b=Lit() as c):
            less = _literal(c)
            return _then(x, lambda v: v - less)
    return None


def _then(e: Expr, function: Callable[[Any], Any]) -> tuple[Expr, Callable[[Any], Any]] | None:
    """The result of `_rising` for ``e``, with ``function`` applied after its function."""
    found = _rising(e)
    if found is None:
        return None
    inner, value = found
    return inner, lambda v: function(value(v))


def _literal(c: Lit) -> Any:
    assert isinstance(c.type, Float)
    return (np.float64 if c.type.bits == 64 else np.float32)(c.value)


def simpler_float(cmp: Cmp) -> Simpler | None:
    """``cmp``, op any but ``<>``, as simpler comparisons; None if it is an interval test or directly implies one."""
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
            return bound
        addends = _positive_addends(a) if op in ("<", "<=", "=") else ()
        if len(addends) > 1:
            return Simpler("and", tuple(Cmp(BOOL, "<" if op == "<" else "<=", x, b) for x in addends),
                                "of a float sum of what is never negative, each is compared alone")
    if isolated(Cmp(BOOL, op, a, b)) is None:
        return Simpler("and", (), why)
    return Simpler("and", (Cmp(BOOL, "<=", a, b), Cmp(BOOL, ">=", a, b))) if op == "=" else None


def _is_mixed_abs(e: Expr) -> bool:
    inner = e.a if isinstance(e, Cast) else e
    return isinstance(inner, Abs) and len(sides(inner)) == 2


def _without_abs(a: Expr, op: CmpOp, b: Expr) -> Simpler:
    """``a op b`` of floats without abs; ``a`` is an abs, perhaps inside a cast (which is exact and keeps signs)."""
    inner: Expr = Cast(a.type, cast(Abs, a.a).a) if isinstance(a, Cast) else cast(Abs, a).a
    minus: Expr = Neg(b.type, b)
    if isinstance(b, Lit):
        minus = Lit(b.type, -cast(float, b.value))

    def halves(op: CmpOp) -> tuple[Cmp, Cmp]:
        # E op F, and −E op F written as E op' −F, so that both compare the same keys. If E is NaN, which is greater
        # than everything, the first half decides as abs(NaN) does, whatever the second yields.
        return Cmp(BOOL, op, inner, b), Cmp(BOOL, MIRRORED[op], inner, minus)

    if op in ("<", "<="):
        return Simpler("and", halves(op))
    if op in (">", ">="):
        return Simpler("or", halves(op))
    return Simpler("and", (*halves("<="), Or(BOOL, halves(">="))))


def _positive_addends(e: Expr) -> tuple[Expr, ...]:
    """Addends of the float ``e`` that read both streams. None exceeds ``e``, because rounding is monotone; empty if an
    addend may be negative.
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
    """True if the float ``e`` is at least 0 or NaN, which is greater than everything."""
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
