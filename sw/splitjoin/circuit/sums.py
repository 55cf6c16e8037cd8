"""Sum tests: comparisons that no interval test can express and that a circuit computes from keys of both streams, in
whole numbers.

A sum test adds up, over its axes, a square, an absolute value or a number of differing bits of a key of R and one of
S, and compares the sum with a limit: squared and Manhattan distance, Hamming distance. `sum_relation` makes one of an
exact comparison.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from splitjoin.hls.delays import FACTOR
from splitjoin.lang.ir import Abs, Arith, Call, CmpOp, Expr, Isqrt, sides
from splitjoin.lang.properties import denominator, value_range
from splitjoin.lang.schema import Side
from splitjoin.plan.linear import ExactKey, LinearTerm, Total, exact_key
from splitjoin.plan.passes.strength import NotComputed
from splitjoin.plan.text import terms_text

from .schedule import additions

AxisKind = Literal["square", "absolute", "differing"]

#: Widest limit in bits. It follows that squared values have at most 32 bits.
LIMIT_BITS = 62


@dataclass(frozen=True)
class AxisRelation:
    """2^shift times the square or the absolute value of R − S + c, or the number of bits in which R and S differ."""

    kind: AxisKind
    r: ExactKey
    s: ExactKey
    c: int
    shift: int

    @property
    def bits(self) -> int:
        """Width of the difference in two's complement; of kind ``differing``, the width of the keys."""
        if self.kind == "differing":
            return self.r.width
        low, high = self.r.low - self.s.high + self.c, self.r.high - self.s.low + self.c
        return max(high, -low - 1, 0).bit_length() + 1


@dataclass(frozen=True)
class SumRelation:
    """The sum of ``axes``, and of the keys ``r`` and ``s`` if given, is at most ``limit``; with ``above``, greater."""

    axes: tuple[AxisRelation, ...]
    limit: int
    above: bool
    r: ExactKey | None = None
    s: ExactKey | None = None

    def keys(self, side: str) -> tuple[ExactKey | None, ...]:
        """The keys of stream ``side``: one for each axis, then the added key, or None."""
        return (*(a.r for a in self.axes), self.r) if side == "r" else (*(a.s for a in self.axes), self.s)

    def described(self, r: tuple[int | None, ...], s: tuple[int | None, ...]) -> str:
        """The test in words; ``r`` and ``s`` number the keys among the stored ones, in the order of `keys`."""
        axes = [_axis_text(a, f"R{i}", f"S{j}") for a, i, j in zip(self.axes, r[:-1], s[:-1], strict=True)]
        rest = [f"{side}{n}" for side, n in (("R", r[-1]), ("S", s[-1])) if n is not None]
        limit = f"; the limit less its own {' or '.join(rest)}" if rest else ""
        return (f"{' + '.join(axes + rest)} {'>' if self.above else '<='} {self.limit}, added up in the circuit; "
                f"a probe brings its own place on each axis{limit}")

    def __str__(self) -> str:
        axes = [_axis_text(a, f"({terms_text(a.r.terms)})", f"({terms_text(a.s.terms)})") for a in self.axes]
        rest = [terms_text(key.terms) for key in (self.r, self.s) if key is not None]
        return f"{' + '.join(axes + rest)} {'>' if self.above else '<='} {self.limit}"

    @property
    def most(self) -> int:
        """The largest sum of the axes that can still be within the limit, for any values of the added keys."""
        return self.limit - sum(key.low for key in (self.r, self.s) if key is not None)


def kept_bits(kind: str, bits: int, shift: int, most: int) -> int:
    """The number of low bits of a ``bits``-wide two's complement difference that an axis needs when its value may be at
    most ``most``. If the higher bits are not copies of the last one kept, the value exceeds ``most``.
    """
    if kind == "differing":
        return bits
    share = max(0, most) >> shift
    return min(bits, (math.isqrt(share) if kind == "square" else share).bit_length() + 1)


def axis_value_bits(kind: str, kept: int, shift: int) -> int:
    """Width of an axis' value in the sum, as an unsigned number."""
    return shift + {"square": 2 * kept - 1, "absolute": kept, "differing": kept.bit_length()}[kind]


def _axis_text(axis: AxisRelation, r: str, s: str) -> str:
    times = f"{2**axis.shift}·" if axis.shift else ""
    if axis.kind == "differing":
        return f"{times}bit_count({r} ^ {s})"
    difference = f"{r} - {s}" + (f" {'+' if axis.c > 0 else '-'} {abs(axis.c)}" if axis.c else "")
    return times + (f"({difference})²" if axis.kind == "square" else f"|{difference}|")


def sum_relation(total: Total, op: CmpOp) -> SumRelation:
    """``total <= 0``, of a whole total, as a sum test. Raises `NotComputed` if it is none."""
    mixed = total.mixed
    if op != "<=" or not mixed:
        raise NotComputed
    signs = {total.terms[e] > 0 for e in mixed}
    if len(signs) > 1:
        raise NotComputed("a circuit takes no sum of terms some of which are added and some subtracted")
    above = not signs.pop()
    if above:  # not (−total + 1 <= 0)
        total = Total({e: -f for e, f in total.terms.items()}, 1 - total.constant)
    rest = total.without(*mixed)
    axes = [_axis(e, total) for e in mixed]
    keys: dict[str, ExactKey | None] = {}
    for side in ("r", "s"):
        part = rest.only(side)
        keys[side] = _key(side, part) if part.terms else None
    relation = SumRelation(tuple(axes), -int(total.constant), above, keys["r"], keys["s"])
    if relation.most.bit_length() > LIMIT_BITS:
        raise NotComputed(f"the sum is compared with numbers of {relation.most.bit_length()} bits, and a circuit takes "
                          f"up to {LIMIT_BITS}")
    return relation


