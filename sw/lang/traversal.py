"""Walking an expression, what it reads, and the same node over other operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .ir import And, Arith, Case, Cmp, Col, Expr, Extreme, Or, Unary
from .schema import Side

__all__ = ["columns", "rebuilt", "sides", "walk"]


def walk(e: Expr) -> Iterator[Expr]:
    """``e`` and all nodes below it, parents first."""
    yield e
    for child in e.children:
        yield from walk(child)


def columns(e: Expr) -> tuple[Col, ...]:
    """The distinct columns of ``e``, in order of appearance."""
    return tuple(dict.fromkeys(n for n in walk(e) if isinstance(n, Col)))


def sides(e: Expr) -> frozenset[Side]:
    """The streams whose columns ``e`` reads."""
    return frozenset(c.side for c in columns(e))


def rebuilt(e: Expr, children: Sequence[Expr]) -> Expr:
    """``e`` with other operands, in the order of `Expr.children`."""
    match e:
        case Arith() | Cmp():
            return replace(e, a=children[0], b=children[1])
        case And() | Or() | Extreme():
            return replace(e, args=tuple(children))
        case Case():
            return replace(e, when=tuple(children[:-1:2]), then=tuple(children[1::2]), otherwise=children[-1])
        case Unary():
            return replace(e, a=children[0])
    return e
