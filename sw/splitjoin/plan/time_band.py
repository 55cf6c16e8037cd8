"""`time_band`: the bounds that a condition itself sets to the event times of a pair, such as ``s.ts <= r.ts + 10``.

Each expression is taken for a linear one of both event times, plus an error between two limits: ``date_diff('second',
s.ts, r.ts)`` is the difference of the times in seconds, give or take one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, isfinite

from splitjoin.lang.calendar import tick
from splitjoin.lang.ir import (
    MIRRORED,
    NEGATED,
    Abs,
    And,
    Arith,
    Cast,
    Cmp,
    CmpOp,
    Col,
    Expr,
    FloatCall,
    Lit,
    Neg,
    Not,
    Or,
    UnitNumber,
    UnitStart,
)
from splitjoin.lang.schema import Side
from splitjoin.lang.time_columns import TimeColumns
from splitjoin.lang.types import UNIT_NS, Bool, Date, Duration, Float, Timestamp, Type, is_exact

#: The least and the greatest difference of R's time less S's, in ticks; None where there is no bound.
_Bounds = tuple["int | None", "int | None"]
_NONE: _Bounds = None, None
#: Nanoseconds of the longest unit of a name.
_LENGTHS = {**UNIT_NS, "MONTH": 31 * UNIT_NS["DAY"], "QUARTER": 92 * UNIT_NS["DAY"], "YEAR": 366 * UNIT_NS["DAY"]}
#: Rounding of floats: relative to 64 bits of a time, and to a constant.
_OF_TIMES, _OF_CONSTANTS = 1 << 12, Fraction(1, 1 << 50)


def time_band(predicate: Expr, time: TimeColumns) -> dict[Side, int | None]:
    """The lengths that windows must have to lose no pair of ``predicate``: for each stream the most ticks by which the
    other stream's tuple may come after its own one, at least 0; None where the condition does not say.

    They may be longer than need be, where a condition rounds times. Columns in different units give no bounds.
    """
    least, most = _bounds(predicate, time)
    return {"r": None if least is None else max(-least, 0), "s": None if most is None else max(most, 0)}


def _bounds(e: Expr, time: TimeColumns, negated: bool = False) -> _Bounds:
    """The bounds of pairs for which ``e`` is true, or false if ``negated``."""
    match e:
        case Not():
            return _bounds(e.a, time, not negated)
        case And() | Or():
            parts = [_bounds(part, time, negated) for part in e.args]
            if isinstance(e, And) != negated:
                return _intersected(parts)
            least, most = ([part[end] for part in parts] for end in (0, 1))
            return (None if None in least else min(x for x in least if x is not None),
                    None if None in most else max(x for x in most if x is not None))
        case Cmp() if not isinstance(e.a.type, Bool):
            return _compared(NEGATED[e.op] if negated else e.op, e.a, e.b, time)
    return _NONE


def _intersected(parts: Iterable[_Bounds]) -> _Bounds:
    found = list(parts)
    return (max((least for least, _ in found if least is not None), default=None),
            min((most for _, most in found if most is not None), default=None))


def _compared(op: CmpOp, a: Expr, b: Expr, time: TimeColumns) -> _Bounds:
    if isinstance(b, Abs):
        a, b, op = b, a, MIRRORED[op]
    if isinstance(a, Abs) and op in ("=", "<", "<="):  # −b op a.a op b
        return _intersected([_compared("<=" if op == "=" else op, a.a, b, time),
                             _compared("<=" if op == "=" else op, Neg(a.type, b), a.a, time)])
    left, right = _linear(a, time), _linear(b, time)
    if left is None or right is None or op == "<>":
        return _NONE
    apart = left.plus(right.times(-1))
    if not apart.r or apart.r + apart.s:
        return _NONE
    least, most = _ends(op, apart)
    return (least, most) if apart.r > 0 else (most, least)


def _ends(op: CmpOp, apart: _Linear) -> _Bounds:
    """The ends of the difference for which ``apart op 0``; the other way round if its factor is negative."""
    above, below = (-end / apart.r for end in (apart.low, apart.high))  # the difference is there if the value is 0
    upwards, found = apart.r > 0, list[int | None]([None, None])
    if op in ("<", "<=", "="):
        found[1] = _inside(above, op == "<", up=not upwards)
    if op in (">", ">=", "="):
        found[0] = _inside(below, op == ">", up=upwards)
    return found[0], found[1]


def _inside(end: Fraction, strict: bool, *, up: bool) -> int:
    """The whole number at ``end``, or the next one above (``up``) or below; if ``strict``, not ``end`` itself."""
    if up:
        return floor(end) + 1 if strict else ceil(end)
    return ceil(end) - 1 if strict else floor(end)


@dataclass(frozen=True)
class _Linear:
    """``r`` times R's event time, plus ``s`` times S's, both in ticks, plus an error from ``low`` to ``high``."""

    r: Fraction
    s: Fraction
    low: Fraction
    high: Fraction

    def plus(self, other: _Linear) -> _Linear:
        return _Linear(self.r + other.r, self.s + other.s, self.low + other.low, self.high + other.high)

    def times(self, factor: Fraction | int) -> _Linear:
        ends = self.low * factor, self.high * factor
        return _Linear(self.r * factor, self.s * factor, min(ends), max(ends))

    def between(self, low: Fraction | int, high: Fraction | int) -> _Linear:
        """With a further error from ``low`` to ``high``."""
        return _Linear(self.r, self.s, self.low + low, self.high + high)

    def rounded(self, to: Float) -> _Linear | None:
        """As a float; None for one of 32 bits, which holds no times."""
        if to.bits < 64:
            return None
        error = (abs(self.r) + abs(self.s)) * _OF_TIMES + max(abs(self.low), abs(self.high)) * _OF_CONSTANTS
        return self.between(-error, error)

    @property
    def constant(self) -> Fraction | None:
        return self.low if not self.r and not self.s and self.low == self.high else None


_ZERO = _Linear(Fraction(0), Fraction(0), Fraction(0), Fraction(0))


def _linear(e: Expr, time: TimeColumns) -> _Linear | None:
    """The value of ``e``, of times and durations in ticks of their types; None if it is not linear."""
    match e:
        case Lit():
            known = is_exact(e.type) or isinstance(e.type, (Float, Date, Timestamp, Duration))
            if not known or not isinstance(e.value, (int, float, Fraction)) or not isfinite(e.value):
                return None
            return _ZERO.between(Fraction(e.value), Fraction(e.value))
        case Col():
            if e.name != time.name(e.side):
                return None
            return replace(_ZERO, r=Fraction(1)) if e.side == "r" else replace(_ZERO, s=Fraction(1))
        case Neg():
            a = _linear(e.a, time)
            return None if a is None else a.times(-1)
        case Arith():
            return _arithmetic(e, time)
        case Cast() | FloatCall() | UnitNumber() | UnitStart():
            a = _linear(e.a, time)
            return None if a is None else _of_one(e, a)
    return None


def _of_one(e: Cast | FloatCall | UnitNumber | UnitStart, a: _Linear) -> _Linear | None:
    """The value of ``e``, whose operand is ``a``."""
    match e:
        case Cast():
            a = a.times(_ticks(e.a.type, e.type))
            return a.rounded(e.type) if isinstance(e.type, Float) else a
        case FloatCall():
            unit = Fraction(10) ** -e.places
            errors = {"floor": (Fraction(-1), Fraction(0)), "ceil": (Fraction(0), Fraction(1)),
                      "round": (-unit / 2, unit / 2)}
            found = a.rounded(e.type) if e.function in errors and isinstance(e.type, Float) else None
            return None if found is None else found.between(*errors[e.function])
        case UnitNumber():
            if (length := UNIT_NS.get(e.unit.upper())) is None:
                return None
            part = Fraction(tick(e.a.type), length)
            # Weeks begin on a Monday, and 1970 on a Thursday.
            return a.times(part).between(min(part - 1, Fraction(0)), e.unit == "week")
        case UnitStart():
            length = _LENGTHS[e.unit.upper()]
            back = max(Fraction(length - tick(e.a.type), tick(e.type)), Fraction(0))
            return a.times(_ticks(e.a.type, e.type)).between(-back, 0)


def _ticks(a: Type, to: Type) -> Fraction:
    """The factor from ticks of the type ``a`` to those of ``to``; 1 for numbers."""
    times = (Date, Timestamp, Duration)
    return Fraction(tick(a), tick(to)) if isinstance(a, times) and isinstance(to, times) else Fraction(1)


def _arithmetic(e: Arith, time: TimeColumns) -> _Linear | None:
    if e.op in ("mod", "%"):
        by = _constant(e.b, time)
        return _ZERO.between(-abs(by) if e.op == "mod" or by < 0 else 0, abs(by)) if by else None
    a, b = _linear(e.a, time), _linear(e.b, time)
    if a is None or b is None:
        return None
    found: _Linear | None = None
    if e.op in ("+", "-"):
        # A whole number beside a date counts days; durations and times have one unit.
        found = a.plus(b if e.op == "+" else b.times(-1))
    elif e.op == "*" and (by := a.constant if a.constant is not None else b.constant) is not None:
        found = (b if a.constant is not None else a).times(by)
    elif e.op in ("/", "div", "//") and b.constant:
        found = a.times(1 / b.constant)
        found = found if e.op == "/" else found.between(-1, 0 if e.op == "//" else 1)
    return found.rounded(e.type) if found is not None and isinstance(e.type, Float) else found


def _constant(e: Expr, time: TimeColumns) -> Fraction | None:
    found = _linear(e, time)
    return None if found is None else found.constant
