"""What a predicate is planned as: keys, interval tests on them, and a Boolean tree over the tests.

This is all that a device which compares knows of a predicate. What a tuple brings is computed on the host, once per
tuple: its own keys, by which it is found while stored, and its bounds on the other stream's keys, with which it probes.

What is no interval test becomes the strongest tests that it implies, and the parts of the predicate which those do not
decide are its *residual*: the host verifies them on the pairs that the tests let through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..lang.ir import Expr
from .forms import OneSided
from .keys import Key, UnitKey
from .linear import ExactRelation
from .relations import EqualText, FloatOrder, Relation, TextOrder

__all__ = ["Main", "Plan", "Slot", "Test", "Tree", "is_equality", "leading_tests", "tests_nothing"]

#: A positive Boolean combination of tests: the number of a test, or ("and" | "or", trees…).
Tree = int | tuple[Any, ...]


@dataclass(frozen=True)
class Slot:
    """A key as a stored tuple has it: its code, or 0 where it is NULL or a guard does not hold."""

    key: Key
    guards: tuple[OneSided, ...] = ()

    @property
    def null_code(self) -> bool:
        """Whether code 0 occurs."""
        return self.key.nullable or bool(self.guards)


@dataclass(frozen=True)
class Test:
    """One interval test: ``r`` and ``s`` index the plan's slots; all ``relations`` must hold, each an interval."""

    r: int
    s: int
    relations: tuple[Relation, ...]

    @property
    def is_point(self) -> bool:
        """Whether a probe's interval is at most one key, so that equal keys can be looked up."""
        return any(isinstance(x, (ExactRelation, FloatOrder, EqualText, TextOrder)) and x.op == "="
                   for x in self.relations)


@dataclass(frozen=True)
class Main:
    """The test that an index core finds candidates by.

    Attributes:
        test: Its number in the plan, None where every stored tuple has to be looked at.
        kind: "hash": equal keys are looked up; "bucket": keys near each other lie together, and a probe visits those
            that its interval meets; None where every stored tuple has to be looked at.
        reason: Why, in words.
    """

    test: int | None
    kind: Literal["hash", "bucket"] | None
    reason: str

    def __str__(self) -> str:
        return f"{self.kind or 'scan'}: {self.reason}"


@dataclass(frozen=True)
class Plan:
    """How a predicate maps onto interval tests: what every device shares.

    Attributes:
        predicate: The condition as the user wrote it.
        slots_r, slots_s: The keys that R's and S's tuples are stored with.
        tests: The interval tests.
        tree: How the tests combine. Tests that a device computes itself (`splitjoin.plan.forms.ComputedTest`) are
            numbered on from the interval tests; a plan that was made without them has none.
        residual: None where the tests decide. Else the tests are necessary only, and a pair for which they hold is a
            result exactly if this condition is true as well.
        reasons: For every comparison that the tests do not decide, why.
        main: The test that an index finds candidates by; None before pass ``main``.
    """

    predicate: Expr
    slots_r: tuple[Slot, ...]
    slots_s: tuple[Slot, ...]
    tests: tuple[Test, ...]
    tree: Tree
    residual: Expr | None = None
    reasons: tuple[str, ...] = ()
    main: Main | None = None

    def slots(self, side: str) -> tuple[Slot, ...]:
        """The keys that stream ``side`` is stored with."""
        return self.slots_r if side == "r" else self.slots_s

    @property
    def required(self) -> tuple[int, ...]:
        """The interval tests that must hold for every match: those that stand in the outermost AND, or alone."""
        args = self.tree[1:] if isinstance(self.tree, tuple) and self.tree[0] == "and" else (self.tree,)
        return tuple(j for j in args if isinstance(j, int) and j < len(self.tests))


def leading_tests(plan: Plan) -> list[int]:
    """The tests that must hold for every match and compare something: those by which an index may search."""
    return [j for j in plan.required if not isinstance(plan.slots_s[plan.tests[j].s].key, UnitKey)]


def tests_nothing(plan: Plan) -> bool:
    """True if no test compares a value of one stream with a value of the other."""
    return all(isinstance(slot.key, UnitKey) for slot in plan.slots_r + plan.slots_s)


def is_equality(plan: Plan, test: int) -> bool:
    """True if a probe's interval of ``test`` is at most one key."""
    return plan.tests[test].is_point
