"""Queries of the kinds that are most used, for compiling loops before they are needed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema

__all__ = ["common_queries"]

#: Conditions of the kinds that are most used, over columns of each width: i int32, l int64, g float32, f float64, and
#: t text.
_COMMON = ("abs(r.i - s.i) <= 5", "abs(r.l - s.l) <= 5", "r.i = s.i", "r.l = s.l", "r.l < s.l", "abs(r.f - s.f) <= 0.5",
          "abs(r.g - s.g) <= 0.5", "abs(r.i - s.i) <= 5 AND abs(r.g - s.g) <= 0.5", "r.t = s.t AND abs(r.l - s.l) <= 5")
#: Tuples of each stream.
_TUPLES = 3000


def common_queries() -> Iterator[tuple[str, Query, pa.Table, pa.Table]]:
    """Conditions, their queries, and tables whose join needs what is to be compiled."""
    random = np.random.default_rng(1)
    tables: list[pa.Table] = []
    for _ in SIDES:
        numbers = random.integers(0, 2000, _TUPLES)
        tables.append(pa.table({
            "ts": np.arange(_TUPLES), "i": numbers.astype(np.int32), "l": numbers, "g": numbers.astype(np.float32),
            "f": numbers.astype(np.float64), "t": [f"text {n % 100}" for n in numbers]}))
    r, s = tables
    for on in _COMMON:
        yield on, Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on,
                             window="ROWS 1000 RANGE 2000", time="ts"), r, s
