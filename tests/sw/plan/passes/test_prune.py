"""Tests that exclude hardly any pair are left out, and the answer stays; others stay."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import splitjoin
from splitjoin.circuit.lowering import configure, plan_for
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.lang.query import predicate
from splitjoin.lang.schema import Schema
from splitjoin.plan.forms import Both, positive
from splitjoin.plan.keys import UnitKey
from splitjoin.plan.passes.bounds import direct
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.passes.prune import excluded


def _schemas(type_: pa.DataType) -> tuple[pa.Schema, pa.Schema]:
    r, s = (pa.schema([pa.field(name, type_, nullable=name in "nm") for name in names]) for names in ("xyn", "abm"))
    return r, s


def test_a_circuit_has_no_tests_that_exclude_nothing() -> None:
    """Products of 16 bits that are bounded by the range of other products exclude 1 of 2^32 pairs."""
    band = "abs(r.x - s.a) <= 200"
    parameters = CircuitParameters(cores=2, capacity=32, verify="host")
    sizes = []
    for on in (band, f"{band} AND r.x * s.b > r.y * s.a"):
        query = splitjoin.query(*_schemas(pa.int16()), on=on, window="ROWS 64")
        plan = plan_for(query, parameters)
        sizes.append((len(plan.tests), configure(query, plan, parameters).input_record.width))
    assert sizes[0] == sizes[1]


def test_the_answer_is_that_of_the_whole_condition() -> None:
    random = np.random.default_rng(1)
    r, s = (pa.table({name: pa.array(random.integers(-300, 300, 40), pa.int16()) for name in names})
            for names in ("xy", "ab"))
    on = "abs(r.x - s.a) <= 200 AND r.x * s.b > r.y * s.a"
    found, golden = (splitjoin.join(r, s, on=on, window="ROWS 16", **device).table for device in (
        {"device": "pysim", "cores": 2, "capacity": 8}, {"device": "golden"}))
    assert found.equals(golden)
    assert found.num_rows


@pytest.mark.parametrize(("on", "tests", "selections"), [
    ("r.x * s.b + r.y * s.a <= 0", 0, 0), ("r.n * s.b + r.y * s.m <= 0", 0, 2),
    ("r.x * s.b + r.y * s.a <= -900000000", 2, 0)])
def test_only_tests_that_pay_stay(on: str, tests: int, selections: int) -> None:
    """Those that values are not NULL stay, as they take no comparator of keys."""
    plan = make_plan(splitjoin.query(*_schemas(pa.int16()), on=on, window="ROWS 64").predicate)
    assert plan.residual is not None
    assert sum(not isinstance(plan.slots_r[t.r].key, UnitKey) for t in plan.tests) == tests
    assert sum(len(slot.guards) for slot in (*plan.slots_r, *plan.slots_s)) == selections


@pytest.mark.parametrize("on", [
    "r.x * s.a <= 9000", "r.x * s.a >= -200", "r.x - s.a <= 100", "3 * r.x + 2 * s.a >= -300", "r.x * s.a = 6",
    "r.x + s.a = 0"])
def test_shares_are_those_of_evenly_spread_keys(on: str) -> None:
    schemas = [Schema.from_arrow(side, schema) for side, schema in zip("rs", _schemas(pa.int8()), strict=True)]
    form = positive(predicate(on, *schemas))
    assert isinstance(form, Both)
    every = np.arange(-128, 128)
    x, a = np.meshgrid(every, every)
    holds = eval(on.replace("r.", "").replace("s.", "").replace(" = ", " == "), {"x": x, "a": a})
    assert float(excluded(direct(form, []))) == pytest.approx(1 - holds.mean(), abs=0.01)
