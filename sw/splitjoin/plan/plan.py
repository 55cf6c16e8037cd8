"""The plan of a predicate: keys, interval tests on them, and a Boolean tree over the tests.

A comparing device knows nothing else of a predicate. The host computes the codes of a tuple once: its own keys, which
probes of the other stream are compared with while it is stored, and its bounds on the other stream's keys, with which
it probes.

A comparison that is no interval test becomes the strongest tests that it implies. The conjuncts that the tests do not
decide are the *residual* of the predicate: the host verifies them on the pairs that the tests let through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from splitjoin.base.errors import plural
from splitjoin.lang.ir import Expr, text

from .forms import ComputedTest, OneSided
from .keys import Key, UnitKey
from .linear import ExactRelation
from .relations import EqualText, FloatOrder, Relation, TextOrder
from .text import key_text, relation_text, tree_text

#: A positive Boolean combination of tests: the number of a test, or ("and" | "or", trees…).
Tree = int | tuple[Any, ...]


@dataclass(frozen=True)
class KeySlot:
    """A key in a stored tuple: its code, or 0 if it is NULL or a guard does not hold."""

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

    def slot(self, side: str) -> int:
        """The slot of stream ``side``."""
        return self.r if side == "r" else self.s

    @property
    def is_point(self) -> bool:
        """True if a probe's interval is at most one key, so that equal keys can be looked up."""
        return any(isinstance(x, (ExactRelation, FloatOrder, EqualText, TextOrder)) and x.op == "="
                   for x in self.relations)


@dataclass(frozen=True)
class Main:
    """The test that an index core finds candidates by.

    Attributes:
        test: Its number in the plan; None if every stored tuple must be compared.
        kind: "hash": equal keys are looked up; "bucket": neighbouring keys share a bucket, and a probe looks up the
            buckets that its interval meets; None if every stored tuple must be compared.
        reason: Why, in words.
    """

    test: int | None
    kind: Literal["hash", "bucket"] | None
    reason: str

    def __str__(self) -> str:
        return f"{self.kind or 'scan'}: {self.reason}"


@dataclass(frozen=True)
class Plan:
    """A predicate as interval tests, the common plan of all devices.

    Attributes:
        predicate: The condition as the user wrote it.
        slots_r, slots_s: The keys that R's and S's tuples are stored with.
        tests: The interval tests.
        tree: The Boolean tree over the tests. Tests that a device computes itself (`splitjoin.plan.forms.ComputedTest`)
            are numbered on from the interval tests; only plans for such devices have them.
        residual: None if the tests decide. Otherwise the tests are necessary but not sufficient, and a pair for which
            they hold is a result exactly if this condition is true as well.
        reasons: A reason for every comparison that the tests do not decide.
        main: The test that an index finds candidates by; None before pass ``main``.
    """

    predicate: Expr
    slots_r: tuple[KeySlot, ...]
    slots_s: tuple[KeySlot, ...]
    tests: tuple[Test, ...]
    tree: Tree
    residual: Expr | None = None
    reasons: tuple[str, ...] = ()
    main: Main | None = None

    def slots(self, side: str) -> tuple[KeySlot, ...]:
        """The keys that stream ``side`` is stored with."""
        return self.slots_r if side == "r" else self.slots_s

    @property
    def required(self) -> tuple[int, ...]:
        """The interval tests that must hold for every match: the operands of the outermost AND, or the only test."""
        args = self.tree[1:] if isinstance(self.tree, tuple) and self.tree[0] == "and" else (self.tree,)
        return tuple(j for j in args if isinstance(j, int) and j < len(self.tests))


def leading_tests(plan: Plan) -> list[int]:
    """The tests by which an index may search: they must hold for every match, and they compare keys."""
    return [j for j in plan.required if not isinstance(plan.slots_s[plan.tests[j].s].key, UnitKey)]


def tests_nothing(plan: Plan) -> bool:
    """True if no test compares a value of one stream with a value of the other."""
    return all(isinstance(slot.key, UnitKey) for slot in plan.slots_r + plan.slots_s)


def is_equality(plan: Plan, test: int) -> bool:
    """True if a probe's interval of ``test`` is at most one key."""
    return plan.tests[test].is_point


def slot_tests(plan: Plan, side: str) -> dict[int, list[int]]:
    """The leading tests of each slot of stream ``side``."""
    found: dict[int, list[int]] = {}
    for j in leading_tests(plan):
        found.setdefault(plan.tests[j].slot(side), []).append(j)
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


#: A probe's part of an interval test, in words.
BOTH_ENDS = "an interval"


def plan_lines(plan: Plan, computed: Iterable[str] = (), brought: Iterable[str] | None = None) -> Iterator[str]:
    """The plan in words, a line for each key, test and fact.

    Args:
        plan: The plan.
        computed: The tests beside the interval tests, which a device computes itself, in words.
        brought: A probe's part of each interval test, in words; None for both ends of an interval each.
    """
    for side in ("r", "s"):
        for n, slot in enumerate(plan.slots(side)):
            yield f"key         {side.upper()}{n}: {_slot(slot)}, {slot.key.width} {plural(slot.key.width, 'bit')}"
    ends = [BOTH_ENDS] * len(plan.tests) if brought is None else list(brought)
    for n, (test, end) in enumerate(zip(plan.tests, ends, strict=True)):
        yield f"test        T{n}: {_selection(plan, test) or _test(test, end)}"
    for n, said in enumerate(computed, len(plan.tests)):
        yield f"test        T{n}: {said}"
    yield f"combined    {tree_text(plan.tree)}"
    if plan.residual is not None:
        yield f"verified    on the host, of the pairs that the tests let through: {text(plan.residual)}"
        for reason in plan.reasons:
            yield f"because     {reason}"
    if plan.main is not None:
        yield f"main test   {plan.main}"


def _slot(slot: KeySlot) -> str:
    if isinstance(slot.key, UnitKey):
        held = " and ".join(f"{text(g.condition)} is {' or '.join(sorted(g.values))}" for g in slot.guards)
        return f"1 where {held}, else 0" if held else "1 for every tuple"
    null = "; 0 for NULL" if slot.key.nullable and not slot.guards else ""
    guards = " and ".join(f"{text(g.condition)} is {' or '.join(sorted(g.values))}" for g in slot.guards)
    return key_text(slot.key) + (f"; 0 unless {guards}" if guards else null)


def _selection(plan: Plan, test: Test) -> str:
    """A test that compares no values, in words; empty for another one."""
    r, s = plan.slots_r[test.r], plan.slots_s[test.s]
    if not (isinstance(r.key, UnitKey) and isinstance(s.key, UnitKey)):
        return ""
    held = [name for name, slot in ((f"R{test.r}", r), (f"S{test.s}", s)) if slot.guards]
    return (f"{held[0]} and {held[1]} are 1" if len(held) == 2 else
            f"{held[0]} is 1, whatever the other tuple" if held else "lets every pair through")


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
    """The plan, and the tests that a device computes itself beside the interval tests; in the plan's tree they are
    numbered on from the interval tests.
    """

    plan: Plan
    computed: tuple[Placed, ...] = ()

    def __str__(self) -> str:
        return "\n".join(plan_lines(self.plan, (one.test.described(one.r, one.s) for one in self.computed)))
