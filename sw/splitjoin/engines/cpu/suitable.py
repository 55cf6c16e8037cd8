"""Engines that can run a plan: those that look for keys need tests that every match must pass."""

from __future__ import annotations

from splitjoin.base.errors import UnsupportedError
from splitjoin.plan.linear import ExactRelation
from splitjoin.plan.plan import Plan, is_equality, leading_tests
from splitjoin.plan.relations import FloatOrder

__all__ = ["bounded_end", "check_engine", "is_inequality", "slot_tests", "suits_runs"]

#: Engines that look for keys, in words.
_SEEKING = {"index": "an index needs", "sorted": "sorted runs need"}


def check_engine(plan: Plan, engine: str) -> None:
    """Raise `UnsupportedError` if ``engine`` looks for keys, and no test of ``plan`` suits that."""
    if engine in _SEEKING and not leading_tests(plan):
        raise UnsupportedError(f"{_SEEKING[engine]} a comparison of both streams that must hold for every match, but "
                               f"'{plan.predicate}' has none; use engine='nested'")


def slot_tests(plan: Plan, side: str) -> dict[int, list[int]]:
    """The leading tests of each slot of stream ``side``."""
    found: dict[int, list[int]] = {}
    for j in leading_tests(plan):
        found.setdefault(plan.tests[j].r if side == "r" else plan.tests[j].s, []).append(j)
    return found


def suits_runs(plan: Plan) -> bool:
    """True if sorted runs may be cheapest: two leading tests are inequalities, such as the ends of a BETWEEN."""
    return sum(is_inequality(plan, j) for j in leading_tests(plan)) >= 2


def is_inequality(plan: Plan, test: int) -> bool:
    """True if the intervals of ``test`` have one end."""
    return len(plan.tests[test].relations) == 1 and not is_equality(plan, test)


def bounded_end(plan: Plan, test: int, side: str) -> str:
    """The only end, "low" or "high", that probes of stream ``side`` bound in ``test``; or "both"."""
    relation, *others = plan.tests[test].relations
    if not others and isinstance(relation, FloatOrder) and relation.op != "=":
        return "high" if (relation.op in ("<", "<=")) == (side == "s") else "low"
    if not others and isinstance(relation, ExactRelation) and relation.op != "=":
        return "high" if (relation.op in ("<", "<=")) == (relation.factors(side)[1] > 0) else "low"
    return "both"
