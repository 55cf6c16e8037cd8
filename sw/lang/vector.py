"""Expressions of one stream over whole columns, with NumPy, as exactly as the golden model does it row by row.

Exact values are int64 arrays as long as nothing can overflow, judged by the values that are really there; otherwise
arrays of Python integers and fractions, which are slow and never wrong.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .ir import Abs, And, Arith, Cast, Cmp, Col, Expr, IsNull, Lit, Neg, Not, Or, columns
from .types import Bool, Duration, Float, String, Timestamp, plain, units_per

__all__ = ["Vector", "column", "constant", "evaluate", "evaluate_columns", "magnitude", "widen"]

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

_ARITH: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_INT64 = 2**63


@dataclass(frozen=True)
class Vector:
    """Values of one expression: ``values`` (n,), meaningless where ``valid`` (n,) is False (NULL)."""

    values: Array
    valid: Mask


def evaluate(e: Expr, table: pa.Table) -> Vector:
    """The values of ``e``, an expression over one stream, for every row of that stream's ``table``."""
    return evaluate_columns(e, {c: column(table.column(c.name)) for c in columns(e)}, table.num_rows)


def evaluate_columns(e: Expr, table: Mapping[Col, Vector], n: int) -> Vector:
    """The values of ``e``, with those of its columns given, (n,) each. The columns may be of both streams."""
    match e:
        case Col():
            return table[e]
        case Lit():
            return _literal(e, n)
        case Neg():
            a = evaluate_columns(e.a, table, n)
            return Vector(-widen(a.values, magnitude(a.values)), a.valid)
        case Abs():
            a = evaluate_columns(e.a, table, n)
            return Vector(np.abs(widen(a.values, magnitude(a.values))), a.valid)
        case Cast():
            return _cast(e, evaluate_columns(e.a, table, n))
        case Arith():
            return _arith(e, evaluate_columns(e.a, table, n), evaluate_columns(e.b, table, n))
        case Cmp():
            return _compare(e, evaluate_columns(e.a, table, n), evaluate_columns(e.b, table, n))
        case And() | Or():
            return _junction(isinstance(e, Or), [evaluate_columns(a, table, n) for a in e.args])
        case Not():
            a = evaluate_columns(e.a, table, n)
            return Vector(~a.values, a.valid)
        case IsNull():
            return Vector(~evaluate_columns(e.a, table, n).valid, np.ones(n, np.bool_))
    raise TypeError(f"not an IR node: {e!r}")


def constant(e: Expr) -> Any:
    """The value of an expression without columns; None for NULL."""
    v = evaluate(e, pa.table({"row": pa.array([0])}))
    if not v.valid[0]:
        return None
    value = v.values[0]
    return value.item() if isinstance(value, np.generic) else value


def column(data: pa.ChunkedArray) -> Vector:
    """A column: integers, dates and times as int64, floats and bools as they are, strings as Python objects."""
    data = plain(data)
    valid = np.ones(len(data), np.bool_) if data.null_count == 0 else data.is_valid().to_numpy()
    t = data.type
    if pa.types.is_date32(t):
        data, t = data.cast(pa.int32()), pa.int32()
    if pa.types.is_timestamp(t):
        data, t = data.cast(pa.int64()), pa.int64()
    is_text = pa.types.is_large_string(t)
    if data.null_count:
        # Filled before NumPy sees it: a nullable integer column would become float64.
        data = pc.fill_null(data, pa.scalar("" if is_text else False if pa.types.is_boolean(t) else 0, t))
    values = data.to_numpy()
    if pa.types.is_integer(t):
        values = values.astype(np.int64)
    return Vector(values, valid)


def magnitude(values: Array) -> int:
    """The largest absolute value, as a Python integer, rounded up; 0 for no values or for floats."""
    if len(values) == 0 or values.dtype.kind not in "iO":
        return 0
    low, high = values.min(), values.max()
    return max(abs(_ceil(low)), abs(_ceil(high)))


def widen(values: Array, largest: int) -> Array:
    """``values`` in a form in which results up to ``largest`` in magnitude do not wrap."""
    if values.dtype == np.int64 and largest >= _INT64:
        return values.astype(object)
    return values



def _ceil(v: Any) -> int:
    return -(-v.numerator // v.denominator) if isinstance(v, Fraction) else int(v)


def _literal(e: Lit, n: int) -> Vector:
    valid = np.full(n, e.value is not None)
    value = e.value
    match e.type:
        case Float():
            dtype = np.float32 if e.type.bits == 32 else np.float64
            return Vector(np.full(n, 0 if value is None else value, dtype), valid)
        case Bool():
            return Vector(np.full(n, bool(value)), valid)
        case String():
            return Vector(np.full(n, value or "", object), valid)
    whole = 0 if value is None else value
    fits = isinstance(whole, int) and abs(whole) < _INT64
    return Vector(np.full(n, whole, np.int64 if fits else object), valid)


def _cast(e: Cast, a: Vector) -> Vector:
    if isinstance(e.type, Float):
        dtype = np.float32 if e.type.bits == 32 else np.float64
        if a.values.dtype == object:
            a = Vector(np.array([_nearest(v) for v in a.values], np.float64), a.valid)
        return Vector(a.values.astype(dtype), a.valid)
    assert isinstance(e.type, (Timestamp, Duration)) and isinstance(e.a.type, (Timestamp, Duration))
    per = units_per(e.a.type.unit, e.type.unit)
    return Vector(widen(a.values, magnitude(a.values) * per) * per, a.valid)


def _nearest(v: int | Fraction) -> float:
    """The nearest float64; infinity beyond the largest."""
    try:
        return float(v)
    except OverflowError:
        return math.inf if v > 0 else -math.inf


def _arith(e: Arith, a: Vector, b: Vector) -> Vector:
    valid = a.valid & b.valid
    x, y = a.values, b.values
    if not isinstance(e.type, Float):
        mx, my = magnitude(x), magnitude(y)
        largest = mx * my if e.op == "*" else mx + my
        x, y = widen(x, largest), widen(y, largest)
    with np.errstate(all="ignore"):  # IEEE 754: overflow gives infinity, inf − inf gives NaN, and so it stays
        return Vector(_ARITH[e.op](x, y), valid)


def _compare(e: Cmp, a: Vector, b: Vector) -> Vector:
    valid = a.valid & b.valid
    x, y = a.values, b.values
    with np.errstate(invalid="ignore"):
        less, equal = x < y, x == y
    if isinstance(e.a.type, Float):
        # SQL's total order: NaN equals NaN and is greater than everything else.
        nx, ny = np.isnan(x), np.isnan(y)
        less, equal = less | (~nx & ny), equal | (nx & ny)
    less, equal = less.astype(np.bool_), equal.astype(np.bool_)
    values = {"=": equal, "<>": ~equal, "<": less, "<=": less | equal, ">": ~(less | equal), ">=": ~less}[e.op]
    return Vector(values, valid)


def _junction(is_or: bool, args: list[Vector]) -> Vector:
    """Kleene's AND/OR: one decisive operand decides, else one NULL makes NULL."""
    decisive = np.zeros(len(args[0].values), np.bool_)
    valid = np.ones(len(args[0].values), np.bool_)
    for a in args:
        decisive |= a.valid & (a.values == is_or)
        valid &= a.valid
    return Vector(decisive if is_or else ~decisive, valid | decisive)

