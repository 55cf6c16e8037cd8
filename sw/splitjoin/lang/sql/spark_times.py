"""Spark's functions of times in conditions, by their names: counted from the numbers of units since 1970.

Spark takes most of them by the clock of the session's time zone. So where that counts, they need the zone UTC, or one
whose clock is never changed (`splitjoin.lang.local_times`), and are refused otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from splitjoin.base.errors import PredicateError

from .. import build, functions
from ..calendar import CalendarUnit
from ..ir import Arith, Expr, Lit, UnitNumber
from ..local_times import check_unit
from ..types import EXACT, STRING, UNIT_NS, Date, Duration, Float, Int, Timestamp, Type

Maker = Callable[[list[Expr], str], Expr]
_US = {name: ns // 1000 for name, ns in UNIT_NS.items() if ns >= 1000}
#: The parts of an INTERVAL of days: the unit in which each is counted, and the one that it is a part of.
_PARTS = {"DAY": ("DAY", None), "HOUR": ("HOUR", "DAY"), "MINUTE": ("MINUTE", "HOUR"), "SECOND": ("SECOND", "MINUTE")}
#: What `trunc` calls units.
_TRUNCATED = {"MM": "month", "MON": "month", "MONTH": "month", "YY": "year", "YYYY": "year", "YEAR": "year",
              "WEEK": "week", "QUARTER": "quarter"}


def spark_cast(a: Expr, to: Type | None, at: str) -> Expr | None:
    """A time cast as Spark does it: to the seconds since 1970, or to its date; None for other casts."""
    if isinstance(a.type, Timestamp) and to == Int(64):
        return _since_1970("second", a, at)
    if isinstance(a.type, Timestamp) and isinstance(to, Float) and to.bits == 64:
        return build.divide(_since_1970("microsecond", a, at), _whole(10**6), at)
    return _date(a, at) if isinstance(a.type, Timestamp) and isinstance(to, Date) else None


def extracted(part: str, a: Expr, at: str) -> Expr:
    """``extract(part FROM a)``: of a timestamp, or of the difference of two, which Spark cuts into days and parts."""
    found = _PARTS.get(part.upper().removesuffix("S"))
    if found is None or not isinstance(a.type, (Timestamp, Duration)) or (
            found[1] is None and not isinstance(a.type, Duration)):
        raise PredicateError(f"{at!r}: {part.upper()} of {a.type} is not supported in a condition; it may be a part of "
                             f"a difference of two timestamps ({', '.join(_PARTS)}), or HOUR, MINUTE or SECOND of one")
    unit, whole = found
    quotient: Literal["div", "//"] = "div"
    remainder: Literal["mod", "%"] = "mod"
    if isinstance(a.type, Timestamp):
        if unit != "SECOND":
            check_unit(unit.lower(), at)
        count, quotient, remainder = _since_1970("microsecond", a, at), "//", "%"
    elif isinstance(a, Arith) and a.op == "-" and isinstance(a.a.type, Timestamp):
        count = functions.date_diff(_unit("microsecond"), a.b, a.a, at)
    else:
        raise PredicateError(f"{at!r}: a part of an interval that is no difference of two times is not supported in a "
                             f"condition; compare the interval with a constant INTERVAL")
    if whole is not None:
        count = build.remainder(remainder, count, _whole(_US[whole]), at)
    if unit == "SECOND":  # with its fraction
        return build.arith("*", count, Lit(EXACT, Fraction(1, 10**6)), at)
    return build.remainder(quotient, count, _whole(_US[unit]), at)


def _whole(n: int) -> Lit:
    return Lit(EXACT, n)


def _unit(name: str) -> Lit:
    return Lit(STRING, name)


def _since_1970(unit: CalendarUnit, a: Expr, at: str) -> Expr:
    """The number of whole units since 1970."""
    if isinstance(a, Lit) and a.value is None:
        return a
    if not isinstance(a.type, (Timestamp, Date)):
        raise PredicateError(f"{at!r}: a timestamp or a date is needed here, not {a.type}")
    if (unit != "day") if isinstance(a.type, Date) else (a.type.tz is None or unit == "day"):
        check_unit(unit, at)  # as the moment, or the date, is another one in each zone
    return UnitNumber(EXACT, a, unit) if not isinstance(a, Lit) else functions.date_diff(
        _unit(unit), Lit(a.type, 0), a, at)


def _length(unit: Expr, at: str) -> int:
    name = str(unit.value).upper().removesuffix("S") if isinstance(unit, Lit) else ""
    if name not in UNIT_NS:
        raise PredicateError(f"{at!r}: the unit must be one of {', '.join(UNIT_NS)} here, not {unit}; a month has no "
                             f"fixed length, so compare date_diff('month', …)")
    return UNIT_NS[name]


def _difference(p: list[Expr], at: str) -> Expr:
    """``timestampdiff(unit, start, end)``, rounded towards zero; ``datediff(end, start)`` in days of the calendar."""
    if len(p) == 2:
        return functions.date_diff(_unit("day"), p[1], p[0], at)
    length = _length(p[0], at)
    build.arith("-", p[2], p[1], at)  # refuses what Spark counts by a clock that is changed
    count = functions.date_diff(_unit("microsecond"), p[1], p[2], at)
    return build.remainder("div", count, _whole(length // 1000), at) if length >= 1000 else count


def _moved(p: list[Expr], at: str, sign: Literal["+", "-"] = "+") -> Expr:
    """``timestampadd(unit, n, a)``, or ``date_add(a, days)``, of which ``date_sub`` is the opposite."""
    if len(p) == 3:
        return build.arith(sign, p[2], build.arith("*", build.duration(_length(p[0], at)), p[1], at), at)
    if isinstance(p[0].type, Timestamp):
        return build.arith(sign, _date(p[0], at), build.arith("*", build.duration(UNIT_NS["DAY"]), p[1], at), at)
    return build.arith(sign, p[0], p[1], at)


def _date(a: Expr, at: str) -> Expr:
    """The date of a timestamp, as the timestamp at which it begins."""
    return a if isinstance(a.type, Date) else functions.date_trunc(_unit("day"), a, at)


def _truncated(p: list[Expr], at: str) -> Expr:
    unit = _TRUNCATED.get(str(p[1].value).upper()) if isinstance(p[1], Lit) else None
    if unit is None:
        raise PredicateError(f"{at!r}: the unit of trunc() must be one of {', '.join(_TRUNCATED)}, not {p[1]}")
    return functions.date_trunc(_unit(unit), p[0], at)


def _interval(units: tuple[str, ...]) -> Maker:
    def made(p: list[Expr], at: str) -> Expr:
        ns = Fraction(0)
        for unit, n in zip(units, p, strict=False):
            value = n.value if isinstance(n, Lit) else None
            if not isinstance(value, (int, Fraction)) or (value and not unit):
                raise PredicateError(f"{at!r}: an interval must be of constant numbers, without months and years, "
                                     f"which have no fixed length")
            ns += value * UNIT_NS[unit] if unit else 0
        if ns.denominator != 1:
            raise PredicateError(f"{at!r}: an interval must be a whole number of nanoseconds")
        return build.duration(int(ns))

    return made


def _remainder(p: list[Expr], at: str) -> Expr:
    if not (isinstance(p[1], Lit) and isinstance(p[1].value, int) and p[1].value > 0):
        raise PredicateError(f"{at!r}: pmod() must be by a constant above 0, not by {p[1]}")
    return build.remainder("%", p[0], p[1], at)


def _seconds(p: list[Expr], at: str) -> Expr:
    return _since_1970("second", p[0], at)


def _part(part: str) -> Maker:
    def made(p: list[Expr], at: str) -> Expr:
        found = extracted(part, p[0], at)
        return functions.rounded("floor", found, at) if part == "SECOND" else found

    return made


def _cast_to(to: Type) -> Maker:
    def made(p: list[Expr], at: str) -> Expr:
        if (found := spark_cast(p[0], to, at)) is None:
            raise PredicateError(f"{at!r}: a timestamp is needed here, not {p[0].type}; write CAST(… AS …)")
        return found

    return made


_DAY_TO_SECOND = ("DAY", "HOUR", "MINUTE", "SECOND")
#: Name → the least and the greatest number of its arguments, and what it is. A format behind a timestamp counts for
#: nothing, as in Spark.
TIME_FUNCTIONS: dict[str, tuple[int, int, Maker]] = {
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), (1, 2, _seconds)),
    "unix_seconds": (1, 1, _seconds), "unix_millis": (1, 1, lambda p, at: _since_1970("millisecond", p[0], at)),
    "unix_micros": (1, 1, lambda p, at: _since_1970("microsecond", p[0], at)),
    "unix_date": (1, 1, lambda p, at: _since_1970("day", p[0], at)),
    "timestampdiff": (3, 3, _difference), "datediff": (2, 3, _difference), "date_diff": (2, 3, _difference),
    "timestampadd": (3, 3, _moved), "dateadd": (2, 3, _moved), "date_add": (2, 3, _moved),
    "date_sub": (2, 2, lambda p, at: _moved(p, at, "-")),
    "trunc": (2, 2, _truncated), "to_date": (1, 1, lambda p, at: _date(p[0], at)),
    "date": (1, 1, lambda p, at: _date(p[0], at)),
    "bigint": (1, 1, _cast_to(Int(64))), "double": (1, 1, _cast_to(Float(64))),
    "hour": (1, 1, _part("HOUR")), "minute": (1, 1, _part("MINUTE")), "second": (1, 1, _part("SECOND")),
    "make_interval": (0, 7, _interval(("", "", "WEEK", *_DAY_TO_SECOND))),
    "make_dt_interval": (0, 4, _interval(_DAY_TO_SECOND)),
    "pmod": (2, 2, _remainder),
}