def _axis(e: Expr, total: Total) -> AxisRelation:
    f = total.terms[e]
    match e:
        case Arith(op="*") if e.a == e.b:
            d = denominator(e.a)  # d·u is whole; so is f / d²
            root, shift = _squares(int(f / (d * d)))
            return _difference("square", Total.of(e.a).times(d * root), shift)
        case Abs():
            return _difference("absolute", Total.of(e.a).times(f), 0)
        case Call(op="bit_count", args=(Call(op="^") as bits,)):
            weight = int(f)
            if weight & (weight - 1):
                raise NotComputed(f"a circuit multiplies '{e}' by powers of two only, not by {weight}")
            return _differing(bits, weight.bit_length() - 1)
    raise NotComputed


def _squares(weight: int) -> tuple[int, int]:
    """``weight`` as root² · 2^shift."""
    shift = (weight & -weight).bit_length() - 1
    root = math.isqrt(weight >> shift)
    if root * root != weight >> shift:
        raise NotComputed(f"a circuit weighs a square by a square or a power of two only, not by {weight}")
    return root << shift // 2, shift % 2


def _difference(kind: AxisKind, u: Total, shift: int) -> AxisRelation:
    """The axis of ``u``, which is whole and linear."""
    if u.mixed or any(isinstance(x, Isqrt) for x in u.terms):
        raise NotComputed
    r, s = u.only("r"), u.only("s")
    if not r.terms or not s.terms:
        raise NotComputed
    first = next(iter(r.terms.values()))
    if first < 0:  # squares and absolute values do not depend on the sign
        u = u.times(-1)
        r, s = u.only("r"), u.only("s")
    made = AxisRelation(kind, _key("r", r), _key("s", s.times(-1)), int(u.constant), shift)
    if made.bits > 64:
        raise NotComputed(f"the difference '{u.expr()}' has {made.bits} bits, and a circuit takes up to 64; narrower "
                          f"ranges of the columns would do (splitjoin.field with min and max)")
    return made


def _key(side: Side, total: Total) -> ExactKey:
    terms = tuple(LinearTerm(int(f / denominator(e)), e, denominator(e)) for e, f in total.terms.items())
    key = exact_key(side, terms)
    if not isinstance(key, ExactKey):
        raise NotComputed(f"the key '{total.expr()}' has more than 64 bits")
    return replace(key, nullable=False)  # a separate test handles NULL


def _differing(bits: Call, shift: int) -> AxisRelation:
    a, b = bits.args
    if len(sides(a)) != 1 or len(sides(b)) != 1:
        raise NotComputed
    one, other = (a, b) if sides(a) == {"r"} else (b, a)
    low = min(int(value_range(e)[0]) for e in (one, other))
    if low < 0:
        low, high = -(2 ** (bits.of.bits - 1)), 2 ** (bits.of.bits - 1) - 1
    else:
        width = max(1, *(int(value_range(e)[1]).bit_length() for e in (one, other)))
        low, high = 0, 2**width - 1
    # Codes with a common offset differ in the same bits as the numbers do in two's complement.
    return AxisRelation("differing", ExactKey("r", (LinearTerm(1, one),), low, high, False),
                ExactKey("s", (LinearTerm(1, other),), low, high, False), 0, shift)


@dataclass(frozen=True)
class Axis:
    """A pair of keys, one of each stream, whose value in a sum is 2^shift times the square or the absolute value of
    their difference, or the number of bits in which they differ.

    ``r``, ``s``: indices into ``keys_r`` and ``keys_s``. ``bits``: width of the difference in two's complement, 2 to
    64. A probe's place has the same width, and the key minus the place is the difference. For kind ``differing``,
    ``bits`` is the width of both keys and of the place.
    """

    kind: str
    r: int
    s: int
    bits: int
    shift: int = 0


@dataclass(frozen=True)
class Sum:
    """A sum test: the sum of all ``axes`` is at most ``limit``, or with ``above`` greater.

    ``rest``: for R and S, the key that is added if the tuple is stored, or None. If either stream has one, each probe's
    record holds a limit of its own plus 1, where 0 means that nothing matches; ``limit`` is then the largest of these
    limits.
    """

    axes: tuple[Axis, ...]
    limit: int
    above: bool = False
    rest: tuple[int | None, int | None] = (None, None)

    @property
    def limited(self) -> bool:
        """True if each probe has a limit of its own."""
        return self.rest != (None, None)

    @property
    def limit_bits(self) -> int:
        """Width of a probe's limit."""
        return (self.limit + 1).bit_length()

    def kept(self, axis: Axis) -> int:
        """Number of bits of ``axis``' difference that its value is computed from; ``axis`` is one of the sum's."""
        return kept_bits(axis.kind, axis.bits, axis.shift, self.limit)

    @cached_property
    def wide(self) -> bool:
        """True if the square of an axis takes several multipliers."""
        return any(axis.kind == "square" and self.kept(axis) > FACTOR for axis in self.axes)

    @property
    def additions(self) -> int:
        """Depth of the tree of additions of the sum."""
        return additions(len(self.axes) + self.limited)

    @property
    def further(self) -> int:
        """Cycles on top of `splitjoin.circuit.schedule.SUM_STAGES` if each addition has one of its own."""
        return self.wide + self.additions
