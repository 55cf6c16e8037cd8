"""Lowering: a plan becomes that of a circuit, for its core kind, to constant widths and to a clock.

Two passes follow those of `splitjoin.plan.passes.pipeline`, and comparisons that no interval test decides become sum
tests on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Union, cast

from ..lang.ir import Expr
from ..plan.passes.phases import Phase, Shared
from ..plan.passes.pipeline import Observer, Pass, compiled
from ..plan.passes.strength import ComputedTests
from ..plan.plan import Plan
from .core_kind import CoreChoice, choose_core
from .parameters import CircuitParameters
from .passes.clock import pipelined
from .passes.sums import sum_relation
from .passes.width import constant_widths
from .plan import CircuitPlan, SumTest
from .sum_relations import SumRelation

__all__ = ["CLOCK", "PASSES", "WIDTH", "CircuitPhase", "lower", "phases", "plan_with_bounds", "unlowered"]

#: A pass that only circuits need: it takes a plan and the clock that is asked for, in MHz.
CircuitPass = Pass[tuple[CircuitPlan, "float | None"], CircuitPlan]

WIDTH: CircuitPass = Pass("width", "tests of constant width get by with one bound",
                          lambda given: constant_widths(*given))
CLOCK: CircuitPass = Pass("clock", "the datapath gets registers for a clock", lambda given: pipelined(*given))
#: In the order in which they run.
PASSES = (WIDTH, CLOCK)

CircuitPhase = Union[Phase, CircuitPlan]

#: With the interval tests that sum tests imply, by which an index finds candidates; and without.
_BESIDE, _INSTEAD = ComputedTests(sum_relation, True), ComputedTests(sum_relation, False)


def lower(plan: Plan, parameters: CircuitParameters) -> CircuitPlan:
    """``plan`` for a circuit with ``parameters``, whose capacity is not None.

    What no interval test decides is computed by sum tests where circuits can. The interval tests that these imply stay
    beside them only where an index finds candidates by them.

    Raises `UnsupportedError` where the condition has nothing for the kind of core that was asked for, and for a clock
    that no registers are enough for.
    """
    made = _front(plan, parameters)
    for step in PASSES:
        made = step.run((made, parameters.clock))
    return made


def unlowered(plan: Plan, parameters: CircuitParameters) -> CircuitPlan:
    """``plan`` as it stands, for the kind of core of ``parameters``: its interval tests, each with both bounds."""
    return _circuit_plan(Shared(plan), choose_core(plan, parameters))


def plan_with_bounds(predicate: Expr) -> Plan:
    """The plan of condition ``predicate`` for circuits, with the interval tests that sum tests imply."""
    return compiled(predicate, _BESIDE).plan


def phases(plan: Plan, parameters: CircuitParameters) -> Iterator[tuple[str, str, CircuitPhase]]:
    """The name and purpose of each pass on the way of ``plan``'s condition to `lower`'s answer, and the phase that it
    made; before these the condition itself, with an empty name.
    """
    seen: list[tuple[str, str, CircuitPhase]] = []

    def observe(step: Pass[object, object] | None, phase: Phase) -> None:
        seen.append(("", "", phase) if step is None else (step.name, step.what, phase))

    made = _front(plan, parameters, observe)
    yield from seen
    for step in PASSES:
        made = step.run((made, parameters.clock))
        yield step.name, step.what, made


def _front(plan: Plan, parameters: CircuitParameters, observe: Observer | None = None) -> CircuitPlan:
    """The passes that circuits share with other devices, for the kind of core that is chosen."""
    shared = compiled(plan.predicate, _BESIDE)
    core = choose_core(shared.plan, parameters)
    if not core.index and shared.computed:
        shared = compiled(plan.predicate, _INSTEAD)
        core = choose_core(shared.plan, parameters)
    if observe is not None:
        compiled(plan.predicate, _BESIDE if core.index else _INSTEAD, observe)
    return _circuit_plan(shared, core)


def _circuit_plan(shared: Shared, core: CoreChoice) -> CircuitPlan:
    plan = shared.plan
    # `_BESIDE` and `_INSTEAD` make sum relations only, whose axes have a key of each stream.
    sums = tuple(SumTest(cast(SumRelation, p.test), cast(tuple[int, ...], p.r[:-1]), cast(tuple[int, ...], p.s[:-1]),
                         p.r[-1], p.s[-1]) for p in shared.computed)
    given: dict[str, Any] = {f.name: getattr(plan, f.name) for f in fields(Plan)}
    return CircuitPlan(**given, sums=sums, widths=(None,) * len(plan.tests), core=core)
