"""Which parts of a value make it NULL."""

from __future__ import annotations

from .ir import Arith, Case, Col, Expr, Extreme, IsNull, Lit, Within
from .types import Bool, Float

__all__ = ["causes", "may_be_null"]


def may_be_null(e: Expr) -> bool:
    """Whether ``e`` can be NULL, as far as its nodes tell."""
    match e:
        case Col():
            return e.nullable
        case Lit():
            return e.value is None
        case IsNull():
            return False
        case Within():
            return True
        case Case():
            return any(may_be_null(x) for x in (*e.then, e.otherwise))
        case Extreme():
            return all(may_be_null(x) for x in e.args)
        case Arith() if _divides(e) and not _is_never_zero(e.b):
            return True
    return any(may_be_null(x) for x in e.children)


def causes(e: Expr) -> tuple[Expr, ...]:
    """Expressions such that the value ``e`` (no condition) is NULL exactly when one of them is: columns, literals, and
    what has NULL for reasons of its own.
    """
    found: dict[Expr, None] = {}
    _collect(e, found)
    return tuple(found)


def _collect(e: Expr, found: dict[Expr, None]) -> None:
    if not may_be_null(e):
        return
    own = isinstance(e, (Col, Lit, Case, Extreme, Within)) or isinstance(e.type, Bool)
    if own or (isinstance(e, Arith) and _divides(e) and not _is_never_zero(e.b)):
        found[e] = None
        return
    for child in e.children:
        _collect(child, found)


def _divides(e: Arith) -> bool:
    """Whether ``e`` is NULL where its divisor is 0."""
    return e.op in ("div", "mod", "//", "%") and not isinstance(e.type, Float)


def _is_never_zero(e: Expr) -> bool:
    return isinstance(e, Lit) and e.value != 0
