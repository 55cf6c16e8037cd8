"""Linear forms of exact comparisons: ``total op 0`` in whole numbers, and as a relation of one key of each stream.

``2 * r.x - s.a <= 10`` becomes the relation ``g·R + h·S + c (≤ | = | ≥) 0`` of two keys, each a sum of terms of one
stream as an unsigned integer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.lang.eval.vector import Vector, constant, evaluate, magnitude, widen
from splitjoin.lang.ir import MIRRORED, Arith, Cast, Cmp, CmpOp, Expr, Lit, Neg, sides
from splitjoin.lang.properties import denominator, may_be_null, value_range
from splitjoin.lang.schema import Side
from splitjoin.lang.types import BOOL, EXACT, Duration, Int, Timestamp, units_per

#: Codes of keys (n,).
Codes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class LinearTerm:
    """``factor`` times a one-sided expression; the product is a whole number for every tuple.

    ``scale`` makes the expression itself whole (decimals): the value used is ``expr · scale``.
    """

    factor: int
    expr: Expr
    scale: int = 1


@dataclass(frozen=True)
class ExactRelation:
    """``g·R + h·S + c op 0`` with R and S the sums of the terms of each stream; g, h ≠ 0, op one of ``<= >= =``."""

    r: tuple[LinearTerm, ...]
    s: tuple[LinearTerm, ...]
    g: int
    h: int
    c: int
    op: CmpOp

    def terms(self, side: str) -> tuple[LinearTerm, ...]:
        """The key of stream ``side``."""
        return self.r if side == "r" else self.s

    def factors(self, side: str) -> tuple[int, int]:
        """The factors of (stream ``side``'s key, the other stream's key)."""
        return (self.g, self.h) if side == "r" else (self.h, self.g)


class Total:
    """``constant`` plus factors times expressions: ``terms``, each of one stream, or of both and not linear."""

    def __init__(self, terms: Mapping[Expr, Fraction], constant: Fraction):
        self.terms = {e: f for e, f in terms.items() if f}
        self.constant = constant

    @classmethod
    def of(cls, e: Expr) -> Total:
        """The total of ``e``, which is exact."""
        terms: dict[Expr, Fraction] = {}
        rest = _collect(e, Fraction(1), terms)
        return cls(terms, rest)

    @classmethod
    def compared(cls, cmp: Cmp) -> tuple[Total, CmpOp]:
        """``cmp``, a comparison of exact values other than ``<>``, as ``total op 0`` with op ``<=`` or ``=``; the total
        is whole.
        """
        a, b = Total.of(cmp.a), Total.of(cmp.b)
        if cmp.op in (">", ">="):
            a, b = b, a
        total = a.plus(b, -1).whole()
        strict = cmp.op in ("<", ">")  # for whole numbers: < n is <= n − 1
        return Total(total.terms, total.constant + strict), "=" if cmp.op == "=" else "<="

    @property
    def mixed(self) -> tuple[Expr, ...]:
        """The terms that read both streams."""
        return tuple(e for e in self.terms if len(sides(e)) == 2)

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest value."""
        low = high = self.constant
        for e, f in self.terms.items():
            a, b = sorted(f * x for x in value_range(e))
            low, high = low + a, high + b
        return low, high

    def plus(self, other: Total, factor: int | Fraction = 1) -> Total:
        """``self + factor · other``."""
        terms = dict(self.terms)
        for e, f in other.terms.items():
            terms[e] = terms.get(e, Fraction(0)) + factor * f
        return Total(terms, self.constant + factor * other.constant)

    def times(self, factor: int | Fraction) -> Total:
        """``factor · self``."""
        return Total({e: f * factor for e, f in self.terms.items()}, self.constant * factor)

    def ratio(self, other: Total) -> Fraction | None:
        """The factor by which ``other`` must be multiplied to equal ``self``; None if there is none."""
        if self.terms.keys() != other.terms.keys() or not self.terms:
            return None
        first = next(iter(self.terms))
        factor = self.terms[first] / other.terms[first]
        same = other.times(factor)
        return factor if same.terms == self.terms and same.constant == self.constant else None

    def only(self, side: Side) -> Total:
        """The terms of stream ``side`` alone, without the constant."""
        return Total({e: f for e, f in self.terms.items() if sides(e) == {side}}, Fraction(0))

    def without(self, *terms: Expr) -> Total:
        """All but ``terms``."""
        return Total({e: f for e, f in self.terms.items() if e not in terms}, self.constant)

    @property
    def unit(self) -> int:
        """The least number by which all terms and the constant become whole numbers for every pair of tuples."""
        return math.lcm(self.constant.denominator, *((f / denominator(e)).denominator for e, f in self.terms.items()))

    def whole(self) -> Total:
        """A positive multiple whose terms and constant are whole numbers for every pair of tuples."""
        return self.times(self.unit)

    def expr(self) -> Expr:
        """The total as an expression."""
        parts = [e if f == 1 else Arith(EXACT, "*", e, _number(f)) for e, f in self.terms.items()]
        if self.constant or not parts:
            parts.append(_number(self.constant))
        made = parts[0]
        for part in parts[1:]:
            made = Arith(EXACT, "+", made, part)
        return made

    def cmp(self, op: CmpOp) -> Cmp:
        """The comparison ``self op 0``."""
        return Cmp(BOOL, op, Total(self.terms, Fraction(0)).expr(), _number(-self.constant))


