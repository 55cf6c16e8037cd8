"""Sketches of event times: cuts of equal size, and times before which so many rows surely are."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.lang.windows import Extent
from splitjoin.spark import time_cuts
from splitjoin.spark.routes import LEAST

_SCHEMA = pa.schema([("ts", pa.int64())])
_QUERY = Query.make(Schema.from_arrow("r", _SCHEMA), Schema.from_arrow("s", _SCHEMA), on="TRUE", window="ROWS 1",
                    time="ts")


@pytest.mark.parametrize("blocks", [1, 7, 64, 2048])
def test_needs_and_quantiles(blocks: int) -> None:
    rng = random.Random(blocks)
    for last in (9, 10**6) * 15:
        parts = [[rng.randint(-last, last) for _ in range(rng.choice([1, 30, 500]))] for _ in range(rng.randint(1, 5))]
        found = [row for part in parts for batch in time_cuts._sketched(
            _QUERY, "r", iter([pa.record_batch([pa.array(part)], ["c0"])]), blocks) for row in batch.to_pylist()]
        sketch, times = time_cuts._Sketch.of(found), np.sort(np.concatenate([*parts]))
        assert sketch.rows.sum() == len(times)
        rows = rng.choice([1, 20, 10**4, 2**70])
        starts = sorted({rng.randint(-last - 1, last + 1) for _ in range(6)})
        for start, need in zip(starts, sketch.needs(starts, rows), strict=True):
            before = times[times < start]
            extra = int((before >= need).sum()) - min(rows, len(before))
            # Of each part a block more at most, but for those of blocks that reach beyond the start.
            assert extra >= 0
            assert need == LEAST or blocks < 2048 or (times == need).any()
            assert blocks < 2048 or extra <= (times == need).sum()
        cuts = time_cuts._quantiles([sketch], 8)
        assert cuts == sorted(set(cuts))
        assert all(times[0] < cut <= times[-1] for cut in cuts)
        if blocks == 2048 and last > 9 and len(times) >= 8:
            sizes = np.diff([0, *np.searchsorted(times, cuts), len(times)])
            assert sizes.max() - sizes.min() <= 2


def test_nulls_and_nothing() -> None:
    batch = pa.record_batch([pa.array([1, None], pa.int64())], ["c0"])
    (found,) = time_cuts._sketched(_QUERY, "s", iter([batch]))
    assert found["nulls"].to_pylist() == [True]
    assert found["stream"].to_pylist() == [1]
    assert list(time_cuts._sketched(_QUERY, "r", iter([batch.slice(2)]))) == []
    none = time_cuts._Sketch.of([])
    assert none.needs([3], 1) == [LEAST]
    assert time_cuts._quantiles([none, none], 4) == []


def test_quantiles_of_a_sample(spark: SparkSession) -> None:
    """Quantiles and the number of rows come from one row of 64 where Spark's statistics tell of many; from all rows
    where a condition leaves few, and for windows of ROWS.
    """
    many = spark.range(600_000).selectExpr("cast(id % 1000 * id AS bigint) ts")
    for frame, whole, rows in ((many, False, None), (many, True, 600_000), (many.where("ts = 2004"), False, 1),
                               (many.limit(3), False, 3)):
        sketches = time_cuts._sketches(_QUERY, {"r": frame, "s": frame}, whole=whole)
        for sketch in sketches.values():
            counted = int(sketch.rows.sum())
            assert counted == rows if rows else counted % 64 == 0 and 0.9 < counted / 600_000 < 1.1
    cuts = time_cuts.time_route(replace(_QUERY, window_r=Extent(None, 9), window_s=Extent(None, 9)),
                                {"r": many, "s": many}, 4).starts
    shares = [many.where(f"ts < {cut}").count() / 600_000 for cut in cuts]
    assert shares == pytest.approx([0.25, 0.5, 0.75], abs=0.05)
