"""A condition as equalities between the streams, beside conditions on one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .ir import And, Cmp, Expr, Lit, sides
from .schema import SIDES, Side


@dataclass(frozen=True)
class Equalities:
    """The terms of a condition, by what they compare.

    Attributes:
        keys: The pairs of expressions, R's and S's, that must be equal; none if all tuples have one key.
        selections: The terms over R alone (or over no column), and over S alone.
        rest: The terms that are neither.
    """

    keys: tuple[tuple[Expr, Expr], ...]
    selections: Mapping[Side, tuple[Expr, ...]]
    rest: tuple[Expr, ...]

    @classmethod
    def of(cls, predicate: Expr) -> Equalities:
        """The terms of ``predicate``."""
        keys: list[tuple[Expr, Expr]] = []
        selections: dict[Side, list[Expr]] = {side: [] for side in SIDES}
        rest: list[Expr] = []
        for term in _terms(predicate):
            of = sides(term)
            if len(of) < 2:
                selections["s" if of == {"s"} else "r"].append(term)
            elif (key := _key(term)) is not None:
                keys.append(key)
            else:
                rest.append(term)
        return cls(tuple(keys), {side: tuple(found) for side, found in selections.items()}, tuple(rest))

    def key(self, side: Side) -> tuple[Expr, ...]:
        """The expressions of stream ``side`` that are compared."""
        return tuple(pair[side == "s"] for pair in self.keys)


def _terms(e: Expr) -> Iterator[Expr]:
    if isinstance(e, And):
        for child in e.children:
            yield from _terms(child)
    elif not (isinstance(e, Lit) and e.value is True):
        yield e


def _key(term: Expr) -> tuple[Expr, Expr] | None:
    """The sides of an equality between the streams, R's first; None if ``term`` is none."""
    if not isinstance(term, Cmp) or term.op != "=":
        return None
    if sides(term.a) == {"r"} and sides(term.b) == {"s"}:
        return term.a, term.b
    return (term.b, term.a) if sides(term.a) == {"s"} and sides(term.b) == {"r"} else None
