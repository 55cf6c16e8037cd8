"""Values of columns as NumPy arrays: int64 while nothing can overflow, else Python integers, never wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.arrays import Array, Ints, Mask

from ..ir import Col
from ..types import Decimal, plain

#: Numbers from here on do not fit int64.
INT64 = 2**63


@dataclass(frozen=True)
class Vector:
    """Values of one expression: ``values`` (n,), meaningless where ``valid`` (n,) is False (NULL).

    Exact values are ``values / denominator``.
    """

    values: Array
    valid: Mask
    denominator: int = 1


def column(data: pa.ChunkedArray) -> Vector:
    """A column as it is kept: the dtype depends on the column's type only.

    Integers, dates and times are int64, but uint64 as it is; decimals of up to 18 digits int64 without their point,
    longer ones Python integers; floats and truth values as they are; text and bytes Python objects.
    """
    data = plain(data)
    valid = np.ones(len(data), np.bool_) if data.null_count == 0 else data.is_valid().to_numpy()
    t = data.type
    if pa.types.is_decimal(t):
        return Vector(_unscaled(data), valid)
    if pa.types.is_date32(t):
        data, t = data.cast(pa.int32()), pa.int32()
    if pa.types.is_timestamp(t) or pa.types.is_duration(t):
        data, t = data.cast(pa.int64()), pa.int64()
    if data.null_count:
        # Filled before NumPy sees it: a nullable integer column would become float64.
        filler: Any = False if pa.types.is_boolean(t) else 0
        filler = "" if pa.types.is_large_string(t) else b"" if pa.types.is_large_binary(t) else filler
        data = pc.fill_null(data, pa.scalar(filler, t))
    values = data.to_numpy()
    if pa.types.is_integer(t) and t != pa.uint64():
        values = values.astype(np.int64, copy=False)
    return Vector(values, valid)


def _unscaled(data: pa.ChunkedArray) -> Array:
    """Decimals of 128 bits without their point, 0 where NULL."""
    words = []
    for chunk in data.chunks:
        buffer = chunk.buffers()[1]
        raw = np.frombuffer(buffer, np.int64, 2 * (chunk.offset + len(chunk)))[2 * chunk.offset:]
        filled = raw.reshape(-1, 2).copy()
        if chunk.null_count:
            filled[~chunk.is_valid().to_numpy(zero_copy_only=False)] = 0
        words.append(filled)
    both = np.concatenate(words) if words else np.empty((0, 2), np.int64)
    if data.type.precision <= 18:
        return both[:, 0].copy()
    whole: Array = both[:, 1].astype(object) * 2**64 + both[:, 0].copy().view(np.uint64).astype(object)
    return whole


def typed(e: Col, v: Vector) -> Vector:
    """A column as it is computed with."""
    scale = e.type.scale if isinstance(e.type, Decimal) else 0
    if v.values.dtype == np.uint64:
        fits = len(v.values) == 0 or int(v.values.max()) < INT64
        return Vector(v.values.astype(np.int64 if fits else object), v.valid)
    if isinstance(e.type, Decimal) and v.values.dtype == object:
        return narrowed(v.values, v.valid, 10**scale)
    return Vector(v.values, v.valid, 10**scale)


def narrowed(values: Array, valid: Mask, denominator: int = 1) -> Vector:
    """Python integers as int64 where all fit."""
    try:
        return Vector(values.astype(np.int64), valid, denominator)
    except OverflowError:
        return Vector(values, valid, denominator)


def magnitude(values: Array) -> int:
    """The largest absolute value, as a Python integer; 0 for no values or for floats."""
    if len(values) == 0 or values.dtype.kind not in "iO":
        return 0
    return max(abs(int(values.min())), abs(int(values.max())))


def widen(values: Array, largest: int) -> Array:
    """``values`` in a form in which results up to ``largest`` in magnitude do not wrap."""
    if values.dtype == np.int64 and largest >= INT64:
        return values.astype(object)
    return values


def joined_halves(low: Ints, high: Ints) -> Array:
    """``low + high · 2^32``: int64 if all fit, else Python integers."""
    high = high + (low >> 32)
    low = low & 0xFFFF_FFFF
    if not len(high) or (int(high.min()) >= -(2**31) and int(high.max()) < 2**31):
        return (high << 32) | low
    exact: Array = high.astype(object) * 2**32 + low.astype(object)
    return exact
