"""Pass ``fold``: what does not depend on a tuple is computed now, and what decides nothing is left out.

Exact in three-valued logic: a NULL that may come of a part keeps that part where it is. Of floats only whole
subexpressions without columns are computed, as IEEE 754 has few identities.
"""

from __future__ import annotations

import math

from ...lang.eval.vector import constant
from ...lang.ir import MIRRORED, And, Arith, Call, Case, Cmp, Expr, Extreme, IsNull, Lit, Neg, Not, Or
from ...lang.literals import whole
from ...lang.nulls import may_be_null
from ...lang.operations import OPERATIONS
from ...lang.traversal import rebuilt, sides
from ...lang.types import BOOL, EXACT, Type, is_exact

__all__ = ["fold"]

_TRUE, _FALSE, _NULL = Lit(BOOL, True), Lit(BOOL, False), Lit(BOOL, None)


def fold(e: Expr) -> Expr:
    """``e`` with the same value for every pair of tuples, constants folded."""
    if isinstance(e, Lit) or not e.children:
        return e
    if not sides(e):
        return _literal(e)
    e = rebuilt(e, [fold(c) for c in e.children])
    match e:
        case And() | Or():
            return _junction(e)
        case Not(a=Lit() as a):
            return Lit(BOOL, None if a.value is None else not a.value)
        case Not(a=Not() as a):
            return a.a
        case IsNull() if not may_be_null(e.a):
            return _FALSE
        case IsNull(a=Lit(value=None)):
            return _TRUE
        case Cmp() if any(isinstance(x, Lit) and x.value is None for x in (e.a, e.b)):
            return _NULL
        case Cmp(a=Lit()):  # a literal stands on the right
            return Cmp(BOOL, MIRRORED[e.op], e.b, e.a)
        case Cmp() if e.a == e.b and not may_be_null(e.a):  # NaN equals NaN
            return Lit(BOOL, e.op in ("=", "<=", ">="))
        case Case():
            return _case(e)
        case Extreme():
            return _extreme(e)
        case Neg(a=Neg() as a) if is_exact(e.type):
            return a.a
        case Arith() if is_exact(e.type):
            return _arith(e)
        case Call():
            return _call(e)
    return e


def _literal(e: Expr) -> Expr:
    value = constant(e)
    if isinstance(value, float) and (not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0)):
        return e  # there are no literals for these
    return Lit(e.type, whole(value) if is_exact(e.type) and value is not None else value)


def _junction(e: And | Or) -> Expr:
    neutral, absorbing = (_TRUE, _FALSE) if isinstance(e, And) else (_FALSE, _TRUE)
    flat = [x for a in e.args for x in (a.children if isinstance(a, type(e)) else (a,))]
    args = tuple(dict.fromkeys(a for a in flat if a != neutral))
    if absorbing in args:
        return absorbing
    return neutral if not args else args[0] if len(args) == 1 else type(e)(BOOL, args)


def _case(e: Case) -> Expr:
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
    return _as(e.type, otherwise, e) if not when else Case(e.type, tuple(when), tuple(then), otherwise)


def _extreme(e: Extreme) -> Expr:
    args = tuple(dict.fromkeys(a for a in e.args if not (isinstance(a, Lit) and a.value is None)))
    if not args:
        return Lit(e.type, None)
    return _as(e.type, args[0], e) if len(args) == 1 else Extreme(e.type, e.kind, args)


def _arith(e: Arith) -> Expr:
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


def _call(e: Call) -> Expr:
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
    """``e`` in the place of something of ``type_``, if what reads it takes it for one."""
    return e if e.type == type_ or (type_ == EXACT and is_exact(e.type)) else otherwise
