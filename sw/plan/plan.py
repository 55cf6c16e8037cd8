"""The plan of a predicate: keys, interval tests on them, and a Boolean tree over the tests.

This is all that a device which compares knows of a predicate. What a tuple brings is computed on the host, once per
tuple: its own keys, by which it is found while stored, and its bounds on the other stream's keys, with which it probes.

What is no interval test becomes the strongest tests that it implies, and the parts of the predicate which those do not
decide are its *residual*: the host verifies them on the pairs that the tests let through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ..lang.ir import Expr, text
from .forms import ComputedTest, OneSided
from .keys import Key, UnitKey
from .linear import ExactRelation
from .relations import EqualText, FloatOrder, Relation, TextOrder
from .text import key_text, relation_text, tree_text

__all__ = ["BOTH_ENDS", "Main", "Placed", "Plan", "Shared", "Slot", "Test", "Tree", "is_equality", "leading_tests",
           "plan_lines", "tests_nothing"]

#: A positive Boolean combination of tests: the number of a test, or ("and" | "or", trees…).
Tree = int | tuple[Any, ...]


@dataclass(frozen=True)
class Slot:
    """A key as a stored tuple has it: its code, or 0 where it is NULL or a guard does not hold."""

    key: Key
    guards: tuple[OneSided, ...] = ()

    @property
    def null_code(self) -> bool:
        """True if code 0 occurs."""
        return self.key.nullable or bool(self.guards)


@dataclass(frozen=True)
class Test:
    """One interval test: ``r`` and ``s`` index the plan's slots; all ``relations`` must hold, each an interval."""

    r: int
    s: int
    relations: tuple[Relation, ...]

    @property
    def is_point(self) -> bool:
        """True if a probe's interval is at most one key, so that equal keys can be looked up."""
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
    """A predicate as interval tests, which every device shares.

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


#: What a probe brings for an interval test.
BOTH_ENDS = "an interval"


def plan_lines(plan: Plan, computed: Iterable[str] = (), brought: Iterable[str] | None = None) -> Iterator[str]:
    """The plan, a line a key, test and fact.

    Args:
        plan: The plan.
        computed: The tests beside the interval tests, which a device computes itself, in words.
        brought: What a probe brings for each interval test; None for both ends of an interval each.
    """
    for side in ("r", "s"):
        for n, slot in enumerate(plan.slots(side)):
            yield f"key         {side.upper()}{n}: {_slot(slot)}, {slot.key.width} bits"
    ends = [BOTH_ENDS] * len(plan.tests) if brought is None else list(brought)
    for n, (test, end) in enumerate(zip(plan.tests, ends, strict=True)):
        yield f"test        T{n}: {_test(test, end)}"
    for n, said in enumerate(computed, len(plan.tests)):
        yield f"test        T{n}: {said}"
    yield f"combined    {tree_text(plan.tree)}"
    if plan.residual is not None:
        yield f"verified    on the host, of the pairs that the tests let through: {text(plan.residual)}"
        for reason in plan.reasons:
            yield f"because     {reason}"
    if plan.main is not None:
        yield f"main test   {plan.main}"


def _slot(slot: Slot) -> str:
    null = "; 0 for NULL" if slot.key.nullable and not slot.guards else ""
    guards = " and ".join(f"{text(g.condition)} is {' or '.join(sorted(g.values))}" for g in slot.guards)
    return key_text(slot.key) + (f"; 0 unless {guards}" if guards else null)


def _test(test: Test, brought: str) -> str:
    said = " and ".join(relation_text(x, f"R{test.r}", f"S{test.s}") for x in test.relations)
    return f"{said}; an R probe brings {brought} for S{test.s}, an S probe one for R{test.r}"


@dataclass(frozen=True)
class Placed:
    """A test that a device computes itself. ``r``, ``s``: the plan's slots of its keys, in the order of
    `ComputedTest.keys`; None where there is no key.
    """

    test: ComputedTest
    r: tuple[int | None, ...]
    s: tuple[int | None, ...]


@dataclass(frozen=True)
class Shared:
    """The plan, and beside its interval tests those that a device computes itself: in the plan's tree they are numbered
    on from the interval tests.
    """

    plan: Plan
    computed: tuple[Placed, ...] = ()

    def __str__(self) -> str:
        return "\n".join(plan_lines(self.plan, self._computed_lines()))

    def _computed_lines(self) -> Iterator[str]:
        for placed in self.computed:
            yield placed.test.described(placed.r, placed.s)
