"""Conversion of users' times to ticks: heartbeats and lateness."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError, WindowError
from splitjoin.engines.arrival import event_ticks
from splitjoin.lang.query import TimeColumns
from splitjoin.lang.schema import Side
from splitjoin.lang.types import TIME_UNITS, Date, Int, Timestamp
from splitjoin.lang.windows import Span, parse_window

__all__ = ["parse_lateness", "to_ticks"]

_EPOCH = dt.datetime(1970, 1, 1)


def parse_lateness(spec: int | str | Span, time: TimeColumns) -> int:
    """Parse a lateness to ticks: a whole number for integer time columns, else a number and a unit such as
    ``"5 SECONDS"``, or a timedelta.

    Raises `WindowError` for anything else, and for negative ones.
    """
    if isinstance(spec, bool) or not isinstance(spec, (int, str, dt.timedelta, np.timedelta64)):
        raise WindowError(f"lateness must be a whole number, a text such as '5 SECONDS' or a timedelta, not {spec!r}")
    try:
        window = parse_window(f"RANGE {spec}" if isinstance(spec, (int, str)) else spec)
        if window.rows is not None:
            raise WindowError("it has ROWS")
        length = window.resolve(time.type, time.tick).length
    except WindowError as error:
        raise WindowError(f"lateness must be like the length of a RANGE, such as '5 SECONDS', or 5 with an integer "
                          f"time column, but {spec!r} is not: {error}") from None
    assert length is not None
    return length


def to_ticks(value: Any, time: TimeColumns, side: Side, schema: pa.Schema) -> int:
    """Convert a user's time to ticks.

    ``value`` has a type that fits the time column of stream ``side``: an integer, a `datetime.date`, a
    `datetime.datetime`, or an Arrow scalar of the column's type. Fractions of a tick are truncated, which makes a
    promise weaker, never wrong. Raises `InputError` for anything else.
    """
    name = time.name(side)
    arrow = schema.field(name).type
    if isinstance(value, pa.Scalar):
        if value.type != arrow or not value.is_valid:
            raise InputError(f"a time of stream {side} must be a {arrow} like its column {name}, not {value!r}")
        return int(event_ticks(time, side, pa.table({name: pa.array([value], arrow)}))[0])
    match time.type:
        case Int() if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return int(value)
        case Date() if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return (value - _EPOCH.date()).days
        case Timestamp() if isinstance(value, dt.datetime):
            assert time.tick is not None
            if (value.tzinfo is None) != (time.type.tz is None):
                raise InputError(f"the time columns have {'no' if time.type.tz is None else 'a'} time zone, so a time "
                                 f"must have {'none' if time.type.tz is None else 'one'}, but {value} "
                                 f"{'has none' if value.tzinfo is None else 'has one'}")
            epoch = _EPOCH if value.tzinfo is None else _EPOCH.replace(tzinfo=dt.UTC)
            return (value - epoch) // dt.timedelta(microseconds=1) * TIME_UNITS["us"] // TIME_UNITS[time.tick]
    kind = {Int: "an integer", Date: "a datetime.date", Timestamp: "a datetime.datetime"}[type(time.type)]
    raise InputError(f"a time of stream {side} must be {kind}, or an Arrow scalar of type {arrow}, not {value!r}")
