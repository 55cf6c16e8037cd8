"""Implicit conversions of type rules: numbers to floats, and times to other units."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import cast

import numpy as np

from splitjoin.base.errors import PredicateError

from .ir import Cast, Expr, Lit
from .types import FLOAT64, TIME_UNITS, Duration, Float, Timestamp, TimeUnit, finer, units_per


def to_float(e: Expr, type_: Float, at: str) -> Expr:
    """The number ``e`` as a float of ``type_``."""
    if e.type == type_:
        return e
    if isinstance(e, Lit):
        if e.value is None:
            return Lit(type_, None)
        try:
            wide = float(cast(Fraction, e.value))
            if type_ == FLOAT64:
                return Lit(type_, wide)
            with np.errstate(over="raise"):
                return Lit(type_, _round_to_float32(cast(Fraction, e.value), np.float32(wide)))
        except (OverflowError, FloatingPointError):
            raise PredicateError(f"{at!r}: a literal must fit the {type_} it is combined with, but this one is too "
                                 f"large") from None
    return Cast(type_, e)


def _round_to_float32(exact: int | Fraction, near: np.float32) -> float:
    """The float32 nearest to ``exact``: ``near`` or one of its neighbours.

    ``near`` was rounded twice, to float64 and to float32, and so may be a neighbour of the nearest.
    """
    with np.errstate(over="ignore"):  # the largest has infinity above it
        around = near, np.nextafter(near, np.float32("-inf")), np.nextafter(near, np.float32("inf"))
    candidates = [float(c) for c in around if np.isfinite(c)]
    return min(candidates, key=lambda c: (abs(Fraction(c) - exact), int(np.float32(c).view(np.uint32)) & 1))


def to_unit(e: Expr, unit: TimeUnit) -> Expr:
    """The timestamp or duration ``e`` in ``unit``, as fine as its own or finer."""
    t = e.type
    assert isinstance(t, (Timestamp, Duration))
    if t.unit == unit:
        return e
    type_ = replace(t, unit=unit)
    if isinstance(e, Lit):
        return Lit(type_, None if e.value is None else cast(int, e.value) * units_per(t.unit, unit))
    return Cast(type_, e)


def _coarsest(e: Expr) -> Expr:
    """A time literal in the coarsest unit that holds it, so that columns are not converted to a finer unit in vain."""
    if isinstance(e, Lit) and isinstance(e.type, (Timestamp, Duration)) and isinstance(e.value, int):
        for unit in ("s", "ms", "us"):
            n = TIME_UNITS[unit] // TIME_UNITS[e.type.unit]
            if n > 0 and e.value % n == 0:
                return Lit(replace(e.type, unit=unit), e.value // n)
    return e


def same_unit(a: Expr, b: Expr, at: str) -> tuple[Expr, Expr, TimeUnit]:
    """Two times in the finer of their units, and that unit. Raises `PredicateError` if only one has a time zone."""
    a, b = _coarsest(a), _coarsest(b)
    ta, tb = a.type, b.type
    assert isinstance(ta, (Timestamp, Duration))
    assert isinstance(tb, (Timestamp, Duration))
    if isinstance(ta, Timestamp) and isinstance(tb, Timestamp) and (ta.tz is None) != (tb.tz is None):
        raise PredicateError(f"{at!r}: a timestamp with a time zone cannot be combined with one without ({ta} and "
                             f"{tb}); cast one of them before the join, or over tables write x AT TIME ZONE 'UTC'")
    unit = finer(ta.unit, tb.unit)
    return to_unit(a, unit), to_unit(b, unit), unit
