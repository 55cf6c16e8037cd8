# amaranth: UnusedElaboratable=no
"""Circuits of user-defined aggregates: what they fold, under stalls, is what the reference folds."""

from __future__ import annotations

from typing import Any

import pytest
from amaranth.lib import data
from hypothesis import HealthCheck, given, settings, strategies as st

from splitjoin import UnsupportedError
from splitjoin.circuit.fold_schedule import FoldPlan, plan_fold
from splitjoin.lang.fold import Fold, Overflow
from splitjoin_hw.hls.fold import FoldUnit, partner_layout, result_layout, state_layout
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import Stalls

from ...support.random_aggregates import RandomAggregate, random_aggregates
from ...support.sampling import at_length, examples
from ...support.stimuli import cells
from ...support.user_aggregates import EXAMPLES, Extent, Histogram, Variance

#: Clocks in MHz at which the loop has one cycle, and several.
CLOCKS = (None, 100.0, 160.0)

#: The partners of one base tuple: None is one with NULL.
Group = list[list[int] | None]


def packed(layout: data.StructLayout, values: dict[str, int]) -> int:
    """A record's bits."""
    bits = 0
    for name, field in layout:
        bits |= (values[name] & (1 << field.width) - 1) << field.offset
    return bits


def unpacked(layout: data.StructLayout, bits: int) -> dict[str, int]:
    found = {}
    for name, field in layout:
        value = bits >> field.offset & (1 << field.width) - 1
        is_signed = getattr(field.shape, "signed", False)
        found[name] = value - (1 << field.width) if is_signed and value >> field.width - 1 else value
    return found


def records(plan: FoldPlan, groups: list[Group]) -> list[int]:
    """The partners of each base tuple; an empty one is a record of its own."""
    layout, made = partner_layout(plan), []
    for group in groups:
        for n, partner in enumerate(group or [None]):
            values = partner or [0] * len(plan.fold.arguments)
            made.append(packed(layout, {"last": n == max(len(group), 1) - 1, "present": partner is not None, **{
                f"argument{i}": v for i, v in enumerate(values)}}))
    return made


def folded(fold: Fold, group: Group) -> list[int] | None:
    """The state by the reference; None if it leaves its width."""
    run, state = fold.add.evaluator(), fold.init
    for partner in group:
        if partner is not None:
            try:
                state = fold.checked(run(fold.row(state), {a.name: v for a, v in zip(fold.arguments, partner,
                                                                                   strict=True)}))
            except Overflow:
                return None
    return list(state)


def expected(plan: FoldPlan, group: Group) -> dict[str, int]:
    """The record that leaves: without values where they have no meaning."""
    state, added = folded(plan.fold, group), int(any(p is not None for p in group))
    if state is None:
        return {"added": added, "over": 1}
    if plan.result is None:
        return {"added": added, "over": 0, **{f"slot{n}": v for n, v in enumerate(state)}}
    (value,) = plan.fold.result.evaluator()(plan.fold.row(state), {})
    assert plan.fold.width is not None
    low, high = plan.fold.width.range
    return {"added": added, "over": 0, "wide": int(not low <= value <= high),
            **({"value": int(value)} if low <= value <= high else {})}


def run(component: Any, sources: dict[str, list[int]], count: int, stalls: Stalls, cycles: int) -> Any:
    """The sink of ``o`` after ``count`` records."""
    kept = []

    async def body(tb: Any) -> None:
        for n, (name, items) in enumerate(sources.items()):
            kept.append(tb.source(name, items, stalls.source(n)))
        sink = tb.sink("o", stalls.sink(0))
        kept.append(sink)
        await tb.run(lambda: len(sink.items) == count, limit=cycles)
        await tb.steps(5)

    simulate(component, body)
    return kept


def check(plan: FoldPlan, found: list[int], wanted: list[dict[str, int]], layout: data.StructLayout) -> None:
    assert len(found) == len(wanted)
    for bits, record in zip(found, wanted, strict=True):
        values = unpacked(layout, bits)
        assert {name: values[name] for name in record} == record


