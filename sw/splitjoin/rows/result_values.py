"""Values of the SELECT list in the result: their Arrow types, known before any row, and their columns."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Array
from splitjoin.base.errors import InputError, PredicateError
from splitjoin.lang.eval.vector import Vector, magnitude, widen
from splitjoin.lang.ir import Case, Col, Expr
from splitjoin.lang.properties import denominator, value_range
from splitjoin.lang.types import (
    Binary,
    Bool,
    Date,
    Decimal,
    Duration,
    Float,
    Int,
    String,
    TimeOfDay,
    Timestamp,
    is_exact,
)

#: Digits of the widest decimal, as in DuckDB, Spark and most others.
_DIGITS = 38


def result_type(e: Expr, text: str) -> pa.DataType:
    """The Arrow type of the values of ``e``, which the user wrote as ``text``.

    * Whole numbers that are computed: int64, or uint64 where a uint64 column takes part and nothing can be negative.
      Bit operations have the type that the language gives them.
    * Other exact numbers, and all that are computed from decimal columns: a decimal with all digits behind the point
      that they need, and as many before it as they can have, up to 38 in all.
    * All other types follow the language (`docs/language.md`).

    Raises `PredicateError` where no such type holds the values.
    """
    t = e.type
    match t:
        case Int():
            return pa.int64() if t.bits == 64 and t.signed else getattr(pa, str(t))()
        case Float():
            return pa.float32() if t.bits == 32 else pa.float64()
        case Bool():
            return pa.bool_()
        case Date():
            return pa.date32()
        case Timestamp():
            return pa.timestamp(t.unit, t.tz)
        case TimeOfDay():
            return pa.time32(t.unit) if t.unit in ("s", "ms") else pa.time64(t.unit)
        case Duration():
            return pa.duration(t.unit)
        case String():
            return pa.string()
        case Binary():
            return pa.binary() if t.width is None else pa.binary(t.width)
        case Decimal():
            return pa.decimal128(t.precision, t.scale)
    assert is_exact(t)
    low, high = value_range(e)
    per = denominator(e)
    types = {c.type for c in _parts(e)}
    if per > 1 or any(isinstance(c, Decimal) for c in types):
        scale = next((n for n in range(_DIGITS + 1) if 10**n % per == 0), None)
        if scale is None:
            raise PredicateError(f"{text!r}: a decimal has up to {_DIGITS} digits, but all digits behind the point of "
                                 f"this one are more; multiply fewer decimals, or divide by 1 for a float")
        most = max(abs(low), abs(high)) * 10**scale
        return pa.decimal128(min(_DIGITS, max(len(str(int(most))), scale, 1)), scale)
    unsigned = low >= 0 and high >= 2**63 and Int(64, signed=False) in types
    if low >= 2 ** (64 if unsigned else 63) or high < -(2**63):
        raise PredicateError(f"{text!r}: a whole number in the result must fit 64 bits, but this one never does; write "
                             f"a decimal or a float")
    return pa.uint64() if unsigned else pa.int64()


def _parts(e: Expr) -> Iterator[Expr]:
    """The columns whose values become those of ``e``, by arithmetic or as they are: not those of conditions."""
    if isinstance(e, Col):
        yield e
    elif not isinstance(e.type, Bool):
        for part in (*e.then, e.otherwise) if isinstance(e, Case) else e.children:
            yield from _parts(part)


def to_arrow(v: Vector, type_: pa.DataType, text: str) -> pa.Array | pa.ChunkedArray:
    """``v``, the values of the expression ``text``, as a column of ``type_``. Raises `InputError` for one that does not
    fit: exact values never wrap.
    """
    if pa.types.is_decimal(type_):
        return _decimals(v, type_, text)
    if pa.types.is_floating(type_) or pa.types.is_boolean(type_):
        return pa.array(v.values, type_, mask=~v.valid, from_pandas=False)
    if v.values.dtype == object and not (pa.types.is_integer(type_) or pa.types.is_temporal(type_)):
        return pa.array(v.values, type_, mask=~v.valid, from_pandas=False)
    assert v.denominator == 1, "whole numbers have no denominator"
    plain = type_ if pa.types.is_integer(type_) else pa.int32() if type_.bit_width == 32 else pa.int64()
    values = _fitting(v, np.dtype(plain.to_pandas_dtype()), type_, text)
    made = pa.array(values, plain, mask=~v.valid, from_pandas=False)
    return made if plain == type_ else made.view(type_)


def _fitting(v: Vector, dtype: np.dtype[Any], type_: pa.DataType, text: str) -> Array:
    """The values in ``dtype``, 0 where NULL."""
    values = v.values if v.valid.all() else np.where(v.valid, v.values, 0)
    info = np.iinfo(dtype)
    _check(values, info.min, info.max, Fraction(1), type_, text)
    return values.astype(dtype)


def _check(values: Array, low: int, high: int, unit: Fraction, type_: pa.DataType, text: str) -> None:
    if not len(values):
        return
    for worst in (int(values.min()), int(values.max())):
        if not low <= worst <= high:
            raise InputError(f"the values of {text!r} in the result must fit {type_}, but one is "
                             f"{_shown(worst * unit)}; select what it is computed from, or make one of its columns a "
                             f"decimal or a float before the join")


def _shown(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else str(float(value))


def _decimals(v: Vector, type_: pa.DataType, text: str) -> pa.Array:
    factor, rest = divmod(10**type_.scale, v.denominator)
    assert rest == 0, "the type has all digits behind the point"
    values = v.values if v.valid.all() else np.where(v.valid, v.values, 0)
    values = widen(values, magnitude(values) * factor) * factor
    most = 10**type_.precision - 1
    _check(values, -most, most, Fraction(1, 10**type_.scale), type_, text)
    words = np.empty((len(values), 2), np.int64)
    if values.dtype == object:
        words[:, 0] = (values & (2**64 - 1)).astype(np.uint64).view(np.int64)
        words[:, 1] = (values >> 64).astype(np.int64)
    else:
        words[:, 0], words[:, 1] = values, values >> 63
    bitmap = None if v.valid.all() else pa.py_buffer(np.packbits(v.valid, bitorder="little"))
    return pa.Array.from_buffers(type_, len(values), [bitmap, pa.py_buffer(words)])
