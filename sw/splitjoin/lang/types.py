"""Types of columns and expressions, and their conversion from Arrow types.

Integers, decimals, dates, timestamps and durations are *exact*: they are evaluated without rounding and never
wrap (semantics, section 3). Floats are IEEE 754 in the column's own type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from .layouts import decoded

TimeUnit = Literal["s", "ms", "us", "ns"]

#: Nanoseconds in one unit.
TIME_UNITS: dict[TimeUnit, int] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}

#: Nanoseconds in one unit of a RANGE or an INTERVAL, by its name in the singular.
UNIT_NS: dict[str, int] = {
    "NANOSECOND": 1, "MICROSECOND": 10**3, "MILLISECOND": 10**6, "SECOND": 10**9, "MINUTE": 60 * 10**9,
    "HOUR": 3600 * 10**9, "DAY": 86400 * 10**9, "WEEK": 7 * 86400 * 10**9,
}


#: Nanoseconds in the units that messages use, the largest first.
_SHORT_UNITS: dict[str, int] = {
    "d": 86400 * 10**9, "h": 3600 * 10**9, "min": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


#: Extension types whose values are compared as those that they are stored as.
_STORED: tuple[Any, ...] = tuple(filter(None, (getattr(pa, name, None) for name in ("UuidType", "JsonType"))))


@dataclass(frozen=True)
class Type:
    """Base of all types. ``str()`` gives the name used in messages and in the stable text form of the IR."""

    def __str__(self) -> str:
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Int(Type):
    """An integer of 8, 16, 32 or 64 bits: a column, or the result of bit operations on columns."""

    bits: int
    signed: bool = True

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest value."""
        return (-(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1) if self.signed else (0, 2**self.bits - 1)

    def __str__(self) -> str:
        return f"{'' if self.signed else 'u'}int{self.bits}"


@dataclass(frozen=True)
class Decimal(Type):
    """A column of decimal numbers: up to ``precision`` digits (1 to 38), ``scale`` of them behind the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True)
class Exact(Type):
    """An exact number of any size: an integer or decimal literal, or arithmetic on integers."""

    def __str__(self) -> str:
        return "exact number"


@dataclass(frozen=True)
class Float(Type):
    """IEEE 754 binary32 or binary64; NaN equals NaN and is greater than everything else, −0.0 equals 0.0."""

    bits: int

    def __str__(self) -> str:
        return f"float{self.bits}"


@dataclass(frozen=True)
class Bool(Type):
    """A truth value, or NULL."""


@dataclass(frozen=True)
class Date(Type):
    """Days since 1970-01-01, an exact integer."""


@dataclass(frozen=True)
class Timestamp(Type):
    """An instant (``tz`` set) or a wall-clock time (``tz`` None), an exact integer in ``unit`` since 1970-01-01."""

    unit: TimeUnit
    tz: str | None = None

    def __str__(self) -> str:
        return f"timestamp[{self.unit}{', ' + self.tz if self.tz else ''}]"


@dataclass(frozen=True)
class Duration(Type):
    """The difference of two timestamps, or an INTERVAL literal, an exact integer in ``unit``."""

    unit: TimeUnit

    def __str__(self) -> str:
        return f"duration[{self.unit}]"


@dataclass(frozen=True)
class TimeOfDay(Duration):
    """A time of day, as the exact duration since midnight: it can be compared, and subtracted from another one, but
    neither moved nor summed, as engines differ in what lies behind midnight.
    """

    def __str__(self) -> str:
        return f"time[{self.unit}]"


@dataclass(frozen=True)
class String(Type):
    """UTF-8 text, compared byte by byte, which gives the order of code points."""


@dataclass(frozen=True)
class OrderedText(String):
    """Text with an order of its own: the ``categories`` of an ordered dictionary, least first; None if nothing tells.

    Only columns have it, until a front end has made a condition or a value of them (`splitjoin.lang.categories`).
    """

    categories: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return "ordered text"


@dataclass(frozen=True)
class Binary(Type):
    """A sequence of bytes, compared byte by byte as unsigned numbers; of ``width`` bytes, or of any length (None)."""

    width: int | None = None

    def __str__(self) -> str:
        return "binary" if self.width is None else f"binary[{self.width}]"


@dataclass(frozen=True)
class Opaque(Type):
    """A column of Arrow type ``arrow`` that can be in results, but not in predicates."""

    arrow: str

    def __str__(self) -> str:
        return self.arrow


BOOL, DATE, EXACT, STRING, BINARY = Bool(), Date(), Exact(), String(), Binary()
FLOAT32, FLOAT64 = Float(32), Float(64)


def from_arrow(type_: pa.DataType) -> Type:
    """The type of a column of Arrow type ``type_``; `Opaque` where predicates cannot use it."""
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        inner = from_arrow(type_.value_type)
        return Opaque(str(type_)) if isinstance(inner, Opaque) else inner
    if isinstance(type_, _STORED):
        return from_arrow(type_.storage_type)
    if pa.types.is_integer(type_):
        return Int(type_.bit_width, pa.types.is_signed_integer(type_))
    if pa.types.is_floating(type_):
        return Float(max(32, type_.bit_width))  # half precision is computed with in float32, which holds its values
    if pa.types.is_decimal(type_) and type_.precision <= 38 and 0 <= type_.scale <= 38:
        return Decimal(type_.precision, type_.scale)
    if pa.types.is_boolean(type_):
        return BOOL
    if pa.types.is_date(type_):
        return DATE
    if pa.types.is_timestamp(type_):
        return Timestamp(type_.unit, type_.tz)
    if pa.types.is_duration(type_):
        return Duration(type_.unit)
    if pa.types.is_time(type_):
        return TimeOfDay(type_.unit)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return STRING
    if pa.types.is_fixed_size_binary(type_):
        return Binary(type_.byte_width)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return BINARY
    return Opaque(str(type_))


def column_type(type_: pa.DataType, column: pa.ChunkedArray | None = None) -> Type:
    """The type of a column of Arrow type ``type_``; its ``column``, if there are rows, tells the categories.

    Categories in the order of their values are compared like all other values. A dictionary of other values than text
    in another order is `Opaque`, as engines would compare the values.
    """
    found = from_arrow(type_)
    if not pa.types.is_dictionary(type_) or not type_.ordered or isinstance(found, Opaque):
        return found
    if column is None:
        return OrderedText() if isinstance(found, String) else found
    lists = [[value for value in chunk.dictionary.to_pylist() if value is not None] for chunk in column.chunks]
    if not any(map(len, column.chunks)):
        return OrderedText(()) if isinstance(found, String) else found
    first = lists[0]
    if all(one == first for one in lists) and first == sorted(set(first)):
        return found
    if not isinstance(found, String):
        return Opaque(str(type_))
    same = all(one == first for one in lists) and len(set(first)) == len(first)
    return OrderedText(tuple(first) if same else None)


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """``column`` in the canonical Arrow layout of its type: without dictionary, with text and binary as their large
    types, decimals in 128 bits, dates in 32, floats of half precision in 32, and times of day as durations.

    The values of a dictionary can contain NULL, which ``null_count`` does not count, and few of Arrow's kernels accept
    views.
    """
    column = decoded(column)
    if isinstance(column.type, _STORED):
        column = column.cast(column.type.storage_type)
    match from_arrow(column.type):
        case String():
            return column.cast(pa.large_string())
        case Binary():
            return column.cast(pa.binary() if pa.types.is_fixed_size_binary(column.type) else pa.large_binary()
                               ).cast(pa.large_binary())
        case Decimal() as d:
            return column.cast(pa.decimal128(d.precision, d.scale))
        case Date():
            return column.cast(pa.date32(), safe=False)  # dates in milliseconds are cut to whole days
        case Float():
            return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
        case TimeOfDay() as t:
            whole = pa.int32() if pa.types.is_time32(column.type) else pa.int64()
            return column.cast(whole).cast(pa.int64()).cast(pa.duration(t.unit))
    return column


def limits(type_: Type) -> tuple[int, int] | None:
    """The least and the greatest value of a column as whole numbers: decimals without their point, times in the type's
    unit; None for types whose columns have no ranges.
    """
    match type_:
        case Int():
            return type_.range
        case Decimal():
            return 1 - 10**type_.precision, 10**type_.precision - 1
        case Date():
            return -(2**31), 2**31 - 1
        case Timestamp() | Duration():
            return -(2**63), 2**63 - 1
    return None


def is_length(type_: Type) -> bool:
    """True for durations, which can be summed; a time of day cannot."""
    return isinstance(type_, Duration) and not isinstance(type_, TimeOfDay)


def is_exact(type_: Type) -> bool:
    """True if values are exact numbers without a unit (integers, decimals, arithmetic on them)."""
    return isinstance(type_, (Int, Exact, Decimal))


def is_number(type_: Type) -> bool:
    """True if values are exact numbers without a unit, or floats."""
    return is_exact(type_) or isinstance(type_, Float)


def is_text(type_: Type) -> bool:
    """True if values are sequences of bytes: text or binary."""
    return isinstance(type_, (String, Binary))


def units_per(coarse: TimeUnit, fine: TimeUnit) -> int:
    """The number of ``fine`` units in one ``coarse`` unit."""
    return TIME_UNITS[coarse] // TIME_UNITS[fine]


def duration_text(count: int, unit: TimeUnit) -> str:
    """``count`` units as people write them: 20 s, 1 h 30 min, 7 d."""
    left, parts = abs(count) * TIME_UNITS[unit], []
    for name, per in _SHORT_UNITS.items():
        whole, left = divmod(left, per)
        parts += [f"{whole} {name}"] if whole else []
    return ("-" if count < 0 else "") + (" ".join(parts) or "0 s")


def finer(a: TimeUnit, b: TimeUnit) -> TimeUnit:
    """The finer of two units, in which values of both are whole numbers."""
    return a if TIME_UNITS[a] <= TIME_UNITS[b] else b
