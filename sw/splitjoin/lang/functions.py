"""Type rules of functions and of bit operations, beside those of arithmetic in `splitjoin.lang.build`.

* Bit operations take integers of any width, in two's complement. The result has the wider type, and is signed if an
  operand is. An integer literal has the type of the other operand if it fits, else the narrowest type that holds it.
* CASE, least, greatest and coalesce take values that can be compared with each other; the result is float32 only if all
  of them are.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from splitjoin.base.errors import PredicateError

from .build import (
    and_,
    arith,
    compare,
    condition,
    divide,
    is_null,
    neg,
    not_,
    one_type,
    or_,
    remainder,
    time_literal,
    whole,
)
from .calendar import UNITS, CalendarUnit, started, tick
from .categories import holds_order
from .conversions import to_float
from .eval.vector import constant
from .ir import Arith, Call, Case, Expr, Extreme, FloatCall, Like, Lit, StartsWith, UnitNumber, UnitStart
from .local_times import UTC, check_unit
from .operations import MAX_PLACES, OPERATIONS
from .properties import denominator, value_range
from .types import (
    BOOL,
    EXACT,
    FLOAT64,
    STRING,
    UNIT_NS,
    Binary,
    Date,
    Duration,
    Exact,
    Float,
    Int,
    String,
    TimeOfDay,
    Timestamp,
    Type,
    is_exact,
    is_number,
)

#: The most decimal places that exact numbers are rounded to: those of decimals.
_EXACT_PLACES = 38


def case(when: Sequence[Expr], then: Sequence[Expr], otherwise: Expr, at: str) -> Expr:
    """CASE WHEN … THEN … ELSE … END."""
    conditions = tuple(condition(w, at) for w in when)
    *values, last = one_type((*then, otherwise), at)
    return Case(_common([*values, last]), conditions, tuple(values), last)


def extreme(kind: Literal["least", "greatest"], args: Sequence[Expr], at: str) -> Expr:
    """``least(…)`` or ``greatest(…)`` of the arguments that are not NULL."""
    if len(args) < 2:
        raise PredicateError(f"{at!r}: {kind}() needs two values or more")
    if any(map(holds_order, args)):
        raise PredicateError(f"{at!r}: {kind}() of ordered categories is not supported, as their order is not that of "
                             f"text; write CASE with a comparison")
    values = one_type(args, at)
    return Extreme(_common(values), kind, tuple(values))


def coalesce(args: Sequence[Expr], at: str) -> Expr:
    """The first of ``args`` that is not NULL."""
    if len(args) == 1:
        return args[0]
    return case([not_(is_null(a, at), at) for a in args[:-1]], args[:-1], args[-1], at)


def nullif(a: Expr, b: Expr, at: str) -> Expr:
    """NULL where ``a = b``, else ``a``."""
    return case([compare("=", a, b, at)], [Lit(EXACT, None)], a, at)


def distinct(a: Expr, b: Expr, at: str) -> Expr:
    """``a IS DISTINCT FROM b``: like ``<>``, but NULL equals NULL only, and the result is never NULL."""
    both = and_([is_null(a, at), is_null(b, at)], at)
    equal = and_([not_(is_null(a, at), at), not_(is_null(b, at), at), compare("=", a, b, at)], at)
    return not_(or_([both, equal], at), at)


def in_(a: Expr, items: Sequence[Expr], at: str) -> Expr:
    """``a IN (…)``: true if ``a`` equals one of ``items``."""
    if not items:
        raise PredicateError(f"{at!r}: IN needs at least one value")
    made = [compare("=", a, item, at) for item in items]
    return made[0] if len(made) == 1 else or_(made, at)


def starts_with(a: Expr, prefix: Expr, at: str) -> Expr:
    """True where ``a`` begins with the constant ``prefix``."""
    fits = isinstance(prefix, Lit) and (
        (isinstance(a.type, String) and isinstance(prefix.value, str))
        or (isinstance(a.type, Binary) and isinstance(prefix.value, bytes)))
    if isinstance(a, Lit) and a.value is None and isinstance(prefix, Lit) and isinstance(prefix.value, (str, bytes)):
        return Lit(BOOL, None)
    if not fits:
        both = isinstance(a.type, String) and isinstance(prefix.type, String) and not isinstance(prefix, Lit)
        raise PredicateError(f"{at!r}: a string or binary can be compared with the beginning of a constant of its kind "
                             f"only, not {a.type} with {prefix if isinstance(prefix, Lit) else prefix.type}"
                             + ("; in SQL over tables or streams, starts_with(r.name, s.prefix) takes two columns"
                                if both else ""))
    assert isinstance(prefix, Lit) and isinstance(prefix.value, (str, bytes))
    return StartsWith(BOOL, a, prefix.value)


def like(a: Expr, pattern: Expr, at: str) -> Expr:
    """``a LIKE pattern`` for a constant text: % stands for any characters, _ for one, and no character escapes."""
    if not (isinstance(pattern, Lit) and isinstance(pattern.value, str)):
        raise PredicateError(f"{at!r}: the pattern of LIKE must be a constant text, not {pattern.type}")
    if "\\" in pattern.value:
        raise PredicateError(f"{at!r}: the pattern of LIKE must not hold a backslash, which escapes in Spark, and is a "
                             f"character like others in DuckDB; compare with = or starts_with()")
    head = pattern.value.rstrip("%")
    if not ("%" in head or "_" in head):
        start = Lit(pattern.type, head)
        return compare("=", a, start, at) if head == pattern.value else starts_with(a, start, at)
    if isinstance(a, Lit) and a.value is None:
        return Lit(BOOL, None)
    if not isinstance(a.type, String):
        raise PredicateError(f"{at!r}: LIKE needs a text, not {a.type}")
    return Like(BOOL, a, pattern.value)


def rounded(name: Literal["floor", "ceil", "round"], a: Expr, at: str) -> Expr:
    """``floor(a)``, ``ceil(a)`` or ``round(a)``, which takes halves away from zero: exact numbers stay exact."""
    if isinstance(a.type, Float):
        return FloatCall(a.type, a, name)
    if not is_exact(a.type):
        raise PredicateError(f"{at!r}: {name}() needs a number, not {a.type}")
    return _multiple(name, a, Fraction(1), at)


def rounded_to(a: Expr, places: Expr, at: str) -> Expr:
    """``round(a, places)``: to a constant number of decimal places, with halves away from zero; a negative number
    rounds to tens, hundreds, …. Exact numbers stay exact; floats are rounded as DuckDB does it.
    """
    if isinstance(a, Lit) and a.value is None:
        return a
    if not is_number(a.type):
        raise PredicateError(f"{at!r}: round() needs a number, not {a.type}")
    most = MAX_PLACES if isinstance(a.type, Float) else _EXACT_PLACES
    if not (isinstance(places, Lit) and isinstance(places.value, int) and not isinstance(places.value, bool)
            and abs(places.value) <= most):
        raise PredicateError(f"{at!r}: the number of decimal places of round() must be a constant from {-most} to "
                             f"{most} for {a.type}, not {places}")
    if isinstance(a.type, Float):
        return FloatCall(a.type, a, "round", places.value)
    return _multiple("round", a, Fraction(10) ** -places.value, at)


def _multiple(name: Literal["floor", "ceil", "round"], a: Expr, unit: Fraction, at: str) -> Expr:
    """The exact ``a`` as a multiple of ``unit``: the next one below, the next one above, or the nearest."""
    if (unit * denominator(a)).numerator == 1:
        return a
    if name == "floor":
        return arith("-", a, remainder("%", a, Lit(EXACT, whole(unit)), at), at)
    if name == "ceil":
        return neg(_multiple("floor", neg(a, at), unit, at), at)
    half, zero = Lit(EXACT, whole(unit / 2)), Lit(EXACT, 0)
    up = _multiple("floor", arith("+", a, half, at), unit, at)
    down = _multiple("ceil", arith("-", a, half, at), unit, at)
    return case([compare("<", a, zero, at)], [down], up, at)


def date_trunc(unit: Expr, a: Expr, at: str) -> Expr:
    """``date_trunc(unit, a)``: the timestamp at which the calendar unit begins in which ``a`` lies."""
    named = _unit(unit, "date_trunc", at)
    if isinstance(a, Lit) and a.value is None:
        return a
    _check_time(a, named, "date_trunc", at)
    type_ = started(a.type)
    assert type_ is not None
    return _constant(UnitStart(type_, a, named))


def date_diff(unit: Expr, start: Expr, end: Expr, at: str) -> Expr:
    """``date_diff(unit, start, end)``: the number of beginnings of units after ``start`` up to ``end``, negative where
    ``end`` is earlier; for weeks, as in DuckDB, the number of whole periods of seven days between the two days.
    """
    named = _unit(unit, "date_diff", at)
    times = [_as_time(x, beside, at) for x, beside in ((start, end), (end, start))]
    if any(isinstance(t, Lit) and t.value is None for t in times):
        return Lit(EXACT, None)
    for t in times:
        _check_time(t, named, "date_diff", at)
    zoned = [isinstance(t.type, Timestamp) and t.type.tz is not None for t in times]
    if any(zoned) and not all(zoned):
        raise PredicateError(f"{at!r}: a timestamp with a time zone cannot be combined with one without "
                             f"({times[0].type} and {times[1].type}); cast one of them before the join")
    first, last = (_constant(UnitNumber(EXACT, t, "day" if named == "week" else named)) for t in times)
    made = arith("-", last, first, at)
    return remainder("div", made, Lit(EXACT, 7), at) if named == "week" else made


def date_sub(unit: Expr, start: Expr, end: Expr, at: str) -> Expr:
    """``date_sub(unit, start, end)``: the number of whole units, of a fixed length, between two times."""
    per = UNIT_NS.get(_unit(unit, "date_sub", at).upper())
    if per is None:
        raise PredicateError(f"{at!r}: date_sub() takes units of a fixed length, from microseconds to weeks; "
                             f"date_diff() takes months, quarters and years, too")
    apart = date_diff(Lit(STRING, "microsecond"), start, end, at)
    return remainder("div", apart, Lit(EXACT, per // UNIT_NS["MICROSECOND"]), at)


def epoch(a: Expr, parts: int, at: str) -> Expr:
    """The time ``a`` since 1970, or the difference of two times, in units of which ``parts`` make a second: whole ones,
    to which times are rounded, halves away from zero, and differences towards zero, as in DuckDB. For 1, as ``epoch``
    has it, seconds in float64, and what is behind the point.
    """
    apart = isinstance(a, Arith) and a.op == "-" and isinstance(a.type, Duration)
    if isinstance(a, Arith) and apart:
        made = date_diff(Lit(STRING, "microsecond"), a.b, a.a, at)
    elif isinstance(a.type, (Date, Timestamp)) and UNIT_NS["MICROSECOND"] <= tick(a.type):
        made = UnitNumber(EXACT, a, "microsecond")
    else:
        raise PredicateError(f"{at!r}: the seconds since 1970 are those of dates, timestamps to the microsecond, and "
                             f"differences of two such, not of {a.type}")
    if parts == 1:
        return divide(to_float(made, FLOAT64, at), Lit(FLOAT64, 1e6), at) if not apart else to_float(
            arith("*", made, Lit(EXACT, Fraction(1, 10**6)), at), FLOAT64, at)  # times as DuckDB rounds them
    per = 10**6 // parts
    if apart or per == 1:
        return remainder("div", made, Lit(EXACT, per), at)
    half, unit = Lit(EXACT, per // 2), Lit(EXACT, per)
    down, up = (remainder("div", arith(op, made, half, at), unit, at) for op in ("-", "+"))
    return case([compare("<", made, Lit(EXACT, 0), at)], [down], up, at)


def _unit(unit: Expr, name: str, at: str) -> CalendarUnit:
    text = unit.value.lower().removesuffix("s") if isinstance(unit, Lit) and isinstance(unit.value, str) else None
    found = next((u for u in UNITS if u == text), None)
    if found is None:
        raise PredicateError(f"{at!r}: the unit of {name}() must be a constant text, one of {', '.join(UNITS)}, "
                             f"not {unit if isinstance(unit, Lit) else unit.type}")
    return found


def _as_time(a: Expr, beside: Expr, at: str) -> Expr:
    """``a``; a constant text beside a date or timestamp as one."""
    if isinstance(a, Lit) and isinstance(a.value, str) and isinstance(beside.type, (Date, Timestamp, TimeOfDay)):
        return time_literal(a.value, beside.type, at)
    return a


def _check_time(a: Expr, unit: CalendarUnit, name: str, at: str) -> None:
    """Raise `PredicateError` unless ``a`` is a time of which ``unit`` is the same for all engines."""
    if not isinstance(a.type, (Date, Timestamp)):
        raise PredicateError(f"{at!r}: {name}() needs dates or timestamps, not {a.type}")
    zone = a.type.tz if isinstance(a.type, Timestamp) else None
    if zone is None or unit in ("microsecond", "millisecond", "second"):
        return
    check_unit(unit, at)
    if zone not in UTC:
        raise PredicateError(f"{at!r}: in which {unit} a time lies depends on the time zone, and engines take the "
                             f"session's; {name}() needs a timestamp in UTC or without a zone, not {a.type}; convert "
                             f"the column before the join")


def _constant(e: Expr) -> Expr:
    """``e``, as a literal if it has no columns."""
    return Lit(e.type, constant(e)) if all(isinstance(x, Lit) for x in e.children) else e


def square_root(a: Expr, at: str) -> Expr:
    """``sqrt(a)`` in float64; NaN for negative numbers, as IEEE 754 says."""
    if not is_number(a.type):
        raise PredicateError(f"{at!r}: sqrt() needs a number, not {a.type}")
    return FloatCall(FLOAT64, to_float(a, FLOAT64, at), "sqrt")


def operation(name: str, args: Sequence[Expr], at: str) -> Expr:
    """Operation ``name`` of `splitjoin.lang.operations` on the integers ``args``."""
    common = _bit_type(args[0], args[-1], name, at)
    made = Call(OPERATIONS[name].type(common), name, common, tuple(args))
    return Lit(EXACT, constant(made)) if all(isinstance(a, Lit) for a in args) else made


def operation_of_two(name: str, a: Expr, b: Expr, at: str) -> Expr:
    """Operation ``name`` on two integers."""
    return operation(name, (a, b), at)


def complement(a: Expr, at: str) -> Expr:
    """``~a``: the bitwise complement."""
    type_ = _bit_type(a, a, "~", at)
    return operation("^", (a, Lit(EXACT, -1 if type_.signed else type_.range[1])), at)


def shift(op: Literal["<<", ">>"], a: Expr, by: Expr, at: str) -> Expr:
    """``a << by``, which multiplies by a power of two without overflow, or ``a >> by``, which rounds down."""
    type_ = _bit_type(a, a, op, at)
    is_whole = isinstance(by.type, Int) or (isinstance(by.type, Exact) and denominator(by) == 1)
    low, high = value_range(by) if is_whole else (-1, -1)
    if not 0 <= low <= high <= 63 or (isinstance(by, Lit) and by.value is None):
        said = f", but {by} can be {low} to {high}; write {by} & 63" if is_whole and low != high else f", not {by}"
        raise PredicateError(f"{at!r}: the number of places to shift by must be a whole number from 0 to 63{said}")
    e = Arith(EXACT if op == "<<" else type_, op, a, by)
    constants = isinstance(a, Lit) and a.value is not None and isinstance(by, Lit)
    return Lit(EXACT, whole(constant(e))) if constants else e


def _bit_type(a: Expr, b: Expr, op: str, at: str) -> Int:
    types = []
    for e in (a, b):
        t: Type | None = e.type
        if isinstance(e, Lit) and isinstance(t, Exact) and (e.value is None or isinstance(e.value, int)):
            t = _narrowest(e.value or 0, a.type if e is b else b.type)
        if not isinstance(t, Int):
            came = f"{a.type}" if a is b else f"{a.type} and {b.type}"
            raise PredicateError(f"{at!r}: {op!r} needs integer columns, bit operations on them, or integer literals, "
                                 f"not {came}")
        types.append(t)
    x, y = types
    if x.signed == y.signed:
        return x if x.bits >= y.bits else y
    signed, unsigned = (x, y) if x.signed else (y, x)
    width = max(signed.bits, 2 * unsigned.bits)
    if width > 64:
        raise PredicateError(f"{at!r}: {op!r} of {x} and {y} has no type of at most 64 bits that holds both; cast one "
                             f"before the join")
    return Int(width)


def _narrowest(value: int, beside: object) -> Int | None:
    """The type of a literal beside a value of type ``beside``: that one if it fits, else the narrowest that does."""
    choices = [beside] if isinstance(beside, Int) else []
    choices += [Int(n, signed) for n in (8, 16, 32, 64) for signed in (True, False)]
    for t in choices:
        low, high = t.range
        if low <= value <= high:
            return t
    return None


def _common(values: Sequence[Expr]) -> Type:
    types = {v.type for v in values if not (isinstance(v, Lit) and v.value is None)} or {v.type for v in values}
    if len(types) == 1:
        return next(iter(types))
    if all(isinstance(t, Timestamp) for t in types):
        return values[0].type  # of one unit; zones may differ, instants do not
    if all(isinstance(t, String) for t in types):  # of which some are ordered
        return STRING
    binaries = all(isinstance(t, Binary) for t in types)
    return Binary() if binaries else EXACT
