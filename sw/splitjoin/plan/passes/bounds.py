"""Pass ``bounds``: comparisons become interval tests, each a relation of one key of each stream (monotone bounds).

A comparison that is no interval test is replaced by the strongest one that it implies, and a reason is recorded.
"""

from __future__ import annotations

import math
from typing import cast

from splitjoin.lang.ir import MIRRORED, Arith, Cast, Cmp, CmpOp, Expr, Lit, Neg, NextFloat, sides
from splitjoin.lang.properties import causes, denominator
from splitjoin.lang.schema import Side
from splitjoin.lang.types import Binary, Float, is_text

from ..forms import FALSE, Both, Compared, Form, Junction, OneSided, junction, present
from ..keys import FloatKey, Key, PrefixKey, TextKey, WideKey, exact_key
from ..linear import LinearTerm, Total, relation
from ..relations import EqualText, FloatBand, FloatOrder, Product, TextOrder, WideRelation


class NoInterval(Exception):
    """The reason why a comparison is no interval test."""


def bounded(form: Form, undecided: list[str]) -> Form:
    """``form`` with an interval test in the place of each comparison; reasons for undecided ones are added to
    ``undecided``.

    ``form`` is as pass ``strength`` leaves it: every comparison is an interval test, or implies one.
    """
    match form:
        case Both():
            try:
                return direct(form, undecided)
            except NoInterval:
                near = isolated(form.cmp)
                assert near is not None, str(form.cmp)
                undecided.append(f"'{form.origin or form.cmp}': of floats, one stream's term is compared with the "
                                 f"rest, rounded outwards")
                return near
        case Junction():
            return junction(form.op, (bounded(a, undecided) for a in form.args))
    return form


def direct(part: Both, undecided: list[str]) -> Form:
    """``part`` as interval tests, together with the NULL conditions that their keys cannot express.

    Raises `NoInterval` if it is none.
    """
    cmp = part.cmp
    if is_text(cmp.a.type):
        return junction("or", _texts(cmp, undecided))
    if isinstance(cmp.a.type, Float):
        return _float(cmp)
    total, op = Total.compared(cmp)
    if cmp.op == "<>":
        raise NoInterval(f"'{cmp}' is two intervals")
    if not total.mixed:
        return _linear(part, total, op, undecided)
    return _product(part, total, op)


def _linear(part: Both, total: Total, op: CmpOp, undecided: list[str]) -> Form:
    if any(not total.only(side).terms for side in ("r", "s")):
        raise NoInterval(f"the columns of a stream cancel out in '{part.cmp}'")
    exact = relation(total, op)
    keys, guards = _whole_keys(part, exact.r, exact.s, undecided)
    wide = any(isinstance(key, WideKey) for key in keys.values())
    return junction("and", (Compared(keys["r"], keys["s"], (WideRelation(exact) if wide else exact,)), *guards))


def _whole_keys(part: Both, r: tuple[LinearTerm, ...], s: tuple[LinearTerm, ...], undecided: list[str],
                ) -> tuple[dict[str, Key], tuple[OneSided, ...]]:
    """The keys of the sums of each stream's terms, and the conditions that must hold besides: if a key's values fill
    all 64 bits, or a column cancels out, a separate test handles NULL.
    """
    keys: dict[str, Key] = {}
    known: set[Expr] = set()
    for side, terms in (("r", r), ("s", s)):
        key = exact_key(cast(Side, side), terms)
        known |= {c for t in terms for c in causes(t.expr)} if key.nullable else set()
        keys[side] = key
        if isinstance(key, WideKey):
            undecided.append(f"'{part.origin or part.cmp}': the key of stream {side} takes values from "
                             f"{key.exact.low} to {key.exact.high}, and its last {key.shift} "
                             f"{'bit is' if key.shift == 1 else 'bits are'} beyond the 64 "
                             f"that are compared")
    return keys, present(part.cmp, known)


def _product(part: Both, total: Total, op: CmpOp) -> Form:
    """The interval test of ``f·u·v + c op 0`` with u of one stream and v of the other."""
    e = total.mixed[0]
    none = NoInterval(f"'{e}' over both streams gives no interval")
    if not (isinstance(e, Arith) and e.op == "*") or len(total.terms) > 1:
        raise none
    by = {side: x for x in (e.a, e.b) if len(sides(x)) == 1 for side in sides(x)}
    if len(by) < 2:
        raise none
    terms = {side: (LinearTerm(1, x, denominator(x)),) for side, x in by.items()}
    if any(isinstance(exact_key(side, terms[side]), WideKey) for side in terms):
        raise none
    f = total.terms[e]
    bound = -total.constant / f * denominator(e.a) * denominator(e.b)
    if f < 0:
        op = MIRRORED[op]
    if op == "=" and bound.denominator > 1:
        return FALSE
    whole = math.floor(bound) if op == "<=" else math.ceil(bound)
    keys, guards = _whole_keys(part, terms["r"], terms["s"], [])
    return junction("and", (Compared(keys["r"], keys["s"], (Product(op, whole),)), *guards))


