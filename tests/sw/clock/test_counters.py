"""`splitjoin.clock.unwrap`: counters that begin anew, beside counts that never did."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin import clock
from splitjoin.base.errors import SplitJoinError

from ...support.sampling import examples


@given(st.data())
@settings(max_examples=examples(200), deadline=None)
def test_counts_go_on(data: st.DataObject) -> None:
    modulo = data.draw(st.one_of(st.integers(2, 9), st.sampled_from([1024, 2**32, 604_800_000, 2**62])))
    steps = data.draw(st.lists(st.integers(-((modulo - 1) // 2), modulo // 2), max_size=20))
    first = data.draw(st.integers(0, modulo - 1))
    true = np.cumsum([first, *steps], dtype=object)
    want = [int(value) for value in true]
    counts = [value % modulo for value in want]
    if sum(map(abs, steps)) + first < 2**62:
        assert clock.unwrap(counts, modulo).to_pylist() == want
        cut = data.draw(st.integers(0, len(counts)))
        going = clock.Unwrapper(modulo)
        assert going(counts[:cut]).to_pylist() + going(pa.array(counts[cut:], pa.int64())).to_pylist() == want
    if modulo < 2**62:
        base = data.draw(st.integers(-2**40, 2**40)) * modulo if modulo < 2**20 else 0
        error = st.integers(-((modulo - 1) // 2), modulo // 2)
        off = data.draw(st.lists(error, min_size=len(true), max_size=len(true)))
        whole = [value + base for value in want]
        if all(abs(value) < 2**62 for value in whole):
            near = [value - far for value, far in zip(whole, off, strict=True)]
            assert clock.unwrap(counts, modulo, near=near).to_pylist() == whole


def test_null_stays_and_ties_go_forward() -> None:
    assert clock.unwrap([8, None, 1, None], 10).to_pylist() == [8, None, 11, None]
    assert clock.unwrap([0, 5], 10).to_pylist() == [0, 5]
    assert clock.unwrap([5, 0], 10).to_pylist() == [5, 10]
    assert clock.unwrap([5, 5], 10, near=[10, None]).to_pylist() == [15, None]
    assert clock.unwrap([], 10).to_pylist() == []


@pytest.mark.parametrize(("counts", "modulo", "near", "what"), [
    ([3, 10], 10, None, "a count must be from 0 to 9, not 10 (row 1)"),
    ([3, -1], 10, [3, 3], "a count must be from 0 to 9, not -1 (row 1)"),
    ([0.5], 10, None, "counts must be whole numbers, timestamps or durations, not double"),
    ([1], 1, None, "modulo must be a whole number from 2 to 2**62, not 1"),
    ([1], 2.5, None, "modulo must be a whole number"),
    ([1, 2], 10, [1], "near must have a value for each count: 2, not 1"),
    ([2**64 - 1], 10, None, "counts must be whole numbers of int64"),
    ([1], 10, [2**63 - 5], "near must be within int64 by more than modulo"),
])
def test_refused(counts: object, modulo: int, near: object, what: str) -> None:
    with pytest.raises(SplitJoinError) as refused:
        clock.unwrap(counts, modulo, near=near)
    assert what in str(refused.value)


def test_a_stream_of_many_rounds_is_refused_rather_than_wrong() -> None:
    going = clock.Unwrapper(2**61)
    assert going([0, 2**60, 0]).to_pylist() == [0, 2**60, 2**61]
    with pytest.raises(SplitJoinError, match="beyond int64"):
        going([2**60, 0, 2**60, 0])
