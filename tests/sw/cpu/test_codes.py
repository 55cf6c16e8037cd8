"""The compiled codes are those that the compiler's own NumPy code computes, to the last bit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from splitjoin.cpu.codes import LaneCoder
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.encoding import Coder
from splitjoin.plan.keys import Texts
from splitjoin.plan.passes.pipeline import make_plan

from ...support.sampling import at_length
from ...support.strategies import tables

TYPES = {"i": pa.int8(), "x": pa.int32(), "big": pa.int64(), "f": pa.float32(), "d": pa.float64(), "ok": pa.bool_(),
         "day": pa.date32(), "ms": pa.timestamp("ms"), "us": pa.timestamp("us"), "t": pa.string()}

CONDITIONS = [
    "abs(r.x - s.x) <= 10", "r.x < s.x", "r.x = s.big", "2 * r.x - 3 * s.i <= 5 AND r.i >= s.x", "r.big > s.big",
    "abs(r.big - s.x) <= 9000000000", "-5 * r.x + 7 * s.x >= 3", "r.i + s.i BETWEEN 3 AND 9", "r.x <> s.i",
    "r.f < s.f", "r.d = s.d", "r.f >= s.d", "abs(r.f - s.f) <= 3", "abs(r.d - s.d) < 0.1", "r.f + s.f > 0.5",
    "2 * r.f - s.f >= 0.25", "0.1 * r.d + s.f <= 1e300", "r.f - s.f = 0.5", "r.x - s.f < 3.5",
    "r.day <= s.day", "r.ms <= s.us", "r.us - s.ms > INTERVAL 3 SECONDS", "r.t = s.t", "r.ok = s.ok AND r.x > s.x",
    "r.t <> s.t OR r.f < s.f", "r.x < s.x AND r.i IS NULL", "r.x < s.x OR s.ok",
    # Ranges that are narrowed by what must hold besides: values beyond them count as NULL.
    "r.i = s.big", "abs(r.i - s.big) <= 5", "r.x BETWEEN 0 AND 99 AND abs(r.x - s.big) <= 10",
    "r.big > 1 AND r.big < s.i AND r.day = s.day",
]


#: Those whose keys and bounds are made as those of others are, of other types.
ALIKE = {"r.x < s.x", "-5 * r.x + 7 * s.x >= 3", "r.i + s.i BETWEEN 3 AND 9", "r.f < s.f", "abs(r.d - s.d) < 0.1",
         "r.f + s.f > 0.5", "2 * r.f - s.f >= 0.25", "r.day <= s.day", "r.x < s.x OR s.ok", "r.i = s.big"}


@pytest.mark.parametrize("on", [at_length(on) if on in ALIKE else on for on in CONDITIONS])
def test_same_codes(on: str) -> None:
    schema = {side: Schema.from_arrow(side, pa.schema(TYPES)) for side in ("r", "s")}
    plan = make_plan(Query.make(schema["r"], schema["s"], on=on, window="ROWS 9").predicate)
    used = {c.name: TYPES[c.name] for c in columns(plan.predicate)}

    @settings(max_examples=25)
    @given(st.lists(tables(used, max_rows=12), min_size=1, max_size=3))
    def check(parts: list[pa.Table]) -> None:
        lanes, codes = LaneCoder(plan), Coder(plan)
        for part in parts:
            for side in ("r", "s"):
                got, expected = lanes.codes(side, part), codes.codes(side, part)
                for slot, a, b in zip(plan.slots(side), got.keys, expected.keys, strict=True):
                    # Where NULL has no code, a test of its own leaves the tuple out, and the key means nothing.
                    told = slot.null_code | slot.key.values(part, Texts()).valid
                    assert a[told].tolist() == b[told].tolist()
                for j, (lows, highs) in enumerate(zip(got.lows, got.highs, strict=True)):
                    empty = expected.lows[j] > expected.highs[j]
                    assert (empty == (lows > highs)).all()
                    assert lows[~empty].tolist() == expected.lows[j][~empty].tolist()
                    assert highs[~empty].tolist() == expected.highs[j][~empty].tolist()
                    assert {lows.dtype, highs.dtype} <= {np.dtype(np.uint32), np.dtype(np.uint64)}

    check()
