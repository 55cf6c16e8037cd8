"""Type rules of casts. Only casts on whose results all engines agree, to the last bit, are allowed.

* An exact number to an integer or decimal type gives the same number. All values that it can have, by types and
  declared ranges, must fit the type, as engines differ in the result for other values.
* A truth value to an integer gives 1 or 0; an exact number to a truth value is true if it is not 0.
* A number to a float gives the nearest float, rounded once. An expression of both streams is not narrowed to float32.
* A timestamp or duration may be cast to a finer unit, and any value to its own type.

Floats to integers (which engines truncate or round), texts, and dates to timestamps are refused.
"""

from __future__ import annotations

import re
from typing import cast as typed

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from splitjoin.base.errors import PredicateError

from .build import compare, midnight, not_, time_literal
from .categories import without_order
from .conversions import to_float, to_unit
from .ir import Case, Cast, Expr, Lit, sides
from .properties import denominator, value_range
from .types import (
    BINARY,
    BOOL,
    DATE,
    EXACT,
    FLOAT32,
    FLOAT64,
    STRING,
    TIME_UNITS,
    Binary,
    Bool,
    Date,
    Decimal,
    Duration,
    Float,
    Int,
    OrderedText,
    String,
    TimeOfDay,
    Timestamp,
    Type,
    is_exact,
    limits,
)

_NAMED: dict[exp.DType, Type] = {
    exp.DType.TINYINT: Int(8), exp.DType.SMALLINT: Int(16), exp.DType.INT: Int(32), exp.DType.BIGINT: Int(64),
    exp.DType.UTINYINT: Int(8, False), exp.DType.USMALLINT: Int(16, False), exp.DType.UINT: Int(32, False),
    exp.DType.UBIGINT: Int(64, False), exp.DType.FLOAT: FLOAT32, exp.DType.DOUBLE: FLOAT64, exp.DType.BOOLEAN: BOOL,
    exp.DType.VARCHAR: STRING, exp.DType.TEXT: STRING, exp.DType.BINARY: BINARY, exp.DType.VARBINARY: BINARY,
    exp.DType.DATE: DATE, exp.DType.TIMESTAMP: Timestamp("us"), exp.DType.TIMESTAMPNTZ: Timestamp("us"),
    exp.DType.TIMESTAMPTZ: Timestamp("us", "UTC"), exp.DType.TIMESTAMPLTZ: Timestamp("us", "UTC"),
    exp.DType.TIME: TimeOfDay("us"),
}
#: All whole numbers up to this are float64 without rounding, so a cast of them to float32 rounds once.
_WHOLE = 2**53


def sql_type(to: exp.Expr) -> Type | None:
    """The type that sqlglot's ``to`` names; None if conditions do not have it."""
    if not isinstance(to, exp.DataType):
        return None
    sizes = [int(p.name) for p in to.expressions if p.name.isdecimal()]
    if to.this == exp.DType.DECIMAL:
        precision, scale = (*sizes, 0) if len(sizes) == 1 else sizes if len(sizes) == 2 else (0, 0)
        return Decimal(precision, scale) if 1 <= precision <= 38 and 0 <= scale <= precision else None
    return None if to.expressions else _NAMED.get(to.this)


def named_type(name: object, at: str) -> Type:
    """The type of an SQL name such as ``bigint``, ``double`` or ``decimal(9, 2)``."""
    try:
        readable = isinstance(name, str) and re.fullmatch(r"[\w ]+(\([\d, ]+\))?", name)
        found = sql_type(exp.DataType.build(str(name))) if readable else None
    except (ParseError, TokenError):
        found = None
    if found is None:
        raise PredicateError(f"{at!r}: a cast must be to tinyint, smallint, int, bigint, float, double, decimal(p, s), "
                             f"boolean, string, binary, date, time or timestamp, not {name!r}")
    return found


def cast(a: Expr, to: Type, at: str) -> Expr:
    """``CAST(a AS to)``. Raises `PredicateError` for casts that the rules above do not allow."""
    if isinstance(a, Lit) and a.value is None:
        return Lit(EXACT if is_exact(to) else to, None)
    if to == STRING and isinstance(a.type, OrderedText):
        return without_order(a)
    if a.type == to or (isinstance(a.type, (String, Binary)) and type(a.type) is type(to)):
        return a
    if isinstance(a, Lit) and isinstance(a.value, str) and isinstance(to, (Date, Timestamp, TimeOfDay)):
        return time_literal(a.value, to, at)
    if isinstance(a.type, Bool) and isinstance(to, Int):
        numbers = Lit(EXACT, 1), Lit(EXACT, 0)
        return Cast(to, Case(EXACT, (a, not_(a, at)), numbers, Lit(EXACT, None)))
    if isinstance(to, Bool) and is_exact(a.type):
        return compare("<>", a, Lit(EXACT, 0), at)
    if isinstance(to, (Int, Decimal)) and is_exact(a.type):
        _check_fits(a, to, at)
        return Cast(to, a) if isinstance(to, Int) and not isinstance(a, Lit) else a
    if isinstance(to, Float) and is_exact(a.type) and (to == FLOAT64 or isinstance(a, Lit) or _is_whole_float(a)):
        return to_float(a, to, at)
    if isinstance(to, Float) and isinstance(a.type, Float) and (to == FLOAT64 or len(sides(a)) < 2):
        return Cast(to, a)
    if isinstance(a.type, Date) and isinstance(to, Timestamp) and to.tz is None:
        return midnight(a, to.unit, at)
    if _is_finer(a.type, to):
        return to_unit(a, typed(Timestamp, to).unit)
    raise PredicateError(f"{at!r}: {a.type} cannot be cast to {to} in a condition, as engines differ in how; cast the "
                         f"column before the join")


def _is_finer(a: Type, to: Type) -> bool:
    """True if ``to`` is of the same kind of time as ``a``, with the same unit or a finer one."""
    if isinstance(a, Timestamp) and isinstance(to, Timestamp):
        return (a.tz is None) == (to.tz is None) and TIME_UNITS[a.unit] >= TIME_UNITS[to.unit]
    same = isinstance(a, TimeOfDay) == isinstance(to, TimeOfDay)
    return same and isinstance(a, Duration) and isinstance(to, Duration) and TIME_UNITS[a.unit] >= TIME_UNITS[to.unit]


def _is_whole_float(a: Expr) -> bool:
    low, high = value_range(a)
    return denominator(a) == 1 and max(-low, high) <= _WHOLE


def _check_fits(a: Expr, to: Int | Decimal, at: str) -> None:
    unit = 10**to.scale if isinstance(to, Decimal) else 1
    least, top = limits(to) or (0, 0)
    low, high = value_range(a)
    if unit % denominator(a):
        raise PredicateError(f"{at!r}: a cast to {to} would round {a.type}, and engines differ in how; cast the column "
                             f"before the join")
    if low * unit < least or high * unit > top:
        raise PredicateError(f"{at!r}: every value must fit the type of a cast, but {to} takes {_shown(least, unit)} "
                             f"to {_shown(top, unit)}, and '{a}' may be {low} to {high}; declare the range of its "
                             f"columns by splitjoin.field, or cast the column before the join")


def _shown(value: int, unit: int) -> str:
    return str(value) if unit == 1 else f"{value} / {unit}"
