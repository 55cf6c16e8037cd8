"""`splitjoin.clock.fit`: lines beside all pairs of points, maps beside Python's integers, joins by true times."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import clock
from splitjoin.base.errors import SplitJoinError
from splitjoin.clock.arrays import Numbers
from splitjoin.clock.mapping import _longest_line

from ...support.sampling import at_length, examples

#: Microseconds of an hour.
HOUR = 3_600_000_000
#: GPS milliseconds of a week.
WEEK = 604_800_000


def _fits(points: list[tuple[int, int]], within: int) -> bool:
    """True if a line is ``within`` of all points: no pair of them forbids a rate that the others allow."""
    rates = [(Fraction(y2 - y1 - 2 * within, x2 - x1), Fraction(y2 - y1 + 2 * within, x2 - x1))
             for n, (x1, y1) in enumerate(points) for x2, y2 in points[n + 1:]]
    return not rates or max(low for low, _ in rates) <= min(high for _, high in rates)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(-20, 20)), min_size=2, max_size=12), st.integers(0, 12))
@settings(max_examples=examples(400), deadline=None)
def test_lines_are_as_long_as_can_be(steps: list[tuple[int, int]], within: int) -> None:
    xs = np.cumsum([step for step, _ in steps]).tolist()
    points = list(zip(xs, [y for _, y in steps], strict=True))
    line, end = _longest_line(points, 0, within)
    assert line is not None
    assert _fits(points[:end], within)
    assert end == len(points) or not _fits(points[:end + 1], within)
    assert all(abs(line.at(x) - y) <= within for x, y in points[:end])
    made = clock.fit(xs, [y for _, y in points], within=within)
    assert made.residual <= within + 2  # two roundings


@given(st.data())
@settings(max_examples=examples(200), deadline=None)
def test_values_are_those_of_the_lines(data: st.DataObject) -> None:
    big = st.integers(-2**60, 2**60)
    start, low = data.draw(big), data.draw(big)
    span, rise = data.draw(st.integers(1, 2**61)), data.draw(st.integers(-2**61, 2**61))
    made = clock.ClockMap(((start, start + span, low, low + rise),), 0, (), pa.int64())
    times = data.draw(st.lists(st.integers(max(start - span, -2**63), min(start + 2 * span, 2**63 - 1)), max_size=9))
    want = [low + (time - start) * rise // span for time in times]
    if any(abs(low) + abs(value - low) > 2**63 - 2 for value in want):
        with pytest.raises(SplitJoinError, match="within int64"):
            made(times)
    else:
        assert made(times).to_pylist() == want


@pytest.mark.parametrize(("span", "rise", "time"), [
    (1_266_103_215_975_335_066, -72, -66_250_187_871_463_523), (2**62, 2**62 - 1, 3), (2**62, 1 - 2**62, 2**62)])
def test_far_values_of_long_lines(span: int, rise: int, time: int) -> None:
    found = clock.ClockMap(((1, 1 + span, 0, rise),), 0, (), pa.int64())([time])
    assert found.to_pylist() == [(time - 1) * rise // span]


def _truth(times: Numbers) -> Numbers:
    """A host's microseconds at those of a logger that goes 50 millionths too fast, and whose host was set by 3 s."""
    host: Numbers = 1_795_867_200_000_000 + times - times // 20_000 + np.where(times > HOUR // 2, 3_000_000, 0)
    return host


#: Ticks a second of a clock, and the count at which it begins anew: video, a logger, GPS.
COUNTERS = [(90_000, 2**32), (1_000_000, 2**32), (1_000, WEEK)]


@pytest.mark.parametrize(("events", "hertz", "around"), [
    *((20_000, *counter) for counter in COUNTERS), *(at_length(1_000_000, *counter) for counter in COUNTERS)])
