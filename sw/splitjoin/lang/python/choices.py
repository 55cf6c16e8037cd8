"""Functions for conditions written in Python, where the language's own ``if``, ``min`` and ``max`` cannot be traced."""

from __future__ import annotations

from typing import Any, Literal

from splitjoin.base.errors import PredicateError

from .. import functions
from ..refusals import text_of
from .values import Value, lift


def least(*values: Any) -> Value:
    """The least of the values that are not NULL, as SQL's ``least``; NaN is greater than every number."""
    return _extreme("least", values)


def greatest(*values: Any) -> Value:
    """The greatest of the values that are not NULL, as SQL's ``greatest``; NaN is greater than every number."""
    return _extreme("greatest", values)


def where(condition: Any, then: Any, otherwise: Any) -> Value:
    """The value ``then`` where ``condition`` is true, ``otherwise`` where it is false or NULL: SQL's ``CASE``."""
    at = _called("where", (condition, then, otherwise))
    made = functions.case([lift(condition, at)], [lift(then, at)], lift(otherwise, at), at)
    return Value(made, at, atom=True)


def coalesce(*values: Any) -> Value:
    """The first of the values that is not NULL."""
    at = _called("coalesce", values)
    return Value(functions.coalesce([lift(v, at) for v in values], at), at, atom=True)


def date_trunc(unit: str, time: Any) -> Value:
    """The beginning of the calendar unit in which ``time`` lies, as a timestamp: SQL's ``date_trunc``.

    ``unit``: "microsecond", "millisecond", "second", "minute", "hour", "day", "week" (from Monday), "month", "quarter"
    or "year". ``time``: a date, or a timestamp in UTC or without a zone.
    """
    at = _called("date_trunc", (unit, time))
    return Value(functions.date_trunc(lift(unit, at), lift(time, at), at), at, atom=True)


def date_diff(unit: str, start: Any, end: Any) -> Value:
    """The number of boundaries of calendar units from ``start`` to ``end``: SQL's ``date_diff``, as DuckDB counts.

    ``unit`` and the times: as for `date_trunc`. It is negative where ``end`` is earlier. From 09:59 to 10:00 it is one
    hour. For weeks it is the number of whole periods of seven days.
    """
    at = _called("date_diff", (unit, start, end))
    return Value(functions.date_diff(lift(unit, at), lift(start, at), lift(end, at), at), at, atom=True)


def _extreme(kind: Literal["least", "greatest"], values: tuple[Any, ...]) -> Value:
    at = _called(kind, values)
    return Value(functions.extreme(kind, [lift(v, at) for v in values], at), at, atom=True)


def _called(name: str, values: tuple[Any, ...]) -> str:
    at = f"splitjoin.{name}({', '.join(map(text_of, values))})"
    if not any(isinstance(v, Value) for v in values):
        raise PredicateError(f"{at!r}: one value at least must be a column, or be computed from columns, of r or s")
    return at
