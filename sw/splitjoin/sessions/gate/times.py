"""Users' times in the units of a gate: heartbeats and lateness in ticks, silences in seconds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError, WindowError
from splitjoin.engines.arrival import event_ticks
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.time_columns import TimeColumns
from splitjoin.lang.types import TIME_UNITS, UNIT_NS, Date, Int, Timestamp
from splitjoin.lang.windows import Span, parse_window

#: How late tuples may come: of both streams, or of each; None for a stream that has no say in the watermark.
Lateness = Union[int, str, Span, Sequence[Union[int, str, Span, None]], Mapping[str, Union[int, str, Span, None]]]
#: After what time of silence the others do not wait: of both streams, or of each; None for never.
Idle = Union[str, Span, Sequence[Union[str, Span, None]], Mapping[str, Union[str, Span, None]]]

_EPOCH = dt.datetime(1970, 1, 1)


def by_side(value: Any, argument: str, one: str) -> dict[Side, Any]:
    """The ``argument`` of each stream: it is ``one`` for both, a pair (R's, S's), or a mapping with 'r' and 's'.

    Raises `WindowError` for anything else.
    """
    if isinstance(value, Mapping):
        if set(value) != {"r", "s"}:
            raise WindowError(f"a mapping of {argument} must have the keys 'r' and 's', not {sorted(map(str, value))}")
        return {side: value[side] for side in SIDES}
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != 2:
            raise WindowError(f"{argument} must be {one}, or a pair (R's, S's), not {value!r}")
        return dict(zip(SIDES, value, strict=True))
    return dict.fromkeys(SIDES, value)


def parse_idle(spec: Any) -> float | None:
    """Parse a time of silence, such as ``"30 SECONDS"`` or a timedelta, to seconds; None is None.

    Raises `WindowError` for anything else.
    """
    if spec is None:
        return None
    try:
        window = parse_window(f"RANGE {spec}" if isinstance(spec, str) else spec)
        if window.rows is not None or window.length is None or window.unit is None or window.open:
            raise WindowError("it is no number with a unit")
    except WindowError as error:
        raise WindowError(f"idle must be a number and a unit, such as '30 SECONDS', but {spec!r} is not: "
                          f"{error}") from None
    return float(window.length * UNIT_NS[window.unit] / UNIT_NS["SECOND"])


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
        if window.open:
            raise WindowError("it is OPEN")
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


def time_value(type_: pa.DataType, time: TimeColumns, ticks: int) -> int | pa.Scalar:
    """The event time of so many ticks as `to_ticks` takes it for a column of the Arrow type ``type_``; of a coarser
    unit, the time before it; the last one of a date, if there is none.
    """
    if isinstance(time.type, Date):
        return pa.scalar(min(max(ticks, -2**31), 2**31 - 1), pa.int32()).cast(pa.date32())
    ticks = min(max(ticks, -2**63), 2**63 - 1)
    if isinstance(time.type, Timestamp):
        assert time.tick is not None
        return pa.scalar(ticks * TIME_UNITS[time.tick] // TIME_UNITS[type_.unit], pa.int64()).cast(type_)
    return ticks
