"""Dates beside timestamps: a date is its midnight, as in DuckDB."""

from __future__ import annotations

import datetime as dt

import duckdb
import pyarrow as pa
import pytest

import splitjoin
from splitjoin import PredicateError

DAYS = [None, dt.date(1969, 12, 30), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]
MOMENTS = [None, *(dt.datetime(*day, *time) for day in ((1969, 12, 30), (1970, 1, 1), (2024, 2, 28), (2024, 3, 1))
                   for time in ((0, 0, 0), (0, 0, 1), (23, 59, 59)))]
S = pa.table({"d": pa.array(DAYS, pa.date32()), "m": range(len(DAYS))})
CONDITIONS = [*(f"r.t {op} s.d" for op in ("=", "<>", "<", "<=", ">", ">=")), "s.d BETWEEN r.t AND r.t",
              "r.t BETWEEN s.d AND s.d + 1", "s.d IN (r.t, DATE '2024-03-01')", "r.t IS NOT DISTINCT FROM s.d",
              "greatest(r.t, s.d) <= TIMESTAMP '2024-02-29 00:00:01'", "coalesce(s.d, r.t) = r.t",
              "CAST(s.d AS TIMESTAMP) < r.t", "r.t >= DATE '2024-03-01' AND r.n > s.m",
              "DATE '1970-01-01' = r.t AND s.m > 1",
              "date_trunc('day', r.t) = s.d AND r.n > 2",
              "CASE WHEN r.n > 5 THEN s.d ELSE r.t END > TIMESTAMP '1970-01-01'"]


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_as_duckdb_has_it(unit: str) -> None:
    r = pa.table({"t": pa.array(MOMENTS, pa.timestamp(unit)), "n": range(len(MOMENTS))})
    s = S
    for on in CONDITIONS:
        want = duckdb.sql(f"SELECT n, m FROM r JOIN s ON {on} ORDER BY n, m").fetchall()
        assert want
        for device in ("golden", "cpu"):
            found = splitjoin.join(r, s, on=on, select=["n", "m"], order="left", device=device)
            assert [tuple(row.values()) for row in found.to_pylist()] == want, (on, device)
    days = s.rename_columns(["e", "k"])
    found = splitjoin.join(days, s, on=lambda r, s: r.e.cast("timestamp") <= s.d, order="left", select=["k", "m"])
    assert len(found) == sum(a <= b for a in DAYS[1:] for b in DAYS[1:])


def test_with_a_zone_it_is_refused() -> None:
    r = pa.table({"t": pa.array(MOMENTS, pa.timestamp("us", "UTC"))})
    with pytest.raises(PredicateError, match="begins at another moment in each time zone"):
        splitjoin.join(r, S, on="r.t > s.d")
