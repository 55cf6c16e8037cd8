"""A user's file without mistakes: type checkers find none, and know what each call returns."""

from __future__ import annotations

from typing import Any, assert_type

import pandas as pd
import pyarrow as pa

import splitjoin


@splitjoin.predicate
def near(r: Any, s: Any) -> Any:
    """Rows at most 10 apart, within three hours."""
    return (abs(r.x - s.a) <= 10) & splitjoin.date_diff("hour", r.t, s.u).between(0, 3)


r = pa.table({"x": [1, 2], "t": [1, 2]})
s = {"a": [1, 2, 3]}
result = splitjoin.join(r, s, on="abs(r.x - s.a) <= 10", window="ROWS 4096", device="cpu")
assert_type(result, splitjoin.JoinResult)
frame: pd.DataFrame = result.to_pandas()
table: pa.Table = result.to_arrow()
assert_type(len(result), int)
assert_type(splitjoin.sql("SELECT r.x FROM r JOIN s ON r.x = s.a", r=r, s=s), splitjoin.JoinResult)
assert_type(splitjoin.join("a.parquet", ["b.csv"], on=lambda r, s: r.x < s.a, to="out.parquet"), splitjoin.JoinResult)
query = splitjoin.query(r.schema, pa.schema([("a", pa.int64())]), on=near, window=("ROWS 1", "ROWS 2"))
assert_type(query, splitjoin.Query)
with splitjoin.open(query, device="golden", cores=8) as session:
    assert_type(session, splitjoin.StreamJoin)
