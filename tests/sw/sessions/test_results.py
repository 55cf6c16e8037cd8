"""The queue of results: what is taken from it and cannot be given comes back as it was."""

from __future__ import annotations

import pyarrow as pa
import pytest

import splitjoin
from splitjoin.base.errors import InputError


def test_rows_that_cannot_be_computed_stay_and_count() -> None:
    schemas = {"r": pa.schema([("ts", pa.int64()), ("x", pa.int64())]),
               "s": pa.schema([("ts", pa.int64()), ("a", pa.int64())])}
    made = splitjoin.sql("SELECT r.x * s.a AS p FROM r JOIN s ON r.ts = s.ts", window="RANGE 5", time="ts",
                         tables=schemas)
    with splitjoin.open(made, "golden") as session:
        session.push_r(pa.table({"ts": [1], "x": [2**62]}, schema=schemas["r"]))
        session.push_s(pa.table({"ts": [1], "a": [4]}, schema=schemas["s"]))
        session.close_r()
        session.close_s()
        before = session.counters()
        for _ in range(2):
            with pytest.raises(InputError, match="must fit int64, but one is 18446744073709551616"):
                session.poll()
        assert session.counters() == before
        assert (before["unread_rows"], before["unread_bytes"]) == (1, 16)
