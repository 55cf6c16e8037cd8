"""The order in which rows of a DataFrame arrive."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

from splitjoin.spark.streaming.rows import Rows, arrival_order


def sort_key(columns: Mapping[str, Sequence[float | None]], ties: Sequence[str], row: int) -> list[tuple[bool, float]]:
    """Spark's ascending order: NULL first; −0.0 is 0.0."""
    values = [columns[name][row] for name in ties]
    return [(value is not None, 0 if value is None else value + 0.0) for value in values]


@pytest.mark.parametrize("ties", [(), ("a",), ("a", "b"), ("b", "a")])
def test_rows_arrive_by_time_then_ties_then_number(ties: Sequence[str]) -> None:
    chance = random.Random(f"{ties}")
    for _ in range(200):
        n = chance.randrange(12)
        ts, last = (np.array([chance.randrange(most) for _ in range(n)], np.int64) for most in (5, 3))
        ts = np.sort(ts) if chance.random() < 0.3 else ts
        columns = {"a": [chance.choice([None, 1, 2]) for _ in range(n)],
                   "b": [chance.choice([None, -0.0, 0.0, 1.5]) for _ in range(n)]}
        table = pa.table({"a": pa.array(columns["a"], pa.int32()), "b": pa.array(columns["b"], pa.float64()),
                          "row": pa.array(range(n), pa.int64())})
        want = sorted(range(n), key=lambda row: (ts[row], sort_key(columns, ties, row), last[row]))
        found = arrival_order(Rows(table, ts, last), ties, last)
        assert found.table["row"].to_pylist() == want
        assert (found.ts.tolist(), found.ids.tolist()) == (ts[want].tolist(), last[want].tolist())
