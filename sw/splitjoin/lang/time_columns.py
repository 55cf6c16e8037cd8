"""Columns of event times: which ones a query may have, and what their ticks are (semantics, section 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Union

from splitjoin.base.errors import SchemaError

from .schema import Column, Schema
from .types import (
    Binary,
    Date,
    Decimal,
    Duration,
    Float,
    Int,
    Opaque,
    OrderedText,
    String,
    Timestamp,
    TimeUnit,
    Type,
    finer,
)

#: The event-time column: one name for both streams, a pair ``(r, s)``, or a mapping ``{"r": …, "s": …}``.
TimeSpec = Union[str, Sequence[str], Mapping[str, str]]


@dataclass(frozen=True)
class TimeColumns:
    """The event-time columns of R and S, and the unit of event times, the tick.

    ``type``: one that holds the times of both. ``tick``: for timestamps and durations, the finer unit of both columns;
    None for integers, which have no unit, for dates, which count days, and for decimals, which count their last digit.
    Floats and text have an order, but no ticks: their RANGE is a condition on them.
    """

    r: str
    s: str
    type: Type
    tick: TimeUnit | None

    def name(self, side: str) -> str:
        """The column's name in stream ``side``."""
        return self.r if side == "r" else self.s

    @property
    def has_ticks(self) -> bool:
        """True if times are whole numbers of something, whose difference tells how far apart they are."""
        return not isinstance(self.type, (Float, String, Binary))


def time_columns(r: Schema, s: Schema, time: TimeSpec, *, whole: bool = False) -> TimeColumns:
    """The event-time columns that ``time`` names. Raises `SchemaError` if they are not of one kind.

    A column of type null without NULL, as in a CSV file without rows, gets the other column's type; int64 if both are
    such columns. ``whole``: True for whole tables, whose times may be of more types, and NULL.
    """
    if isinstance(time, str):
        names: tuple[str, ...] = (time, time)
    elif isinstance(time, Mapping) and set(time) == {"r", "s"}:
        names = (time["r"], time["s"])
    elif isinstance(time, Sequence) and len(time) == 2:
        names = (time[0], time[1])
    else:
        names = ()
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"time must be a column name, a pair (R's, S's) or a mapping with 'r' and 's', not {time!r}")
    a, b = r.find(names[0]), s.find(names[1])
    if has_no_type(a, whole=whole):
        a = replace(a, type=Int(64) if has_no_type(b, whole=whole) else b.type)
    if has_no_type(b, whole=whole):
        b = replace(b, type=a.type)
    if whole:
        return _of_whole_tables(a, b)
    for side, c in (("r", a), ("s", b)):
        if not isinstance(c.type, (Int, Timestamp, Date)) or c.type == Int(64, signed=False):
            need = ("an integer, a date or a timestamp" if not isinstance(c.type, Int) else
                    "an integer that fits int64, a date or a timestamp")
            raise SchemaError(f"the time column {side}.{c.name} must be {need}, not {c.type}; "
                              f"{_whole_times(c)}")
    return _of_one_kind(a, b)


def _of_one_kind(a: Column, b: Column) -> TimeColumns:
    match a.type, b.type:
        case (Int(), Int()) | (Date(), Date()):
            return TimeColumns(a.name, b.name, a.type, None)
        case (Timestamp() as ta, Timestamp() as tb) if (ta.tz is None) == (tb.tz is None):
            return TimeColumns(a.name, b.name, ta, finer(ta.unit, tb.unit))
    zones = [isinstance(c.type, Timestamp) and c.type.tz is not None for c in (a, b)]
    more = "; give both a time zone or neither" if any(zones) and isinstance(a.type, Timestamp) and isinstance(
        b.type, Timestamp) else "; cast one of them before the join"
    raise SchemaError(f"the time columns must be of one kind, but r.{a.name} is {a.type} and s.{b.name} is {b.type}"
                      f"{more}")


def _of_whole_tables(a: Column, b: Column) -> TimeColumns:
    for side, c in (("r", a), ("s", b)):
        if not isinstance(c.type, (Int, Decimal, Float, Date, Timestamp, Duration, String, Binary)) or isinstance(
                c.type, OrderedText):
            raise SchemaError(f"the time column {side}.{c.name} must be a number, a date, a timestamp, a time of day, "
                              f"a duration or text, not {c.type}; cast it to one of these before the join")
    match a.type, b.type:
        case (Int(), Int()) if Int(64, signed=False) in (a.type, b.type):
            return TimeColumns(a.name, b.name, Int(64, signed=False), None)
        case (Decimal() as ta, Decimal() as tb):
            return TimeColumns(a.name, b.name, Decimal(38, max(ta.scale, tb.scale)), None)
        case (Decimal() as t, Int()) | (Int(), Decimal() as t):
            return TimeColumns(a.name, b.name, Decimal(38, t.scale), None)
        case (Float() as ta, Float() as tb):
            return TimeColumns(a.name, b.name, Float(max(ta.bits, tb.bits)), None)
        case (Float(), Int()) | (Int(), Float()):  # as of a column of pandas that lacks some whole numbers
            return TimeColumns(a.name, b.name, Float(64), None)
        case (Date(), Timestamp(tz=None) as t) | (Timestamp(tz=None) as t, Date()):
            return TimeColumns(a.name, b.name, t, t.unit)
        case (Duration() as ta, Duration() as tb) if type(ta) is type(tb):
            return TimeColumns(a.name, b.name, ta, finer(ta.unit, tb.unit))
        case (String(), String()) | (Binary(), Binary()):
            return TimeColumns(a.name, b.name, a.type, None)
    return _of_one_kind(a, b)


def _whole_times(column: Column) -> str:
    """The advice for a time column of a type that counts no ticks."""
    if isinstance(column.type, Float):
        return (f"make whole numbers of it before the join, with the digits that you need, such as milliseconds of "
                f"seconds: ({column.name} * 1000).round().astype('int64') in pandas")
    if isinstance(column.type, Decimal):
        return f"make whole numbers of it before the join, such as {column.name} * 10**{column.type.scale} as int64"
    return "cast it to int64, date32 or a timestamp before the join"


def has_no_type(column: Column, *, whole: bool = False) -> bool:
    """True if ``column`` belongs to a table without rows, so that its type is unknown; with ``whole``, also if all its
    values are NULL.
    """
    return column.type == Opaque("null") and (whole or not column.nullable)
