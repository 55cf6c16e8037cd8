"""Literals: Python and NumPy scalars, and times written as text, as IR."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np

from ..errors import PredicateError
from .ir import Lit
from .types import BINARY, BOOL, DATE, EXACT, STRING, Date, Duration, Timestamp

__all__ = ["MAX_DIGITS", "check_size", "duration", "literal", "time_literal", "whole"]

#: Numbers with more digits, before or after the point, are refused, so that 1e999999999 costs nothing.
MAX_DIGITS = 1000

_EPOCH = dt.datetime(1970, 1, 1)
_US = dt.timedelta(microseconds=1)


def literal(value: object, at: str) -> Lit:
    """A Python or NumPy scalar as a literal.

    A finite float stands for the decimal number it prints as, so that ``10.1`` means the same in Python and in SQL.
    Datetimes without a zone are wall-clock times. Raises `PredicateError` for anything else, and for NaN and infinity.
    """
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _numpy_time(value, at)
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case None:
            return Lit(EXACT, None)
        case bool():
            return Lit(BOOL, value)
        case int() | Fraction():
            check_size(value, at)
            return Lit(EXACT, whole(value))
        case Decimal() if value.is_finite() and max(abs(value.adjusted()), len(value.as_tuple().digits)) > MAX_DIGITS:
            raise _too_long(at)
        case float() | Decimal():
            try:
                return Lit(EXACT, whole(Fraction(str(value))))
            except ValueError:
                raise PredicateError(f"{at!r}: a numeric literal must be finite, not {value}") from None
        case str():
            return Lit(STRING, value)
        case bytes():
            return Lit(BINARY, value)
        case dt.datetime():
            # pandas timestamps are datetimes with an attribute for what is below a microsecond.
            ns = int(getattr(value, "nanosecond", 0))
            if value.tzinfo is None:
                return _moment((value - _EPOCH) // _US, ns, None)
            return _moment((value - _EPOCH.replace(tzinfo=dt.UTC)) // _US, ns, "UTC")
        case dt.date():
            return Lit(DATE, (value - _EPOCH.date()).days)
        case dt.timedelta():
            return duration(value // _US * 1000 + int(getattr(value, "nanoseconds", 0)))
    raise PredicateError(f"{at!r}: a literal must be a number, bool, string, bytes, date, datetime, timedelta or "
                         f"None, not {type(value).__name__}")


def check_size(value: int | Fraction, at: str) -> None:
    """Raise `PredicateError` if ``value``, a literal or what literals come to, is too long a number."""
    # A literal may have digits on both sides of the point.
    if max(abs(value.numerator), value.denominator) > 10 ** (2 * MAX_DIGITS):
        raise _too_long(at)


def _too_long(at: str) -> PredicateError:
    short = at if len(at) <= 80 else f"{at[:50]} … {at[-25:]}"
    return PredicateError(f"{short!r}: a number must not have more than {MAX_DIGITS} digits")


def duration(ns: int) -> Lit:
    """A duration of ``ns`` nanoseconds."""
    return Lit(Duration("ns"), ns) if ns % 1000 else Lit(Duration("us"), ns // 1000)


def time_literal(text: str, type_: Date | Timestamp, at: str) -> Lit:
    """``text``, ISO 8601, as a literal like ``type_``; up to nine decimals of a second.

    Without a zone in it, it is UTC where ``type_`` has a zone. Raises `PredicateError` if it cannot be read.
    """
    try:
        if isinstance(type_, Date):
            return literal(dt.date.fromisoformat(text), at)
        # fromisoformat would silently drop what is below a microsecond.
        below = re.search(r"(?<=[.,]\d{6})\d{1,3}(?!\d)", text)
        head, ns, tail = (text[:below.start()], below[0], text[below.end():]) if below else (text, "", "")
        if re.search(r"[.,]\d{7}", head):
            raise ValueError("more than nine decimals")
        moment = dt.datetime.fromisoformat(head + tail)
    except ValueError:
        raise PredicateError(f"{at!r}: {text!r} cannot be read as a {type_}; write it as ISO 8601, such as "
                             f"'2013-01-31'{'' if isinstance(type_, Date) else ' or ' + repr('2013-01-31 12:30:00')}"
                             ) from None
    if type_.tz is not None and moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    us = literal(moment, at)
    assert isinstance(us.type, Timestamp)
    assert isinstance(us.value, int)
    return _moment(us.value, int(ns.ljust(3, "0")), us.type.tz)


def whole(v: int | Fraction) -> int | Fraction:
    """``v``, as an int if it is one."""
    return v.numerator if isinstance(v, Fraction) and v.denominator == 1 else v


def _moment(us: int, ns: int, tz: str | None) -> Lit:
    """The instant ``us`` microseconds and ``ns`` (0 to 999) nanoseconds after 1970."""
    return Lit(Timestamp("ns", tz), us * 1000 + ns) if ns else Lit(Timestamp("us", tz), us)


def _numpy_time(value: np.datetime64 | np.timedelta64, at: str) -> Lit:
    item = value.item()
    if not isinstance(item, int):  # None is NaT
        return literal(item, at)
    # NumPy gives a bare integer for what datetime cannot hold; its unit must not get lost.
    unit, step = np.datetime_data(value.dtype)
    if unit != "ns":
        raise PredicateError(f"{at!r}: a time literal must be in weeks, days, hours, minutes or seconds down to "
                             f"nanoseconds and within the years 1 to 9999, not {value!r}")
    if isinstance(value, np.timedelta64):
        return duration(item * step)
    us, ns = divmod(item * step, 1000)
    return _moment(us, ns, None)
