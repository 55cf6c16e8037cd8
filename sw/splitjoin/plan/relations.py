"""Monotone bounds: a probe's relation to the other stream's key as an exact closed interval of codes.

For whole numbers the interval is computed. For floats it is found by bisection over the codes, with the expression
itself evaluated in IEEE 754. Rounding is monotone, so the keys that satisfy the comparison form an interval, whose ends
are exact to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Union

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Array, Mask
from splitjoin.lang.eval.vector import Vector, magnitude, widen
from splitjoin.lang.ir import MIRRORED, Arith, Cast, CmpOp, Expr, Lit, Neg
from splitjoin.lang.types import Float

from .keys import Codes, ExactKey, FloatKey, Key, PrefixKey, WideKey, float_codes, float_values
from .linear import ExactRelation

#: Lowest and highest code (n,), both included; empty where the first is greater.
Interval = tuple[Codes, Codes]
Rows = npt.NDArray[np.intp]

#: Distance in codes from a guess that is tried first: real arithmetic is rarely further off than a few roundings.
_NEAR = 4
#: How the one operand may compare with the other where an operator is true.
_SIGNS = {"<": {-1}, "<=": {-1, 0}, "=": {0}, ">=": {0, 1}, ">": {1}}


@dataclass(frozen=True)
class FloatOrder:
    """``R op S`` for one float key of each stream, op one of ``<= < >= > =``."""

    op: CmpOp


@dataclass(frozen=True)
class FloatBand:
    """``expr op constant`` where ``expr`` reads one float key of each stream, ``r`` and ``s``, monotone in both."""

    expr: Expr
    r: Expr
    s: Expr
    op: CmpOp
    constant: float


@dataclass(frozen=True)
class EqualText:
    """``R op S`` for one text of each stream, op one of ``= < >`` (the latter as halves of ``<>``)."""

    op: CmpOp


@dataclass(frozen=True)
class TextOrder:
    """``R op S`` for one text of each stream, op one of ``<= < >= > =``, by their first bytes.

    The interval of a probe whose code several texts share also holds that code. Unless the keys are exact, op is not
    ``=``.
    """

    op: CmpOp


@dataclass(frozen=True)
class WideRelation:
    """``exact`` between keys, of which one or both lack their lowest bits, so its intervals are slightly too wide."""

    exact: ExactRelation


@dataclass(frozen=True)
class Product:
    """``R·S op bound`` for one whole number of each stream, op one of ``<= >= =``."""

    op: CmpOp
    bound: int


@dataclass(frozen=True)
class Unit:
    """The relation that is always true."""


Relation = Union[ExactRelation, FloatOrder, FloatBand, EqualText, TextOrder, Product, WideRelation, Unit]


def exclude(some: Sequence[Relation], others: Sequence[Relation]) -> bool:
    """True if no pair of keys is known to meet all relations of both lists, which are of the same keys."""
    return any(_exclude(a, b) for a in some for b in others)


def _exclude(a: Relation, b: Relation) -> bool:
    if isinstance(a, ExactRelation) and isinstance(b, ExactRelation) and (a.g, a.h) == (b.g, b.h):
        at, to = -a.c, -b.c  # both compare g·R + h·S
        return at < to if (a.op, b.op) == ("<=", ">=") else at > to if (a.op, b.op) == (">=", "<=") else (
            a.op == "=" and not {"<=": at <= to, ">=": at >= to, "=": at == to}[b.op]) or (
            b.op == "=" != a.op and _exclude(b, a))
    if isinstance(a, (FloatOrder, TextOrder, EqualText)) and isinstance(b, type(a)):
        return not _SIGNS[a.op] & _SIGNS[b.op]
    return False


def tightest(relations: Sequence[Relation]) -> list[Relation]:
    """``relations`` of the same keys without those that others of them imply; the order stays."""
    def implies(b: Relation, a: Relation) -> bool:
        if isinstance(a, ExactRelation) and isinstance(b, ExactRelation):
            further = a.c - b.c if a.op == ">=" else b.c - a.c  # 0 for the same end
            return (a.g, a.h) == (b.g, b.h) and a.op != "=" and (
                further > 0 if a.op == b.op else further >= 0 and b.op == "=")
        return isinstance(a, (FloatOrder, TextOrder)) and isinstance(b, type(a)) and _SIGNS[a.op] > _SIGNS[b.op]

    return [a for a in relations if not any(implies(b, a) for b in relations)]


def united(alternatives: Sequence[Sequence[Relation]]) -> list[tuple[Relation, ...]]:
    """Those of ``alternatives`` of the same keys, one of which must hold, with one in place of all exact ones whose
    ranges of ``g·R + h·S`` touch: ``x = a OR x = a + 1`` is a range of two.
    """
    ranges, others = dict[ExactRelation, list[tuple[float, float]]](), list[tuple[Relation, ...]]()
    for relations in alternatives:
        alike = {replace(of, c=0, op="=") for of in relations if isinstance(of, ExactRelation)}
        if len(alike) != 1 or not all(isinstance(of, ExactRelation) for of in relations):
            others.append(tuple(relations))
            continue
        ends = [(of.op, of.c) for of in relations if isinstance(of, ExactRelation)]
        ranges.setdefault(alike.pop(), []).append((max((c for op, c in ends if op != ">="), default=-inf),
                                                   min((c for op, c in ends if op != "<="), default=inf)))
    for of, pieces in ranges.items():
        joint = list[tuple[float, float]]()
        for low, high in sorted(pieces):
            if joint and low <= joint[-1][1] + 1:
                low, high = joint[-1][0], max(high, joint.pop()[1])
            joint.append((low, high))
        if (-inf, inf) in joint:  # which no relation says
            return [tuple(relations) for relations in alternatives]
        for low, high in joint:
            ends_of: list[tuple[CmpOp, float]] = [("=", low)] if low == high else [("<=", low), (">=", high)]
            others.append(tuple(replace(of, c=int(c), op=op) for op, c in ends_of if abs(c) < inf))
    return others


def interval(relation: Relation, side: str, probe: Vector, probe_key: Key, key: Key) -> Interval:
    """The codes of ``key`` (the other stream's) for which ``relation`` holds, for each value of a probe of ``side``.

    Values of NULL probes give meaningless intervals; the caller empties them.
    """
    match relation:
        case ExactRelation():
            assert isinstance(key, ExactKey)
            return _exact(relation, side, probe.values, key, key)
        case WideRelation():
            assert isinstance(key, (ExactKey, WideKey))
            return _exact(relation.exact, side, probe.values, key.exact if isinstance(key, WideKey) else key, key)
        case Product():
            assert isinstance(key, ExactKey)
            return _product(relation, probe.values, key)
        case FloatOrder() | EqualText() | TextOrder():
            codes = probe_key.encode(probe)
            low = key.low_code if isinstance(key, FloatKey) else 1
            high = key.high_code if isinstance(key, FloatKey) else 2**key.width - 1
            op = relation.op if side == "s" else MIRRORED[relation.op]
            if isinstance(key, PrefixKey) and op in ("<", ">"):
                return _texts(op, codes, key.is_whole(codes), high)
            return _ordered(op, codes, low, high)
        case FloatBand():
            assert isinstance(key, FloatKey)
            return _bisect(relation, side, probe.values, key)
        case Unit():
            ones = np.ones(len(probe.values), np.uint64)
            return ones, ones


def _ordered(op: CmpOp, codes: Codes, low: int, high: int) -> Interval:
    """``key op code`` as an interval."""
    bottom, top = np.full(len(codes), low, np.uint64), np.full(len(codes), high, np.uint64)
    one = np.uint64(1)
    match op:
        case "<=":
            return bottom, codes
        case ">=":
            return codes, top
        case "=":
            return codes, codes
        case "<":
            return bottom, codes - one  # codes start at 1, so this does not wrap
        case ">":
            # Nothing is above the largest code: the interval is empty, as adding one might wrap.
            at_top = codes >= high
            return np.where(at_top, np.uint64(high), codes + one), np.where(at_top, np.uint64(0), top)
    raise AssertionError(op)


def _texts(op: CmpOp, codes: Codes, whole: Mask, high: int) -> Interval:
    """``key op code`` as an interval from 1 to ``high``; with the code itself where not ``whole``."""
    apart = _ordered(op, codes, 1, high)
    beside = _ordered("<=" if op == "<" else ">=", codes, 1, high)
    return np.where(whole, apart[0], beside[0]), np.where(whole, apart[1], beside[1])


def _exact(relation: ExactRelation, side: str, values: Array, key: ExactKey, coded: ExactKey | WideKey) -> Interval:
    mine, theirs = relation.factors(side)
    # theirs · key op −(mine · value + c) All intermediate results must fit int64 as well, the ends of the key's range
    # included.
    values = widen(values, max(magnitude(values) * abs(mine) + abs(relation.c), abs(theirs), -key.low - 1, key.high))
    sign, op = (-1, MIRRORED[relation.op]) if theirs < 0 else (1, relation.op)
    factor, constant, theirs = -mine * sign, -relation.c * sign, abs(theirs)
    target = values if factor == 1 and values.dtype == np.int64 else factor * values
    if constant:
        target = target + constant
    floor = target if theirs == 1 else target // theirs  # division takes long
    ceil = target if theirs == 1 else -(-target // theirs)
    if op == "=":
        return _clipped(ceil, floor, key, coded)
    return _one_ended(op, ceil if op == ">=" else floor, key, coded)


def _one_ended(op: str, ends: Array, key: ExactKey, coded: ExactKey | WideKey) -> Interval:
    """As `_clipped`, of intervals whose other end is that of the key's range: ``ends`` and above if ``op`` is >=, and
    up to ``ends`` if it is <=.
    """
    if ends.dtype == np.int64 and len(ends):
        if op == ">=" and ends.max() <= key.high:
            return coded.code(np.maximum(ends, key.low)), np.broadcast_to(
                coded.code(np.array([key.high])), len(ends)).copy()
        if op == "<=" and ends.min() >= key.low:
            return np.broadcast_to(coded.code(np.array([key.low])), len(ends)).copy(), coded.code(
                np.minimum(ends, key.high))
    low = ends if op == ">=" else np.full(len(ends), key.low, ends.dtype)
    return _clipped(low, ends if op == "<=" else np.full(len(ends), key.high, ends.dtype), key, coded)


def _product(relation: Product, values: Array, key: ExactKey) -> Interval:
    # All intermediate results must fit int64 as well, the quotients and the ends of the key's range included.
    values = widen(values, max(magnitude(values), abs(relation.bound) + 1, -key.low, key.high))
    bound, op = relation.bound, relation.op
    divisor = np.where(values == 0, 1, values)
    floor, ceil = bound // divisor, -(-bound // divisor)
    least, most = (np.full(len(values), end, values.dtype) for end in (key.low, key.high))
    # Division by a negative number reverses the comparison.
    rising, at_most, at_least = values > 0, op in ("<=", "="), op in (">=", "=")
    low = np.where(rising, ceil if at_least else least, ceil if at_most else least)
    high = np.where(rising, floor if at_most else most, floor if at_least else most)
    # Times zero is zero: all keys, or none.
    every = {"<=": bound >= 0, ">=": bound <= 0, "=": bound == 0}[op]
    zero = values == 0
    low, high = np.where(zero, least, low), np.where(zero, most if every else least - 1, high)
    return _clipped(low, high, key, key)


def _clipped(low: Array, high: Array, key: ExactKey, coded: ExactKey | WideKey) -> Interval:
    """Whole numbers from ``low`` to ``high`` as an interval of codes."""
    if low.dtype == np.int64 and len(low) and low.max() <= key.high and high.min() >= key.low and (low <= high).all():
        return coded.code(np.maximum(low, key.low)), coded.code(np.minimum(high, key.high))
    empty = (low > key.high) | (high < key.low) | (low > high)
    least, most = np.maximum(low, key.low), np.minimum(high, key.high)
    # Outside the key's range the clipped ends are meaningless; these intervals are empty anyway.
    lows = coded.code(np.where(empty, key.low, least))
    highs = coded.code(np.where(empty, key.low, most))
    empty = empty.astype(np.bool_)
    return np.where(empty, np.uint64(2**coded.width - 1), lows), np.where(empty, np.uint64(0), highs)


def _bisect(relation: FloatBand, side: str, values: Array, key: FloatKey) -> Interval:
    n = len(values)
    low, high = key.low_code, key.high_code

    def holds(codes: Codes, of: slice | Rows = slice(None)) -> Mask:
        """True where the relation holds between probes ``of`` and keys of ``codes``."""
        keys = float_values(codes, key.bits, key.nan_low)
        r, s = (values[of], keys) if side == "r" else (keys, values[of])
        return _satisfies(_float(relation.expr, relation, r, s), relation.op, relation.constant)

    if relation.op == "=":
        parts = [_bisect(FloatBand(relation.expr, relation.r, relation.s, op, relation.constant), side, values, key)
                 for op in ("<=", ">=")]
        return np.maximum(parts[0][0], parts[1][0]), np.minimum(parts[0][1], parts[1][1])

    at_low, at_high = holds(np.full(n, low, np.uint64)), holds(np.full(n, high, np.uint64))
    # The truth is monotone in the code: true up to some code (prefix), from some code on (suffix), everywhere or
    # nowhere.
    a, b = np.full(n, low, np.uint64), np.full(n, high, np.uint64)  # the truth at a is at_low, at b at_high
    # Real arithmetic gives a guess of where to search. An end that it suggests is used only if the truth there fits.
    guess = np.clip(_guess(relation, side, values, key), np.uint64(low), np.uint64(high))
    below = guess - np.minimum(guess - np.uint64(low), np.uint64(_NEAR))
    above = guess + np.minimum(np.uint64(high) - guess, np.uint64(_NEAR))
    np.copyto(a, below, where=holds(below) == at_low)
    np.copyto(b, above, where=(holds(above) == at_high) & (above > a))
    _narrow(a, b, at_low, holds)
    lows = np.where(at_low, np.uint64(low), b)
    highs = np.where(at_high, np.uint64(high), a)
    nowhere = ~at_low & ~at_high
    return np.where(nowhere, np.uint64(2**key.width - 1), lows), np.where(nowhere, np.uint64(0), highs)


def _narrow(a: Codes, b: Codes, at_low: Mask, holds: Callable[..., Mask]) -> None:
    """Bisect in place until ``a`` and ``b`` are neighbours between which the truth changes."""
    rows: Rows = np.flatnonzero(b - a > 1)
    while len(rows):
        x, y = a[rows], b[rows]
        middle = x + (y - x) // np.uint64(2)
        same = holds(middle, rows) == at_low[rows]
        a[rows] = np.where(same, middle, x)
        b[rows] = np.where(same, y, middle)
        rows = rows[b[rows] - a[rows] > 1]


def _guess(relation: FloatBand, side: str, values: Array, key: FloatKey) -> Codes:
    """The approximate code of the key at which ``expr`` crosses ``constant``, by real arithmetic."""
    by_r, by_s, rest = coefficients(relation)
    mine, theirs = (by_r, by_s) if side == "r" else (by_s, by_r)
    with np.errstate(all="ignore"):
        keys = (relation.constant - rest - mine * values.astype(np.float64)) / theirs
        narrow = keys.astype(np.float32 if key.bits == 32 else np.float64)
    return float_codes(narrow, key.bits, key.nan_low)


def coefficients(relation: FloatBand) -> tuple[float, float, float]:
    """The relation's expression as a·R + b·S + c in real numbers: (a, b, c)."""
    return _coefficients(relation.expr, relation)


def _coefficients(e: Expr, relation: FloatBand) -> tuple[float, float, float]:
    if e == relation.r:
        return 1, 0, 0
    if e == relation.s:
        return 0, 1, 0
    match e:
        case Lit():
            assert isinstance(e.value, (int, float))
            return 0, 0, float(e.value)
        case Neg():
            a, b, c = _coefficients(e.a, relation)
            return -a, -b, -c
        case Cast():
            return _coefficients(e.a, relation)
        case Arith():
            x, y = _coefficients(e.a, relation), _coefficients(e.b, relation)
            if e.op == "*":  # one of them is a constant
                return x[0] * y[2] + y[0] * x[2], x[1] * y[2] + y[1] * x[2], x[2] * y[2]
            sign = 1 if e.op == "+" else -1
            return x[0] + sign * y[0], x[1] + sign * y[1], x[2] + sign * y[2]
    raise AssertionError(e)


def _satisfies(values: Array, op: CmpOp, constant: float) -> Mask:
    nan: Mask = np.isnan(values)  # greater than any constant
    with np.errstate(invalid="ignore"):
        met: Mask = {"<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater}[op](values, constant)
    return met & ~nan if op in ("<=", "<") else met | nan


def _float(e: Expr, relation: FloatBand, r: Array, s: Array) -> Array:
    """The value of ``e`` for given keys of both streams."""
    if e == relation.r:
        return r
    if e == relation.s:
        return s
    match e:
        case Lit():
            assert isinstance(e.type, Float) and isinstance(e.value, (int, float))
            return np.asarray(e.value, np.float32 if e.type.bits == 32 else np.float64)
        case Neg():
            return -_float(e.a, relation, r, s)
        case Cast():
            return _float(e.a, relation, r, s).astype(np.float64)
        case Arith():
            a, b = _float(e.a, relation, r, s), _float(e.b, relation, r, s)
            with np.errstate(all="ignore"):
                result: Array = {"+": np.add, "-": np.subtract, "*": np.multiply}[e.op](a, b)
                return result
    raise AssertionError(e)
