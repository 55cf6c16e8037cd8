"""Back end: translates a condition into equivalent DuckDB SQL over tables r and s, as an oracle.

Every type is spelled out. An exact value, and a time, is a HUGEINT, its value times its `denominator`. Values that do
not fit 128 bits are refused, and so are the few that DuckDB's types cannot hold.
"""

from __future__ import annotations

import math
from fractions import Fraction

from splitjoin.base.errors import UnsupportedError
from splitjoin.lang import ir
from splitjoin.lang.properties import denominator, value_range
from splitjoin.lang.types import (
    Binary,
    Bool,
    Date,
    Decimal,
    Duration,
    Exact,
    Float,
    Int,
    String,
    Timestamp,
    Type,
    units_per,
)

#: Unit → function that gives a time as a whole number, and of what part of the unit. In DuckDB 2.0.1, `epoch_ms` of
#: times that are all equal ends a join of seconds in an error.
_EPOCH = {"s": ("epoch_us", 10**6), "ms": ("epoch_us", 1000), "us": ("epoch_us", 1), "ns": ("epoch_ns", 1)}
#: From here on a float64 is nearer to infinity than to the largest float32.
_BEYOND = "CAST('3.4028235677973366e38' AS DOUBLE)"


def duckdb_sql(e: ir.Expr) -> str:
    """The DuckDB condition, over tables ``r`` and ``s`` of the same columns, for ``e`` as users write it.

    Raises `UnsupportedError` with the part that DuckDB cannot compute exactly.
    """
    return _text(e)


def _text(e: ir.Expr) -> str:
    if _is_whole(e.type):
        return _whole(e)
    match e:
        case ir.Col():
            return _column(e)
        case ir.Lit():
            return _literal(e)
        case ir.Arith(op="mod"):
            a, b = _text(e.a), _text(e.b)
            return f"(CASE WHEN {b} = 0 THEN {a} * CAST('nan' AS {_name(e.type)}) ELSE {a} % {b} END)"
        case ir.Arith():
            return f"({_text(e.a)} {e.op} {_text(e.b)})"
        case ir.Cast():
            return _cast(e)
        case ir.Cmp():
            a, b = _operands(e.a, e.b)
            return f"({a} {e.op} {b})"
        case ir.And() | ir.Or():
            return "(" + (" AND " if isinstance(e, ir.And) else " OR ").join(map(_text, e.args)) + ")"
        case ir.Not():
            return f"(NOT {_text(e.a)})"
        case ir.IsNull():
            return f"({_text(e.a)} IS NULL)"
        case ir.StartsWith():
            return _starts_with(e)
    return _choice(e, 1)


def _choice(e: ir.Expr, unit: int) -> str:
    """The text of an operation on numbers of any kind; ``unit``: the denominator of exact numbers."""
    def part(x: ir.Expr) -> str:
        return _in(x, unit) if _is_whole(e.type) else _text(x)

    match e:
        case ir.Neg():
            return f"(- {part(e.a)})"
        case ir.Abs():
            return f"abs({part(e.a)})"
        case ir.Case():
            branches = " ".join(f"WHEN {_text(w)} THEN {part(t)}" for w, t in zip(e.when, e.then, strict=True))
            return f"(CASE {branches} ELSE {part(e.otherwise)} END)"
        case ir.Extreme():
            return f"{e.kind}({', '.join(map(part, e.args))})"
    raise UnsupportedError(f"'{e}' must be a part of a condition as users write it, to be told in DuckDB's SQL")


def _is_whole(t: Type) -> bool:
    return isinstance(t, (Int, Decimal, Exact, Date, Timestamp, Duration))


def _operands(a: ir.Expr, b: ir.Expr) -> tuple[str, str]:
    """Two values that are compared or added, of one denominator."""
    if not _is_whole(a.type):
        return _text(a), _text(b)
    unit = math.lcm(denominator(a), denominator(b))
    return _in(a, unit), _in(b, unit)


def _in(e: ir.Expr, unit: int) -> str:
    """``e``, exact, times ``unit``, a multiple of its denominator, as a HUGEINT."""
    times = unit // denominator(e)
    return _whole(e) if times == 1 else _fitting(e, unit, f"({_whole(e)} * {times})")


def _fitting(e: ir.Expr, unit: int, made: str) -> str:
    """``made``, which is ``e`` times ``unit``, if that has no more than 128 bits."""
    if max(map(abs, value_range(e))) * unit >= 2**127:
        raise UnsupportedError(f"'{e}' must have at most 128 bits for DuckDB, but may have more; declare the ranges of "
                               f"its columns by splitjoin.field")
    return made


def _whole(e: ir.Expr) -> str:
    """``e``, exact, times its denominator, as a HUGEINT."""
    return _fitting(e, denominator(e), _made(e))


def _made(e: ir.Expr) -> str:
    match e:
        case ir.Col():
            return _column(e)
        case ir.Lit(value=None):
            return "CAST(NULL AS HUGEINT)"
        case ir.Lit(value=int() | Fraction() as number):
            return _huge(number * denominator(e))
        case ir.Cast() if isinstance(e.a.type, Bool):
            return f"CAST({_text(e.a)} AS HUGEINT)"
        case ir.Cast():
            # An exact number stays the same; a time becomes a number of finer units.
            per = 1
            if isinstance(e.type, (Timestamp, Duration)) and isinstance(e.a.type, (Timestamp, Duration)):
                per = units_per(e.a.type.unit, e.type.unit)
            return f"({_whole(e.a)} * {per} // {denominator(e.a)})"
        case ir.Call(op="bit_count"):
            value = _whole(e.args[0])
            whole = f"{value} + CASE WHEN {value} < 0 THEN {_huge(2**e.of.bits)} ELSE 0 END"
            return f"CAST(bit_count({whole}) AS HUGEINT)"
        case ir.Call(op="&" | "|" | "^"):
            a, b = map(_whole, e.args)
            return f"xor({a}, {b})" if e.op == "^" else f"({a} {e.op} {b})"
        case ir.Arith():
            return _arith(e)
    return _choice(e, denominator(e))


