"""`splitjoin.clock` in Spark: its maps travel to the workers, and give there the values that they give here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from splitjoin import clock
from splitjoin.spark import stream_join


def test_mapped_columns(spark: SparkSession) -> None:
    counts = (2**32 - 4000 + np.arange(0, 8000, 160)) % 2**32
    host = 10**6 + np.arange(0, 16000, 320)
    to_host = clock.fit([2**32 - 4000, 2**32, 2**32 + 4000], [10**6, 10**6 + 8000, 10**6 + 16000], within=0)

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            whole = clock.unwrap(batch["n"], 2**32, near=batch["seen"])
            yield pa.record_batch({"ts": to_host(whole), "n": batch["n"]})

    # `seen` is rough, and says which round a count is of.
    seen = 2**32 - 4000 + np.arange(0, 8000, 160) + 900
    rows = spark.createDataFrame(list(zip(counts.tolist(), seen.tolist(), strict=True)), "n long, seen long")
    events = rows.repartition(3).mapInArrow(mapped, "ts long, n long")
    assert sorted(map(tuple, events.collect())) == sorted(zip(host.tolist(), counts.tolist(), strict=True))
    flashes = spark.createDataFrame([(time + 3, n) for n, time in enumerate(host.tolist())], "ts long, flash long")
    joined = stream_join(events, flashes, on="abs(r.ts - s.ts) <= 5", select=["n", "flash"])
    assert sorted(map(tuple, joined.collect())) == sorted(zip(counts.tolist(), range(50), strict=True))
