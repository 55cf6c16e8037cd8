"""Source of a plan's interval tests on one stored tuple, and which of them narrow a search."""

from __future__ import annotations

from typing import Any

from ..lang.keys import UnitKey
from ..lang.plan import Plan

__all__ = ["is_conjunction", "is_equality", "leading_tests", "test_source", "tests_nothing", "used_slots"]


def used_slots(plan: Plan, side: str) -> list[int]:
    """The slots of stream ``side`` that the tests read, in order."""
    return sorted({test.r if side == "r" else test.s for test in plan.tests})


def leading_tests(plan: Plan) -> list[int]:
    """The tests that must hold for every match: those that stand in the outermost AND, and test something."""
    return [j for j in plan.required if not isinstance(plan.slots_s[plan.tests[j].s].key, UnitKey)]


def tests_nothing(plan: Plan) -> bool:
    """Whether no test compares what one stream brings with what the other does."""
    return all(isinstance(slot.key, UnitKey) for slot in plan.slots_r + plan.slots_s)


def is_conjunction(plan: Plan) -> bool:
    """Whether all tests must hold."""
    return isinstance(plan.tree, int) or (plan.tree[0] == "and" and all(isinstance(a, int) for a in plan.tree[1:]))


def is_equality(plan: Plan, test: int) -> bool:
    """Whether a probe's interval of ``test`` is at most one key."""
    return plan.tests[test].is_point


def test_source(plan: Plan, side: str, key: str, low: str, high: str) -> str:
    """The whole condition on a stored tuple of stream ``side``; the names are formats of a slot or a test."""
    def text(tree: Any) -> str:
        if isinstance(tree, int):
            test = plan.tests[tree]
            k = key.format(test.r if side == "r" else test.s)
            return f"({k} >= {low.format(tree)}) & ({k} <= {high.format(tree)})"
        op, *args = tree
        return (" & " if op == "and" else " | ").join(f"({text(a)})" for a in args)

    return text(plan.tree)
