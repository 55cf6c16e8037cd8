"""One comparison of both streams as keys and relations, as a form of simpler comparisons, or as what it implies."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import cast

from . import build
from .bounds import EqualText, FloatBand, FloatOrder, Relation, WideRelation
from .ir import MIRRORED, Arith, Cast, Cmp, Col, Expr, Lit, Neg, columns, sides, walk
from .keys import FloatKey, Key, TextKey, WideKey, exact_key
from .linear import NoRelation, relations, strip_abs
from .logic import FALSE, Both, Form, Junction, OneSided
from .schema import Side
from .types import BOOL, Float, String

__all__ = ["Compared", "compare"]


@dataclass(frozen=True)
class Compared:
    """A comparison as an interval test on one key of each stream.

    ``guards``: what must hold besides, as the keys do not tell of every NULL.
    """

    keys: dict[str, Key]
    relations: tuple[Relation, ...]
    guards: tuple[OneSided, ...] = ()


def compare(cmp: Cmp, undecided: list[str]) -> Compared | Form:
    """``cmp`` as a test, or as a form of simpler comparisons to compare in turn.

    Where it is neither, a form that it implies; why goes to ``undecided``.
    """
    if any(isinstance(n, Lit) and n.value is None for n in walk(cmp)):
        return FALSE  # NULL is not true
    plain = strip_abs(cmp)
    if plain is not None:
        return plain
    if cmp.op == "<>":
        return Junction("or", (Both(Cmp(BOOL, "<", cmp.a, cmp.b)), Both(Cmp(BOOL, ">", cmp.a, cmp.b))))
    try:
        if isinstance(cmp.a.type, String):
            return _texts(cmp)
        if isinstance(cmp.a.type, Float):
            return _floats(cmp)
        return _exact(cmp, undecided)
    except NoRelation as why:
        undecided.append(f"'{cmp}': {why}")
        return Junction("and", _valid(cmp))


def _valid(cmp: Cmp, known: Container[Col] = ()) -> tuple[OneSided, ...]:
    """That no column of ``cmp`` is NULL, but for those ``known`` to be tested anyway."""
    return tuple(OneSided(c.side, build.is_null(c, str(c)), frozenset(("false",)))
                 for c in columns(cmp) if c.nullable and c not in known)


def _exact(cmp: Cmp, undecided: list[str]) -> Compared:
    relation = relations(cmp)
    keys: dict[str, Key] = {}
    known: set[Col] = set()
    for side in ("r", "s"):
        key = exact_key(side, relation.terms(side))
        known |= {c for t in relation.terms(side) for c in columns(t.expr)} if key.nullable else set()
        keys[side] = key
        if isinstance(key, WideKey):
            undecided.append(f"'{cmp}': the key of stream {side} takes values from {key.exact.low} to {key.exact.high}; "
                             f"its last {key.shift} bits are beyond the 64 that are compared")
    wide = any(isinstance(key, WideKey) for key in keys.values())
    # Where the key's values fill all 64 bits, or a column cancels out, its NULL goes to a test of its own.
    return Compared(keys, (WideRelation(relation) if wide else relation,), _valid(cmp, known))


def _texts(cmp: Cmp) -> Compared:
    a, b, op = cmp.a, cmp.b, cmp.op
    assert isinstance(a, Col) and isinstance(b, Col)
    if a.side == "s":
        a, b = b, a
        op = MIRRORED[op]
    return Compared({"r": TextKey("r", a), "s": TextKey("s", b)}, (EqualText(op),))


def _floats(cmp: Cmp) -> Compared:
    a, b, op = cmp.a, cmp.b, cmp.op
    if sides(a) == {"s"} and sides(b) == {"r"}:
        a, b, op = b, a, MIRRORED[op]
    if sides(a) == {"r"} and sides(b) == {"s"}:
        return Compared({"r": _float_key("r", a, False), "s": _float_key("s", b, False)}, (FloatOrder(op),))
    if isinstance(a, Lit):
        a, b, op = b, a, MIRRORED[op]
    if not isinstance(b, Lit):
        raise NoRelation("a float expression over both streams is no interval unless it is compared with a constant")
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
    if len(streams) == 1:
        side = next(iter(streams))
        if side in found:
            raise NoRelation(f"'{found[side][0]}' and '{e}' of stream {side} stand apart in float arithmetic over both "
                             f"streams, which is no interval of either")
        found[side] = (e, way)
        return None
    match e:
        case Lit():
            return None
        case Neg():
            return _direction(e.a, -way, found)
        case Cast():
            return _direction(e.a, way, found)
        case Arith(op="+" | "-"):
            _direction(e.a, way, found)
            return _direction(e.b, way if e.op == "+" else -way, found)
        case Arith(a=Lit() as c, b=x) | Arith(a=x, b=Lit() as c) if e.op == "*" and c.value != 0:
            return _direction(x, way if cast(float, c.value) > 0 else -way, found)
    raise NoRelation(f"'{e}' neither rises nor falls with one term of each stream")
