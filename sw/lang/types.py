"""Types of columns and expressions, and how they come from Arrow.

Integers, decimal literals, dates, timestamps and durations are *exact*: they are evaluated without rounding and never
wrap (semantics, section 3). Floats are IEEE 754 in the column's own type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

__all__ = [
    "BOOL", "DATE", "EXACT", "FLOAT32", "FLOAT64", "STRING", "TIME_UNITS", "UNIT_NS", "Bool", "Date", "Duration",
    "Exact", "Float", "Int", "Opaque", "String", "TimeUnit", "Timestamp", "Type", "finer", "from_arrow",
    "is_exact", "plain", "units_per",
]

TimeUnit = Literal["s", "ms", "us", "ns"]

#: Nanoseconds in one unit.
TIME_UNITS: dict[TimeUnit, int] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}

#: Nanoseconds in one unit of a RANGE or an INTERVAL, by its name in the singular.
UNIT_NS: dict[str, int] = {
    "NANOSECOND": 1, "MICROSECOND": 10**3, "MILLISECOND": 10**6, "SECOND": 10**9, "MINUTE": 60 * 10**9,
    "HOUR": 3600 * 10**9, "DAY": 86400 * 10**9, "WEEK": 7 * 86400 * 10**9,
}


@dataclass(frozen=True)
class Type:
    """Base of all types. ``str()`` gives the name used in messages and in the stable text form of the IR."""

    def __str__(self) -> str:
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Int(Type):
    """A signed integer column of 8, 16, 32 or 64 bits."""

    bits: int

    def __str__(self) -> str:
        return f"int{self.bits}"


@dataclass(frozen=True)
class Exact(Type):
    """An exact number of any size: an integer or decimal literal, or arithmetic on integers."""


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
class String(Type):
    """UTF-8 text; compared for equality only."""


@dataclass(frozen=True)
class Opaque(Type):
    """A column that travels to the result but cannot be used in a predicate."""

    arrow: str

    def __str__(self) -> str:
        return self.arrow


BOOL, DATE, EXACT, STRING = Bool(), Date(), Exact(), String()
FLOAT32, FLOAT64 = Float(32), Float(64)


def from_arrow(type_: pa.DataType) -> Type:
    """The type of a column of Arrow type ``type_``; `Opaque` where predicates cannot use it."""
    if pa.types.is_signed_integer(type_):
        return Int(type_.bit_width)
    if pa.types.is_float32(type_) or pa.types.is_float64(type_):
        return Float(type_.bit_width)
    if pa.types.is_boolean(type_):
        return BOOL
    if pa.types.is_date32(type_):
        return DATE
    if pa.types.is_timestamp(type_):
        return Timestamp(type_.unit, type_.tz)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return STRING
    if pa.types.is_dictionary(type_) and from_arrow(type_.value_type) == STRING:
        return STRING
    return Opaque(str(type_))


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A text column as ``large_string``; other columns as they are.

    A dictionary can hide NULL among its values, where ``null_count`` does not see it, and few kernels take views.
    """
    return column.cast(pa.large_string()) if from_arrow(column.type) == STRING else column


def is_exact(type_: Type) -> bool:
    """Whether values are exact numbers without a unit (integers, decimal literals, arithmetic on them)."""
    return isinstance(type_, (Int, Exact))


def units_per(coarse: TimeUnit, fine: TimeUnit) -> int:
    """How many ``fine`` units one ``coarse`` unit holds."""
    return TIME_UNITS[coarse] // TIME_UNITS[fine]


def finer(a: TimeUnit, b: TimeUnit) -> TimeUnit:
    """The finer of two units, in which values of both are whole numbers."""
    return a if TIME_UNITS[a] <= TIME_UNITS[b] else b
