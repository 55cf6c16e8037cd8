"""`explain` names user-defined aggregates, and says whether the join's circuit folds them."""

from __future__ import annotations

import pyarrow as pa

import splitjoin
from splitjoin.joins.explain import explain

from ....support.user_aggregates import Extent, Histogram, Variance


def test_only_circuits_that_can_be_built_are_offered() -> None:
    schema = pa.schema({"a": pa.int16(), "b": pa.uint8()})
    query = splitjoin.query(pa.schema({"x": pa.int32()}), schema, on="r.x = s.a", window="ROWS 64", aggregate={
        "v": Variance("s.a"), "h": Histogram("s.b"), "e": Extent("s.a"), "n": "count(*)"})
    lines = explain(query, clock=100).splitlines()
    named = [line for line in lines if line.startswith("aggregate ")]
    assert named == ["aggregate   v: Variance(s.a)", "aggregate   h: Histogram(s.b)", "aggregate   e: Extent(s.a)"]
    assert not any("for a unit" in line or line.startswith("  circuit") for line in lines)
    assert any(line.startswith("folded      ") for line in lines)
