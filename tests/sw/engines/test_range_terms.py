"""Exact sums of floats are those of rational numbers, rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings, strategies as st

from splitjoin.engines.range_terms import range_float_sums
from splitjoin.lang.aggregate_functions import rounded_sum

from ...support.sampling import examples

#: Values whose sums cancel, round half-way, underflow and overflow.
HARD = [2.0**53, 1.0, -1.0, 2.0**-53, 2.0**-54, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 1e16,
        2.0**-1074 * 3, 0.1, -0.1, 1e-300, 2.0**970, -(2.0**970)]


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


@settings(max_examples=examples(150))
@given(st.lists(st.lists(st.one_of(st.sampled_from(HARD), st.floats(allow_nan=False, allow_infinity=False)),
                         max_size=20), max_size=4))
def test_finite_sums(groups: list[list[float]]) -> None:
    found = range_float_sums(np.array([v for group in groups for v in group]), np.array([len(g) for g in groups], int))
    for total, group in zip(found.tolist(), groups, strict=True):
        try:
            assert total == math.fsum(group)
        except OverflowError:
            exact = sum(map(Fraction, group), Fraction(0))
            assert total == rounded_sum(group)
            assert math.isinf(total) == (abs(exact) >= Fraction(2) ** 1024 - Fraction(2) ** 970)


def test_an_overflow_in_between_does_not_matter() -> None:
    huge = 1.7976931348623157e308
    assert range_float_sums(np.array([1.0, huge, huge, -huge, -huge, 2.5]), np.array([1, 5])).tolist() == [1.0, 2.5]
    assert range_float_sums(np.array([huge, huge]), np.array([2])).tolist() == [math.inf]
    assert range_float_sums(np.array([-huge, -huge]), np.array([2])).tolist() == [-math.inf]


def test_special_values() -> None:
    inf, nan = math.inf, math.nan
    groups = [[inf, 1.0], [-inf, 1.0], [inf, -inf], [nan, inf], [], [1e308, 1e308, inf]]
    found = range_float_sums(np.array([v for g in groups for v in g]), np.array([len(g) for g in groups]))
    assert all(same(a, b) for a, b in zip(found.tolist(), [inf, -inf, nan, nan, 0.0, inf], strict=True))


def test_half_way_cases_look_at_what_is_left() -> None:
    """2^53 + 1 lies half-way between two doubles, and rounds to the even one unless more is left."""
    assert range_float_sums(np.array([2.0**53, 1.0]), np.array([2])).tolist() == [2.0**53]
    assert range_float_sums(np.array([2.0**53, 1.0, 1e-300]), np.array([3])).tolist() == [2.0**53 + 2]
    assert range_float_sums(np.array([2.0**53, 3.0, -1e-300]), np.array([3])).tolist() == [2.0**53 + 2]
