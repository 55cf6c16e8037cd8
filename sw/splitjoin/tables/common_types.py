"""The type that columns of several files have in common, whose values stay what they are."""

from __future__ import annotations

import pyarrow as pa

from splitjoin.lang.layouts import is_encoded
from splitjoin.lang.types import Binary, String, Timestamp, finer, from_arrow

__all__ = ["common_type"]


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """A type to which columns of types ``a`` and ``b`` are cast without another value; None if there is none.

    It may hold only most values of one of them, such as float64 those of int64: the cast raises for others.
    """
    if a == b or pa.types.is_null(b):
        return a
    if pa.types.is_null(a):
        return b
    if pa.types.is_dictionary(a) and pa.types.is_dictionary(b) and (a.value_type, a.ordered) == (b.value_type,
                                                                                                 b.ordered):
        return max(a, b, key=lambda type_: type_.index_type.bit_width)
    if is_encoded(a) or is_encoded(b):
        return common_type(a.value_type if is_encoded(a) else a, b.value_type if is_encoded(b) else b)
    ta, tb = from_arrow(a), from_arrow(b)
    if isinstance(ta, Timestamp) and isinstance(tb, Timestamp):
        return None if (ta.tz is None) != (tb.tz is None) else pa.timestamp(finer(ta.unit, tb.unit), ta.tz)
    for date, time in ((a, tb), (b, ta)):
        if pa.types.is_date(date) and isinstance(time, Timestamp):
            unit = time.unit if pa.types.is_date32(date) else finer("ms", time.unit)
            return None if time.tz is not None else pa.timestamp(unit)
    if isinstance(ta, String) and isinstance(tb, String):
        return pa.large_string()
    if isinstance(ta, Binary) and isinstance(tb, Binary):
        return pa.large_binary()
    if pa.uint64() in (a, b) and pa.types.is_integer(a) and pa.types.is_integer(b):
        return pa.uint64()
    if (pa.types.is_nested(a) or isinstance(ta, (String, Binary)) or isinstance(tb, (String, Binary))
            or (pa.types.is_decimal(a) and pa.types.is_floating(b))
            or (pa.types.is_floating(a) and pa.types.is_decimal(b))):
        return None
    for decimal, whole in ((a, b), (b, a)):
        if pa.types.is_decimal(decimal) and pa.types.is_integer(whole):
            return _with_whole_numbers(decimal, whole)
    try:
        both = pa.unify_schemas([pa.schema([("x", type_)]) for type_ in (a, b)], promote_options="permissive")
    except pa.ArrowException:
        return None
    return both.field("x").type


def _with_whole_numbers(decimal: pa.DataType, whole: pa.DataType) -> pa.DataType:
    """A decimal of up to 38 digits for ``decimal`` and the integer ``whole``, or of up to 76 if it has more."""
    scale = max(decimal.scale, 0)
    digits = max(decimal.precision - decimal.scale, len(str(2**whole.bit_width))) + scale
    if decimal.precision <= 38:
        return pa.decimal128(min(digits, 38), scale)
    return pa.decimal256(min(digits, 76), scale)
