"""Expressions over whole columns, with NumPy, as exactly as the golden model evaluates them row by row.

Exact values are int64 arrays as long as nothing can overflow, judged by the values that are really there; otherwise
arrays of Python integers, which are slow and never wrong. Fractions are whole numbers over a common denominator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Array, Mask

from .. import ir
from ..calendar import finest, tick, unit_number, unit_start
from ..ir import columns, distinct
from ..operations import OPERATIONS, float_values, like_pattern
from ..types import UNIT_NS, Binary, Bool, Duration, Float, Int, Timestamp, is_text, units_per
from .column_values import INT64, Vector, column, joined_halves, magnitude, narrowed, typed, widen

__all__ = ["Vector", "column", "constant", "evaluate", "evaluate_columns", "joined_halves", "magnitude", "widen"]


def evaluate(e: ir.Expr, table: pa.Table) -> Vector:
    """The values of ``e``, an expression over one stream, for every row of that stream's ``table``."""
    return evaluate_columns(e, {c: column(table.column(c.name)) for c in columns(e)}, table.num_rows)


def evaluate_columns(e: ir.Expr, table: Mapping[ir.Col, Vector], n: int) -> Vector:
    """The values of ``e``, with those of its columns given as `column` has them, (n,) each, perhaps of both streams.

    A part that occurs more than once is evaluated once; intermediate values are dropped after their last use.
    """
    if not e.children:  # keys are most often columns, which streams evaluate for every batch
        return _value(e, [], table, n)
    nodes = distinct(e)
    last_use = {operand: at for at, (_, operands) in enumerate(nodes) for operand in operands}
    values: dict[int, Vector] = {}
    for at, (node, operands) in enumerate(nodes):
        values[at] = _value(node, [values[operand] for operand in operands], table, n)
        for operand in dict.fromkeys(operands):
            if last_use[operand] == at:
                del values[operand]
    return values[len(nodes) - 1]


def _value(e: ir.Expr, args: list[Vector], table: Mapping[ir.Col, Vector], n: int) -> Vector:
    """The values of node ``e`` by those of its operands, ``args``."""
    match e:
        case ir.Col():
            return typed(e, table[e])
        case ir.Lit():
            return _literal(e, n)
        case ir.IsNull():
            return Vector(~args[0].valid, np.ones(n, np.bool_))
        case ir.Neg():
            return Vector(-_room(args[0], 1).values, args[0].valid, args[0].denominator)
        case ir.Abs():
            return Vector(np.abs(_room(args[0], 1).values), args[0].valid, args[0].denominator)
        case ir.Cast():
            return _cast(e, args[0])
        case ir.Arith():
            return _arith(e, *args)
        case ir.Cmp():
            a, b = _aligned(args) if not isinstance(e.a.type, Float) else args
            return Vector(_compared(e.op, a.values, b.values, isinstance(e.a.type, Float)), a.valid & b.valid)
        case ir.And() | ir.Or():
            return _junction(isinstance(e, ir.Or), args)
        case ir.Not():
            return Vector(~args[0].values, args[0].valid)
        case ir.Case():
            return _case(args)
        case ir.Extreme():
            return _extreme(e, args)
        case ir.StartsWith():
            starts = np.array([v.startswith(e.prefix) for v in args[0].values], np.bool_)
            return Vector(starts, args[0].valid)
        case ir.Like():
            fits = like_pattern(e.pattern).fullmatch
            return Vector(np.array([fits(v) is not None for v in args[0].values], np.bool_), args[0].valid)
        case ir.FloatCall():
            return Vector(float_values(e.function, e.places, args[0].values), args[0].valid)
        case ir.UnitNumber() | ir.UnitStart():
            return _unit(e, args[0])
        case ir.Call():
            return _call(e, args)
        case ir.NextFloat():
            end = args[0].values.dtype.type(np.inf if e.up else -np.inf)
            with np.errstate(over="ignore"):  # beyond the largest is infinity
                return Vector(np.where(np.isnan(args[0].values), end, np.nextafter(args[0].values, end)), args[0].valid)
        case ir.Within():
            inside = (args[0].values >= e.low) & (args[0].values <= e.high)  # a column's values are those of its range
            return Vector(args[0].values, args[0].valid & inside.astype(np.bool_), args[0].denominator)
        case ir.Isqrt():
            whole = args[0].values // args[0].denominator
            roots = [math.isqrt(v) if v >= 0 else -1 for v in whole.tolist()]
            return narrowed(np.array(roots, object), args[0].valid)
    raise TypeError(f"not an IR node: {e!r}")


