"""One comparison of both streams as keys and relations, as a form of simpler comparisons, or as what it implies."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass
from typing import cast

from . import build
from .bounds import EqualText, FloatBand, FloatOrder, Product, Relation, TextOrder, WideRelation
from .ir import MIRRORED, Abs, Arith, Cast, Cmp, CmpOp, Expr, Lit, Neg, Step, denominator, sides
from .keys import FloatKey, Key, PrefixKey, TextKey, WideKey, exact_key
from .linear import Term, Total, relation
from .logic import FALSE, TRUE, Both, Form, Junction, OneSided
from .nonlinear import simpler
from .nulls import causes
from .roots import root_bound
from .schema import Side
from .types import BOOL, Binary, Float, is_text
from .vector import constant

__all__ = ["Compared", "compare"]

#: Bytes of a text that are compared.
_PREFIX = 8


@dataclass(frozen=True)
class Compared:
    """A comparison as an interval test on one key of each stream.

    ``guards``: what must hold besides, as the keys do not tell of every NULL.
    """

    keys: dict[str, Key]
    relations: tuple[Relation, ...]
    guards: tuple[OneSided, ...] = ()


class _NoInterval(Exception):
    """Why a comparison of floats is no interval test."""


def compare(part: Both, undecided: list[str]) -> Form | tuple[Compared, ...]:
    """``part`` as tests of which one must hold, or as a form of simpler comparisons to compare in turn.

    Where it is neither, a form that it implies; why goes to ``undecided``.
    """
    cmp = part.cmp
    if any(isinstance(c, Lit) for c in (*causes(cmp.a), *causes(cmp.b))):
        return FALSE  # NULL is not true
    if is_text(cmp.a.type):
        return _texts(cmp, undecided)
    if cmp.op == "<>":
        return Junction("or", tuple(_part(Cmp(BOOL, op, cmp.a, cmp.b), part) for op in ("<", ">")))
    if isinstance(cmp.a.type, Float):
        return _floats(part, undecided)
    return _exact(part, undecided)


def _part(cmp: Cmp, of: Both) -> Form:
    """``cmp``, which ``of`` was taken apart into, and that nothing in ``of`` is NULL that ``cmp`` does not read."""
    if not sides(cmp):
        return TRUE if constant(cmp) is True else FALSE
    here = {*causes(cmp.a), *causes(cmp.b)}
    form: Form = Both(cmp, of.origin or of.cmp)
    if len(sides(cmp)) == 1:
        form = OneSided(next(iter(sides(cmp))), cmp, frozenset(("true",)))
    valid = _valid(of.cmp, here)
    return Junction("and", (form, *valid)) if valid else form


def _valid(cmp: Cmp, known: Container[Expr] = ()) -> tuple[OneSided, ...]:
    """That nothing of one stream in ``cmp`` is NULL, but for what is ``known`` to be tested anyway."""
    return tuple(OneSided(next(iter(sides(c))), build.is_null(c, str(c)), frozenset(("false",)))
                 for c in dict.fromkeys((*causes(cmp.a), *causes(cmp.b))) if len(sides(c)) == 1 and c not in known)


def _beyond(part: Both, why: str, undecided: list[str]) -> None:
    undecided.append(f"'{part.origin or part.cmp}': {why}")


def _exact(part: Both, undecided: list[str]) -> Form | tuple[Compared, ...]:
    total, op = Total.compared(part.cmp)
    low, high = total.range
    if op == "<=" and high <= 0:
        return Junction("and", _valid(part.cmp))
    if low > 0 or (op == "=" and high < 0):
        return FALSE
    if not total.mixed:
        return _linear(part, total, undecided)
    product = _product(part, total, op)
    if product is not None:
        return product
    made = simpler(total, op)
    if made is None:
        _beyond(part, f"'{total.mixed[0]}' over both streams gives no interval", undecided)
        return Junction("and", _valid(part.cmp))
    if made.why is not None:
        _beyond(part, made.why, undecided)
    if made.op == "false":
        return FALSE
    return Junction(made.op, tuple(_part(cmp, part) for cmp in made.args))


def _linear(part: Both, total: Total, undecided: list[str]) -> Form | tuple[Compared, ...]:
    op: CmpOp = "=" if part.cmp.op == "=" else "<="
    if any(not total.only(side).terms for side in ("r", "s")):  # the columns of a stream cancel out
        return _part(total.cmp(op), part)
    exact = relation(total, op)
    keys, guards = _whole_keys(part, exact.r, exact.s, undecided)
    wide = any(isinstance(key, WideKey) for key in keys.values())
    return (Compared(keys, (WideRelation(exact) if wide else exact,), guards),)


def _whole_keys(part: Both, r: tuple[Term, ...], s: tuple[Term, ...], undecided: list[str],
                ) -> tuple[dict[str, Key], tuple[OneSided, ...]]:
    """Keys of sums of terms of each stream, and what must hold besides: a key's values may fill all 64 bits, or a
    column cancel out, and then its NULL goes to a test of its own.
    """
    keys: dict[str, Key] = {}
    known: set[Expr] = set()
    for side, terms in (("r", r), ("s", s)):
        key = exact_key(cast(Side, side), terms)
        known |= {c for t in terms for c in causes(t.expr)} if key.nullable else set()
        keys[side] = key
        if isinstance(key, WideKey):
            _beyond(part, f"the key of stream {side} takes values from {key.exact.low} to {key.exact.high}, and its "
                          f"last {key.shift} bits are beyond the 64 that are compared", undecided)
    return keys, _valid(part.cmp, known)


def _product(part: Both, total: Total, op: CmpOp) -> Form | tuple[Compared, ...] | None:
    """``f·u·v + c op 0`` with u of one stream and v of the other; None if it is no such comparison."""
    e = total.mixed[0]
    if not (isinstance(e, Arith) and e.op == "*") or len(total.terms) > 1:
        return None
    by = {side: x for x in (e.a, e.b) if len(sides(x)) == 1 for side in sides(x)}
    if len(by) < 2:
        return None
    terms = {side: (Term(1, x, denominator(x)),) for side, x in by.items()}
    if any(isinstance(exact_key(side, terms[side]), WideKey) for side in terms):
        return None
    f = total.terms[e]
    bound = -total.constant / f * denominator(e.a) * denominator(e.b)
    if f < 0:
        op = MIRRORED[op]
    if op == "=" and bound.denominator > 1:
        return FALSE
    whole = math.floor(bound) if op == "<=" else math.ceil(bound)
    keys, guards = _whole_keys(part, terms["r"], terms["s"], [])
    return (Compared(keys, (Product(op, whole),), guards),)


def _texts(cmp: Cmp, undecided: list[str]) -> tuple[Compared, ...]:
    a, b, op = cmp.a, cmp.b, cmp.op
    if sides(a) == {"s"}:
        a, b, op = b, a, MIRRORED[op]
    width = a.type.width if isinstance(a.type, Binary) and a.type == b.type else None
    exact = width is not None and width < _PREFIX
    n = max(1, width) if exact and width is not None else _PREFIX
    ordered: dict[str, Key] = {"r": PrefixKey("r", a, n, exact), "s": PrefixKey("s", b, n, exact)}
    if exact:
        return tuple(Compared(ordered, (TextOrder(half),)) for half in (("<", ">") if op == "<>" else (op,)))
    if op in ("=", "<>"):
        keys: dict[str, Key] = {"r": TextKey("r", a), "s": TextKey("s", b)}
        return tuple(Compared(keys, (EqualText(half),)) for half in (("<", ">") if op == "<>" else ("=",)))
    undecided.append(f"'{cmp}': only the first {_PREFIX} bytes are compared")
    return (Compared(ordered, (TextOrder("<=" if op in ("<", "<=") else ">="),)),)


def _floats(part: Both, undecided: list[str]) -> Form | tuple[Compared, ...]:
    a, b, op = part.cmp.a, part.cmp.b, part.cmp.op
    if not _is_mixed_abs(a) and _is_mixed_abs(b):
        a, b, op = b, a, MIRRORED[op]
    if _is_mixed_abs(a):
        return _without_abs(a, op, b, part)
    try:
        return (_float_test(part.cmp),)
    except _NoInterval as why:
        if isinstance(a, Lit):
            a, b, op = b, a, MIRRORED[op]
        if isinstance(b, Lit):
            bound = root_bound(a, op, float(cast(float, b.value)))
            if bound is not None:
                return FALSE if bound.op == "false" else Junction(bound.op, tuple(_part(c, part) for c in bound.args))
            addends = _positive_addends(a) if op in ("<", "<=", "=") else ()
            if len(addends) > 1:
                _beyond(part, "of a float sum of what is never negative, each is compared alone", undecided)
                return Junction("and", tuple(_part(Cmp(BOOL, "<" if op == "<" else "<=", x, b), part) for x in addends))
        if op == "=" and _isolated(a, "<=", b) is not None:
            return Junction("and", (_part(Cmp(BOOL, "<=", a, b), part), _part(Cmp(BOOL, ">=", a, b), part)))
        near = _isolated(a, op, b)
        if near is not None:
            _beyond(part, "of floats, one stream's term is compared with the rest, rounded outwards", undecided)
            return (near,)
        _beyond(part, str(why), undecided)
        return Junction("and", _valid(part.cmp))


def _isolated(a: Expr, op: CmpOp, b: Expr) -> Compared | None:
    """What ``x - y op t`` and ``x + y op t`` imply for x of one stream, y of the other and t of either: the bound of
    the one that stands alone by the two others, a float further out than they give it.

    The difference or sum is at most t, so the real one is below the float after t; and what the bound is computed from
    is rounded once more. A NaN among the three may make the comparison true: then the bound is infinite, and NaN as the
    term that stands alone is placed where it satisfies every bound.
    """
    if len(sides(a)) < 2 and len(sides(b)) == 2:
        a, b, op = b, a, MIRRORED[op]
    if not (isinstance(a, Arith) and a.op in "+-" and a.type == b.type and len(sides(b)) == 1):
        return None
    x, y, plus = a.a, a.b, a.op == "+"
    if len(sides(x)) != 1 or len(sides(y)) != 1:
        return None
    up = op in ("<", "<=")
    t = Step(b.type, b, up)
    if sides(b) == sides(y):
        alone, rest = x, Arith(a.type, "-", t, y) if plus else Arith(a.type, "+", y, t)
    else:
        alone, rest = y, Arith(a.type, "-", t, x) if plus else Arith(a.type, "-", x, t)
        up = up if plus else not up
    keys: dict[str, Key] = {side: _float_key(side, e, up)
                            for e in (alone, Step(a.type, rest, up)) for side in sides(e)}
    # ``alone <= rest`` or ``alone >= rest``, said of R and S.
    below = up == (sides(alone) == {"r"})
    return Compared(keys, (FloatOrder("<=" if below else ">="),))


def _is_mixed_abs(e: Expr) -> bool:
    inner = e.a if isinstance(e, Cast) else e
    return isinstance(inner, Abs) and len(sides(inner)) == 2


def _without_abs(a: Expr, op: CmpOp, b: Expr, part: Both) -> Form:
    """``a op b`` of floats, ``a`` an abs under the cast that may stand outside it (which is exact and keeps signs)."""
    inner: Expr = Cast(a.type, cast(Abs, a.a).a) if isinstance(a, Cast) else cast(Abs, a).a
    minus: Expr = Neg(b.type, b)
    if isinstance(b, Lit):
        minus = Lit(b.type, -cast(float, b.value))

    def halves(op: CmpOp) -> tuple[Form, Form]:
        # E op F, and −E op F written as E op' −F: then both say something of the same keys. Where E is NaN, which is
        # greater than everything, the first half decides as abs(NaN) does, whatever the second says.
        return _part(Cmp(BOOL, op, inner, b), part), _part(Cmp(BOOL, MIRRORED[op], inner, minus), part)

    if op in ("<", "<="):
        return Junction("and", halves(op))
    if op in (">", ">="):
        return Junction("or", halves(op))
    return Junction("and", (*halves("<="), Junction("or", halves(">="))))


def _positive_addends(e: Expr) -> tuple[Expr, ...]:
    """Parts of both streams of the float ``e`` that do not exceed it, as rounding is monotone; none if it may have
    negative ones.
    """
    if isinstance(e, Cast):
        return tuple(Cast(e.type, x) if isinstance(e.a.type, Float) else x for x in _positive_addends(e.a))
    if isinstance(e, Arith) and e.op == "+":
        if not (_is_never_negative(e.a) and _is_never_negative(e.b)):
            return ()
        return tuple(y for x in (e.a, e.b) for y in (_positive_addends(x) if _adds(x) else (x,)) if len(sides(y)) == 2)
    return ()


def _adds(e: Expr) -> bool:
    inner = e.a if isinstance(e, Cast) else e
    return isinstance(inner, Arith) and inner.op == "+" and isinstance(inner.type, Float)


def _is_never_negative(e: Expr) -> bool:
    """Whether the float ``e`` is at least 0 or NaN, which is greater than everything."""
    match e:
        case Abs():
            return True
        case Lit():
            return cast(float, e.value) >= 0
        case Cast():
            return isinstance(e.a.type, Float) and _is_never_negative(e.a)
        case Arith(op="*") if e.a == e.b:
            return True
        case Arith(op="+" | "*"):
            return _is_never_negative(e.a) and _is_never_negative(e.b)
    return False


def _float_test(cmp: Cmp) -> Compared:
    a, b, op = cmp.a, cmp.b, cmp.op
    if sides(a) == {"s"} and sides(b) == {"r"}:
        a, b, op = b, a, MIRRORED[op]
    if sides(a) == {"r"} and sides(b) == {"s"}:
        return Compared({"r": _float_key("r", a, False), "s": _float_key("s", b, False)}, (FloatOrder(op),))
    if isinstance(a, Lit):
        a, b, op = b, a, MIRRORED[op]
    if not isinstance(b, Lit):
        raise _NoInterval("a float expression over both streams is no interval unless it is compared with a constant")
    found: dict[str, tuple[Expr, int]] = {}
    _direction(a, 1, found)
    keys: dict[str, Key] = {side: _float_key(cast(Side, side), e, way < 0) for side, (e, way) in found.items()}
    return Compared(keys, (FloatBand(a, found["r"][0], found["s"][0], op, float(cast(float, b.value))),))


def _float_key(side: Side, e: Expr, nan_low: bool) -> FloatKey:
    assert isinstance(e.type, Float)
    return FloatKey(side, e, e.type.bits, nan_low)


def _direction(e: Expr, way: int, found: dict[str, tuple[Expr, int]]) -> None:
    """Find the one-sided parts of ``e`` and whether ``e`` rises (+1) or falls (−1) with each."""
    streams = sides(e)
    if len(streams) == 1 and isinstance(e.type, Float):
        side = next(iter(streams))
        if side in found:
            raise _NoInterval(f"'{found[side][0]}' and '{e}' of stream {side} stand apart in float arithmetic over "
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
    raise _NoInterval(f"'{e}' neither rises nor falls with one term of each stream")
