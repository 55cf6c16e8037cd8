"""Float conditions over both streams as numbers, by which a compiled bisection finds their bounds
(``float_bisection.hpp``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.lang.eval.vector import Vector
from splitjoin.lang.ir import Arith, Cast, Expr, Lit, Neg
from splitjoin.lang.schema import SIDES, other_side
from splitjoin.lang.types import Float
from splitjoin.plan.encoding import Coder
from splitjoin.plan.keys import FloatKey
from splitjoin.plan.plan import Plan
from splitjoin.plan.relations import FloatBand, Interval, Relation, coefficients

from ..loops import loops

#: The steps of an expression at most.
_MOST = 32


class BisectingCoder(Coder):
    """A `Coder` with the bounds of float bands by the compiled bisection."""

    def __init__(self, plan: Plan):
        super().__init__(plan)
        self._bands = bands_of(plan)

    def intervals(self, side: str, test: int, relations: Sequence[Relation], v: Vector) -> list[Interval]:
        """The intervals of `Coder.intervals`, with one for all float bands."""
        words = self._bands.get((test, side))
        if words is None or v.values.dtype.kind != "f":
            return super().intervals(side, test, relations, v)
        low, high = np.empty((2, len(v.values)), np.uint64)
        loops()["band_bounds"](np.ascontiguousarray(v.values, np.float64), words, low, high)
        return [(low, high), *super().intervals(side, test, [
            of for of in relations if not isinstance(of, FloatBand)], v)]


def bands_of(plan: Plan) -> Mapping[tuple[int, str], Ints]:
    """The float bands of ``plan`` by test and probing stream, as `bisection_words`."""
    found = dict[tuple[int, str], Ints]()
    for j, test in enumerate(plan.tests):
        bands = [relation for relation in test.relations if isinstance(relation, FloatBand)]
        for side in SIDES if bands else ():
            key = plan.slots(other_side(side))[test.slot(other_side(side))].key
            assert isinstance(key, FloatKey)
            if (words := bisection_words(bands, side, key)) is not None:
                found[j, side] = words
    return found


def bisection_words(bands: Sequence[FloatBand], side: str, key: FloatKey) -> Ints | None:
    """``FloatBounds`` of ``bands``, for probes of stream ``side`` and the other stream's ``key``; None if an expression
    has too many steps, or is compared with NaN.
    """
    halves = [FloatBand(band.expr, band.r, band.s, op, band.constant)
              for band in bands for op in (("<=", ">=") if band.op == "=" else (band.op,))]
    words: list[int] = [len(halves), key.bits, key.low_code, key.high_code, 1 if key.nan_low else 2**key.bits - 1]
    for band in halves:
        steps: list[tuple[str, int, int, int, float]] = []
        _ = _last_of(band.expr, band, side, steps)
        if len(steps) > _MOST or math.isnan(band.constant):
            return None
        by_r, by_s, rest = coefficients(band)
        mine, theirs = (by_r, by_s) if side == "r" else (by_s, by_r)
        above, narrow = band.op in (">", ">="), bool(steps[-1][3])
        limit = _limit(_rounded(band.constant, band.expr), band.op in ("<", ">="), narrow)
        words += [above, above == (theirs > 0), len(steps) == 1 and steps[0][0] in "+-" and narrow == (key.bits == 32),
                  len(steps), *map(_bits, (limit, _threshold(band) - rest, mine, theirs))]
        for op, a, b, is_narrow, constant in steps:
            words += [ord(op), a, b, is_narrow, _bits(constant)]
    return np.array([word % 2**64 for word in words], np.uint64).view(np.int64)


def _last_of(e: Expr, band: FloatBand, side: str, steps: list[tuple[str, int, int, int, float]]) -> int:
    """The number of the value of ``e``: 0 the probe's, 1 the key, and then those of ``steps``, to which its own are
    added.
    """
    if e in (band.r, band.s):
        return int((e == band.r) != (side == "r"))
    a = b = 0
    constant = 0.0
    match e:
        case Cast():  # a wider float, which all are here
            return _last_of(e.a, band, side, steps)
        case Lit():
            assert isinstance(e.value, (int, float))
            op, constant = "c", _rounded(float(e.value), e)
        case Neg():
            op, a = "~", _last_of(e.a, band, side, steps)
        case Arith():
            op, a, b = e.op, _last_of(e.a, band, side, steps), _last_of(e.b, band, side, steps)
        case _:
            raise AssertionError(e)
    steps.append((op, a, b, int(_is_narrow(e)), constant))
    return len(steps) + 1


def _limit(constant: float, below: bool, narrow: bool) -> float:
    """The greatest float, of 32 bits if ``narrow``, that is at most ``constant``, or ``below`` it; NaN if none is."""
    kind = np.float32 if narrow else np.float64
    with np.errstate(over="ignore"):
        limit = kind(constant)
    if float(limit) > constant or (below and float(limit) == constant):  # NumPy would round the constant
        limit = np.nextafter(limit, kind(-np.inf))
    return math.nan if below and constant == -math.inf else float(limit)


def _is_narrow(e: Expr) -> bool:
    return isinstance(e.type, Float) and e.type.bits == 32


def _rounded(value: float, e: Expr) -> float:
    """``value`` as the type of ``e`` has it."""
    with np.errstate(over="ignore"):
        return float(np.float32(value)) if _is_narrow(e) else value


def _bits(value: float) -> int:
    return int(np.array(value, np.float64).view(np.uint64))


def _threshold(band: FloatBand) -> float:
    """The real number at which the condition changes: the boundary between rounding to the last narrow float that meets
    it and to the next one.
    """
    inner = band.expr
    while isinstance(inner, Cast):
        inner = inner.a
    if not _is_narrow(inner):
        return band.constant
    rising = band.op in ("<=", ">")
    with np.errstate(over="ignore"):
        near = np.float32(band.constant)
        outward = np.float32(np.inf if rising else -np.inf)
        if (float(near) > band.constant) if rising else (float(near) < band.constant):
            near = np.nextafter(near, -outward)
        middle = (float(near) + float(np.nextafter(near, outward))) / 2
    return middle if math.isfinite(middle) else band.constant