def groups_of(draw: Any, fold: Fold, most: int = 5) -> list[Group]:
    partner = st.tuples(*(st.integers(*a.width.range) for a in fold.arguments)).map(list)
    return draw(st.lists(st.lists(st.one_of(partner, partner, st.none()), max_size=4), min_size=1, max_size=most))


def budget(plan: FoldPlan, items: int) -> int:
    return 200 + 20 * (items + 1) * plan.interval + 4 * plan.latency


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
@given(aggregate=random_aggregates(), clock=st.sampled_from(CLOCKS), stalls=cells(), data=st.data())
def test_random_classes_fold_like_the_reference(aggregate: RandomAggregate, clock: float | None, stalls: Stalls,
                                                data: st.DataObject) -> None:
    plan = planned(aggregate.compiled.fold, clock)
    groups = groups_of(data.draw, plan.fold)
    items = records(plan, groups)
    *_, sink = run(FoldUnit(plan), {"i": items}, len(groups), stalls, budget(plan, len(items)))
    layout = state_layout(plan) if plan.result is None else result_layout(plan)
    check(plan, sink.items, [expected(plan, g) for g in groups], layout)


def planned(fold: Fold, clock: float | None) -> FoldPlan:
    """The plan for ``clock``, or a slower one where an operation is too wide for it."""
    try:
        return plan_fold(fold, clock)
    except UnsupportedError as error:
        assert "so the clock must be at most" in str(error)
        return plan_fold(fold, 60.0)


@pytest.mark.parametrize("number", [n if c in (Histogram, Variance) else at_length(n)
                                    for n, (c, *_) in enumerate(EXAMPLES)])
@settings(max_examples=examples(4), suppress_health_check=[HealthCheck.too_slow])
@given(stalls=cells(), clock=st.sampled_from(CLOCKS), data=st.data())
def test_examples_fold_like_the_reference(number: int, stalls: Stalls, clock: float | None,
                                          data: st.DataObject) -> None:
    plan = planned(EXAMPLES[number][0].fold, clock)
    groups = groups_of(data.draw, plan.fold)
    items = records(plan, groups)
    *_, sink = run(FoldUnit(plan), {"i": items}, len(groups), stalls, budget(plan, len(items)))
    layout = state_layout(plan) if plan.result is None else result_layout(plan)
    check(plan, sink.items, [expected(plan, g) for g in groups], layout)


@pytest.mark.parametrize(("aggregate", "clock", "interval"), [(Variance, None, 1), (Histogram, 100.0, 2),
                                                              (Extent, 160.0, 1), (Histogram, 200.0, 5)])
def test_interval_and_latency_are_as_stated(aggregate: Any, clock: float | None, interval: int) -> None:
    plan = plan_fold(aggregate.fold, clock)
    assert plan.interval == interval
    group: Group = [[n] for n in range(6)]
    items = records(plan, [group, group])
    source, sink = run(FoldUnit(plan), {"i": items}, 2, Stalls(False, False), 200)
    gaps = [b - a for a, b in zip(source.cycles, source.cycles[1:], strict=False)]
    assert gaps[plan.add.ahead:] == [interval] * len(gaps[plan.add.ahead:])
    # A record waits in front of the loop for the one before it.
    assert sink.cycles[1] - sink.cycles[0] == interval * len(group)
    single, sink = run(FoldUnit(plan), {"i": records(plan, [[[3]]])}, 1, Stalls(False, False), 200)
    assert sink.cycles[0] - single.cycles[0] == plan.latency


def test_what_circuits_cannot_do_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"an operation '\*' of 31 bits takes 6.9 ns, so the clock must be at "
                                               r"most 145 MHz, not 200; state fewer bits"):
        plan_fold(Variance.fold, 200.0)
    assert plan_fold(Variance.fold).host_result == "result() has no stated width"