def test_pairs_are_those_of_the_true_times(events: int, hertz: int, around: int) -> None:
    """Drift, a jump, a counter that begins anew: pairs lie between those of a smaller and a larger band."""
    random = np.random.default_rng(hertz)
    offset = around - hertz * 600  # it begins anew after ten minutes
    tick = -(-1_000_000 // hertz)

    def count(times: Numbers) -> Numbers:
        return ((times * hertz // 1_000_000 + offset) % around).astype(np.int64)

    sync = np.unique(random.integers(0, HOUR, 2_000) // tick) * tick  # a source increases
    ticks = clock.unwrap(count(sync), around).to_numpy()
    scatter = 20
    made = clock.fit(ticks, _truth(sync) + random.integers(-scatter, scatter + 1, len(sync)), within=scatter + tick)
    assert len(made.jumps) == 1
    assert made.residual <= scatter + tick + 2

    times = np.sort(random.integers(sync[0], sync[-1], events))
    mapped = made(clock.unwrap(count(times), around))
    known = np.asarray(mapped.is_valid())
    assert known.mean() > 0.99  # the others lie within the jump
    true = _truth(times)[known]
    error = made.residual + scatter + tick
    assert np.abs(mapped.drop_null().to_numpy() - true).max() <= error

    band = max(200, 5 * tick)
    near = {"t": np.sort(random.choice(true, events // 2) + random.integers(-band, band + 1, events // 2) * 3 // 2)}

    def pairs(left: object, band: int) -> set[tuple[int, int]]:
        rows = {"t": left, "n": np.arange(len(true))}
        found = splitjoin.join(rows, {**near, "m": np.arange(events // 2)}, on=f"abs(r.t - s.t) <= {band}").to_arrow()
        return set(zip(found["n"].to_pylist(), found["m"].to_pylist(), strict=True))

    fewer, wanted = pairs(mapped.drop_null(), band - error), pairs(true, band)
    assert 0 < len(fewer) < len(wanted)
    assert fewer <= wanted <= pairs(mapped.drop_null(), band + error)


@pytest.mark.parametrize("device", ["golden", "cpu"])
def test_sessions_take_batches_of_mapped_times(device: str) -> None:
    """An unwrapped, mapped batch after the other: the pairs of the whole tables."""
    count = (2**32 - 400 + np.arange(0, 1000, 5)) % 2**32
    to_host = clock.fit([2**32 - 400, 2**32 + 600], [10**6, 10**6 + 2000], within=0)
    r = pa.table({"t": to_host(clock.unwrap(count, 2**32)), "x": np.arange(200) % 7})
    s = pa.table({"t": np.arange(10**6, 10**6 + 2000, 9), "a": np.arange(223) % 5})
    unwrapped = clock.Unwrapper(2**32)
    query = splitjoin.query(r.schema, s.schema, on="x = a", window="RANGE 50", time="t")
    with splitjoin.open(query, device) as session:
        session.push_s(s)
        for first in range(0, 200, 40):
            times = to_host(unwrapped(count[first:first + 40]))
            session.push_r(pa.table({"t": times, "x": r["x"][first:first + 40]}))
        found = session.flush().to_pylist()
    wanted = splitjoin.join(r, s, on="x = a", window="RANGE 50", time="t", device=device).to_pylist()
    assert found == wanted
    assert len(wanted) > 100


def test_weeks_that_begin_anew() -> None:
    """GPS milliseconds of the week and a week of ten bits: both are told by the host's time, in any order."""
    true = 2446 * WEEK + np.arange(-2 * WEEK, 2 * WEEK, 3_600_000)[::-1]
    host = true + 90_000
    whole = clock.unwrap(true % WEEK, WEEK, near=host)
    assert whole.to_pylist() == true.tolist()
    assert clock.unwrap((true // WEEK) % 1024, 1024, near=host // WEEK).to_pylist() == (true // WEEK).tolist()


def test_a_change_of_rate_is_no_jump() -> None:
    source = np.arange(0, 1000, 7)
    target = np.where(source < 500, source * 10, 5000 + (source - 500) * 11)
    made = clock.fit(source, target, within=0)
    assert (len(made.pieces), made.residual, made.jumps) == (2, 0, ())
    every = np.arange(1000)
    assert made(every).to_pylist() == np.where(every < 500, every * 10, 5000 + (every - 500) * 11).tolist()


def test_a_jump_has_no_times_within() -> None:
    made = clock.fit([0, 10, 20, 30, 40], [0, 10, 20, 130, 140], within=0)
    assert made.jumps == ((20, 30),)
    assert made([None, 20, 21, 29, 30, 45]).to_pylist() == [None, 20, None, None, 130, 145]
    assert clock.fit([0, 10, 20], [0, 20, 999], within=0)([20, 25]).to_pylist() == [999, 1009]


def test_timestamps_stay_timestamps() -> None:
    source = pa.array([0, 1_000_000], pa.timestamp("us"))
    target = pa.array([1_795_867_200_000_000_000, 1_795_867_201_000_000_500], pa.timestamp("ns"))
    found = clock.fit(source, target, within=0)(pa.array([500_000], pa.timestamp("us")))
    assert found.type == pa.timestamp("ns")
    assert found.cast(pa.int64()).to_pylist() == [1_795_867_200_500_000_250]


@pytest.mark.parametrize(("source", "target", "within", "what"), [
    ([1], [1], 0, "two or more: 1 and 1"),
    ([1, 2], [1], 0, "two or more: 2 and 1"),
    ([1, 1], [1, 2], 0, "source must increase from point to point: 1 comes before 1 (point 0)"),
    ([1, None], [1, 2], 0, "points must have both times, not NULL"),
    ([1, 2], [1, 2], -1, "within must be a whole number, 0 or more"),
    ([1, 2], [1, 2], 0.5, "within must be a whole number, 0 or more"),
    ([-2**63, 2**63 - 1], [0, 1], 0, "within 2**62 of each other"),
    ([0, 1], [-2**63, 2**63 - 1], 0, "within 2**62 of each other"),
    (None, [1, 2], 0, "source must be a column of whole numbers, timestamps or durations, not None"),
    ([1.0, 2.0], [1, 2], 0, "source must be whole numbers, timestamps or durations, not double"),
])
def test_refused(source: object, target: object, within: int, what: str) -> None:
    with pytest.raises(SplitJoinError) as refused:
        clock.fit(source, target, within=within)
    assert what in str(refused.value)


def test_times_of_another_unit_are_refused() -> None:
    with pytest.raises(SplitJoinError, match="are they in the unit of these points"):
        clock.fit([0, 1000], [0, 1000], within=0)([10**9])
