"""Which of a plan's tests narrow a search: what indexes of any device, and those who explain them, ask of a plan."""

from __future__ import annotations

from .keys import UnitKey
from .plan import Plan

__all__ = ["is_equality", "leading_tests", "tests_nothing"]


def leading_tests(plan: Plan) -> list[int]:
    """The tests that must hold for every match: those that stand in the outermost AND, and test something."""
    return [j for j in plan.required if not isinstance(plan.slots_s[plan.tests[j].s].key, UnitKey)]


def tests_nothing(plan: Plan) -> bool:
    """Whether no test compares what one stream brings with what the other does."""
    return all(isinstance(slot.key, UnitKey) for slot in plan.slots_r + plan.slots_s)


def is_equality(plan: Plan, test: int) -> bool:
    """Whether a probe's interval of ``test`` is at most one key."""
    return plan.tests[test].is_point
