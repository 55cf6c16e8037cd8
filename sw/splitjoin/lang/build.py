"""Type rules: functions that check types and make the IR nodes of literals, columns and operations. All front ends make
nodes by these functions only.

Each takes ``at``, the user's text of the part being built, which errors quote. The rules:

* exact with exact: exact. Date with date: subtraction gives whole days. Timestamp with timestamp: subtraction gives a
  duration in the finer unit; timestamp ± duration is a timestamp.
* float with float: the wider type. Float with an integer *column*: float64 (as Spark's ANSI rules).
* Float with a *literal*: arithmetic rounds the literal to the column's type, a comparison is done in float64 (as Spark:
  ``abs(y - b) <= 10.1`` on float32 compares with the float64 nearest to 10.1).
* Timestamps compare with timestamps of any unit, in the finer one, but a zoned one never with one without zone.
* Division of exact numbers gives float64; whole quotients and remainders are exact.
* Exact arithmetic on literals alone gives a literal, and a literal in a comparison becomes the right operand. So a
  condition has the same IR however it was written (Python itself turns ``5 < r.x`` into ``r.x > 5``).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Literal, cast

import numpy as np

from splitjoin.base.errors import PredicateError, SchemaError

from .categories import places
from .conversions import same_unit, to_float, to_unit
from .eval.vector import constant
from .ir import MIRRORED, Abs, And, Arith, ArithOp, Cmp, CmpOp, Col, Expr, IsNull, Lit, Neg, Not, Or
from .local_times import check_difference, check_shift, check_text
from .properties import denominator
from .schema import Schema, suggest
from .types import (
    BINARY,
    BOOL,
    DATE,
    EXACT,
    FLOAT32,
    FLOAT64,
    STRING,
    TIME_UNITS,
    UNIT_NS,
    Binary,
    Bool,
    Date,
    Duration,
    Exact,
    Float,
    Int,
    Opaque,
    String,
    TimeOfDay,
    Timestamp,
    TimeUnit,
    is_exact,
    is_length,
    is_number,
)

#: Numbers with more digits, before or after the point, are refused, as 1e999999999 would take much memory.
MAX_DIGITS = 1000

_EPOCH = dt.datetime(1970, 1, 1)
_US = dt.timedelta(microseconds=1)
#: A time of day: hours, minutes, seconds and up to nine decimals of these.
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?")


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
            # pandas timestamps are datetimes with an attribute for the nanoseconds below a microsecond.
            ns = int(getattr(value, "nanosecond", 0))
            if value.tzinfo is None:
                return _moment((value - _EPOCH) // _US, ns, None)
            return _moment((value - _EPOCH.replace(tzinfo=dt.UTC)) // _US, ns, "UTC")
        case dt.date():
            return Lit(DATE, (value - _EPOCH.date()).days)
        case dt.time() if value.tzinfo is None:
            return Lit(TimeOfDay("us"), (dt.datetime.combine(_EPOCH, value) - _EPOCH) // _US)
        case dt.timedelta():
            return duration(value // _US * 1000 + int(getattr(value, "nanoseconds", 0)))
    raise PredicateError(f"{at!r}: a literal must be a number, bool, string, bytes, date, datetime, time without a "
                         f"zone, timedelta or None, not {type(value).__name__}")


def check_size(value: int | Fraction, at: str) -> None:
    """Raise `PredicateError` if ``value``, of a literal or of arithmetic on literals, has too many digits."""
    # A literal may have digits on both sides of the point.
    if max(abs(value.numerator), value.denominator) > 10 ** (2 * MAX_DIGITS):
        raise _too_long(at)


def _too_long(at: str) -> PredicateError:
    short = at if len(at) <= 80 else f"{at[:50]} … {at[-25:]}"
    return PredicateError(f"{short!r}: a number must not have more than {MAX_DIGITS} digits")


def duration(ns: int) -> Lit:
    """A duration of ``ns`` nanoseconds."""
    return Lit(Duration("ns"), ns) if ns % 1000 else Lit(Duration("us"), ns // 1000)


def time_literal(text: str, type_: Date | Timestamp | TimeOfDay, at: str) -> Lit:
    """The date or time in ``text`` as a literal of the kind of ``type_``.

    ``text``: ISO 8601, with up to nine decimals of a second. If ``type_`` has a zone and ``text`` has none, the time is
    UTC. Raises `PredicateError` for other texts.
    """
    if isinstance(type_, TimeOfDay):
        return _time_of_day(text, at)
    try:
        if isinstance(type_, Date):
            return literal(dt.date.fromisoformat(text), at)
        # fromisoformat would silently drop the digits below a microsecond.
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
        check_text(text, at)
        moment = moment.replace(tzinfo=dt.UTC)
    us = literal(moment, at)
    assert isinstance(us.type, Timestamp)
    assert isinstance(us.value, int)
    return _moment(us.value, int(ns.ljust(3, "0")), us.type.tz)


def _time_of_day(text: str, at: str) -> Lit:
    parts = _CLOCK.fullmatch(text.strip())
    if parts is None:
        raise PredicateError(f"{at!r}: {text!r} cannot be read as a time of day; write it as '09:30' or '09:30:00.5'")
    seconds = int(parts[1]) * 3600 + int(parts[2]) * 60 + int(parts[3] or 0)
    ns = seconds * 10**9 + int((parts[4] or "").ljust(9, "0"))
    return Lit(TimeOfDay("ns"), ns) if ns % 1000 else Lit(TimeOfDay("us"), ns // 1000)


def whole(v: int | Fraction) -> int | Fraction:
    """``v``, as an int if it is a whole number."""
    return v.numerator if isinstance(v, Fraction) and v.denominator == 1 else v


def _moment(us: int, ns: int, tz: str | None) -> Lit:
    """The instant ``us`` microseconds and ``ns`` (0 to 999) nanoseconds after 1970."""
    return Lit(Timestamp("ns", tz), us * 1000 + ns) if ns else Lit(Timestamp("us", tz), us)


def _numpy_time(value: np.datetime64 | np.timedelta64, at: str) -> Lit:
    item = value.item()
    if not isinstance(item, int):  # None is NaT
        return literal(item, at)
    # NumPy gives a bare integer for a time that datetime cannot hold; its unit is in the dtype.
    unit, step = np.datetime_data(value.dtype)
    if unit != "ns":
        raise PredicateError(f"{at!r}: a time literal must be in weeks, days, hours, minutes or seconds down to "
                             f"nanoseconds and within the years 1 to 9999, not {value!r}")
    if isinstance(value, np.timedelta64):
        return duration(item * step)
    us, ns = divmod(item * step, 1000)
    return _moment(us, ns, None)


def column(schema: Schema, name: str) -> Col | Lit:
    """Column ``name`` of ``schema``. Raises `SchemaError` if there is none, or conditions cannot use its type.

    A column of Arrow's type ``null``, as CSV files have for columns without values, becomes the literal NULL.
    """
    if schema.find(name).type == Opaque("null"):
        return Lit(EXACT, None)
    c = schema[name]
    return Col(c.type, schema.side, c.name, c.nullable, c.range)


def arith(op: ArithOp, a: Expr, b: Expr, at: str) -> Expr:
    """``a op b`` for ``+ - *``."""
    ta, tb = a.type, b.type
    if isinstance(ta, TimeOfDay) or isinstance(tb, TimeOfDay):
        return _times_of_day(op, a, b, at)
    if isinstance(ta, Timestamp) and isinstance(tb, Timestamp) and op == "-":
        check_difference(ta, tb, at)
        a, b, unit = same_unit(a, b, at)
        return _fold(Arith(Duration(unit), op, a, b), at)
    if isinstance(ta, Timestamp) and isinstance(tb, Duration) and op in "+-":
        check_shift(ta, b, at)
        a, b, unit = same_unit(a, b, at)
        return _fold(Arith(Timestamp(unit, ta.tz), op, a, b), at)
    if isinstance(ta, Duration) and isinstance(tb, Timestamp) and op == "+":
        return arith(op, b, a, at)
    if isinstance(ta, Duration) and isinstance(tb, Duration) and op in "+-":
        a, b, unit = same_unit(a, b, at)
        return _fold(Arith(Duration(unit), op, a, b), at)
    if isinstance(ta, Duration) and op == "*" and _is_integer(b):
        return _fold(Arith(ta, op, a, b), at)
    if isinstance(tb, Duration) and op == "*" and _is_integer(a):
        return arith(op, b, a, at)
    if isinstance(ta, Date) and isinstance(tb, Date) and op == "-":
        return _fold(Arith(EXACT, op, a, b), at)
    if isinstance(ta, Date) and is_exact(tb) and op in "+-" and _is_integer(b):
        return _fold(Arith(DATE, op, a, b), at)
    if is_exact(ta) and isinstance(tb, Date) and op == "+":
        return arith(op, b, a, at)
    if any(isinstance(x, Lit) and x.value is None and isinstance(y.type, (Timestamp, Duration, Date))
           for x, y in ((a, b), (b, a))):
        return Lit(EXACT, None)
    if isinstance(ta, Date) and isinstance(tb, Duration):
        raise PredicateError(f"{at!r}: whole days are added to a date as a number, such as r.day + 1, as engines make "
                             f"a date or a timestamp of a date and an INTERVAL")
    if not (is_number(ta) and is_number(tb)):
        raise PredicateError(f"{at!r}: {op!r} needs numbers, or times that can be combined, not {ta} and {tb}")
    if is_exact(ta) and is_exact(tb):
        return _fold(Arith(EXACT, op, a, b), at)
    type_ = _float_type(a, b)
    return Arith(type_, op, to_float(a, type_, at), to_float(b, type_, at))


def _times_of_day(op: ArithOp, a: Expr, b: Expr, at: str) -> Expr:
    if any(isinstance(x, Lit) and x.value is None for x in (a, b)):
        return Lit(EXACT, None)
    if op == "-" and isinstance(a.type, TimeOfDay) and isinstance(b.type, TimeOfDay):
        a, b, unit = same_unit(a, b, at)
        return _fold(Arith(Duration(unit), op, a, b), at)
    raise PredicateError(f"{at!r}: of times of day there is only the difference of two, a duration, not {a.type} {op} "
                         f"{b.type}, as engines differ in what lies behind midnight; compare a difference, such as "
                         f"s.b - r.a <= INTERVAL '15' MINUTE")


def divide(a: Expr, b: Expr, at: str) -> Expr:
    """``a / b`` by IEEE 754 (division by zero gives infinity or NaN); exact numbers are converted to float64."""
    if not (is_number(a.type) and is_number(b.type)):
        raise PredicateError(f"{at!r}: '/' needs numbers, not {a.type} and {b.type}")
    both_exact = is_exact(a.type) and is_exact(b.type)
    if isinstance(a, Lit) and isinstance(b, Lit) and both_exact and a.value is not None and b.value:
        return to_float(Lit(EXACT, whole(Fraction(cast(Fraction, a.value)) / cast(Fraction, b.value))), FLOAT64, at)
    type_ = FLOAT64 if both_exact else _float_type(a, b)
    return Arith(type_, "/", to_float(a, type_, at), to_float(b, type_, at))


def remainder(op: Literal["div", "mod", "//", "%"], a: Expr, b: Expr, at: str) -> Expr:
    """Whole quotients and remainders: ``div`` and ``mod`` round towards zero (SQL), ``//`` and ``%`` down (Python).

    With a divisor of 0 the result is NULL. ``mod`` also takes floats, as C's fmod; quotients need whole numbers.
    """
    if op == "mod" and is_number(a.type) and is_number(b.type) and not (is_exact(a.type) and is_exact(b.type)):
        type_ = _float_type(a, b)
        return Arith(type_, op, to_float(a, type_, at), to_float(b, type_, at))
    if not (is_exact(a.type) and is_exact(b.type)):
        raise PredicateError(f"{at!r}: {op!r} needs exact numbers, not {a.type} and {b.type}")
    if op in ("div", "//") and max(denominator(a), denominator(b)) > 1:
        raise PredicateError(f"{at!r}: {op!r} needs whole numbers, not decimals; write '/' for a float")
    return _fold(Arith(EXACT, op, a, b), at)


def one_type(args: Sequence[Expr], at: str) -> list[Expr]:
    """``args``, NULL literals included, in one common type. Raises `PredicateError` if there is none."""
    known = [a for a in args if not (isinstance(a, Lit) and a.value is None)]
    if not known:
        return list(args)
    types = {a.type for a in known}
    if all(is_number(t) for t in types):
        if any(isinstance(t, Float) for t in types):
            type_ = FLOAT32 if types == {FLOAT32} else FLOAT64
            return [to_float(a, type_, at) if a in known else Lit(type_, None) for a in args]
        kind = next(iter(types)) if len(types) == 1 else EXACT
        return [a if a in known else Lit(kind, None) for a in args]
    # The type is that of the first argument that is not a literal; all others must be comparable with it.
    head = next((a for a in known if not isinstance(a, Lit)), known[0])
    if isinstance(head.type, Date):  # a timestamp among dates makes timestamps of all
        head = next((a for a in known if isinstance(a.type, Timestamp)), head)
    made = [_comparable(a, head, at)[0] if a in known else a for a in args]
    units = [a.type.unit for a in made if isinstance(a.type, (Timestamp, Duration))]
    if units:
        finest = min(units, key=lambda u: TIME_UNITS[u])
        made = [to_unit(a, finest) if isinstance(a.type, (Timestamp, Duration)) else a for a in made]
    found = next(m for m, a in zip(made, args, strict=True) if a in known).type
    return [m if a in known else Lit(found, None) for m, a in zip(made, args, strict=True)]


def neg(a: Expr, at: str) -> Expr:
    """``-a``; of a literal, the negative literal."""
    if isinstance(a, Lit) and (isinstance(a.type, Exact) or is_length(a.type)) and a.value is not None:
        return Lit(a.type, -cast(Fraction, a.value))
    if not (is_number(a.type) or is_length(a.type)):
        raise PredicateError(f"{at!r}: '-' needs a number, not {a.type}")
    return Neg(EXACT if is_exact(a.type) else a.type, a)


def abs_(a: Expr, at: str) -> Expr:
    """``abs(a)``."""
    if not (is_number(a.type) or is_length(a.type)):
        raise PredicateError(f"{at!r}: abs() needs a number, not {a.type}")
    if isinstance(a, Lit) and isinstance(a.type, (Exact, Duration)) and a.value is not None:
        return Lit(a.type, abs(cast(Fraction, a.value)))
    return Abs(EXACT if is_exact(a.type) else a.type, a)


def compare(op: CmpOp, a: Expr, b: Expr, at: str) -> Expr:
    """``a op b`` for ``= <> < <= > >=``."""
    if isinstance(a, Lit) and not isinstance(b, Lit):
        a, b, op = b, a, MIRRORED[op]
    if op not in ("=", "<>"):
        a, b = places(a, b, at)
    a, b = _comparable(a, b, at)
    return Cmp(BOOL, op, a, b)


def between(x: Expr, lo: Expr, hi: Expr, at: str) -> Expr:
    """``x BETWEEN lo AND hi``, both ends included."""
    return and_([compare(">=", x, lo, at), compare("<=", x, hi, at)], at)


def and_(args: Sequence[Expr], at: str) -> Expr:
    """Conjunction."""
    return And(BOOL, tuple(p for a in args for p in _flat(And, condition(a, at))))


def or_(args: Sequence[Expr], at: str) -> Expr:
    """Disjunction."""
    return Or(BOOL, tuple(p for a in args for p in _flat(Or, condition(a, at))))


def not_(a: Expr, at: str) -> Expr:
    """Negation."""
    return Not(BOOL, condition(a, at))


def is_null(a: Expr, at: str) -> Expr:
    """``a IS NULL``."""
    return IsNull(BOOL, a)


def condition(a: Expr, at: str) -> Expr:
    """``a`` as a condition; a bare NULL becomes the truth value NULL. Raises `PredicateError` for other types."""
    if isinstance(a, Lit) and a.value is None:
        return Lit(BOOL, None)
    if not isinstance(a.type, Bool):
        raise PredicateError(f"{at!r}: a condition (true or false) is needed here, but this is {a.type}")
    return a


def midnight(date: Expr, unit: TimeUnit, at: str) -> Expr:
    """The beginning of ``date``, as a timestamp of ``unit`` without time zone."""
    days = arith("-", date, Lit(DATE, 0), at)
    day = Lit(Duration(unit), UNIT_NS["DAY"] // TIME_UNITS[unit])
    return arith("+", Lit(Timestamp(unit), 0), arith("*", days, day, at), at)


def _fold(e: Arith, at: str) -> Expr:
    """The value of ``e`` as a literal if both operands are literals, else ``e`` itself."""
    if not (isinstance(e.a, Lit) and isinstance(e.b, Lit)):
        return e
    value = constant(e)
    if value is None:
        return Lit(e.type, None)
    check_size(value, at)
    return Lit(e.type, whole(value))


def _flat(kind: type[And] | type[Or], a: Expr) -> tuple[Expr, ...]:
    return a.children if isinstance(a, kind) else (a,)


def _is_integer(e: Expr) -> bool:
    return isinstance(e.type, Int) or (is_exact(e.type) and denominator(e) == 1)


def _float_type(a: Expr, b: Expr) -> Float:
    types = {e.type for e in (a, b) if not isinstance(e, Lit)} or {a.type, b.type}
    return FLOAT32 if types == {FLOAT32} else FLOAT64


def _comparable(a: Expr, b: Expr, at: str) -> tuple[Expr, Expr]:
    ta, tb = a.type, b.type
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Lit) and x.value is None:
            null = Lit(EXACT if is_exact(y.type) else y.type, None)
            return (null, y) if x is a else (y, null)
    if is_exact(ta) and is_exact(tb):
        return a, b
    if is_number(ta) and is_number(tb):
        type_ = FLOAT32 if ta == tb == FLOAT32 else FLOAT64
        return to_float(a, type_, at), to_float(b, type_, at)
    for x, y in ((a, b), (b, a)):
        if isinstance(x.type, Date) and isinstance(y.type, Timestamp):
            if y.type.tz is not None:
                raise PredicateError(f"{at!r}: a date begins at another moment in each time zone, so it cannot be "
                                     f"compared with {y.type}; cast one of them before the join")
            begin = midnight(x, y.type.unit, at)  # in its own unit, if it is a literal
            return _comparable(begin, y, at) if x is a else _comparable(y, begin, at)
    for kind in (Timestamp, TimeOfDay, Duration):
        if isinstance(ta, kind) and isinstance(tb, kind) and isinstance(ta, TimeOfDay) == isinstance(tb, TimeOfDay):
            x, y, _ = same_unit(a, b, at)
            return x, y
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Lit) and isinstance(x.type, String) and isinstance(y.type, (Date, Timestamp, TimeOfDay)):
            time = time_literal(str(x.value), y.type, at)
            return _comparable(time, y, at) if x is a else _comparable(y, time, at)
    if any(isinstance(ta, kind) and isinstance(tb, kind) for kind in (Binary, Bool, Date, String)):
        return a, b
    both = {type(ta), type(tb)}
    to = next((str(kind.__name__).upper() for kind in (Date, Timestamp) if both == {String, kind}), None)
    to = "BIGINT" if String in both and any(map(is_exact, (ta, tb))) else to
    more = f"; convert the text before the join, or in SQL over tables by CAST(… AS {to})" if to else ""
    if Bool in both and any(map(is_exact, (ta, tb))):
        more = "; a truth value is a condition itself, or a number as CAST(… AS INT)"
    raise PredicateError(f"{at!r}: {ta} and {tb} cannot be compared{more}")


def find_column(schemas: Mapping[str, Schema], name: str, stream: str | None, at: str) -> Expr:
    """Column ``name`` of ``stream``, or of the only one of ``schemas`` that has it. Raises `SchemaError`."""
    if stream is not None:
        schema = schemas.get(stream.lower())
        if schema is None:
            raise SchemaError(f"{at!r}: there is no stream {stream!r}; the streams are r and s")
        return column(schema, name)
    found = [c for c in schemas.values() if any(name.lower() == n.lower() for n in c.names)]
    if len(found) == 1:
        return column(found[0], name)
    if found:
        raise SchemaError(f"column {name!r} is ambiguous: it could be r.{found[0].find(name).name} or "
                          f"s.{found[1].find(name).name}; write which, such as r.{found[0].find(name).name} = "
                          f"s.{found[1].find(name).name} for equal ones")
    names = [f"{c.side}.{n}" for c in schemas.values() for n in c.names]
    raise SchemaError(f"neither stream has a column {name!r}{suggest(name, [n[2:] for n in names])}; the columns are "
                      f"{', '.join(names) or '(none)'}")