def constant(e: ir.Expr) -> Any:
    """The value of an expression without columns; None for NULL."""
    v = evaluate(e, pa.table({"row": pa.array([0])}))
    if not v.valid[0]:
        return None
    value = v.values[0]
    value = value.item() if isinstance(value, np.generic) else value
    return value if v.denominator == 1 else Fraction(value, v.denominator)


def _room(v: Vector, factor: int) -> Vector:
    """``v`` in a form in which its values times ``factor`` do not wrap."""
    return Vector(widen(v.values, magnitude(v.values) * factor), v.valid, v.denominator)


def _aligned(args: Sequence[Vector]) -> list[Vector]:
    """Exact values over one denominator; others as they are."""
    common = math.lcm(*(a.denominator for a in args))
    if all(a.denominator == common for a in args):
        return list(args)
    out = []
    for a in args:
        factor = common // a.denominator
        out.append(Vector(_room(a, factor).values * factor, a.valid, common))
    return out


def _literal(e: ir.Lit, n: int) -> Vector:
    valid = np.full(n, e.value is not None)
    value = e.value
    if isinstance(e.type, Float):
        return Vector(np.full(n, 0 if value is None else value, _dtype(e.type)), valid)
    if isinstance(e.type, Bool):
        return Vector(np.full(n, bool(value)), valid)
    if is_text(e.type):
        filled = np.empty(n, object)
        filled[:] = value if value is not None else b"" if isinstance(e.type, Binary) else ""
        return Vector(filled, valid)
    exact = Fraction(0 if value is None else value)  # type: ignore[arg-type]  # exact types and times hold such values
    fits = abs(exact.numerator) < INT64
    return Vector(np.full(n, exact.numerator, np.int64 if fits else object), valid, exact.denominator)


def _dtype(t: Float) -> type[np.float32] | type[np.float64]:
    return np.float32 if t.bits == 32 else np.float64


def _cast(e: ir.Cast, a: Vector) -> Vector:
    if isinstance(e.type, Float):
        with np.errstate(over="ignore"):  # IEEE 754 rounds what is too large to infinity
            return Vector(_floats(a).astype(_dtype(e.type)), a.valid)
    if isinstance(e.type, Int):
        return a
    assert isinstance(e.type, (Timestamp, Duration)) and isinstance(e.a.type, (Timestamp, Duration))
    per = units_per(e.a.type.unit, e.type.unit)
    return Vector(_room(a, per).values * per, a.valid)


def _floats(a: Vector) -> Array:
    """The nearest floats: of floats themselves, of exact values float64."""
    if a.values.dtype.kind == "f" or (a.denominator == 1 and a.values.dtype != object):
        return a.values if a.values.dtype.kind == "f" else a.values.astype(np.float64)
    if max(magnitude(a.values), a.denominator) <= 2**53:  # both have a float64 of their own: it is rounded once
        return a.values.astype(np.float64) / float(a.denominator)
    return np.array([_nearest(int(v), a.denominator) for v in a.values], np.float64)


def _nearest(n: int, d: int) -> float:
    """The float64 nearest to n/d; infinity beyond the largest."""
    try:
        return n / d  # of integers, which Python rounds once
    except OverflowError:
        return math.inf if n > 0 else -math.inf


_FLOAT_ARITH: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "mod": np.fmod,
}


def _arith(e: ir.Arith, a: Vector, b: Vector) -> Vector:
    valid = a.valid & b.valid
    if isinstance(e.type, Float):
        with np.errstate(all="ignore"):  # IEEE 754: overflow gives infinity, inf − inf gives NaN, and so it stays
            return Vector(_FLOAT_ARITH[e.op](a.values, b.values), valid)
    if e.op == "*":
        x, y = _wide(a.values, b.values, magnitude(a.values) * magnitude(b.values))
        return Vector(x * y, valid, a.denominator * b.denominator)
    if e.op in ("<<", ">>"):
        places = np.where(valid, b.values, 0)  # where NULL stands, there may be any number
        x, y = _wide(a.values, places, magnitude(a.values) << magnitude(places) if e.op == "<<" else 0)
        return Vector(x << y if e.op == "<<" else x >> y, valid)
    a, b = _aligned((a, b))
    if e.op in "+-":
        x, y = _wide(a.values, b.values, magnitude(a.values) + magnitude(b.values))
        return Vector(x + y if e.op == "+" else x - y, valid, a.denominator)
    x, y = _wide(a.values, b.values, max(magnitude(a.values), magnitude(b.values)))
    return _division(e.op, x, y, valid, a.denominator)


