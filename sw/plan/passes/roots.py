"""Float expressions that rise with the square or the absolute value of something: which of its values satisfy a bound.

``(y - b) * (y - b) <= c`` says ``abs(y - b) <= t`` where t is the largest float whose square, rounded as the expression
rounds, is at most c: found by bisection over the floats, exact as rounding is monotone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from ...lang.ir import Abs, Arith, Cast, Cmp, CmpOp, Expr, Lit
from ...lang.traversal import sides
from ...lang.types import BOOL, Float

__all__ = ["Parts", "root_bound"]


@dataclass(frozen=True)
class Parts:
    """Comparisons of which all or one must be true; "false": there is no way."""

    op: Literal["and", "or", "false"]
    args: tuple[Cmp, ...] = ()


def root_bound(e: Expr, op: CmpOp, constant: float) -> Parts | None:
    """``e op constant``, op one of ``< <= > >= =``, as comparisons of the absolute value that ``e`` rises with.

    None if ``e`` is no such expression. NaN of that value makes ``e`` NaN, and both are greater than everything.
    """
    found = _rising(e)
    if found is None:
        return None
    inner, value = found
    if op == "=":
        halves = [root_bound(e, half, constant) for half in ("<=", ">=")]
        if any(h is not None and h.op == "false" for h in halves):
            return Parts("false")
        return Parts("and", tuple(c for h in halves if h is not None for c in h.args))
    assert isinstance(inner.type, Float)
    last = _last(value, op, constant, inner.type)
    above = op in (">", ">=")
    if last is None:  # not even 0 is below: then everything is above, NaN too
        zero = Lit(inner.type, 0.0)
        return Parts("and", (Cmp(BOOL, ">=", Abs(inner.type, inner), zero),)) if above else Parts("false")
    return Parts("and", (Cmp(BOOL, ">" if above else "<=", Abs(inner.type, inner), Lit(inner.type, last)),))


def _last(value: Callable[[Any], Any], op: CmpOp, constant: float, type_: Float) -> float | None:
    """The largest float from 0 to infinity for which ``value`` of it is below the bound; None if 0 is not."""
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
    """What of both streams ``e`` is a rising function of the absolute value of, and that function; None if nothing."""
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
    """`_rising` of ``e``, and ``function`` of what comes of it."""
    found = _rising(e)
    if found is None:
        return None
    inner, value = found
    return inner, lambda v: function(value(v))


def _literal(c: Lit) -> Any:
    assert isinstance(c.type, Float)
    return (np.float64 if c.type.bits == 64 else np.float32)(c.value)
