"""Source of a plan's interval tests on one stored tuple."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from splitjoin.plan.plan import Plan

__all__ = ["TestSource", "test_source", "tree_source"]


@dataclass(frozen=True)
class TestSource:
    """Code of a plan's whole condition on one stored tuple.

    Attributes:
        lines: Assignments that come before ``truth``: one for each part of the condition that occurs more than once.
        truth: An expression that is true if the condition holds.
    """

    lines: tuple[str, ...]
    truth: str

    def before(self, indent: int) -> str:
        """The lines, each indented by ``indent`` spaces, to put in front of the statement that uses ``truth``."""
        return "".join(f"{' ' * indent}{line}\n" for line in self.lines)


def test_source(plan: Plan, side: str, key: str, low: str, high: str) -> TestSource:
    """The whole condition on a stored tuple of stream ``side``; the names are formats of a slot or a test."""
    def test(j: int) -> str:
        k = key.format(plan.tests[j].slot(side))
        return f"({k} >= {low.format(j)}) & ({k} <= {high.format(j)})"

    return tree_source(plan, test)


def tree_source(plan: Plan, test: Callable[[int], str]) -> TestSource:
    """The whole condition, in which ``test`` gives the code of each test.

    The length is linear in the number of distinct parts of ``plan.tree``, which may be far fewer than its nodes.
    """
    uses: Counter[Any] = Counter()

    def count(tree: Any) -> None:
        uses[tree] += 1
        if uses[tree] == 1 and not isinstance(tree, int):
            for a in tree[1:]:
                count(a)

    count(plan.tree)
    names: dict[Any, str] = {}
    lines: list[str] = []

    def text(tree: Any) -> str:
        if tree in names:
            return names[tree]
        if isinstance(tree, int):
            code = test(tree)
        else:
            op, *args = tree
            code = (" & " if op == "and" else " | ").join(f"({text(a)})" for a in args)
        if uses[tree] == 1:
            return code
        names[tree] = f"c{len(names)}"
        lines.append(f"{names[tree]} = {code}")
        return names[tree]

    truth = text(plan.tree)
    return TestSource(tuple(lines), truth)
