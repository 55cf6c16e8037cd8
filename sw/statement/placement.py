"""Pass: where each condition of a SELECT is decided (ESJ, "Multi-attribute join" and "Peripherals").

ON and WHERE mean the same in an inner join, so their terms go where they are cheapest. A term over one stream is a
*pre-selection*: the host decides it once per tuple before the join, and a tuple that fails keeps its place in its
window but meets nothing. A term over both is a *join predicate*, decided by the device that compares; one of those that
must hold for every match is the *main predicate*, by which an index finds candidates, and the others are *secondary*.
What comparisons of keys do not decide is a *post-selection*, verified on the candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from ..lang.ir import And, Expr, Lit, Not, Or, sides
from ..lang.leading import is_equality, leading_tests, tests_nothing
from ..lang.plan import make_plan
from ..lang.schema import Side
from ..lang.types import BOOL
from ..lang.vector import constant

__all__ = ["Clause", "Placement", "Stage", "Term", "joined", "place"]

Clause = Literal["ON", "WHERE"]
#: ``always`` and ``never`` are constants. ``join+post``: a comparison that is necessary, and the verification of what
#: it lets through.
Stage = Literal["always", "never", "pre", "join", "join+post", "post"]


@dataclass(frozen=True)
class Term:
    """One of the conditions that must all be true.

    ``side``: the stream of a pre-selection. ``index``: how an index could find candidates by it, if it is a join
    predicate that must hold for every match. ``reasons``: why comparisons do not decide it.
    """

    condition: Expr
    clause: Clause
    stage: Stage
    side: Side | None = None
    index: Literal["hash", "range"] | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placement:
    """Where every term of ON and WHERE went, in the order of the text."""

    terms: tuple[Term, ...]

    def pre(self, side: Side) -> list[Expr]:
        """The pre-selections of stream ``side``."""
        return [t.condition for t in self.terms if t.stage == "pre" and t.side == side]

    def main(self) -> list[Term]:
        """The join predicates by which an index could find candidates; the engine takes one or two of them."""
        return [t for t in self.terms if t.index is not None]

    def secondary(self) -> list[Term]:
        """The other join predicates."""
        return [t for t in self.terms if t.stage in ("join", "join+post") and t.index is None]

    def post(self) -> list[Term]:
        """The post-selections."""
        return [t for t in self.terms if t.stage in ("post", "join+post")]


def place(on: Expr | None, where: Expr | None) -> Placement:
    """Where the terms of ``on`` and ``where`` go; None stands for no condition."""
    clauses: Sequence[tuple[Clause, Expr | None]] = (("ON", on), ("WHERE", where))
    return Placement(tuple(_term(c, clause) for clause, e in clauses if e is not None for c in _terms(e)))


def joined(placement: Placement) -> Expr:
    """The condition of the whole join, as devices take it."""
    conditions = [t.condition for t in placement.terms if t.stage != "always"]
    if any(t.stage == "never" for t in placement.terms):
        return Lit(BOOL, False)
    if not conditions:
        return Lit(BOOL, True)
    return conditions[0] if len(conditions) == 1 else And(BOOL, tuple(conditions))


def _terms(e: Expr) -> Iterator[Expr]:
    """``e`` as conditions that must all be true: NOT (a OR b) is true exactly if NOT a and NOT b are."""
    match e:
        case And():
            for a in e.args:
                yield from _terms(a)
        case Not(a=Or() as o):
            for a in o.args:
                yield from _terms(Not(BOOL, a))
        case Not(a=Not() as n):
            yield from _terms(n.a)
        case _:
            yield e


def _term(e: Expr, clause: Clause) -> Term:
    streams = sides(e)
    if not streams:
        return Term(e, clause, "always" if constant(e) is True else "never")
    if len(streams) == 1:
        return Term(e, clause, "pre", side=next(iter(streams)))
    plan = make_plan(e)
    if plan.residual is not None and tests_nothing(plan):
        return Term(e, clause, "post", reasons=plan.reasons)
    leading = leading_tests(plan)
    index: Literal["hash", "range"] | None = None
    if leading:
        index = reduce(lambda found, j: "hash" if is_equality(plan, j) else found, leading, index or "range")
    return Term(e, clause, "join" if plan.residual is None else "join+post", index=index, reasons=plan.reasons)