def _unit(e: ir.UnitNumber | ir.UnitStart, a: Vector) -> Vector:
    """The number or the first time of a calendar unit."""
    of, most = tick(e.a.type), magnitude(a.values)
    number = unit_number(widen(a.values, most * finest(e.unit, of)), e.unit, of)
    if isinstance(e, ir.UnitNumber):
        return Vector(number, a.valid)
    # No unit is longer than a year: the time at which one begins is at most so far beyond the largest.
    room = (most * of + 366 * UNIT_NS["DAY"]) // tick(e.type)
    return Vector(unit_start(widen(number, room), e.unit, tick(e.type)), a.valid)


def _wide(x: Array, y: Array, largest: int) -> tuple[Array, Array]:
    """Both of one dtype, in which results up to ``largest`` do not wrap."""
    x, y = widen(x, largest), widen(y, largest)
    if x.dtype != y.dtype:
        x, y = x.astype(object), y.astype(object)
    return x, y


def _division(op: str, x: Array, y: Array, valid: Mask, denominator: int) -> Vector:
    valid = valid & (y != 0).astype(np.bool_)
    y = np.where(valid, y, 1)
    x = np.where(valid, x, 0)
    quotient = x // y
    remainder = x - quotient * y
    if op in ("div", "mod"):
        # Rounded down so far; towards zero is one more where the signs differ and something is left.
        off = ((remainder != 0) & ((x < 0) != (y < 0))).astype(np.bool_)
        quotient, remainder = np.where(off, quotient + 1, quotient), np.where(off, remainder - y, remainder)
    return Vector(quotient, valid) if op in ("div", "//") else Vector(remainder, valid, denominator)


def _call(e: ir.Call, args: Sequence[Vector]) -> Vector:
    operation = OPERATIONS[e.op]
    valid = np.logical_and.reduce([a.valid for a in args])
    if operation.array is not None and all(a.values.dtype == np.int64 for a in args):
        return Vector(operation.array(e.of, *(a.values for a in args)), valid)
    rows = zip(valid.tolist(), *(a.values.tolist() for a in args), strict=True)
    values = np.array([operation.value(e.of, *map(int, row)) if ok else 0 for ok, *row in rows], object)
    return narrowed(values, valid)


def _compared(op: str, x: Array, y: Array, is_float: bool) -> Mask:
    with np.errstate(invalid="ignore"):
        less, equal = x < y, x == y
    if is_float:
        # SQL's total order: NaN equals NaN and is greater than everything else.
        nx, ny = np.isnan(x), np.isnan(y)
        less, equal = less | (~nx & ny), equal | (nx & ny)
    less, equal = less.astype(np.bool_), equal.astype(np.bool_)
    values: Mask = {"=": equal, "<>": ~equal, "<": less, "<=": less | equal, ">": ~(less | equal), ">=": ~less}[op]
    return values


def _junction(is_or: bool, args: list[Vector]) -> Vector:
    """Kleene's AND/OR: one decisive operand decides, else one NULL makes NULL."""
    decisive = np.zeros(len(args[0].values), np.bool_)
    valid = np.ones(len(args[0].values), np.bool_)
    for a in args:
        decisive |= a.valid & (a.values == is_or)
        valid &= a.valid
    return Vector(decisive if is_or else ~decisive, valid | decisive)


def _case(args: list[Vector]) -> Vector:
    """``args``: a condition and a value by turns, and the value otherwise."""
    *then, otherwise = _aligned([*args[1::2], args[-1]])
    values, valid = otherwise.values, otherwise.valid
    for when, t in reversed(list(zip(args[:-1:2], then, strict=True))):
        true = when.valid & when.values
        values, valid = np.where(true, t.values, values), np.where(true, t.valid, valid)
    return Vector(values, valid, otherwise.denominator)


def _extreme(e: ir.Extreme, args: list[Vector]) -> Vector:
    is_float = isinstance(e.type, Float)
    first, *others = args if is_float else _aligned(args)
    values, valid = first.values, first.valid
    for a in others:
        better = a.valid & (~valid | _compared("<" if e.kind == "least" else ">", a.values, values, is_float))
        values, valid = np.where(better, a.values, values), valid | a.valid
    return Vector(values, valid, first.denominator)
