"""Fixed joins that every engine must answer alike: named, small, and chosen for cases that engines tend to get wrong.

At most 150 tuples a side, and at most 64 tuples in any window, so that small circuits can run them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import pyarrow as pa

from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.windows import WindowSpec


@dataclass(frozen=True)
class Scenario:
    """One join. ``pairs``: the number of result pairs, computed by an independent engine."""

    name: str
    r: pa.Table
    s: pa.Table
    on: str
    window: WindowSpec
    pairs: int
    time: TimeSpec | None = None

    def __str__(self) -> str:
        return self.name

    def query(self, order: str | Order = "total") -> Query:
        """The checked query under ``order``."""
        return Query.make(Schema.from_table("r", self.r), Schema.from_table("s", self.s), on=self.on,
                          window=self.window, time=self.time, order=order)


def _ints(seed: int, n: int, low: int, high: int, *, nulls: float = 0.0) -> list[int | None]:
    random = Random(seed)
    return [None if random.random() < nulls else random.randint(low, high) for _ in range(n)]


def _floats(seed: int, n: int, *, special: bool = False) -> list[float]:
    """float32 values on a grid of 0.1 around 0, some one ulp off it; with NaN, ±∞ and −0.0 if ``special``."""
    random = Random(seed)
    made = []
    for _ in range(n):
        v = np.float32(random.randint(-30, 30) / 10)
        v = random.choice([v, v, np.nextafter(v, np.float32(np.inf)), np.nextafter(v, np.float32(-np.inf))])
        if special and random.random() < 0.2:
            v = random.choice([np.float32(x) for x in ("nan", "inf", "-inf", "-0.0", "0.0")])
        made.append(float(v))
    return made


def _times(seed: int, n: int, step: int, *, tie: float = 0.3) -> list[int]:
    """Event times with ties, and gaps of up to ``step``."""
    random, now, made = Random(seed), 1000, []
    for _ in range(n):
        now += 0 if random.random() < tie else random.randint(1, step)
        made.append(now)
    return made


def _pair(n: int, m: int, *, seed: int = 0, low: int = 0, high: int = 20, nulls: float = 0.0, step: int = 3,
          ) -> tuple[pa.Table, pa.Table]:
    """R (ts, x, y) and S (ts, a, b): int64 times, int32 columns."""
    i32, i64 = pa.int32(), pa.int64()
    r = pa.table({"ts": pa.array(_times(seed, n, step), i64),
                  "x": pa.array(_ints(seed + 1, n, low, high, nulls=nulls), i32),
                  "y": pa.array(_ints(seed + 2, n, low, high), i32)})
    s = pa.table({"ts": pa.array(_times(seed + 3, m, step), i64),
                  "a": pa.array(_ints(seed + 4, m, low, high, nulls=nulls), i32),
                  "b": pa.array(_ints(seed + 5, m, low, high), i32)})
    return r, s


def _with(table: pa.Table, **columns: pa.Array) -> pa.Table:
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def _float_pair(n: int, *, special: bool) -> tuple[pa.Table, pa.Table]:
    r, s = _pair(n, n, seed=40)
    return (_with(r, f=pa.array(_floats(50, n, special=special), pa.float32())),
            _with(s, g=pa.array(_floats(60, n, special=special), pa.float32())))


def _string_pair(n: int) -> tuple[pa.Table, pa.Table]:
    random = Random(70)
    words = ["", "UA", "AA", "DL", "ua", "Ünited", None]
    r, s = _pair(n, n, seed=70)
    return (_with(r, carrier=pa.array([random.choice(words) for _ in range(n)], pa.string())),
            _with(s, airline=pa.array([random.choice(words) for _ in range(n)], pa.string())))


def _typed_pair(n: int) -> tuple[pa.Table, pa.Table]:
    """A bool, a date, a timestamp and a narrow integer column each, with NULL."""
    def columns(seed: int) -> Sequence[pa.Array]:
        days, flags = _ints(seed, n, 15700, 15710, nulls=0.1), _ints(seed + 1, n, 0, 1, nulls=0.1)
        return (pa.array([None if v is None else bool(v) for v in flags], pa.bool_()),
                pa.array(days, pa.int32()).cast(pa.date32()),
                pa.array(_ints(seed + 2, n, 0, 40, nulls=0.1), pa.int64()).cast(pa.timestamp("s")),
                pa.array(_ints(seed + 3, n, -128, 127), pa.int8()))

    r, s = _pair(n, n, seed=80)
    return (_with(r, **dict(zip(("ok", "day", "at", "tiny"), columns(81), strict=True))),
            _with(s, **dict(zip(("fine", "date", "when", "small"), columns(91), strict=True))))


def _extreme_pair(n: int) -> tuple[pa.Table, pa.Table]:
    random = Random(100)
    edge = [-(2**63), 1 - 2**63, -1, 0, 1, 2**63 - 2, 2**63 - 1, None]
    big, huge = (pa.array([random.choice(edge) for _ in range(n)], pa.int64()) for _ in range(2))
    return pa.table({"big": big}), pa.table({"huge": huge})


def _burst_pair() -> tuple[pa.Table, pa.Table]:
    """R's tuples come all at once between S's."""
    r, s = _pair(40, 12, seed=110)
    return r.set_column(0, "ts", pa.array([1010] * 40, pa.int64())), s.set_column(
        0, "ts", pa.array([1000 + 2 * i for i in range(12)], pa.int64()))


def _clock_pair(n: int) -> tuple[pa.Table, pa.Table]:
    """Timestamps of different units as time columns: seconds and milliseconds."""
    r, s = _pair(n, n, seed=120)
    seconds = pa.array(_times(121, n, 4), pa.int64()).cast(pa.timestamp("s"))
    milliseconds = pa.array([t * 1000 + 500 for t in _times(122, n, 4)], pa.int64()).cast(pa.timestamp("ms"))
    return r.set_column(0, "ts", seconds), s.set_column(0, "ts", milliseconds)


_BAND = "abs(r.x - s.a) <= 2 AND abs(r.y - s.b) <= 5"


def _all() -> list[Scenario]:
    small, wide, nulls = _pair(60, 60), _pair(120, 80, seed=10), _pair(70, 70, seed=20, nulls=0.15)
    floats, special, strings, typed = (_float_pair(80, special=False), _float_pair(80, special=True), _string_pair(70),
                                       _typed_pair(60))
    return [
        Scenario("band-rows-17", *small, _BAND, "ROWS 17", 166),
        Scenario("band-rows-1", *small, _BAND, "ROWS 1", 13),
        Scenario("band-rows-3", *wide, _BAND, "ROWS 3", 64),
        Scenario("band-rows-64", *wide, _BAND, "ROWS 64", 841),
        Scenario("equal-rows-different", *wide, "r.x = s.a", ("ROWS 5", "ROWS 13"), 109),
        Scenario("equal-range-0", *wide, "r.x - s.a BETWEEN -3 AND 3", "RANGE 0", 15, "ts"),
        Scenario("band-range", *wide, _BAND, "RANGE 20", 224, "ts"),
        Scenario("band-range-different", *wide, _BAND, {"r": "RANGE 5", "s": "RANGE 30"}, 210, "ts"),
        Scenario("band-rows-and-range", *wide, _BAND, "ROWS 7 RANGE 12", 103, "ts"),
        Scenario("rows-and-range-different", *wide, "r.x < s.a", ("ROWS 4", "RANGE 9"), 440, "ts"),
        Scenario("less-than", *small, "r.x < s.a", "ROWS 6", 302),
        Scenario("not-equal", *small, "r.x <> s.a", "ROWS 5", 546),
        Scenario("or", *small, "r.x = s.a OR abs(r.y - s.b) <= 1", "ROWS 9", 190),
        Scenario("not", *nulls, "NOT (r.x >= s.a OR r.y = s.b)", "ROWS 9", 334),
        Scenario("is-null", *nulls, "r.x IS NULL OR s.a IS NULL AND r.y > s.b", "ROWS 8", 291),
        Scenario("null-band", *nulls, _BAND, "ROWS 20", 147),
        Scenario("one-sided", *wide, "r.x > 10 AND s.b BETWEEN 3 AND 12 AND r.y + s.a <= 25", "ROWS 11", 313),
        Scenario("scaled", *small, "2 * r.x - 3 * s.a + 7 > 0 AND -r.y < s.b - 1", "ROWS 10", 548),
        Scenario("float-band", *floats, "abs(r.f - s.g) <= 0.3", "ROWS 16", 212),
        Scenario("float-band-special", *special, "abs(r.f - s.g) <= 0.3 OR r.f = s.g", "ROWS 16", 198),
        Scenario("float-greater", *special, "r.f > s.g AND r.f + 0.1 >= s.g", "ROWS 10", 702),
        Scenario("string-equal", *strings, "r.carrier = s.airline", "ROWS 12", 171),
        Scenario("string-not-equal", *strings, "r.carrier <> s.airline AND abs(r.x - s.a) <= 3", "ROWS 12", 261),
        Scenario("string-literal", *strings, "r.carrier = 'UA' AND s.airline <> 'UA' AND r.x >= s.a", "ROWS 12", 57),
        Scenario("date-and-timestamp", *typed,
                 "abs(r.day - s.date) <= 1 AND s.when - r.at <= INTERVAL '15' SECONDS", "ROWS 14", 236),
        Scenario("bool-and-int8", *typed,
                 "(r.ok = s.fine OR r.ok IS NULL) AND abs(r.tiny - s.small) > 100", "ROWS 14", 255),
        Scenario("int64-extremes", *_extreme_pair(50), "r.big - s.huge > 1 AND r.big <> s.huge", "ROWS 9", 293),
        Scenario("int64-band", *_extreme_pair(50), "abs(r.big - s.huge) <= 2", "ROWS 9", 217),
        Scenario("burst", *_burst_pair(), "abs(r.x - s.a) <= 4", "RANGE 6", 110, "ts"),
        Scenario("clocks", *_clock_pair(60), _BAND, "RANGE 7 SECONDS", 47, "ts"),
        Scenario("ties", *_pair(50, 50, seed=130, step=1), "r.x >= s.a", "ROWS 6 RANGE 1", 89, "ts"),
        Scenario("empty-r", small[0].slice(0, 0), small[1], _BAND, "ROWS 17", 0),
        Scenario("empty-s", small[0], small[1].slice(0, 0), _BAND, "RANGE 9", 0, "ts"),
        Scenario("empty-both", small[0].slice(0, 0), small[1].slice(0, 0), _BAND, "ROWS 2", 0),
        Scenario("single-pair", small[0].slice(0, 1), small[1].slice(0, 1), "r.x <= s.a + 100", "ROWS 1", 1),
        Scenario("zero-matches", *small, "r.x > s.a + 100", "ROWS 17", 0),
        Scenario("all-match", *small, "TRUE", "ROWS 4", 464),
        Scenario("short-r", small[0].slice(0, 3), small[1], "abs(r.x - s.a) <= 6", "ROWS 5", 92),
    ]


def arrivals_of(scenario: Scenario) -> Arrivals:
    """All of a scenario's tuples in arrival order."""
    return arrivals(scenario.query(), scenario.r, scenario.s)


#: All of them, each with a name of its own.
SCENARIOS: tuple[Scenario, ...] = tuple(_all())
