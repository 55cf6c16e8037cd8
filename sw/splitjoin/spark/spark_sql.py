"""`Writer`: a condition in Spark's SQL, exactly or not at all.

Whole numbers are BIGINT, or DECIMAL(38, 0) where they may not fit; times and dates are their whole numbers. So nothing
overflows, rounds, or depends on settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from math import isfinite
from typing import Any

from splitjoin.base.errors import UnsupportedError
from splitjoin.lang.ir import Abs, And, Arith, Cast, Cmp, Col, Expr, IsNull, Lit, Neg, Not, Or
from splitjoin.lang.types import Bool, Date, Duration, Exact, Float, Int, String, Timestamp

#: DECIMAL(38, 0) holds whole numbers below this.
_MOST = 10**38
_LONG = 2**63
#: Times of this many microseconds and more, of the year 75,000, are an error: differences of others fit a BIGINT.
TIMES = 2**61


@dataclass(frozen=True)
class Text:
    """SQL of a value; of a whole number also the least and the greatest that it may be, None for other values."""

    sql: str
    low: int = 0
    high: int = 0
    is_whole: bool = False

    def as_decimal(self) -> str:
        """The whole number where it may not fit a BIGINT."""
        return f"CAST({self.sql} AS DECIMAL(38, 0))"

    @property
    def is_long(self) -> bool:
        """True if all of these whole numbers fit a BIGINT."""
        return self.low >= -_LONG and self.high < _LONG


class Writer:
    """Writes conditions. ``column``: the SQL of a column as `Text`, of a whole number as a BIGINT."""

    def __init__(self, column: Callable[[Col], Text]):
        self._column = column

    def write(self, e: Expr) -> Text:
        """The SQL of ``e``. Raises `UnsupportedError` if Spark has none that is the same for all values."""
        match e:
            case Col():
                return self._column(e)
            case Lit():
                return _literal(e)
            case And() | Or():
                return Text("(" + (" AND " if isinstance(e, And) else " OR ").join(self.write(a).sql for a in e.args)
                            + ")")
            case Not():
                return Text(f"(NOT {self.write(e.a).sql})")
            case IsNull():
                return Text(f"({self.write(e.a).sql} IS NULL)")
            case Cmp():
                a, b = self.write(e.a), self.write(e.b)
                if any(x.is_whole and not x.is_long and not y.is_whole for x, y in ((a, b), (b, a))):
                    raise _unwritten(e)  # a DECIMAL has no room for a fraction's digits
                return Text(f"({a.sql} {e.op} {b.sql})")
            case Cast() if isinstance(e.type, Float):
                a = self.write(e.a)
                if isinstance(e.a.type, Float) and e.a.type.bits <= e.type.bits:
                    return Text(f"CAST({a.sql} AS {_float(e.type)})")
                if not a.is_whole or max(-a.low, a.high) > (2**53 if e.type.bits == 64 else 2**24):
                    raise _unwritten(e)
                return Text(f"CAST({a.sql} AS {_float(e.type)})")
            case Neg() | Abs() | Arith():
                return self._computed(e)
        raise _unwritten(e)

    def _computed(self, e: Neg | Abs | Arith) -> Text:
        parts = [self.write(a) for a in e.children]
        op = "-" if isinstance(e, Neg) else "abs" if isinstance(e, Abs) else e.op
        if isinstance(e.type, Float):
            if op not in ("+", "-", "*", "abs"):
                raise _unwritten(e)
            return Text(_applied(op, [p.sql for p in parts]))
        if not all(p.is_whole for p in parts) or op not in ("+", "-", "*", "abs"):
            raise _unwritten(e)
        low, high = _range(op, parts)
        whole = Text("", low, high, True)
        if max(-low, high) >= _MOST:
            raise _unwritten(e)
        sqls = [p.sql if whole.is_long and p.is_long else p.as_decimal() for p in parts]
        return Text(_applied(op, sqls), low, high, True)


def _applied(op: str, sqls: list[str]) -> str:
    if op == "abs":
        return f"abs({sqls[0]})"
    return f"({sqls[0]} {op} {sqls[1]})" if len(sqls) == 2 else f"(-{sqls[0]})"


def _range(op: str, parts: list[Text]) -> tuple[int, int]:
    a = parts[0]
    if len(parts) == 1:
        ends = [-a.low, -a.high] if op == "-" else [abs(a.low), abs(a.high), *([0] if a.low <= 0 <= a.high else [])]
    else:
        b = parts[1]
        ends = {"+": [a.low + b.low, a.high + b.high], "-": [a.low - b.high, a.high - b.low],
                "*": [x * y for x in (a.low, a.high) for y in (b.low, b.high)]}[op]
    return min(ends), max(ends)


def _literal(e: Lit) -> Text:
    value: Any = e.value
    if value is None:
        return Text("NULL", 0, 0, True)
    match e.type:
        case Bool():
            return Text("true" if value else "false")
        case Float():
            written = repr(value) if isfinite(value) else {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[
                repr(value)]
            return Text(f"CAST('{written}' AS {_float(e.type)})")
        case String():
            return Text(text(value))
        case Timestamp() | Duration() if e.type.unit != "us":
            raise _unwritten(e)
        case Exact() | Int() | Date() | Timestamp() | Duration():
            if Fraction(value).denominator == 1:
                return Text(number(int(value)), int(value), int(value), True)
            return Text(_fraction(e, Fraction(value)))
    raise _unwritten(e)


def _float(kind: Float) -> str:
    return "DOUBLE" if kind.bits == 64 else "FLOAT"


def _fraction(e: Lit, value: Fraction) -> str:
    with localcontext() as context:
        context.prec = 36
        decimal = Decimal(value.numerator) / Decimal(value.denominator)
    if Fraction(decimal) != value:
        raise _unwritten(e)
    return f"{decimal:f}BD"


def number(value: int) -> str:
    """The whole number as SQL. Raises `UnsupportedError` if it has more than 38 digits."""
    if abs(value) >= _MOST:
        raise UnsupportedError(f"engine='rewrite' writes numbers of up to 38 digits, not {value}; leave engine out")
    if -_LONG < value < _LONG:
        return f"{value}L" if value >= 0 else f"({value}L)"
    return f"CAST('{value}' AS DECIMAL(38, 0))"


def text(value: str) -> str:
    """The text as SQL, whatever characters and settings there are."""
    if value.isascii() and value.replace(" ", "").isalnum():
        return f"'{value}'"
    return f"CAST(unhex('{value.encode().hex()}') AS STRING)"


def quoted(name: str) -> str:
    """The column ``name`` in SQL that names DataFrames in braces."""
    return "`" + name.replace("`", "``").replace("{", "{{").replace("}", "}}") + "`"


def _unwritten(e: Expr) -> UnsupportedError:
    return UnsupportedError(f"engine='rewrite' writes comparisons of columns and constants, and sums, differences, "
                            f"products and abs of them, in Spark's SQL, but {e} is not among them or may be out of its "
                            f"types' ranges; leave engine out, so that the Python workers join")
