"""Calendar units of dates and timestamps: the number of the unit that a time lies in, and the time at which it begins.

Units are numbered from the one that 1970-01-01 lies in, which is 0. Weeks begin on Monday. The calendar is the
proleptic Gregorian one, as in DuckDB and Spark; it repeats after 400 years, which have 146,097 days.

Values are whole numbers of *ticks* since 1970; a tick is given in nanoseconds. All functions take a Python integer or
an array (n,) of int64 or of Python integers, which must have room for the result.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal, get_args

import numpy as np

from .types import TIME_UNITS, UNIT_NS, Date, Duration, Timestamp, Type

CalendarUnit = Literal["microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter",
                       "year"]
#: All calendar units, from the shortest.
UNITS: tuple[CalendarUnit, ...] = get_args(CalendarUnit)

_DAY = UNIT_NS["DAY"]
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_CYCLE_DAYS, _CYCLE_MONTHS = 146_097, 4_800
#: Day on which each month of the 400 years from 1970 on begins, from 1970-01-01 as day 0.
_STARTS = np.array([(dt.date(1970 + m // 12, m % 12 + 1, 1) - dt.date(1970, 1, 1)).days
                    for m in range(_CYCLE_MONTHS)], np.int64)
#: 1970-01-01 was a Thursday, the fourth day of its week.
_MONDAY = 3


def tick(type_: Type) -> int:
    """Nanoseconds in 1 of a value of ``type_``, a date, timestamp or duration."""
    if isinstance(type_, Date):
        return _DAY
    assert isinstance(type_, (Timestamp, Duration))
    return TIME_UNITS[type_.unit]


def started(type_: Type) -> Timestamp | None:
    """The type of the time at which a unit of a time of ``type_`` begins, a timestamp; None if it is no time."""
    if isinstance(type_, Date):
        return Timestamp("s")
    return type_ if isinstance(type_, Timestamp) else None


def finest(unit: CalendarUnit, tick: int) -> int:
    """The factor by which `unit_number` may multiply a value of that ``tick``: more than 1 for units below it."""
    return max(1, tick // UNIT_NS.get(unit.upper(), _DAY))


def unit_number(value: Any, unit: CalendarUnit, tick: int) -> Any:
    """The number of the unit in which the time ``value`` lies."""
    if unit in _MONTHS or unit == "week":
        days = value // (_DAY // tick)
        if unit == "week":
            return (days + _MONDAY) // 7
        within = np.searchsorted(_STARTS, np.asarray(days % _CYCLE_DAYS, np.int64), side="right") - 1
        months = days // _CYCLE_DAYS * _CYCLE_MONTHS + (int(within) if isinstance(value, int) else within)
        return months // _MONTHS[unit]
    per = UNIT_NS[unit.upper()]
    return value // (per // tick) if per >= tick else value * (tick // per)


def unit_start(number: Any, unit: CalendarUnit, tick: int) -> Any:
    """The first time of unit ``number``, rounded down to whole ticks."""
    if unit in _MONTHS:
        months = number * _MONTHS[unit]
        within = _STARTS[np.asarray(months % _CYCLE_MONTHS, np.int64)]
        days = months // _CYCLE_MONTHS * _CYCLE_DAYS + (int(within) if isinstance(number, int) else within)
        return days * (_DAY // tick)
    if unit == "week":
        return (number * 7 - _MONDAY) * (_DAY // tick)
    per = UNIT_NS[unit.upper()]
    return number * (per // tick) if per >= tick else number // (tick // per)
