"""Passes on three-valued conditions: ``fold``, ``narrow`` and ``lift``.

``fold`` computes constant subexpressions, drops neutral operands, and parts bits in which values of both streams differ
(`.bits`). It is exact in three-valued logic: a part that
may be NULL stays. For floats it computes only whole subexpressions without columns, as IEEE 754 has few identities.

``narrow`` bounds columns by the conjuncts, which hold for every match, so that keys of the other terms need fewer bits.
``r.x BETWEEN 0 AND 99 AND abs(r.x - s.a) <= 10`` compares keys of r.x from 0 to 99 and of s.a from −10 to 109. A tuple
with a value out of bounds matches nothing: the other terms treat its column as NULL.

``lift`` moves CASE, least and greatest over both streams out of comparisons, which then compare plain values.
``CASE WHEN c THEN a ELSE b END <= x`` becomes ``CASE WHEN c THEN a <= x ELSE b <= x END``: the same in three-valued
logic. One-sided expressions stay, because the host computes them once per tuple.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from splitjoin.lang import ir
from splitjoin.lang.build import whole
from splitjoin.lang.eval.vector import constant
from splitjoin.lang.ir import MIRRORED, Cmp, Col, Expr, Lit, as_case, rebuilt, sides, walk
from splitjoin.lang.operations import OPERATIONS
from splitjoin.lang.properties import Range, causes, denominator, may_be_null, value_range
from splitjoin.lang.types import BOOL, EXACT, FLOAT64, Bool, Date, Decimal, Duration, Int, Timestamp, Type, is_exact

from ..linear import Total
from .bits import parted

_TRUE, _FALSE, _NULL = Lit(BOOL, True), Lit(BOOL, False), Lit(BOOL, None)


def fold(e: Expr) -> Expr:
    """``e`` with constants folded; its value stays the same for every pair of tuples."""
    if isinstance(e, Lit) or not e.children:
        return e
    if not sides(e):
        return _literal(e)
    e = rebuilt(e, [fold(c) for c in e.children])
    match e:
        case ir.And() | ir.Or():
            return _junction(e)
        case ir.Not(a=Lit() as a):
            return Lit(BOOL, None if a.value is None else not a.value)
        case ir.Not(a=ir.Not() as a):
            return a.a
        case ir.IsNull() if not may_be_null(e.a):
            return _FALSE
        case ir.IsNull(a=Lit(value=None)):
            return _TRUE
        case Cmp() if any(isinstance(x, Lit) and x.value is None for x in (e.a, e.b)):
            return _NULL
        case Cmp(a=Lit()):  # a literal stands on the right
            return Cmp(BOOL, MIRRORED[e.op], e.b, e.a)
        case Cmp() if e.a == e.b and not may_be_null(e.a):  # NaN equals NaN
            return Lit(BOOL, e.op in ("=", "<=", ">="))
        case Cmp() if (numbers := _unit_numbers(e)) is not None:
            return numbers
        case Cmp(b=Lit()) if (exact := _without_rounding(e)) is not None:
            return exact
        case ir.Case():
            return _case(e)
        case ir.Extreme():
            return _extreme(e)
        case ir.Neg(a=ir.Neg() as a) if is_exact(e.type):
            return a.a
        case ir.Arith() if is_exact(e.type):
            folded = _arith(e)
            return parted(folded) if isinstance(folded, ir.Arith) else folded
        case ir.Call():
            folded = _call(e)
            return parted(folded) if isinstance(folded, ir.Call) else folded
    return e


def _unit_numbers(e: Cmp) -> Cmp | None:
    """``e``, a comparison of the beginnings of two calendar units of one kind, as one of their numbers, which are
    smaller.
    """
    a, b = (x.a if isinstance(x, ir.Cast) else x for x in (e.a, e.b))
    if not (isinstance(a, ir.UnitStart) and isinstance(b, ir.UnitStart) and a.unit == b.unit):
        return None
    return Cmp(BOOL, e.op, ir.UnitNumber(EXACT, a.a, a.unit), ir.UnitNumber(EXACT, b.a, b.unit))


def _without_rounding(e: Cmp) -> Expr | None:
    """``e``, a comparison of the root of an exact value, or of one of both streams as float64, with a constant, as one
    of that value: rounding and the root never fall as it grows, so the bound is found by bisection.
    """
    a, c = e.a, e.b
    root = isinstance(a, ir.FloatCall) and a.function == "sqrt"
    inner = a.a if isinstance(a, (ir.FloatCall, ir.Abs)) else a
    if not (isinstance(inner, ir.Cast) and inner.type == FLOAT64 and is_exact(inner.a.type) and a.type == FLOAT64
            and (root or not isinstance(a, ir.FloatCall)) and isinstance(c, Lit) and isinstance(c.value, (int, float))
            and math.isfinite(c.value) and e.op != "<>" and (root or len(sides(inner)) > 1)):
        return None
    value: Expr = ir.Abs(EXACT, inner.a) if isinstance(a, ir.Abs) else inner.a
    low, high = value_range(value)
    per = denominator(value)
    if (root and (low < 0 or per > 1)) or max(-low, high) > 2**1000:
        return None
    if e.op == "=":
        return ir.And(BOOL, tuple(_without_rounding(replace(e, op=op)) or e for op in ("<=", ">=")))
    strict = e.op in ("<", ">=")
    below, above = math.floor(low * per) - 1, math.ceil(high * per) + 1  # of per · value, the last of which it is true
    while above - below > 1:
        middle = (below + above) // 2
        found = math.sqrt(middle) if root else middle / per
        met = found < c.value if strict else found <= c.value
        below, above = (middle, above) if met else (below, middle)
    return Cmp(BOOL, "<=" if e.op in ("<", "<=") else ">", value, Lit(EXACT, whole(Fraction(below, per))))


def _literal(e: Expr) -> Expr:
    value = constant(e)
    if isinstance(value, float) and (not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)):
        return e  # these types have no literals
    return Lit(e.type, whole(value) if is_exact(e.type) and value is not None else value)


def _junction(e: ir.And | ir.Or) -> Expr:
    neutral, absorbing = (_TRUE, _FALSE) if isinstance(e, ir.And) else (_FALSE, _TRUE)
    flat = [x for a in e.args for x in (a.children if isinstance(a, type(e)) else (a,))]
    args = tuple(dict.fromkeys(a for a in flat if a != neutral))
    if absorbing in args:
        return absorbing
    return neutral if not args else args[0] if len(args) == 1 else type(e)(BOOL, args)


def _case(e: ir.Case) -> Expr:
    when, then, otherwise = [], [], e.otherwise
    for w, t in zip(e.when, e.then, strict=True):
        if w in (_FALSE, _NULL):
            continue
        if w == _TRUE:
            otherwise = t
            break
        when.append(w)
        then.append(t)
    while then and then[-1] == otherwise:
        when.pop()
        then.pop()
    return _as(e.type, otherwise, e) if not when else ir.Case(e.type, tuple(when), tuple(then), otherwise)


def _extreme(e: ir.Extreme) -> Expr:
    args = tuple(dict.fromkeys(a for a in e.args if not (isinstance(a, Lit) and a.value is None)))
    if not args:
        return Lit(e.type, None)
    return _as(e.type, args[0], e) if len(args) == 1 else ir.Extreme(e.type, e.kind, args)


def _arith(e: ir.Arith) -> Expr:
    a, b = e.a, e.b
    if any(isinstance(x, Lit) and x.value is None for x in (a, b)):
        return Lit(e.type, None)
    if isinstance(a, Lit) and e.op in ("+", "*"):
        a, b = b, a
    if not isinstance(b, Lit):
        return e
    if e.op == "*" and b.value == 0 and not may_be_null(a):
        return Lit(EXACT, 0)
    neutral = {"+": 0, "-": 0, "*": 1, "<<": 0, ">>": 0}.get(e.op)
    return _as(e.type, a, e) if neutral is not None and b.value == neutral else e


def _call(e: ir.Call) -> Expr:
    operation = OPERATIONS[e.op]
    if any(isinstance(x, Lit) and x.value is None for x in e.args):
        return Lit(e.type, None)
    if operation.operands < 2:
        return e
    a, b = e.args
    if isinstance(a, Lit) and operation.commutative:
        a, b = b, a
    if not isinstance(b, Lit):
        return e
    if operation.absorbing is not None and b.value == operation.absorbing and not may_be_null(a):
        return Lit(EXACT, operation.absorbing)
    return _as(e.type, a, e) if operation.neutral is not None and b.value == operation.neutral else e


def _as(type_: Type, e: Expr, otherwise: Expr) -> Expr:
    """``e`` if it can replace an expression of ``type_``, else ``otherwise``."""
    return e if e.type == type_ or (type_ == EXACT and is_exact(e.type)) else otherwise


#: Rounds of bounds derived from other bounds: each round follows a chain of columns one step further.
_ROUNDS = 3


def narrow(conjuncts: Sequence[Expr]) -> list[Expr]:
    """``conjuncts``, all of which must hold, with narrowed columns in those that read both streams.

    Selections stay as they are, because the narrowing relies on them and on bounds over both streams.
    """
    totals = [t for c in conjuncts if isinstance(c, Cmp) for t in _totals(c)]
    known: dict[Expr, Range] = {}
    for _ in range(_ROUNDS):
        before = dict(known)
        for total in totals:
            _bound(total, known)
        if known == before:
            break
    return [_narrowed(c, known) if len(sides(c)) == 2 else c for c in conjuncts]


def _totals(cmp: Cmp) -> Iterator[Total]:
    """Totals that are at most 0 whenever ``cmp`` is true."""
    if cmp.op == "<>" or not (is_exact(cmp.a.type) or isinstance(cmp.a.type, (Date, Timestamp, Duration))) or any(
            isinstance(c, Lit) for c in (*causes(cmp.a), *causes(cmp.b))):
        return  # a comparison with a NULL literal is never true
    total, op = Total.compared(cmp)
    for t in (total,) if op == "<=" else (total, total.times(-1)):
        signs = [e for e in t.terms if isinstance(e, ir.Abs)]
        if len(signs) == 1 and t.terms[signs[0]] > 0:
            inner, f = Total.of(signs[0].a), t.terms[signs[0]]
            yield from (t.without(*signs).plus(inner, sign * f) for sign in (1, -1))
        else:
            yield t


def _bound(total: Total, known: dict[Expr, Range]) -> None:
    """Tighten the range of each column of ``total <= 0``, given the least values of the other terms."""
    least = {e: min(f * v for v in known.get(e, value_range(e))) for e, f in total.terms.items()}
    for e, f in total.terms.items():
        if not isinstance(e, Col) or not isinstance(e.type, (Int, Decimal, Date, Timestamp, Duration)):
            continue
        most = -(total.constant + sum(least.values()) - least[e]) / f  # a bound of the column: the upper end for f > 0
        low, high = known.get(e, value_range(e))
        low, high = (low, min(high, most)) if f > 0 else (max(low, most), high)
        if low <= high:  # else nothing matches, and the conjunct itself is always false
            known[e] = low, high


def _narrowed(e: Expr, known: Mapping[Expr, Range]) -> Expr:
    if isinstance(e, Col) and e in known:
        unit, full = denominator(e), value_range(e)
        low, high = math.ceil(known[e][0] * unit), math.floor(known[e][1] * unit)
        before = int((full[1] - full[0]) * unit) + e.nullable
        # NULL needs a code, so the width may stay the same.
        worth = low <= high and (high - low + 1).bit_length() < before.bit_length()
        return ir.Within(e.type, e, low, high) if worth else e
    return rebuilt(e, [_narrowed(c, known) for c in e.children])


#: Largest number of comparisons that one condition may expand to.
_MOST = 256


class TooManyCases(Exception):
    """A pass would expand a condition to too many comparisons."""


def lift(e: Expr) -> Expr:
    """Condition ``e`` without CASE, least and greatest over both streams in the operands of its comparisons.

    A comparison of least or greatest as a whole stays: it is an AND or an OR. Raises `TooManyCases`.
    """
    return _lift(e, [_MOST])


def _lift(e: Expr, left: list[int]) -> Expr:
    if len(sides(e)) < 2:
        return e
    match e:
        case ir.And() | ir.Or() | ir.Not() | ir.Case():
            return rebuilt(e, [_lift(c, left) for c in e.children])
        case ir.IsNull() if isinstance(e.a.type, Bool):
            return rebuilt(e, [_lift(e.a, left)])
        case Cmp() if isinstance(e.a.type, Bool):
            return rebuilt(e, [_lift(c, left) for c in e.children])
        case Cmp() | ir.StartsWith() | ir.Like():
            return _atom(e, left)
    return e


def _atom(e: Expr, left: list[int]) -> Expr:
    left[0] -= 1
    if left[0] < 0:
        raise TooManyCases
    found = _find(e)
    if found is None:
        return e
    case = found if isinstance(found, ir.Case) else as_case(found)
    return ir.Case(BOOL, tuple(_lift(w, left) for w in case.when),
                tuple(_atom(_replaced(e, found, t), left) for t in case.then),
                _atom(_replaced(e, found, case.otherwise), left))


def _find(e: Expr) -> ir.Case | ir.Extreme | None:
    """The first outermost CASE, least or greatest over both streams in the operands of ``e``."""
    # Pass ``logic`` takes least and greatest in a comparison apart, down to comparisons of their operands.
    parts = e.children if not isinstance(e, Cmp) else [part for child in e.children for part in _operands(child)]
    for part in parts:
        for node in walk(part):
            if isinstance(node, (ir.Case, ir.Extreme)) and len(sides(node)) == 2 and not isinstance(node.type, Bool):
                return node
    return None


def _operands(e: Expr) -> Iterator[Expr]:
    """Those of least and greatest, and of such operands in turn; of another expression itself."""
    whole = e.a if isinstance(e, ir.Cast) else e
    if isinstance(whole, ir.Extreme):
        for operand in whole.args:
            yield from _operands(operand)
    else:
        yield e


def _replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    return new if e == old else rebuilt(e, [_replaced(c, old, new) for c in e.children])
