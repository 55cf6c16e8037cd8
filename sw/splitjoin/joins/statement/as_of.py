"""The comparison of times in an ASOF JOIN: in ON, as DuckDB has it, or in MATCH_CONDITION, as Snowflake has it."""

from __future__ import annotations

from dataclasses import dataclass

from splitjoin.base.errors import StatementError
from splitjoin.lang.build import midnight
from splitjoin.lang.ir import And, Cast, Cmp, Col, Expr, columns, text
from splitjoin.lang.kind import Direction
from splitjoin.lang.schema import Schema
from splitjoin.lang.time_columns import TimeSpec, time_columns
from splitjoin.lang.types import BOOL, Date, Timestamp

__all__ = ["AsOf", "as_of"]

_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class AsOf:
    """The parts of an ASOF JOIN: its condition without the comparison of times, the time columns, and what the
    comparison says.
    """

    on: Expr | None
    time: TimeSpec
    direction: Direction
    allow_exact: bool


def as_of(on: Expr | None, match: Expr | None, r: Schema, s: Schema, time: TimeSpec | None, *,
          whole: bool = False) -> AsOf:
    """Find the comparison of times: ``match``, or else one of the terms of ``on``.

    ``time``: the query's time columns; None to take those that are compared. ``whole``: as of `Query.make`. Raises
    `StatementError` unless exactly one inequality compares them.
    """
    terms = [match] if match is not None else [] if on is None else list(on.args) if isinstance(on, And) else [on]
    named = None if time is None else time_columns(r, s, time, whole=whole)
    found = []
    for term in terms:
        compared = _compared(term)
        if compared is not None and (named is None or compared[1:] == (named.r, named.s)):
            found.append((term, *compared))
    if len(found) != 1:
        columns = "r.ts >= s.ts" if named is None else f"r.{named.r} >= s.{named.s}"
        came = "MATCH_CONDITION has " + text(match) if match is not None else f"there are {len(found)} in ON"
        raise StatementError(f"an ASOF JOIN needs one comparison of both tables' time columns by >=, >, <= or <, such "
                             f"as {columns}, in ON or in MATCH_CONDITION; {came}"
                             + ("; name the time columns with time=…" if len(found) > 1 and time is None else ""))
    term, op, name_r, name_s = found[0]
    if match is not None:
        rest = on
    else:
        others = [other for other in terms if other is not term]
        rest = None if not others else others[0] if len(others) == 1 else And(BOOL, tuple(others))
    return AsOf(rest, time if time is not None else (name_r, name_s), "backward" if op in (">", ">=") else "forward",
                op in (">=", "<="))


def _compared(e: Expr) -> tuple[str, str, str] | None:
    """The operator, with R on its left, and the columns of R and S, if ``e`` compares a column of each by an
    inequality.
    """
    if not isinstance(e, Cmp) or e.op not in _SWAPPED:
        return None
    a, b = _column(e.a), _column(e.b)
    if a is None or b is None or a.side == b.side:
        return None
    return (e.op, a.name, b.name) if a.side == "r" else (_SWAPPED[e.op], b.name, a.name)


def _column(e: Expr) -> Col | None:
    """The column that ``e`` is, converted at most to the other one's unit."""
    while isinstance(e, Cast):
        e = e.a
    if isinstance(e.type, Timestamp):  # the midnight of a date, beside a timestamp
        days = [c for c in columns(e) if isinstance(c.type, Date)]
        if len(days) == 1 and midnight(days[0], e.type.unit, "") == e:
            return days[0]
    return e if isinstance(e, Col) else None
