"""Pass ``lift``: CASE, least and greatest of both streams are lifted out of comparisons, which then compare values.

``CASE WHEN c THEN a ELSE b END <= x`` becomes ``CASE WHEN c THEN a <= x ELSE b <= x END``: the same in three-valued
logic. What reads one stream only stays, as the host computes it once per tuple.
"""

from __future__ import annotations

from ...lang.ir import And, Case, Cast, Cmp, CmpOp, Expr, Extreme, IsNull, Not, Or, StartsWith
from ...lang.traversal import rebuilt, sides, walk
from ...lang.types import BOOL, Bool

__all__ = ["TooManyCases", "lift"]

#: Comparisons that may come of one condition.
_MOST = 256


class TooManyCases(Exception):
    """A pass would make more comparisons of a condition than are worth testing."""


def lift(e: Expr) -> Expr:
    """Condition ``e`` without CASE, least and greatest of both streams in the operands of its comparisons.

    A comparison of least or greatest as a whole stays: it is an AND or an OR. Raises `TooManyCases`.
    """
    return _lift(e, [_MOST])


def _lift(e: Expr, left: list[int]) -> Expr:
    if len(sides(e)) < 2:
        return e
    match e:
        case And() | Or() | Not() | Case():
            return rebuilt(e, [_lift(c, left) for c in e.children])
        case IsNull() if isinstance(e.a.type, Bool):
            return rebuilt(e, [_lift(e.a, left)])
        case Cmp() if isinstance(e.a.type, Bool):
            return rebuilt(e, [_lift(c, left) for c in e.children])
        case Cmp() | StartsWith():
            return _atom(e, left)
    return e


def _atom(e: Expr, left: list[int]) -> Expr:
    left[0] -= 1
    if left[0] < 0:
        raise TooManyCases
    found = _find(e)
    if found is None:
        return e
    case = found if isinstance(found, Case) else _as_case(found)
    return Case(BOOL, tuple(_lift(w, left) for w in case.when),
                tuple(_atom(_replaced(e, found, t), left) for t in case.then),
                _atom(_replaced(e, found, case.otherwise), left))


def _find(e: Expr) -> Case | Extreme | None:
    """The first, outermost CASE, least or greatest of both streams in the operands of ``e``."""
    for child in e.children:
        whole = child.a if isinstance(child, Cast) else child
        if isinstance(e, Cmp) and isinstance(whole, Extreme):
            # Logic takes it apart, down to comparisons of its operands.
            continue
        for node in walk(child):
            if isinstance(node, (Case, Extreme)) and len(sides(node)) == 2 and not isinstance(node.type, Bool):
                return node
    return None


def _replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    return new if e == old else rebuilt(e, [_replaced(c, old, new) for c in e.children])


def _as_case(e: Extreme) -> Case:
    """``least(a, b, …)`` as CASE WHEN b IS NULL OR a <= b THEN a ELSE b END, from the left."""
    op: CmpOp = "<=" if e.kind == "least" else ">="
    best = e.args[0]
    for other in e.args[1:]:
        first = Or(BOOL, (IsNull(BOOL, other), Cmp(BOOL, op, best, other)))
        best = Case(e.type, (first,), (best,), other)
    assert isinstance(best, Case)
    return best
