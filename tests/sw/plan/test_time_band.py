"""The bounds that conditions set to the event times of a pair."""

import itertools

import pyarrow as pa
import pytest

from splitjoin.lang.eval.scalar import evaluate
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.time_band import time_band


def made(on: str, kind: pa.DataType, other: pa.DataType | None = None) -> Query:
    r, s = (pa.schema([("ts", t), ("x", pa.int32())]) for t in (kind, other or kind))
    return Query.make(Schema.from_arrow("r", r), Schema.from_arrow("s", s), on=on, window="ROWS 1", time="ts")


@pytest.mark.parametrize(("on", "r", "s"), [
    ("abs(r.ts - s.ts) <= 5 AND r.x < s.x", 5, 5), ("s.ts BETWEEN r.ts - 3 AND r.ts + 10", 10, 3),
    ("r.ts = s.ts + 4", 0, 4), ("s.ts = r.ts + 4", 4, 0), ("r.ts = s.ts", 0, 0), ("s.ts > r.ts + 2", None, 0),
    ("s.ts < r.ts - 2", 0, None), ("r.x < s.x", None, None), ("r.ts < s.ts OR r.x = s.x", None, None),
    ("2 * s.ts <= 2 * r.ts + 5", 2, None), ("3 * r.ts <= 3 * s.ts + 5", None, 1), ("r.ts <= 2 * s.ts", None, None),
    ("abs(r.ts - s.ts) <= 5 AND abs(r.ts - s.ts) <= 3", 3, 3), ("abs(r.ts - s.ts) + abs(r.x - s.x) <= 7", None, None),
])
@pytest.mark.parametrize("kind", [pa.int64(), pa.int16()], ids=str)
def test_bounds_of_integers(on: str, r: int | None, s: int | None, kind: pa.DataType) -> None:
    query = made(on, kind)
    assert query.time is not None
    band = time_band(query.predicate, query.time)
    assert band == {"r": r, "s": s}
    # No pair lies outside, and some pair at the end: the band is not longer than it need be.
    gaps = [b - a for (a, x), (b, y) in itertools.product(itertools.product(range(-12, 13), (0, 1)), repeat=2)
            if evaluate(query.predicate, {"ts": a, "x": x}, {"ts": b, "x": y})]
    for end, length in ((max(gaps), r), (-min(gaps), s)):
        assert length is None or max(end, 0) == length


#: The start of a day, as microseconds, and how far the times of a pair may be from it in the next test.
_DAY, _REACH = 86_400 * 10**6, 130


@pytest.mark.parametrize(("on", "more"), [
    ("date_diff('second', s.ts, r.ts) BETWEEN -20 AND 5", 0), ("date_diff('minute', s.ts, r.ts) = 0", 0),
    ("date_trunc('minute', r.ts) <= s.ts AND r.ts >= date_trunc('minute', s.ts)", 0),
    ("date_diff('second', s.ts, r.ts) DIV 60 = 0", 2), ("abs(date_diff('second', s.ts, r.ts) / 60) < 1", 2),
    ("floor(date_diff('second', s.ts, r.ts) / 30) = 1", 2), ("date_diff('day', s.ts, r.ts) = 1 AND r.ts < s.ts", None),
    ("NOT (r.ts < s.ts OR r.ts > s.ts + INTERVAL '9' SECOND)", 0),
    ("r.ts = s.ts OR abs(r.ts - s.ts) BETWEEN INTERVAL '3' SECOND AND INTERVAL '8' SECOND", 0),
    ("NOT (r.ts <> s.ts AND abs(r.ts - s.ts) > INTERVAL '8' SECOND)", 0),
    ("(r.ts - s.ts) * 2 < INTERVAL '9' SECOND AND -(s.ts - r.ts) > INTERVAL '-9' SECOND", 0),
])
def test_bounds_of_rounded_times(on: str, more: int | None) -> None:
    """They hold all pairs of a grid of seconds around a beginning of a day, and are ``more`` seconds longer at most."""
    query = made(on, pa.timestamp("us", "UTC"))
    assert query.time is not None
    band = time_band(query.predicate, query.time)
    times = [_DAY + 10**6 * second + part for second in range(-_REACH, _REACH, 7) for part in (-1, 0)]
    gaps = [b - a for a in times for b in range(times[0], times[-1], 10**6)
            if evaluate(query.predicate, {"ts": a, "x": 0}, {"ts": b, "x": 0})]
    for end, length in ((max(gaps, default=0), band["r"]), (-min(gaps, default=0), band["s"])):
        assert length is not None
        assert end <= length
        assert more is None or length - max(end, 0) <= (more + 1) * 10**6 + 1


@pytest.mark.parametrize(("on", "r", "s"), [
    ("s.ts BETWEEN r.ts - INTERVAL '5 MINUTES' AND r.ts + INTERVAL '1 HOUR'", 3600 * 10**6, 300 * 10**6),
    ("s.ts >= r.ts AND s.ts < r.ts + INTERVAL '1 SECOND'", 10**6 - 1, 0)])
def test_bounds_of_timestamps(on: str, r: int, s: int) -> None:
    query = made(on, pa.timestamp("us", "UTC"))
    assert query.time is not None
    assert time_band(query.predicate, query.time) == {"r": r, "s": s}
    other = made(on, pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"))
    assert other.time is not None
    assert time_band(other.predicate, other.time) == {"r": None, "s": None}
