"""Orders of numbers, counted or sorted."""

from __future__ import annotations

import numpy as np
import pytest

from splitjoin.engines.sorting import stable_order


@pytest.mark.parametrize("n", [2, 1024, 1025, 5000])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_equal_numbers_stay_as_they_come(n: int, dtype: type[np.int64]) -> None:
    rng = np.random.default_rng(n)
    for top in (3, 4 * n - 1, 4 * n + 1, 2**62):
        values = rng.integers(0, top, n).astype(dtype) + dtype(7)
        assert (stable_order(values) == np.argsort(values, kind="stable")).all()
