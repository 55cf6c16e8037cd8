"""Exact comparisons as sum tests, for circuits: squared and Manhattan distance, Hamming distance."""

from __future__ import annotations

import math
from dataclasses import replace

from ...lang.denominator import denominator
from ...lang.ir import Abs, Arith, Call, CmpOp, Expr, Isqrt
from ...lang.ranges import value_range
from ...lang.schema import Side
from ...lang.traversal import sides
from ...plan.exact_keys import ExactKey, exact_key
from ...plan.linear import Term, Total
from ...plan.passes.strength import NotComputed
from ..sum_relations import LIMIT_BITS, AxisRelation, SumRelation

__all__ = ["sum_relation"]


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


def _difference(kind: str, u: Total, shift: int) -> AxisRelation:
    """The axis of ``u``, which is whole and linear."""
    if u.mixed or any(isinstance(x, Isqrt) for x in u.terms):
        raise NotComputed
    r, s = u.only("r"), u.only("s")
    if not r.terms or not s.terms:
        raise NotComputed
    first = next(iter(r.terms.values()))
    if first < 0:  # neither a square nor an absolute value knows the sign
        u = u.times(-1)
        r, s = u.only("r"), u.only("s")
    made = AxisRelation("square" if kind == "square" else "absolute", _key("r", r), _key("s", s.times(-1)),
                        int(u.constant), shift)
    if made.bits > 64:
        raise NotComputed(f"the difference '{u.expr()}' has {made.bits} bits, and a circuit takes up to 64; narrower "
                          f"ranges of the columns would do (splitjoin.field with min and max)")
    return made


def _key(side: Side, total: Total) -> ExactKey:
    terms = tuple(Term(int(f / denominator(e)), e, denominator(e)) for e, f in total.terms.items())
    key = exact_key(side, terms)
    if not isinstance(key, ExactKey):
        raise NotComputed(f"the key '{total.expr()}' has more than 64 bits")
    return replace(key, nullable=False)  # a NULL is a matter of a test of its own


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
    # Codes from the same number on differ in the same bits as the numbers in two's complement.
    return AxisRelation("differing", ExactKey("r", (Term(1, one),), low, high, False),
                ExactKey("s", (Term(1, other),), low, high, False), 0, shift)
