"""Source of a plan's interval tests on one stored tuple."""

from __future__ import annotations

from typing import Any

from ..plan.plan import Plan

__all__ = ["is_conjunction", "test_source", "used_slots"]


def used_slots(plan: Plan, side: str) -> list[int]:
    """The slots of stream ``side`` that the tests read, in order."""
    return sorted({test.r if side == "r" else test.s for test in plan.tests})


def is_conjunction(plan: Plan) -> bool:
    """Whether all tests must hold."""
    return isinstance(plan.tree, int) or (plan.tree[0] == "and" and all(isinstance(a, int) for a in plan.tree[1:]))


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
