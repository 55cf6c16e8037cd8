"""Type rules: the only place where IR nodes are made. Both front ends call these functions.

Each takes ``at``, the user's text of the part being built, which errors quote. The rules:

* exact with exact: exact. Date with date: subtraction gives whole days. Timestamp with timestamp: subtraction gives a
  duration in the finer unit; timestamp ± duration is a timestamp.
* float with float: the wider type. Float with an integer *column*: float64 (as Spark's ANSI rules).
* Float with a *literal*: arithmetic rounds the literal to the column's type, a comparison is done in float64 (as Spark:
  ``abs(y - b) <= 10.1`` on float32 compares with the float64 nearest to 10.1).
* Timestamps compare with timestamps of any unit, in the finer one, but a zoned one never with one without zone.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

import numpy as np

from ..errors import PredicateError
from .ir import Abs, And, Arith, ArithOp, Cast, Cmp, CmpOp, Col, Expr, IsNull, Lit, Neg, Not, Or, sides
from .schema import Schema
from .types import (
    BOOL, DATE, EXACT, FLOAT32, FLOAT64, STRING, TIME_UNITS, Bool, Date, Duration, Exact, Float, Int, String, TimeUnit,
    Timestamp, Type, finer, is_exact, units_per,
)

__all__ = ["abs_", "and_", "arith", "between", "column", "compare", "condition", "is_null", "literal", "neg", "not_",
           "or_"]

_EPOCH = dt.datetime(1970, 1, 1)
_US = dt.timedelta(microseconds=1)


def column(schema: Schema, name: str) -> Col:
    """Column ``name`` of ``schema``. Raises `SchemaError` if there is none or its type is not usable."""
    c = schema[name]
    return Col(c.type, schema.side, c.name, c.nullable)


def literal(value: object, at: str) -> Lit:
    """A Python value as a literal.

    A finite float stands for the decimal number it prints as, so that ``10.1`` means the same in Python and in SQL.
    """
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case None:
            return Lit(EXACT, None)
        case bool():
            return Lit(BOOL, value)
        case int() | Fraction():
            return Lit(EXACT, _whole(value))
        case float():
            if not math.isfinite(value):
                raise PredicateError(f"{at!r}: a numeric literal must be finite, not {value!r}")
            return Lit(EXACT, _whole(Fraction(repr(value))))
        case str():
            return Lit(STRING, value)
        case dt.datetime():
            if value.tzinfo is None:
                return Lit(Timestamp("us"), (value - _EPOCH) // _US)
            return Lit(Timestamp("us", "UTC"), (value - _EPOCH.replace(tzinfo=dt.timezone.utc)) // _US)
        case dt.date():
            return Lit(DATE, (value - _EPOCH.date()).days)
        case dt.timedelta():
            return Lit(Duration("us"), value // _US)
    raise PredicateError(f"{at!r}: a literal must be a number, bool, string, date, datetime, timedelta or None, "
                         f"not {type(value).__name__}")


def arith(op: ArithOp, a: Expr, b: Expr, at: str) -> Expr:
    """``a op b`` for ``+ - *``."""
    ta, tb = a.type, b.type
    if isinstance(ta, Timestamp) and isinstance(tb, Timestamp) and op == "-":
        a, b, unit = _same_unit(a, b, at)
        return Arith(Duration(unit), op, a, b)
    if isinstance(ta, Timestamp) and isinstance(tb, Duration) and op in "+-":
        unit = finer(ta.unit, tb.unit)
        return Arith(Timestamp(unit, ta.tz), op, _to_unit(a, unit), _to_unit(b, unit))
    if isinstance(ta, Duration) and isinstance(tb, Timestamp) and op == "+":
        return arith(op, b, a, at)
    if isinstance(ta, Duration) and isinstance(tb, Duration) and op in "+-":
        a, b, unit = _same_unit(a, b, at)
        return Arith(Duration(unit), op, a, b)
    if isinstance(ta, Date) and isinstance(tb, Date) and op == "-":
        return Arith(EXACT, op, a, b)
    if isinstance(ta, Date) and is_exact(tb) and op in "+-" and _is_integer(b):
        return Arith(DATE, op, a, b)
    if not (_is_number(ta) and _is_number(tb)):
        raise PredicateError(f"{at!r}: {op!r} needs numbers, or times that can be combined, not {ta} and {tb}")
    if op == "*" and sides(a) and sides(b) and (len(sides(a)) > 1 or sides(a) != sides(b)):
        raise PredicateError(f"{at!r}: a product of columns of both streams is not supported; multiply by constants")
    if is_exact(ta) and is_exact(tb):
        return Arith(EXACT, op, a, b)
    type_ = _float_type(a, b)
    return Arith(type_, op, _to_float(a, type_, at), _to_float(b, type_, at))


def neg(a: Expr, at: str) -> Expr:
    """``-a``; of a literal, the negative literal."""
    if isinstance(a, Lit) and isinstance(a.type, (Exact, Duration)) and a.value is not None:
        return Lit(a.type, -cast(Fraction, a.value))
    if not (_is_number(a.type) or isinstance(a.type, Duration)):
        raise PredicateError(f"{at!r}: '-' needs a number, not {a.type}")
    return Neg(EXACT if isinstance(a.type, Int) else a.type, a)


def abs_(a: Expr, at: str) -> Expr:
    """``abs(a)``."""
    if not (_is_number(a.type) or isinstance(a.type, Duration)):
        raise PredicateError(f"{at!r}: abs() needs a number, not {a.type}")
    return Abs(EXACT if isinstance(a.type, Int) else a.type, a)


def compare(op: CmpOp, a: Expr, b: Expr, at: str) -> Expr:
    """``a op b`` for ``= <> < <= > >=``."""
    a, b = _comparable(a, b, at)
    if isinstance(a.type, String) and op not in ("=", "<>"):
        raise PredicateError(f"{at!r}: strings can be compared with = and <> only, not with {op}")
    return Cmp(BOOL, op, a, b)


def between(x: Expr, lo: Expr, hi: Expr, at: str) -> Expr:
    """``x BETWEEN lo AND hi``, both ends included."""
    return and_([compare(">=", x, lo, at), compare("<=", x, hi, at)], at)


def and_(args: Sequence[Expr], at: str) -> Expr:
    """Conjunction."""
    return And(BOOL, tuple(p for a in args for p in _flat(And, condition(a, at))))


def or_(args: Sequence[Expr], at: str) -> Expr:
    """Disjunction."""
    return Or(BOOL, tuple(p for a in args for p in _flat(Or, condition(a, at))))


def not_(a: Expr, at: str) -> Expr:
    """Negation."""
    return Not(BOOL, condition(a, at))


def is_null(a: Expr, at: str) -> Expr:
    """``a IS NULL``."""
    return IsNull(BOOL, a)


def condition(a: Expr, at: str) -> Expr:
    """``a`` itself if it is a condition; a bare NULL becomes the truth value NULL. Else `PredicateError`."""
    if isinstance(a, Lit) and a.value is None:
        return Lit(BOOL, None)
    if not isinstance(a.type, Bool):
        raise PredicateError(f"{at!r}: a condition (true or false) is needed here, but {a} has type {a.type}")
    return a


def _whole(v: int | Fraction) -> int | Fraction:
    return v.numerator if isinstance(v, Fraction) and v.denominator == 1 else v


def _flat(kind: type[And] | type[Or], a: Expr) -> tuple[Expr, ...]:
    return a.children if isinstance(a, kind) else (a,)


def _is_number(t: Type) -> bool:
    return is_exact(t) or isinstance(t, Float)


def _is_integer(e: Expr) -> bool:
    return isinstance(e.type, Int) or (isinstance(e, Lit) and isinstance(e.value, int))


def _float_type(a: Expr, b: Expr) -> Float:
    """The float type of arithmetic on ``a`` and ``b``, at least one of which is a float."""
    types = {e.type for e in (a, b) if not isinstance(e, Lit)} or {a.type, b.type}
    return FLOAT32 if types == {FLOAT32} else FLOAT64


def _to_float(e: Expr, type_: Float, at: str) -> Expr:
    if e.type == type_:
        return e
    if isinstance(e, Lit):
        if e.value is None:
            return Lit(type_, None)
        try:
            wide = float(cast(Fraction, e.value))
            with np.errstate(over="raise"):
                return Lit(type_, float(np.float32(wide)) if type_ == FLOAT32 else wide)
        except (OverflowError, FloatingPointError):
            raise PredicateError(f"{at!r}: the literal {e.value} does not fit {type_}") from None
    return Cast(type_, e)


def _to_unit(e: Expr, unit: TimeUnit) -> Expr:
    t = e.type
    assert isinstance(t, (Timestamp, Duration))
    if t.unit == unit:
        return e
    type_ = Timestamp(unit, t.tz) if isinstance(t, Timestamp) else Duration(unit)
    if isinstance(e, Lit):
        return Lit(type_, None if e.value is None else cast(int, e.value) * units_per(t.unit, unit))
    return Cast(type_, e)


def _coarsest(e: Expr) -> Expr:
    """A time literal in the coarsest unit that holds it, so that it never makes a column's unit finer for nothing."""
    if isinstance(e, Lit) and isinstance(e.type, (Timestamp, Duration)) and isinstance(e.value, int):
        for unit in ("s", "ms", "us"):
            n = TIME_UNITS[unit] // TIME_UNITS[e.type.unit]
            if n > 0 and e.value % n == 0:
                t = Timestamp(unit, e.type.tz) if isinstance(e.type, Timestamp) else Duration(unit)
                return Lit(t, e.value // n)
    return e


def _same_unit(a: Expr, b: Expr, at: str) -> tuple[Expr, Expr, TimeUnit]:
    a, b = _coarsest(a), _coarsest(b)
    ta, tb = a.type, b.type
    assert isinstance(ta, (Timestamp, Duration)) and isinstance(tb, (Timestamp, Duration))
    if isinstance(ta, Timestamp) and isinstance(tb, Timestamp) and (ta.tz is None) != (tb.tz is None):
        raise PredicateError(f"{at!r}: a timestamp with a time zone cannot be combined with one without ({ta} and "
                             f"{tb}); cast one of them before the join")
    unit = finer(ta.unit, tb.unit)
    return _to_unit(a, unit), _to_unit(b, unit), unit


def _comparable(a: Expr, b: Expr, at: str) -> tuple[Expr, Expr]:
    ta, tb = a.type, b.type
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Lit) and x.value is None:
            null = Lit(y.type if not isinstance(y.type, Int) else EXACT, None)
            return (null, y) if x is a else (y, null)
    if is_exact(ta) and is_exact(tb):
        return a, b
    if _is_number(ta) and _is_number(tb):
        type_ = FLOAT32 if ta == tb == FLOAT32 else FLOAT64
        return _to_float(a, type_, at), _to_float(b, type_, at)
    for kind in (Timestamp, Duration):
        if isinstance(ta, kind) and isinstance(tb, kind):
            x, y, _ = _same_unit(a, b, at)
            return x, y
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Lit) and isinstance(x.type, String) and isinstance(y.type, (Date, Timestamp)):
            time = _parse_time(str(x.value), y.type, at)
            return _comparable(time, y, at) if x is a else _comparable(y, time, at)
    if type(ta) is type(tb) and isinstance(ta, (Bool, Date, String)):
        return a, b
    raise PredicateError(f"{at!r}: {ta} and {tb} cannot be compared")


def _parse_time(value: str, type_: Date | Timestamp, at: str) -> Lit:
    """A string literal beside a date or timestamp column, read as ISO 8601."""
    try:
        if isinstance(type_, Date):
            return literal(dt.date.fromisoformat(value), at)
        moment = dt.datetime.fromisoformat(value)
    except ValueError:
        raise PredicateError(f"{at!r}: {value!r} cannot be read as a {type_}; write it as ISO 8601, such as "
                             f"'2013-01-31' or '2013-01-31 12:30:00'") from None
    if type_.tz is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.timezone.utc)
    return literal(moment, at)
