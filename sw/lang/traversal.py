"""Walking an expression, what it reads, and the same node over other operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from .ir import And, Arith, Call, Case, Cmp, Col, Expr, Extreme, Lit, Or, Unary
from .schema import Side

__all__ = ["columns", "distinct", "rebuilt", "sides", "walk"]


def walk(e: Expr) -> Iterator[Expr]:
    """``e`` and all nodes below it, parents first."""
    yield e
    for child in e.children:
        yield from walk(child)


def columns(e: Expr) -> tuple[Col, ...]:
    """The distinct columns of ``e``, in order of appearance."""
    found: dict[Col, None] = {}
    seen: set[int] = set()

    def visit(node: Expr) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            if isinstance(node, Col):
                found[node] = None
            for child in node.children:
                visit(child)

    visit(e)
    return tuple(found)


def sides(e: Expr) -> frozenset[Side]:
    """The streams whose columns ``e`` reads."""
    return frozenset(c.side for c in columns(e))


def distinct(e: Expr) -> list[tuple[Expr, tuple[int, ...]]]:
    """The distinct nodes of ``e``, operands first and ``e`` last, each with the positions of its operands in the list.

    Nodes are the same if they have the same operands and everything else alike; zeros of either sign are not.
    """
    nodes: list[tuple[Expr, tuple[int, ...]]] = []
    by_object: dict[int, int] = {}
    by_content: dict[object, int] = {}

    def visit(node: Expr) -> int:
        if id(node) not in by_object:
            operands = tuple(map(visit, node.children))
            content = (type(node), operands, *(repr(node) if isinstance(node, Lit) else getattr(node, f.name)
                                               for f in fields(node) if isinstance(node, (Col, Lit))
                                               or f.name not in ("a", "b", "args", "when", "then", "otherwise")))
            if content not in by_content:
                by_content[content] = len(nodes)
                nodes.append((node, operands))
            by_object[id(node)] = by_content[content]
        return by_object[id(node)]

    visit(e)
    return nodes


def rebuilt(e: Expr, children: Sequence[Expr]) -> Expr:
    """``e`` with other operands, in the order of `Expr.children`."""
    match e:
        case Arith() | Cmp():
            return replace(e, a=children[0], b=children[1])
        case And() | Or() | Extreme() | Call():
            return replace(e, args=tuple(children))
        case Case():
            return replace(e, when=tuple(children[:-1:2]), then=tuple(children[1::2]), otherwise=children[-1])
        case Unary():
            return replace(e, a=children[0])
    return e
