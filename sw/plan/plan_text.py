"""Plans in words, as `splitjoin.explain` and the passes' text forms print them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dataclasses import dataclass
from ..lang.ir import text
from .forms import ComputedTest
from .plan import Plan, Slot, Test
from .text import key_text, relation_text, tree_text

__all__ = ["BOTH_ENDS", "Placed", "Shared", "plan_lines"]

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
