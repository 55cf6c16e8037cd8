"""Nested CASE, coalesce, least and greatest: plans, sources and evaluation stay small, and the answers are golden's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from splitjoin import join
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.cpu.pair_tests import conditions
from splitjoin.engines.cpu.search import ExpressionSearch, PlanSearch, VerifiedSearch, make_search
from splitjoin.engines.gpu.comparison import test_source as source_of_tests
from splitjoin.engines.tuning import Tuning
from splitjoin.lang.eval import vector
from splitjoin.lang.ir import Cmp, Lit, Or, distinct, walk
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.lang.types import BOOL, FLOAT64
from splitjoin.plan import forms
from splitjoin.plan.passes.compiler import make_plan

from ....support.sampling import at_length

OTHERS = ("s.x", "r.y", "s.y", "r.x")


def coalesced(depth: int) -> str:
    e = "r.x"
    for n in range(depth):
        e = f"coalesce({e} + {OTHERS[n % 4]}, {OTHERS[n % 4]})"
    return f"{e} < s.y"


def cases(depth: int) -> str:
    e = "r.x"
    for n in range(depth):
        e = f"CASE WHEN {e} > {OTHERS[n % 4]} THEN {OTHERS[n % 4]} ELSE {e} END"
    return f"{e} < s.y"


def extremes(depth: int) -> str:
    e = "r.x"
    for n in range(depth):
        e = f"greatest({e}, {OTHERS[n % 4]} - {n})" if n % 2 else f"least({e}, {OTHERS[n % 4]} + {n})"
    return f"{e} < s.y"


def tables(rows: int = 60) -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(3)
    made = [pa.table({name: pa.array(rng.integers(-9, 9, rows), pa.int32(), mask=rng.random(rows) < 0.1)
                      for name in ("x", "y")}) for _ in range(2)]
    return made[0], made[1]


def query_of(on: str) -> Query:
    r, s = tables()
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 20")


def nodes(tree: Any) -> int:
    return 1 if isinstance(tree, int) else 1 + sum(map(nodes, tree[1:]))


def test_conditions_grow_linearly_with_depth() -> None:
    plans = [make_plan(query_of(extremes(depth)).predicate) for depth in (2, 7, 12)]
    assert all(plan.residual is None for plan in plans)
    first, second, third = (nodes(plan.tree) for plan in plans)
    assert third - second > 3 * (second - first)  # what is bounded here is not small by itself
    first, second, third = (len(conditions(plan)[1]) for plan in plans)
    assert third - second < 2 * (second - first)


def test_parts_that_occur_once_stay_in_the_expression() -> None:
    plan = make_plan(query_of("r.x < s.x OR r.y > s.y AND r.x = s.y").predicate)
    test = source_of_tests(plan, "r", "k{}", "l{}", "h{}")
    assert not test.lines


@pytest.mark.parametrize("on", [coalesced(8), cases(6), extremes(30)])
def test_what_would_need_too_many_parts_is_left_to_the_residual(on: str) -> None:
    query = query_of(on)
    plan = make_plan(query.predicate)
    assert plan.residual == query.predicate
    assert len(plan.tests) == 1
    assert plan.reasons[0].endswith("': it would make too many comparisons")


def test_a_deep_choice_is_left_before_it_is_looked_at_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at, given = 0, forms._given

    def counted(*args: Any) -> Any:
        nonlocal looked_at
        looked_at += 1
        return given(*args)

    monkeypatch.setattr(forms, "_given", counted)
    make_plan(query_of(extremes(24)).predicate)
    assert looked_at < 100_000


@pytest.mark.parametrize("on", [cases(4), cases(5), extremes(16), coalesced(7)])
def test_the_condition_itself_is_evaluated_where_there_would_be_many_tests(on: str) -> None:
    assert isinstance(make_search(query_of(on), "auto", True), ExpressionSearch)


def test_required_tests_are_kept_where_there_would_be_many() -> None:
    found = make_search(query_of(f"r.y = s.y AND {cases(4)}"), "index", True)
    assert isinstance(found, VerifiedSearch)
    plan = found._tests._plan
    assert (len(plan.tests), plan.tree, len(plan.slots_r), len(plan.slots_s)) == (1, 0, 1, 1)


def test_few_tests_are_compiled_as_they_are() -> None:
    for on in (cases(2), coalesced(3), extremes(6)):
        assert isinstance(make_search(query_of(on), "auto", True), PlanSearch)


def test_each_part_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = []
    one = vector._value
    monkeypatch.setattr(vector, "_value", lambda e, *rest: evaluated.append(e) or one(e, *rest))
    table = {"x": pa.array([1, None, 3], pa.int32()), "y": pa.array([2, 5, None], pa.int32())}
    for depth in (4, 8):
        e = query_of(coalesced(depth).replace("s.", "r.")).predicate
        evaluated.clear()
        vector.evaluate(e, pa.table(table))
        assert len(evaluated) == len(distinct(e)) <= 5 * depth + 5
        assert sum(1 for _ in walk(e)) > 2**depth


def test_distinct_nodes() -> None:
    e = query_of("r.x + s.x < 1 OR r.x + s.x > 2").predicate
    found = distinct(e)
    assert found[-1] == (e, (4, 6))
    assert [str(node) for node, _ in found[:3]] == ["r.x", "s.x", "(r.x + s.x)"]
    zeros = Or(BOOL, tuple(Cmp(BOOL, "=", Lit(FLOAT64, 1.0), Lit(FLOAT64, zero)) for zero in (0.0, -0.0)))
    assert len(distinct(zeros)) == 6


@pytest.mark.parametrize("on", [coalesced(3), at_length(coalesced(7)), at_length(cases(4)), extremes(8),
                                *(at_length(extremes(depth)) for depth in (12, 16)), f"r.y = s.y AND {cases(4)}"])
def test_answers(on: str) -> None:
    r, s = tables()
    expected = join(r, s, on=on, window="ROWS 20", device="golden")
    assert 0 < len(expected) < 1700
    assert join(r, s, on=on, window="ROWS 20", device="cpu").equals(expected)
    compiled = CpuDevice(tuning=Tuning(interpreted_pairs=0))
    assert join(r, s, on=on, window="ROWS 20", device=compiled).equals(expected)
