"""Batches of one stream may differ in what they declare nullable."""

from __future__ import annotations

import pyarrow as pa
import pytest

import splitjoin

STRICT = pa.schema([pa.field("t", pa.int64(), False), pa.field("x", pa.int32(), False)])
LOOSE = pa.schema([field.with_nullable(True) for field in STRICT])
WANT = [{"t_r": t, "x_r": t, "t_s": t, "x_s": t} for t in range(1, 7)]


def batches(first: pa.Schema, second: pa.Schema) -> list[pa.Table]:
    """Three batches; the one in the middle declares what ``second`` declares."""
    return [pa.table({"t": [t, t + 1], "x": [t, t + 1]}, schema=schema)
            for t, schema in ((1, first), (3, second), (5, first))]


@pytest.mark.parametrize("query_schema", [STRICT, LOOSE])
@pytest.mark.parametrize(("first", "second"), [(STRICT, LOOSE), (LOOSE, STRICT)])
def test_batches_that_declare_other_nullability(query_schema: pa.Schema, first: pa.Schema, second: pa.Schema) -> None:
    query = splitjoin.query(query_schema, query_schema, on="r.x = s.x", window="RANGE 5", time="t")
    with splitjoin.share(query_schema, query_schema, time="t") as streams, splitjoin.open(
            query, device="golden") as session:
        reader = streams.query(on="r.x = s.x", window="RANGE 5", device="golden")
        for hub in streams, session:
            for batch in batches(first, second):
                hub.push_r(batch)
            for batch in batches(second, first):
                hub.push_s(batch)
            hub.close_r()
            hub.close_s()
        assert reader.poll().to_pylist() == WANT
        assert session.flush().to_pylist() == WANT
