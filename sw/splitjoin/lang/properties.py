"""Static properties of expressions, derived from types and from declared or measured ranges.

`value_range` bounds the values; `denominator` is a common denominator of exact values; `may_be_null` says whether a
value can be NULL, and `causes` which parts of the expression make it NULL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

from . import ir
from .calendar import tick, unit_number, unit_start
from .ir import Cmp, Col, Expr, Lit
from .operations import OPERATIONS, Range
from .types import Bool, Decimal, Duration, Float, Int, Timestamp, is_exact, limits, units_per

__all__ = ["Range", "causes", "denominator", "known_truth", "may_be_null", "value_range"]


def value_range(e: Expr) -> Range:
    """Bounds of the values of ``e``, an exact number, a time (in the type's unit) or a truth value. The bounds may be
    wider than necessary, but all values lie within them.
    """
    match e:
        case Col():
            return _column(e)
        case ir.Within():
            unit = denominator(e.a)
            return Fraction(e.low, unit), Fraction(e.high, unit)
        case Lit():
            value = Fraction(0 if e.value is None else e.value)  # type: ignore[arg-type]  # exact types hold numbers
            return value, value
        case ir.Neg():
            low, high = value_range(e.a)
            return -high, -low
        case ir.Abs():
            return _absolute(value_range(e.a))
        case ir.Cast() if isinstance(e.type, Int):
            return value_range(e.a)
        case ir.Cast() if isinstance(e.type, (Timestamp, Duration)) and isinstance(e.a.type, (Timestamp, Duration)):
            per = units_per(e.a.type.unit, e.type.unit)
            low, high = value_range(e.a)
            return low * per, high * per
        case ir.Arith(op="*") if e.a == e.b:
            low, high = _absolute(value_range(e.a))
            return low * low, high * high
        case ir.Arith():
            whole = denominator(e.a) == denominator(e.b) == 1
            return _arith(e.op, value_range(e.a), value_range(e.b), whole)
        case ir.Case():
            return _union([value_range(x) for x in (*e.then, e.otherwise)])
        case ir.Extreme():
            # NULL operands are skipped, so any operand's value may be the result; one that is never NULL bounds it.
            ranges = [value_range(x) for x in e.args]
            low, high = _union(ranges)
            sure = [of for x, of in zip(e.args, ranges, strict=True) if not may_be_null(x)]
            if e.kind == "least":
                return low, min([high, *(most for _, most in sure)])
            return max([low, *(least for least, _ in sure)]), high
        case ir.Call():
            return OPERATIONS[e.op].range(e.of, *map(value_range, e.args))
        case ir.UnitNumber() | ir.UnitStart():
            ends = [unit_number(int(x), e.unit, tick(e.a.type)) for x in value_range(e.a)]
            low, high = ends if isinstance(e, ir.UnitNumber) else [unit_start(n, e.unit, tick(e.type)) for n in ends]
            return Fraction(low), Fraction(high)
        case ir.Isqrt():
            top = math.floor(value_range(e.a)[1])
            return Fraction(-1), Fraction(math.isqrt(top) if top >= 0 else -1)
    if isinstance(e.type, Bool):
        return Fraction(0), Fraction(1)
    raise AssertionError(f"no range for {e}")


def _column(e: Col) -> Range:
    unit = 10**e.type.scale if isinstance(e.type, Decimal) else 1
    low, high = e.range or limits(e.type) or ((0, 1) if isinstance(e.type, Bool) else (-(2**63), 2**63 - 1))
    return Fraction(low, unit), Fraction(high, unit)


def _absolute(of: Range) -> Range:
    low, high = of
    return (Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _union(of: Sequence[Range]) -> Range:
    return min(low for low, _ in of), max(high for _, high in of)


def _hull(values: Sequence[Fraction]) -> Range:
    return min(values), max(values)


def _arith(op: str, a: Range, b: Range, whole: bool) -> Range:
    match op:
        case "+":
            return a[0] + b[0], a[1] + b[1]
        case "-":
            return a[0] - b[1], a[1] - b[0]
        case "*":
            return _hull([x * y for x in a for y in b])
        case "<<":
            return _hull([x * 2 ** int(y) for x in a for y in b])
        case ">>":
            return _hull([Fraction(math.floor(x / 2 ** int(y))) for x in a for y in b])
        case "mod" | "%":
            # The magnitude is less than the divisor's, and with `mod` at most the dividend's.
            most = _absolute(b)[1] - whole
            if op == "mod":
                return max(min(a[0], Fraction(0)), -most), min(max(a[1], Fraction(0)), most)
            return (Fraction(0) if b[0] >= 0 else -most), (Fraction(0) if b[1] <= 0 else most)
        case "div" | "//":
            # Whole divisors have a magnitude of at least 1; rounding down may add 1 to the quotient's magnitude.
            most = _absolute(a)[1]
            if b[0] > 0:
                parts = [x / y for x in a for y in b]
                return Fraction(math.floor(min(parts))), Fraction(math.ceil(max(parts)))
            return -most - 1, most + 1
    raise AssertionError(f"no range for {op!r}")


def denominator(e: Expr) -> int:
    """A common denominator of all values of the exact expression ``e``: multiplied by it, they are whole numbers."""
    match e:
        case Lit():
            return Fraction(cast(Fraction, e.value)).denominator if isinstance(e.value, (int, Fraction)) else 1
        case Col(type=Decimal() as t):
            return int(10**t.scale)
        case ir.Arith(op="*"):
            return denominator(e.a) * denominator(e.b)
        case ir.Arith(op="+" | "-" | "mod" | "%"):
            return math.lcm(denominator(e.a), denominator(e.b))
        case ir.Neg() | ir.Abs() | ir.Within():
            return denominator(e.a)
        case ir.Case():
            return math.lcm(*(denominator(x) for x in (*e.then, e.otherwise)))
        case ir.Extreme():
            return math.lcm(*(denominator(x) for x in e.args))
    return 1


def may_be_null(e: Expr) -> bool:
    """False if ``e`` cannot be NULL for any tuple, judged by its nodes; else True."""
    match e:
        case Col():
            return e.nullable
        case Lit():
            return e.value is None
        case ir.IsNull():
            return False
        case ir.Within():
            return True
        case ir.Case():
            return any(may_be_null(x) for x in (*e.then, e.otherwise))
        case ir.Extreme():
            return all(may_be_null(x) for x in e.args)
        case ir.Arith() if _divides(e) and not _is_never_zero(e.b):
            return True
    return any(may_be_null(x) for x in e.children)


def causes(e: Expr) -> tuple[Expr, ...]:
    """The parts of ``e`` that can make it NULL: ``e``, a value and not a condition, is NULL exactly if one of them is.

    They are columns, literals, and nodes that can be NULL although their operands are not, such as divisions.
    """
    found: dict[Expr, None] = {}
    _collect(e, found)
    return tuple(found)


def known_truth(e: Expr) -> bool | None:
    """What the condition ``e`` is for all values, where ranges tell it; else None."""
    match e:
        case Lit():
            return None if e.value is None else bool(e.value)
        case ir.Not():
            known = known_truth(e.a)
            return None if known is None else not known
        case ir.And() | ir.Or():
            parts, decides = [known_truth(a) for a in e.args], isinstance(e, ir.Or)
            return decides if decides in parts else None if None in parts else not decides
        case Cmp() if is_exact(e.a.type) and is_exact(e.b.type) and not (may_be_null(e.a) or may_be_null(e.b)):
            (low, high), (least, most) = value_range(e.a), value_range(e.b)
            if e.op in ("=", "<>"):
                known = (e.op == "<>") if high < least or most < low else None
                return (e.op == "=") if low == high == least == most else known
            if e.op in (">", ">="):
                low, high, least, most = least, most, low, high
            if e.op in ("<", ">"):
                return True if high < least else False if low >= most else None
            return True if high <= least else False if low > most else None
    return None


def _collect(e: Expr, found: dict[Expr, None]) -> None:
    if not may_be_null(e):
        return
    own = isinstance(e, (Col, Lit, ir.Case, ir.Extreme, ir.Within)) or isinstance(e.type, Bool)
    if own or (isinstance(e, ir.Arith) and _divides(e) and not _is_never_zero(e.b)):
        found[e] = None
        return
    for child in e.children:
        _collect(child, found)


def _divides(e: ir.Arith) -> bool:
    """True if ``e`` is NULL where its divisor is 0."""
    return e.op in ("div", "mod", "//", "%") and not isinstance(e.type, Float)


def _is_never_zero(e: Expr) -> bool:
    if isinstance(e, Lit):
        return e.value != 0
    low, high = value_range(e)
    return low > 0 or high < 0
