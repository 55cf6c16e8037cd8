"""Aggregates from DuckDB: GROUP BY over the pairs of the window oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from tests.support.oracle import oracle

#: Our text and DuckDB's, over the columns ``s.a0``, ``s.b0`` and ``r.x0`` of pairs.
FUNCTIONS: dict[str, str] = {
    "count(*)": "count(sk)", "count(s.a0)": "count(a0) FILTER (sk IS NOT NULL)",
    "count(DISTINCT s.a0)": "count(DISTINCT a0)", "min(s.a0)": "min(a0)", "max(s.a0)": "max(a0)",
    "first(s.a0)": "first(a0 ORDER BY sk)", "last(s.a0)": "last(a0 ORDER BY sk)",
    "argmin(s.a0, s.a0)": "arg_min(a0, a0 ORDER BY sk)", "argmax(s.a0, s.b0)": "arg_max(a0, b0 ORDER BY sk)",
    "argmin(r.x0, s.b0)": "arg_min(x0, b0 ORDER BY sk)", "sum(s.a0)": "sum(a0)", "avg(s.a0)": "avg(a0)",
}


def aggregate_oracle(db: duckdb.DuckDBPyConnection, r: pa.Table, s: pa.Table, functions: Sequence[str], *,
                     left: bool, **how: Any) -> list[tuple[Any, ...]]:
    """The base tuples' row ids with the aggregates ``functions``, SQL of DuckDB over the pairs' columns, by row id."""
    pairs = oracle(db, r, s, integer_times=True, **how)
    db.register("pairs_in", pa.table({"rk": pa.array([p[0] for p in pairs], pa.int64()),
                                      "sk": pa.array([p[1] for p in pairs], pa.int64())}))
    kind = "LEFT" if left else ""
    return db.sql(f"SELECT r_in.k, {', '.join(functions)} FROM r_in {kind} JOIN (SELECT rk, sk, s_in.* FROM pairs_in "
                  f"JOIN s_in ON s_in.k = sk) p ON p.rk = r_in.k GROUP BY r_in.k ORDER BY r_in.k").fetchall()
