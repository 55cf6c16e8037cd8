"""The interval tests of a plan, as compiled loops take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.plan.plan import Plan

from .tests_source import is_conjunction

__all__ = ["junctions"]

Rows = npt.NDArray[np.int64]


def junctions(plan: Plan) -> Rows:
    """How the values of the tests are joined, step by step: (3 · steps,), for each step 1 for OR and 0 for AND, and the
    numbers of two values, of which each step makes one behind those of the tests. None if all tests must hold.

    There are as many steps as ``plan.tree`` has distinct parts, which may be far fewer than its nodes.
    """
    if is_conjunction(plan):
        return np.empty(0, np.int64)
    steps: list[tuple[int, int, int]] = []
    numbers: dict[Any, int] = {}

    def number(tree: Any) -> int:
        if isinstance(tree, int):
            return tree
        if tree not in numbers:
            op, first, *others = tree
            found = number(first)
            for other in others or [first]:
                steps.append((int(op == "or"), found, number(other)))
                found = len(plan.tests) + len(steps) - 1
            numbers[tree] = found
        return numbers[tree]

    number(plan.tree)
    return np.array(steps, np.int64).reshape(-1)
