"""Random streams, and the answer of `splitjoin.join` to compare with."""

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin

#: A condition on a nullable integer, a float, and a string.
ON = "abs(r.x - s.x) <= 6 AND (r.y <= s.y OR r.name = s.name)"


def stream(seed: int, n: int, last: int = 120) -> pa.Table:
    """``n`` rows in arrival order; about every third time occurs twice or more."""
    rng = np.random.default_rng(seed)
    names = np.array(["ann", "bob", "", "été", None], object)
    x = rng.integers(-20, 20, n)
    day = dt.date(2024, 2, 27)
    return in_order(pa.table({
        "ts": pa.array(rng.integers(0, last, n), pa.int64()),
        "x": pa.array(x, pa.int32(), mask=rng.random(n) < 0.1),
        "y": pa.array(rng.choice([-1.5, -0.0, 0.0, 2.5, np.nan], n).astype(np.float32)),
        "name": pa.array(rng.choice(names, n), pa.string()),
        "day": [day + dt.timedelta(days=int(d)) for d in rng.integers(0, 5, n)],
        "price": pa.array([Decimal(int(p)) / 100 for p in rng.integers(-10**6, 10**6, n)], pa.decimal128(12, 2)),
        "n": pa.array(rng.permutation(n), pa.int32()),
    }))


def in_order(table: pa.Table, *ties: str) -> pa.Table:
    """Sorted by ``ts``, then ``ties``, then all other columns, NULL first and NaN last, as Spark sorts."""
    keys = ["ts", *ties, *(c for c in table.column_names if c != "ts" and c not in ties)]
    order = sorted(range(len(table)), key=lambda i: [_key(table[c][i].as_py()) for c in keys])
    return table.take(pa.array(order, pa.int64()))


def _key(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    if isinstance(value, float) and np.isnan(value):
        return 2, 0
    return 1, value


def answer(r: pa.Table, s: pa.Table, **query: Any) -> pa.Table:
    """The answer of `splitjoin.join` on the golden model, in total order."""
    return splitjoin.join(r, s, **query, order="total", device="golden").to_arrow()


def rows(table: pa.Table) -> Counter[str]:
    """The rows as a multiset; as text, so that NaN equals NaN."""
    return Counter(map(repr, table.to_pylist()))