def _arith(e: ir.Arith) -> str:
    if e.op == "*":
        return f"({_whole(e.a)} * {_whole(e.b)})"
    if e.op in ("<<", ">>"):
        power = _huge(2 ** int(e.b.value or 0)) if isinstance(e.b, ir.Lit) else f"(1::HUGEINT << {_whole(e.b)}::INT)"
        return f"({_whole(e.a)} * {power})" if e.op == "<<" else _floor(_whole(e.a), power)
    a, b = _operands(e.a, e.b)
    if e.op in ("+", "-"):
        return f"({a} {e.op} {b})"
    down, b = e.op in ("//", "%"), f"nullif({b}, 0)"
    quotient = _floor(a, b) if down else f"({a} // {b})"
    return quotient if e.op in ("div", "//") else f"({a} - {b} * {quotient})"


def _floor(a: str, b: str) -> str:
    """The quotient, rounded down; DuckDB's own is rounded towards zero."""
    return f"({a} // {b} - CASE WHEN {a} % {b} <> 0 AND ({a} < 0) <> ({b} < 0) THEN 1 ELSE 0 END)"


def _cast(e: ir.Cast) -> str:
    """A number cast to a float type or to a truth value."""
    if isinstance(e.type, Bool) and _is_whole(e.a.type):
        return f"({_whole(e.a)} <> 0)"
    if not isinstance(e.type, Float) or isinstance(e.a.type, (Float, Bool)):
        value, name = _text(e.a), _name(e.type)
        made = f"CAST({value} AS {name})"
        if name == "DOUBLE" or e.a.type == e.type or isinstance(e.a.type, Bool):
            return made
        # Where other engines round to infinity, DuckDB raises an error.
        return (f"(CASE WHEN isfinite({value}) AND abs({value}) >= {_BEYOND} THEN CAST(CASE WHEN {value} > 0 THEN "
                f"'inf' ELSE '-inf' END AS FLOAT) ELSE {made} END)")
    if isinstance(e.a, ir.Col) and isinstance(e.a.type, Int):
        return f"CAST({_named(e.a)} AS {_name(e.type)})"
    unit = denominator(e.a)
    if unit > 2**53 or max(map(abs, value_range(e.a))) * unit > 2**53 or e.type.bits == 32:
        raise UnsupportedError(f"'{e.a}' must have at most 53 bits for DuckDB to make a float of it that is rounded "
                               f"once; declare the ranges of its columns by splitjoin.field")
    return f"(CAST({_whole(e.a)} AS DOUBLE) / CAST({unit} AS DOUBLE))"


def _column(e: ir.Col) -> str:
    name, t = _named(e), e.type
    match t:
        case Decimal():
            return f"CAST(replace(CAST({name} AS VARCHAR), '.', '') AS HUGEINT)"
        case Date():
            return f"CAST({name} - DATE '1970-01-01' AS HUGEINT)"
        case Timestamp(unit="ns", tz=str()) | Duration(unit="ns"):
            raise UnsupportedError(f"{e} must be of microseconds or more, of which DuckDB makes its own type, but is "
                                   f"{t}")
        case Timestamp() | Duration():
            function, parts = _EPOCH[t.unit]
            whole = f"CAST({function}({name}) AS HUGEINT)"
            return whole if parts == 1 else f"({whole} // {parts})"
    return f"CAST({name} AS HUGEINT)" if isinstance(t, Int) else name


def _named(e: ir.Col) -> str:
    quoted = e.name.replace('"', '""')
    return f'{e.side}."{quoted}"'


def _huge(value: Fraction | int) -> str:
    return f"CAST('{int(value)}' AS HUGEINT)"


def _literal(e: ir.Lit) -> str:
    name = _name(e.type)
    if e.value is None:
        return f"CAST(NULL AS {name})"
    if isinstance(e.value, bytes):
        return f"from_hex('{e.value.hex()}')"
    if isinstance(e.value, str):
        pieces = e.value.replace("'", "''").split("\0")  # of which DuckDB's text can hold none
        return "(" + " || chr(0) || ".join(f"'{p}'" for p in pieces) + ")"
    return f"CAST('{e.value!r}' AS {name})"


def _starts_with(e: ir.StartsWith) -> str:
    value = _text(e.a)
    if isinstance(e.prefix, str):
        return f"starts_with({value}, {_literal(ir.Lit(e.a.type, e.prefix))})"
    head = _literal(ir.Lit(e.a.type, e.prefix))
    stem = e.prefix.rstrip(b"\xff")
    if not stem:
        return f"({value} >= {head})"
    after = _literal(ir.Lit(e.a.type, stem[:-1] + bytes([stem[-1] + 1])))
    return f"({value} >= {head} AND {value} < {after})"


def _name(t: Type) -> str:
    match t:
        case Float():
            return "FLOAT" if t.bits == 32 else "DOUBLE"
        case Bool():
            return "BOOLEAN"
        case String():
            return "VARCHAR"
        case Binary():
            return "BLOB"
    return "HUGEINT"
