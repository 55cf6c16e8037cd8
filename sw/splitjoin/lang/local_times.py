"""Refusal of what Spark takes by the local clock of its session, and splitjoin by elapsed time or in UTC.

Spark subtracts timestamps, and adds whole days to them, by the clock of the session's time zone, which is put back and
forward; it also reads texts and finds the hour and the day there. A condition that Spark's users write must mean the
same here, or be refused (`session_zone`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NoReturn

from splitjoin.base.errors import PredicateError

from .types import TIME_UNITS, Duration, Int, Timestamp, Type

if TYPE_CHECKING:
    from .ir import Expr

#: Names of the zone UTC.
UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00", "UCT", "Zulu")
#: Zones whose clock is never put back or forward.
_FIXED = re.compile(r"(UTC|GMT|UT)?[+-]\d{1,2}(:?\d{2}){0,2}|Etc/GMT[+-]\d{1,2}")
#: Mark in the meta data of a tree of sqlglot: a difference that counts elapsed time in sessions of all zones.
ELAPSED = "elapsed"
_DAY = 86_400 * 10**9
#: The zone of the session whose conditions are read; None: times with a zone are moments, and no clock counts.
_ZONE: ContextVar[str | None] = ContextVar("session zone", default=None)


@contextmanager
def session_zone(zone: str | None) -> Iterator[None]:
    """Read conditions as of a session of Spark in the time ``zone``; None where it is not known."""
    token = _ZONE.set(zone)
    try:
        yield
    finally:
        _ZONE.reset(token)


def current_zone() -> object:
    """The time zone that `session_zone` has set. The meaning of a condition may depend on it."""
    return _ZONE.get()


def check_difference(a: Type, b: Type, at: str) -> None:
    """Raise `PredicateError` if Spark takes the difference of values of these types by a local clock."""
    if _is_moment(a) and _is_moment(b) and _is_changing():
        _refuse(at, "the difference of two timestamps")


def check_shift(a: Type, by: Expr, at: str) -> None:
    """Raise `PredicateError` if Spark moves a time of type ``a`` by days of a local clock: by 24 hours or more."""
    if _is_moment(a) and _is_changing() and not _is_less_than_a_day(by):
        _refuse(at, "each 24 hours that are added to a timestamp")


def check_text(text: str, at: str) -> None:
    """Raise `PredicateError` if Spark reads ``text``, a time without an offset from UTC, by a local clock."""
    if not _is_utc():
        raise PredicateError(f"{at!r}: Spark reads {text!r} in the session's time zone, {_ZONE.get()}, and splitjoin "
                             f"in UTC; write the offset from UTC, such as '{text}+00:00'")


def check_unit(unit: str, at: str) -> None:
    """Raise `PredicateError` if Spark finds the ``unit``, a minute or longer, of a moment by a local clock."""
    if not _is_utc():
        raise PredicateError(f"{at!r}: Spark finds the {unit} in which a timestamp lies by the clock of the session's "
                             f"time zone, {_ZONE.get()}, and splitjoin in UTC; compute it as a column before the join, "
                             f"or cast the column to timestamp_ntz there")


def _is_utc() -> bool:
    """True if no session's time zone other than UTC counts."""
    return _ZONE.get() in (None, *UTC)


def _is_moment(kind: Type) -> bool:
    return isinstance(kind, Timestamp) and kind.tz is not None


def _is_changing() -> bool:
    zone = _ZONE.get()
    return not _is_utc() and _FIXED.fullmatch(str(zone)) is None


def _is_less_than_a_day(by: Expr) -> bool:
    from .ir import Arith, Col, Lit, Neg

    times = 1
    if isinstance(by, Neg):
        by = by.a
    elif isinstance(by, Arith) and by.op == "*" and isinstance(by.b, Col) and isinstance(by.b.type, Int):
        times, by = max(map(abs, by.b.range or by.b.type.range)), by.a
    return isinstance(by, Lit) and isinstance(by.type, Duration) and isinstance(by.value, int) and (
        abs(by.value) * times * TIME_UNITS[by.type.unit] < _DAY)


def _refuse(at: str, what: str) -> NoReturn:
    raise PredicateError(
        f"{at!r}: Spark counts {what} by the clock of the session's time zone, {_ZONE.get()}, which may be put back or "
        f"forward in between, and splitjoin counts elapsed time; for elapsed time, write s.ts <= r.ts + INTERVAL … "
        f"with less than 24 hours, date_diff('microsecond', r.ts, s.ts), or window='RANGE …'; for local clocks, cast "
        f"both columns to timestamp_ntz before the join; or set spark.sql.session.timeZone to 'UTC'")
