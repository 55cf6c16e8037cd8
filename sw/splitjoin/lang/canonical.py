"""`canonical`: one form for conditions that differ in the order of operands alone."""

from __future__ import annotations

from dataclasses import replace

from .ir import MIRRORED, Abs, And, Arith, Call, Cmp, Expr, Extreme, Or, distinct, rebuilt, text
from .operations import OPERATIONS


def canonical(e: Expr) -> Expr:
    """``e`` with the operands of every commutative operator in one order, and comparisons as ``<``, ``<=``, ``=`` or
    ``<>``. Its value is that of ``e`` for all tuples. ``abs(s.a - r.x) > 3`` and ``3 < abs(r.x - s.a)`` become equal.
    """
    made: list[Expr] = []
    for node, children in distinct(e):
        made.append(_ordered(rebuilt(node, [made[i] for i in children])))
    return made[-1]


def _ordered(e: Expr) -> Expr:
    match e:
        case Cmp(op=">" | ">=") | Cmp(op="=" | "<>") if e.op[0] == ">" or text(e.b) < text(e.a):
            return replace(e, op=MIRRORED[e.op], a=e.b, b=e.a)
        case Arith(op="+" | "*") if text(e.b) < text(e.a):
            return replace(e, a=e.b, b=e.a)
        case Abs(a=Arith(op="-") as difference) if text(difference.b) < text(difference.a):
            return replace(e, a=replace(difference, a=difference.b, b=difference.a))
        case And() | Or():
            args = tuple(sorted(dict.fromkeys(e.args), key=text))
            return args[0] if len(args) == 1 else replace(e, args=args)
        case Extreme():
            return replace(e, args=tuple(sorted(e.args, key=text)))
        case Call() if len(e.args) == 2 and OPERATIONS[e.op].commutative:
            return replace(e, args=tuple(sorted(e.args, key=text)))
    return e