def relation(total: Total, op: CmpOp) -> ExactRelation:
    """The relation ``total op 0`` of a whole total whose terms are linear and one-sided, with terms of both streams."""
    parts: dict[Side, tuple[tuple[LinearTerm, ...], int]] = {}
    for side in ("r", "s"):
        mine = {e: (int(f / denominator(e)), denominator(e)) for e, f in total.only(side).terms.items()}
        g = math.gcd(*(f for f, _ in mine.values()))
        g = -g if next(iter(mine.values()))[0] < 0 else g
        parts[side] = tuple(LinearTerm(f // g, e, scale) for e, (f, scale) in mine.items()), g
    (r, g), (s, h) = parts["r"], parts["s"]
    c = int(total.constant)
    # Equal bands get equal relations: the first stream's factor is positive.
    return ExactRelation(r, s, g, h, c, op) if g > 0 else ExactRelation(r, s, -g, -h, -c, MIRRORED[op])


def _number(value: Fraction) -> Lit:
    return Lit(EXACT, value.numerator if value.denominator == 1 else value)


def _value(e: Expr) -> Fraction:
    """The value of ``e``, exact and without columns."""
    return Fraction(e.value if isinstance(e, Lit) else constant(e))  # type: ignore[arg-type]  # exact literals are numbers


def _collect(e: Expr, factor: Fraction, terms: dict[Expr, Fraction]) -> Fraction:
    """Add ``factor · e`` to ``terms``; return the constant part."""
    if not sides(e):
        return factor * _value(e)
    match e:
        case Neg():
            return _collect(e.a, -factor, terms)
        case Cast(a=Expr(type=Timestamp() | Duration() as fine)) if isinstance(e.type, (Timestamp, Duration)):
            return _collect(e.a, factor * units_per(fine.unit, e.type.unit), terms)
        case Cast(type=Int()):
            return _collect(e.a, factor, terms)
        case Arith(op="+" | "-"):
            second = factor if e.op == "+" else -factor
            return _collect(e.a, factor, terms) + _collect(e.b, second, terms)
        case Arith(op="*") if not sides(e.b):
            return _collect(e.a, factor * _value(e.b), terms)
        case Arith(op="*") if not sides(e.a):
            return _collect(e.b, factor * _value(e.a), terms)
    if isinstance(e, Arith) and e.op == "*" and e.a != e.b and len(sides(e)) == 2:
        # A product of multiples of one expression is a multiple of its square.
        ratio = Total.of(e.a).ratio(Total.of(e.b))
        if ratio is not None:
            e, factor = Arith(EXACT, "*", e.b, e.b), factor * ratio
    terms[e] = terms.get(e, Fraction(0)) + factor
    return Fraction(0)


@dataclass(frozen=True)
class ExactKey:
    """A whole number: the sum of ``terms``, between ``low`` and ``high``."""

    side: Side
    terms: tuple[LinearTerm, ...]
    low: int
    high: int
    nullable: bool

    @property
    def width(self) -> int:
        """Bits of a code."""
        return max(1, (self.high - self.low + self.nullable).bit_length())

    def values(self, table: pa.Table, texts: object = None) -> Vector:
        """The whole numbers, for every row; ``texts`` is for keys of texts."""
        total: Any = np.zeros(table.num_rows, np.int64)
        valid = np.ones(table.num_rows, np.bool_)
        for term in self.terms:
            v = evaluate(term.expr, table)
            if len(self.terms) == 1 and term.factor == term.scale == v.denominator == 1 and v.values.dtype == np.int64:
                return v
            scale = term.scale // v.denominator
            size = magnitude(v.values) * abs(term.factor) * scale
            scaled = widen(v.values.astype(np.int64) if v.values.dtype == np.bool_ else v.values, size) * scale
            scaled = scaled * term.factor
            total = widen(total, magnitude(total) + magnitude(scaled)) + scaled
            valid &= v.valid
        return Vector(total, valid)

    def encode(self, values: Vector) -> Codes:
        """Codes of values; those of NULL are meaningless."""
        return self.code(values.values)

    def code(self, values: npt.NDArray[Any]) -> Codes:
        """Codes of whole numbers from ``low`` to ``high``."""
        offset = self.nullable - self.low
        if values.dtype == np.int64:  # modulo 2**64: intermediate wrap-around does not change the result
            return values.view(np.uint64) + np.uint64(offset % 2**64)
        return np.array([int(v) + offset & (2**64 - 1) for v in values], np.uint64)


@dataclass(frozen=True)
class WideKey:
    """The key ``exact``, which needs more than 64 bits, without its lowest ``shift`` bits.

    Codes are ordered like the numbers, but neighbouring numbers share a code. So an interval of numbers becomes an
    interval of codes that covers it, and others near its ends.
    """

    exact: ExactKey
    shift: int

    @property
    def side(self) -> Side:
        """The stream."""
        return self.exact.side

    @property
    def nullable(self) -> bool:
        """True: code 0 stands for NULL."""
        return True

    @property
    def width(self) -> int:
        """Bits of a code."""
        return self._code(self.exact.high).bit_length()

    def values(self, table: pa.Table, texts: object = None) -> Vector:
        """The whole numbers, for every row; ``texts`` is for keys of texts."""
        return self.exact.values(table, texts)

    def encode(self, values: Vector) -> Codes:
        """Codes of values; those of NULL are meaningless."""
        return self.code(values.values)

    def code(self, values: npt.NDArray[Any]) -> Codes:
        """Codes of whole numbers from the exact key's ``low`` to its ``high``."""
        if values.dtype == np.int64:
            offset = 1 - (self.exact.low >> self.shift)
            return (values >> self.shift).astype(np.uint64) + np.uint64(offset % 2**64)
        return np.array([self._code(int(v)) & (2**64 - 1) for v in values], np.uint64)

    def _code(self, value: int) -> int:
        return (value >> self.shift) - (self.exact.low >> self.shift) + 1


def exact_key(side: Side, terms: tuple[LinearTerm, ...]) -> ExactKey | WideKey:
    """The key for ``terms``; if it would be wider than 64 bits, without its lowest bits."""
    low = high = 0
    for t in terms:
        a, b = (x * t.factor * t.scale for x in value_range(t.expr))
        low, high = low + min(int(a), int(b)), high + max(int(a), int(b))
    key = ExactKey(side, terms, low, high, any(may_be_null(t.expr) for t in terms))
    if key.width <= 64:
        return key
    if (high - low).bit_length() <= 64:
        return replace(key, nullable=False)  # the guard then handles NULL
    shift = 1
    while WideKey(key, shift).width > 64:
        shift += 1
    return WideKey(key, shift)
