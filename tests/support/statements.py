"""A SELECT's answer from DuckDB: the pairs from the window oracle, the values of the SELECT list computed on them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa

from tests.support.oracle import oracle


def selected(db: duckdb.DuckDBPyConnection, r: pa.Table, s: pa.Table, items: Sequence[str], *, on: str,
             window_r: tuple[int | None, int | None], window_s: tuple[int | None, int | None], time: str | None = None,
             integer_times: bool = False) -> list[tuple[Any, ...]]:
    """The rows of ``items``, SQL of DuckDB over r and s, for the pairs of `oracle.oracle`, in total order."""
    pairs = oracle(db, r, s, on=on, window_r=window_r, window_s=window_s, time=time, integer_times=integer_times)
    found = pa.table({"n": pa.array(range(len(pairs)), pa.int64()), "rk": pa.array([p[0] for p in pairs], pa.int64()),
                      "sk": pa.array([p[1] for p in pairs], pa.int64())})
    db.register("pairs_in", found)
    return db.sql(f"SELECT {', '.join(items)} FROM pairs_in JOIN r_in r ON r.k = rk JOIN s_in s ON s.k = sk "
                  f"ORDER BY n").fetchall()


def exactly(value: Any) -> Any:
    """``value`` in a form in which equal values are equal whatever their type: exact numbers as fractions, floats by
    their value with NaN as a text.
    """
    if isinstance(value, list):
        return [exactly(one) for one in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, Decimal)):
        return Fraction(value)
    if isinstance(value, float):
        return "NaN" if value != value else value
    return value