def _texts(cmp: Cmp, undecided: list[str]) -> tuple[Compared, ...]:
    a, b, op = cmp.a, cmp.b, cmp.op
    if sides(a) == {"s"}:
        a, b, op = b, a, MIRRORED[op]
    length = a.type.width if isinstance(a.type, Binary) and a.type == b.type else None
    halves: tuple[CmpOp, ...] = ("<", ">") if op == "<>" else (op,)
    ordered = PrefixKey("r", a, length), PrefixKey("s", b, length)
    if not ordered[0].exact:
        if op in ("=", "<>"):
            return tuple(Compared(TextKey("r", a), TextKey("s", b), (EqualText(half),)) for half in halves)
        undecided.append(f"'{cmp}': texts that begin alike and are longer than what is compared are candidates")
    return tuple(Compared(*ordered, (TextOrder(half),)) for half in halves)


def _float(cmp: Cmp) -> Compared:
    a, b, op = cmp.a, cmp.b, cmp.op
    if op == "<>":
        raise NoInterval(f"'{cmp}' is two intervals")
    if sides(a) == {"s"} and sides(b) == {"r"}:
        a, b, op = b, a, MIRRORED[op]
    if sides(a) == {"r"} and sides(b) == {"s"}:
        return Compared(_float_key("r", a, False), _float_key("s", b, False), (FloatOrder(op),))
    if isinstance(a, Lit):
        a, b, op = b, a, MIRRORED[op]
    if not isinstance(b, Lit):
        raise NoInterval("a float expression over both streams is no interval unless it is compared with a constant")
    found: dict[str, tuple[Expr, int]] = {}
    _direction(a, 1, found)
    r, s = (_float_key(side, found[side][0], found[side][1] < 0) for side in ("r", "s"))
    return Compared(r, s, (FloatBand(a, found["r"][0], found["s"][0], op, float(cast(float, b.value))),))


def _float_key(side: Side, e: Expr, nan_low: bool) -> FloatKey:
    assert isinstance(e.type, Float)
    return FloatKey(side, e, e.type.bits, nan_low)


def _direction(e: Expr, way: int, found: dict[str, tuple[Expr, int]]) -> None:
    """Find the one-sided parts of ``e`` and whether ``e`` rises (+1) or falls (−1) with each."""
    streams = sides(e)
    if len(streams) == 1 and isinstance(e.type, Float):
        side = next(iter(streams))
        if side in found:
            raise NoInterval(f"'{found[side][0]}' and '{e}' of stream {side} stand apart in float arithmetic over "
                             f"both streams, which is no interval of either")
        found[side] = (e, way)
        return None
    match e:
        case Lit():
            return None
        case Neg():
            return _direction(e.a, -way, found)
        case Cast(a=Expr(type=Float())):
            return _direction(e.a, way, found)
        case Arith(op="+" | "-"):
            _direction(e.a, way, found)
            return _direction(e.b, way if e.op == "+" else -way, found)
        case Arith(op="*", a=Lit() as c, b=x) | Arith(op="*", a=x, b=Lit() as c) if c.value != 0:
            return _direction(x, way if cast(float, c.value) > 0 else -way, found)
    raise NoInterval(f"'{e}' neither rises nor falls with one term of each stream")


def isolated(cmp: Cmp) -> Compared | None:
    """The interval test implied by ``x - y op t`` or ``x + y op t`` for x of one stream, y of the other and t of
    either. The two terms of one stream bound the single term of the other; the bound is moved outward by one float.

    The rounded difference or sum is at most t, so the real one is below the float after t; computing the bound rounds
    once more. A NaN among the three terms may make the comparison true: then the bound is infinite, and a NaN of the
    single term is placed where it satisfies every bound.
    """
    a, b, op = cmp.a, cmp.b, cmp.op
    if len(sides(a)) < 2 and len(sides(b)) == 2:
        a, b, op = b, a, MIRRORED[op]
    if not (isinstance(a, Arith) and a.op in "+-" and a.type == b.type and len(sides(b)) == 1):
        return None
    x, y, plus = a.a, a.b, a.op == "+"
    if len(sides(x)) != 1 or len(sides(y)) != 1 or sides(x) == sides(y):
        return None
    up = op in ("<", "<=")
    t = NextFloat(b.type, b, up)
    if sides(b) == sides(y):
        alone, rest = x, Arith(a.type, "-", t, y) if plus else Arith(a.type, "+", y, t)
    else:
        alone, rest = y, Arith(a.type, "-", t, x) if plus else Arith(a.type, "-", x, t)
        up = up if plus else not up
    keys = {side: _float_key(side, e, up) for e in (alone, NextFloat(a.type, rest, up)) for side in sides(e)}
    # ``alone <= rest`` or ``alone >= rest``, written as R op S.
    below = up == (sides(alone) == {"r"})
    return Compared(keys["r"], keys["s"], (FloatOrder("<=" if below else ">="),))
