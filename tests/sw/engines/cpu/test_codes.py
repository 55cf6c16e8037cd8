"""The compiled codes are those that the compiler's own NumPy code computes, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.engines.compiled.helpers import Team
from splitjoin.engines.cpu.codes import LaneCoder
from splitjoin.engines.cpu.tasks import Job, run_jobs
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema
from splitjoin.plan.encoding import Coder
from splitjoin.plan.keys import Texts
from splitjoin.plan.passes.compiler import make_plan

from ....support.sampling import at_length, examples
from ....support.strategies import tables

TYPES = {"i": pa.int8(), "x": pa.int32(), "big": pa.int64(), "f": pa.float32(), "d": pa.float64(), "ok": pa.bool_(),
         "day": pa.date32(), "ms": pa.timestamp("ms"), "us": pa.timestamp("us"), "t": pa.string()}

CONDITIONS = [
    "abs(r.x - s.x) <= 10", "r.x < s.x", "r.x = s.big", "2 * r.x - 3 * s.i <= 5 AND r.i >= s.x", "r.big > s.big",
    "abs(r.big - s.x) <= 9000000000", "-5 * r.x + 7 * s.x >= 3", "r.i + s.i BETWEEN 3 AND 9", "r.x <> s.i",
    "r.f < s.f", "r.d = s.d", "r.f >= s.d", "abs(r.f - s.f) <= 0.3", "abs(r.d - s.d) < 0.1", "r.f + s.f > 0.5",
    "2 * r.f - s.f >= 0.25", "0.1 * r.d + s.f <= 1e300", "r.f - s.f = 0.5", "r.x - s.f < 3.5",
    "r.day <= s.day", "r.ms <= s.us", "r.us - s.ms > INTERVAL 3 SECONDS", "r.t = s.t", "r.ok = s.ok AND r.x > s.x",
    "r.t <> s.t OR r.f < s.f", "r.x < s.x AND r.i IS NULL", "r.x < s.x OR s.ok",
    # Ranges that are narrowed by what must hold besides: values beyond them count as NULL.
    "r.i = s.big", "abs(r.i - s.big) <= 5", "r.x BETWEEN 0 AND 99 AND abs(r.x - s.big) <= 10",
    "r.big = s.big", "r.big = -s.big", "r.big = s.big + 1", "r.big > 1 AND r.big < s.i AND r.day = s.day",
]


#: Those whose keys and bounds are made as those of others are, of other types.
ALIKE = {"r.x < s.x", "-5 * r.x + 7 * s.x >= 3", "r.i + s.i BETWEEN 3 AND 9", "r.f < s.f", "abs(r.d - s.d) < 0.1",
         "r.f + s.f > 0.5", "2 * r.f - s.f >= 0.25", "r.f - s.f = 0.5", "r.x - s.f < 3.5",
         "r.day <= s.day", "r.x < s.x OR s.ok", "r.i = s.big"}


@pytest.mark.parametrize("on", [at_length(on) if on in ALIKE else on for on in CONDITIONS])
def test_same_codes(on: str) -> None:
    schema = {side: Schema.from_arrow(side, pa.schema(TYPES)) for side in ("r", "s")}
    plan = make_plan(Query.make(schema["r"], schema["s"], on=on, window="ROWS 9").predicate)
    used = {c.name: TYPES[c.name] for c in columns(plan.predicate)}

    @settings(max_examples=examples(25))
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


#: Conditions whose slots are columns with one band or equality each, and slots that say that these are not NULL.
BANDS = ["abs(r.x - s.x) <= 10 AND abs(r.f - s.f) < 0.3", "abs(r.d - s.d) < 0.1 AND abs(r.i - s.i) <= 2",
         "r.f - s.f = 0.5 AND r.x + s.x BETWEEN -3 AND 9", "r.big = s.big", "r.x = s.i AND abs(r.f - s.f) <= 3",
         "r.big = s.big AND abs(r.d - s.d) < 0.1", "r.x = 7 - s.x", "r.i = s.i AND r.big = s.big",
         "abs(r.big - s.big) <= 5", "r.big + s.big BETWEEN 5 AND 9 OR r.f = s.f", "r.big - s.x > 4 AND r.f < s.f",
         "r.big = -s.big", "r.d >= s.d AND r.x <= s.x", "r.f = s.f AND r.big - s.big < 4000000000000000000",
         "s.big - r.big >= 4000000000000000000", "r.d > s.d", "r.x + s.big < 3", "r.big = s.big - 1",
         # A difference wraps beyond 64 bits, and nothing says that these values can have no partner.
         "r.big - s.big BETWEEN 5 AND 9 OR r.f = s.f"]


@pytest.mark.parametrize("on", BANDS)
def test_columns_of_bands_take_one_loop(on: str) -> None:
    """Without NULL, with the ends of their types; and with a NULL, which the loops do not take."""
    schema = {side: Schema.from_arrow(side, pa.schema(TYPES)) for side in ("r", "s")}
    plan = make_plan(Query.make(schema["r"], schema["s"], on=on, window="ROWS 9").predicate)
    random, n = np.random.default_rng(len(on)), 1000
    ends: dict[str, list[Any]] = {name: [np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 0.5, -2.5] for name in "fd"}
    ends |= {name: [np.iinfo(kind).min, np.iinfo(kind).max, 0, -1] for name, kind in (
        ("i", np.int8), ("x", np.int32), ("big", np.int64))}
    columns_of = {"i": random.integers(-9, 9, n).astype(np.int8), "x": random.integers(-50, 50, n).astype(np.int32),
                  "big": random.integers(-2**63, 2**63 - 1, n),
                  "f": random.normal(0, 9, n).astype(np.float32), "d": random.normal(0, 1, n)}
    for name, values in columns_of.items():
        values[:len(ends[name])] = ends[name]
    whole = pa.table({name: pa.array(random.permutation(values)) for name, values in columns_of.items()})
    empty = pa.table({name: pa.array([None], TYPES[name]) for name in columns_of})
    lanes, codes = LaneCoder(plan), Coder(plan)
    for side in SIDES:
        assert lanes.deferred(side, empty, [], 1) is None
        for part in (whole, whole.slice(3, 0), whole.slice(9, 300), pa.concat_tables([whole, whole.slice(5, 7)]),
                     pa.concat_tables([whole, empty])):
            jobs: list[Job] = []
            got, expected = lanes.deferred(side, part, jobs, 9), codes.codes(side, part)
            run_jobs(Team(3), jobs)
            got = lanes.codes(side, part) if got is None else got
            for a, b in zip(got.keys, expected.keys, strict=True):
                assert a[:n].tolist() == b[:n].tolist()
            for j in range(len(plan.tests)):
                some = expected.lows[j] <= expected.highs[j]
                assert (some == (got.lows[j] <= got.highs[j])).all()
                assert got.lows[j][some].tolist() == expected.lows[j][some].tolist()
                assert got.highs[j][some].tolist() == expected.highs[j][some].tolist()
