"""Times of day and floats of half precision: DuckDB's pairs, and those of all pairs by NumPy."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import splitjoin
import splitjoin.frames  # frame.splitjoin
from splitjoin import InputError, PredicateError, SchemaError

CHANCE = random.Random(5)
FLOATS = [1.5, -0.0, 0.0, float("nan"), float("inf"), -2.25, 0.1, 60000.0]


def times(n: int) -> list[dt.time | None]:
    return [None, dt.time(0), *(dt.time(CHANCE.randrange(24), CHANCE.randrange(60), CHANCE.choice([0, 30]),
                                        CHANCE.choice([0, 0, 250_000])) for _ in range(n - 2))]


R = pa.table({"n": range(60), "t": pa.array(times(60), pa.time64("ns"))})
S = pa.table({"m": range(40), "u": pa.array([None if t is None else t.replace(microsecond=0) for t in times(40)],
                                              pa.time32("s"))})


@pytest.mark.parametrize("condition", [
    "r.t <= s.u", "s.u < r.t AND r.t < TIME '18:30'", "r.t = s.u", "s.u > '9:05:00.25' AND r.t <> s.u",
    "r.t BETWEEN TIME '08:00:00' AND s.u", "coalesce(r.t, TIME '12:00') < s.u", "greatest(r.t, s.u) < '03:00'"])
def test_pairs_are_those_of_duckdb(condition: str) -> None:
    found = splitjoin.join(R, S, on=condition)
    with duckdb.connect() as db:
        db.register("r", R.set_column(1, "t", R["t"].cast(pa.time64("us")))).register("s", S)
        wanted = db.execute(f"SELECT n, m FROM r, s WHERE {condition}").fetchall()
    assert wanted
    assert sorted(zip(found["n"].to_pylist(), found["m"].to_pylist(), strict=True)) == sorted(wanted)
    golden = splitjoin.join(R, S, on=condition, device="golden")
    assert golden.to_pylist() == found.to_pylist()
    assert found.schema.types == [pa.int64(), pa.time64("ns"), pa.int64(), pa.time32("s")]


def test_python_aggregates_differences_and_as_of() -> None:
    ms = {n: t.hour * 3600_000 + t.minute * 60_000 + t.second * 1000 + t.microsecond // 1000
          for n, t in enumerate(R["t"].to_pylist()) if t is not None}
    within = splitjoin.join(R, S, on=lambda r, s: abs(s.u - r.t) <= dt.timedelta(minutes=20))
    assert len(within) == sum(abs(t.hour * 3600_000 + t.minute * 60_000 + t.second * 1000 - at) <= 20 * 60_000
                              for t in S["u"].to_pylist() if t is not None for at in ms.values()) > 0
    late = splitjoin.join(R, S, on=lambda r, s: (r.t < s.u) & (s.u >= dt.time(20)),
                          aggregate={"first": "min(s.u)", "far": "max(s.u - r.t)", "all": "list(s.u)"})
    assert late.schema.types[2:] == [pa.time32("s"), pa.duration("ns"), pa.list_(pa.time32("s"))]
    for row in late.to_pylist():
        meets = [u for u in S["u"].to_pylist() if u is not None and u >= dt.time(20) and u > row["t"]]
        assert (row["first"], row["all"]) == (min(meets), meets)
    left = polars.DataFrame(R.filter(R["t"].is_valid())).sort("t")
    right = polars.DataFrame(S.filter(S["u"].is_valid())).sort("u")
    assert left.splitjoin.join_asof(right, left_on="t", right_on="u").equals(
        left.join_asof(right, left_on="t", right_on="u"))
    frame = pandas.DataFrame({"t": R["t"].to_pylist()})
    assert len(splitjoin.join(frame, S, on="r.t < s.u")) == len(splitjoin.join(R, S, on="r.t < s.u"))


@pytest.mark.parametrize(("condition", "message"), [
    ("r.t + INTERVAL 1 HOUR < s.u", r"of times of day there is only the difference of two, .* not time\[ns\] \+ dura"),
    ("r.t < TIMESTAMP '2020-01-01 09:00:00'", r"time\[ns\] and timestamp\[us\] cannot be compared"),
    ("s.u - r.t < TIME '01:00'", r"duration\[ns\] and time\[us\] cannot be compared"),
    ("-r.t < s.u", r"'-' needs a number, not time\[ns\]"), ("r.t = 5", "exact number cannot be compared"),
    ("r.t < '25:00'", "'25:00' cannot be read as a time of day; write it as '09:30' or '09:30:00.5'"),
])
def test_refused(condition: str, message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        splitjoin.join(R, S, on=condition)


def test_sums_streams_and_zones_are_refused() -> None:
    with pytest.raises(PredicateError, match=r"sum needs numbers or durations, but this is time\[s\]"):
        splitjoin.join(R, S, on="r.t < s.u", aggregate={"a": "sum(s.u)"})
    with pytest.raises(SchemaError, match=r"the time column r.t must be an integer, a date or a timestamp, not time"):
        splitjoin.query(R.schema, S.schema, on="TRUE", window="RANGE 5", time=("t", "u"))
    with duckdb.connect() as db, pytest.raises(InputError, match="'z' is a time of day with a time zone; cast it in"):
        splitjoin.join(db.sql("SELECT TIMETZ '10:00:00+02' AS z"), S, on="r.z = s.u")


@pytest.mark.parametrize("device", ["cpu", "golden"])
def test_floats_of_half_precision(device: str) -> None:
    """As `float32`, which holds all of them: exact, also in arithmetic, which rounds to that type."""
    h, g = (np.array([CHANCE.choice(FLOATS) for _ in range(40)], np.float16) for _ in range(2))
    r = pa.table({"n": range(40), "h": pa.array(h)})
    s = pa.table({"m": range(40), "g": pa.array(g)})
    wide: Any = h.astype(np.float32)[:, None], g.astype(np.float32)[None, :]
    with np.errstate(all="ignore"):
        less = np.where(np.isnan(wide[0]), False, np.where(np.isnan(wide[1]), True, wide[0] < wide[1]))
        near = np.abs(wide[0] - wide[1]).astype(np.float64) <= 1.6
    for condition, wanted in (("r.h < s.g", less), ("abs(r.h - s.g) <= 1.6", near)):
        found = splitjoin.join(r, s, on=condition, device=device)
        pairs = sorted(zip(found["n"].to_pylist(), found["m"].to_pylist(), strict=True))
        assert pairs == [tuple(pair) for pair in np.argwhere(wanted).tolist()]
        assert found.schema.types[1] == pa.float16()


def test_half_precision_in_a_statement_that_duckdb_ends() -> None:
    r = pa.table({"h": pa.array(np.array([1.5, 2.5, -1], np.float16))})
    text = "SELECT h, count(*) AS n FROM r JOIN s ON r.h >= s.x GROUP BY h ORDER BY h"
    assert splitjoin.sql(text, r=r, s={"x": [-1, 2, 2]}).to_pylist() == [
        {"h": -1.0, "n": 1}, {"h": 1.5, "n": 1}, {"h": 2.5, "n": 3}]
