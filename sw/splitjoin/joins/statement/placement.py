"""Pass: decides the stage at which each condition of a SELECT is tested (ESJ, "Multi-attribute join", "Peripherals").

ON and WHERE mean the same in an inner join, so their terms go where they are cheapest. A term over one stream is a
*pre-selection*: the host decides it once per tuple before the join, and a tuple that fails keeps its place in its
window but meets nothing. A term over both is a *join predicate*, decided by the device that compares; one of those that
must hold for every match is the *main predicate*, by which an index finds candidates, and the others are *secondary*
(an engine that measures how selective they are may take one of those instead). A term that comparisons of keys do not
decide is a *post-selection*, verified on the candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from splitjoin.lang.eval.vector import constant
from splitjoin.lang.ir import And, Expr, Lit, Not, Or, columns, sides
from splitjoin.lang.schema import Side
from splitjoin.lang.types import BOOL
from splitjoin.plan.keys import ExactKey, FloatKey, PrefixKey, TextKey, WideKey
from splitjoin.plan.passes.pipeline import make_plan
from splitjoin.plan.plan import Plan, Test, is_equality, leading_tests, tests_nothing

__all__ = ["Clause", "PlacedTerm", "Placement", "Stage", "conjunction", "place"]

Clause = Literal["ON", "WHERE"]
#: ``always`` and ``never`` are constants. ``join+post``: a comparison that is necessary, and the verification of what
#: it lets through.
Stage = Literal["always", "never", "pre", "join", "join+post", "post"]


@dataclass(frozen=True)
class PlacedTerm:
    """One of the conditions that must all be true.

    ``side``: the stream of a pre-selection. ``index``: the kind of index that could find candidates by it, if it is a
    join predicate that must hold for every match. ``reasons``: the reasons why comparisons do not decide it.
    """

    condition: Expr
    clause: Clause
    stage: Stage
    side: Side | None = None
    index: Literal["hash", "range"] | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placement:
    """The stages of all terms of ON and WHERE, in the order of the text. ``main``: the main predicate, or None."""

    terms: tuple[PlacedTerm, ...]
    main: PlacedTerm | None

    def pre(self, side: Side) -> list[Expr]:
        """The pre-selections of stream ``side``."""
        return [t.condition for t in self.terms if t.stage == "pre" and t.side == side]

    def secondary(self) -> list[PlacedTerm]:
        """The other join predicates."""
        return [t for t in self.terms if t.stage in ("join", "join+post") and t is not self.main]

    def post(self) -> list[PlacedTerm]:
        """The post-selections."""
        return [t for t in self.terms if t.stage in ("post", "join+post")]


def place(on: Expr | None, where: Expr | None, whole: Expr) -> Placement:
    """Place the terms of ``on`` and ``where``; None is no condition. ``whole``: their `conjunction`, as devices run
    it.
    """
    clauses: Sequence[tuple[Clause, Expr | None]] = (("ON", on), ("WHERE", where))
    terms = tuple(_term(c, clause) for clause, e in clauses if e is not None for c in _terms(e))
    return Placement(terms, _main(terms, make_plan(whole)))


def conjunction(*conditions: Expr | None) -> Expr:
    """The condition of the whole join, as devices take it: all of ``conditions``, of which None is none."""
    kept = []
    for term in (c for e in conditions if e is not None for c in _terms(e)):
        if sides(term):
            kept.append(term)
        elif constant(term) is not True:
            return Lit(BOOL, False)
    if not kept:
        return Lit(BOOL, True)
    return kept[0] if len(kept) == 1 else And(BOOL, tuple(kept))


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


def _main(terms: Sequence[PlacedTerm], plan: Plan) -> PlacedTerm | None:
    """The term by which an index finds candidates: that of the main test of the whole condition's ``plan``, else the
    first by hash, else by range.
    """
    known = [t for t in terms if t.index is not None]
    if plan.main is not None and plan.main.test is not None:
        test = plan.tests[plan.main.test]
        for t in known:
            # Other terms may have narrowed the keys since, but not changed what they read.
            own, read = make_plan(t.condition), _key_columns(plan, test)
            if any(one.is_point == test.is_point and _key_columns(own, one) == read for one in own.tests):
                return t
    return min(known, key=lambda t: t.index != "hash", default=None)


def _key_columns(plan: Plan, test: Test) -> set[tuple[Side, str]]:
    """The columns that the keys of ``test`` read."""
    found: set[tuple[Side, str]] = set()
    for key in (plan.slots_r[test.r].key, plan.slots_s[test.s].key):
        match key:
            case ExactKey() | WideKey():
                exprs = [t.expr for t in (key.exact if isinstance(key, WideKey) else key).terms]
            case FloatKey() | TextKey() | PrefixKey():
                exprs = [key.expr]
            case _:
                exprs = []
        found |= {(c.side, c.name) for e in exprs for c in columns(e)}
    return found


def _term(e: Expr, clause: Clause) -> PlacedTerm:
    streams = sides(e)
    if not streams:
        return PlacedTerm(e, clause, "always" if constant(e) is True else "never")
    if len(streams) == 1:
        return PlacedTerm(e, clause, "pre", side=next(iter(streams)))
    plan = make_plan(e)
    if plan.residual is not None and tests_nothing(plan):
        return PlacedTerm(e, clause, "post", reasons=plan.reasons)
    leading = leading_tests(plan)
    index: Literal["hash", "range"] | None = None
    if leading:
        index = reduce(lambda found, j: "hash" if is_equality(plan, j) else found, leading, index or "range")
    return PlacedTerm(e, clause, "join" if plan.residual is None else "join+post", index=index, reasons=plan.reasons)
