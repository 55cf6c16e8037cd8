"""Conditions in one form, whatever the order of their operands."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from splitjoin.lang.canonical import canonical
from splitjoin.lang.query import predicate
from splitjoin.lang.schema import Schema

from ...support.sampling import examples
from ...support.strategies import Scenario, scenario
from ..plan.passes.test_meaning import Pairs

SCHEMAS = [Schema.from_arrow(side, pa.schema([("ts", pa.int64()), ("x", pa.int32()), ("y", pa.float32())]))
           for side in ("r", "s")]


@pytest.mark.parametrize(("one", "other"), [
    ("abs(r.x - s.x) <= 2", "2 >= abs(s.x - r.x)"), ("r.x = s.x", "s.x = r.x"), ("r.x <> s.x", "s.x <> r.x"),
    ("r.x < s.x AND r.y > s.y", "s.y < r.y AND s.x > r.x"), ("r.x + s.x < 3", "s.x + r.x < 3"),
    ("2 * r.x < s.x", "s.x > r.x * 2"), ("r.x = 1 OR s.x = 2 OR r.x = 1", "2 = s.x OR 1 = r.x"),
    ("s.x BETWEEN r.x - 1 AND r.x + 1", "r.x + 1 >= s.x AND s.x >= r.x - 1"),
    ("greatest(r.x, s.x) > 3", "greatest(s.x, r.x) > 3"), ("r.x & s.x = 4", "4 = s.x & r.x"),
    ("r.x = 1 AND r.x = 1", "r.x = 1")])
def test_swapped_operands(one: str, other: str) -> None:
    assert str(canonical(predicate(one, *SCHEMAS))) == str(canonical(predicate(other, *SCHEMAS)))


@pytest.mark.parametrize(("one", "other"), [
    ("r.x - s.x < 2", "s.x - r.x < 2"), ("r.x < s.x", "s.x < r.x"), ("r.x <= s.x", "r.x < s.x"),
    ("abs(r.x - s.x) < 2", "abs(r.x + s.x) < 2"), ("r.x = 1 OR s.x = 2", "r.x = 1 AND s.x = 2")])
def test_other_conditions_stay_apart(one: str, other: str) -> None:
    assert str(canonical(predicate(one, *SCHEMAS))) != str(canonical(predicate(other, *SCHEMAS)))


@settings(max_examples=examples(60))
@given(scenario())
def test_the_meaning_stays(case: Scenario) -> None:
    pairs = Pairs(case)
    made = canonical(pairs.condition)
    before, after = (pairs.values(e) for e in (pairs.condition, made))
    assert np.array_equal(before.valid, after.valid)
    assert np.array_equal(before.values[before.valid], after.values[after.valid])
    assert canonical(made) == made
