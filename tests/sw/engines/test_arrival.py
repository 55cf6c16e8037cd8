import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from splitjoin import InputError, Query, Schema, SchemaError
from splitjoin.engines.arrival import Arrivals, R, S, arrivals, interleave, s_before_each_r


def query(r: pa.Table, s: pa.Table, time: Any = None) -> Query:
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="TRUE", window="ROWS 5", time=time)


def order(r: pa.Table, s: pa.Table, time: Any = None) -> list[int]:
    return arrivals(query(r, s, time), r, s).stream.tolist()


@given(st.lists(st.integers(-5, 5), max_size=20), st.lists(st.integers(-5, 5), max_size=20))
def test_order_is_by_time_then_r_first_then_position(left: list[int], right: list[int]) -> None:
    left, right = sorted(left), sorted(right)
    r, s = pa.table({"ts": pa.array(left, pa.int64())}), pa.table({"ts": pa.array(right, pa.int32())})
    found = arrivals(query(r, s, "ts"), r, s)
    expected = sorted([(t, 0, i) for i, t in enumerate(left)] + [(t, 1, i) for i, t in enumerate(right)])
    assert found.stream.tolist() == [side for _, side, _ in expected]
    assert found.ts is not None
    assert found.ts.tolist() == [t for t, _, _ in expected]
    assert found.stream.dtype == np.uint8
    assert found.ts.dtype == np.int64
    assert len(found) == len(left) + len(right)
    assert found.table("r") is r
    assert found.table("s") is s


@pytest.mark.parametrize(("n", "m", "expected"), [
    (0, 0, []), (2, 2, [0, 1, 0, 1]), (3, 1, [0, 1, 0, 0]), (1, 3, [0, 1, 1, 1]), (0, 2, [1, 1]), (2, 0, [0, 0]),
])
def test_without_time_tuples_alternate(n: int, m: int, expected: list[int]) -> None:
    r, s = pa.table({"x": pa.array(range(n), pa.int32())}), pa.table({"a": pa.array(range(m), pa.int32())})
    assert order(r, s) == expected
    assert arrivals(query(r, s), r, s).ts is None


def test_units_are_compared_in_the_finer_one() -> None:
    r = pa.table({"ts": pa.array([1, 2], pa.int64()).cast(pa.timestamp("s"))})
    s = pa.table({"at": pa.array([999, 1000, 1001, 2000], pa.int64()).cast(pa.timestamp("ms"))})
    found = arrivals(query(r, s, ("ts", "at")), r, s)
    assert found.stream.tolist() == [1, 0, 1, 1, 0, 1]
    assert found.ts is not None
    assert found.ts.tolist() == [999, 1000, 1000, 1001, 2000, 2000]


def test_dates_and_extreme_integers() -> None:
    day = dt.date(2013, 1, 1)
    r, s = pa.table({"d": [day, day]}), pa.table({"d": [day - dt.timedelta(days=1), day]})
    assert order(r, s, {"r": "d", "s": "d"}) == [1, 0, 0, 1]
    r, s = pa.table({"t": [-(2**63), 2**63 - 1]}), pa.table({"t": [-(2**63), 0]})
    assert order(r, s, "t") == [0, 1, 1, 0]


def test_chunks_do_not_matter() -> None:
    r = pa.table({"t": pa.chunked_array([[1], [2, 3], []], pa.int64())})
    s = pa.table({"t": pa.chunked_array([], pa.int64())})
    assert order(r, s, "t") == [0, 0, 0]


@pytest.mark.parametrize(("ts", "message"), [
    ([1, None, 3], "the time column s.t must not hold NULL, but row 1 does; filter such rows out"),
    ([1, 3, 2], "the time column s.t must not decrease, but row 2 has 2 after 3; sort stream s by it first"),
])
def test_wrong_times(ts: list[int | None], message: str) -> None:
    r, s = pa.table({"t": [0]}), pa.table({"t": ts})
    with pytest.raises(InputError, match=message):
        order(r, s, "t")


@pytest.mark.parametrize(("kind", "times", "message"), [
    (pa.timestamp("s"), [2**60, 0], r"row 1 has 1970-01-01 00:00:00 after 1152921504606846976 \(timestamp\[s\]\)"),
    (pa.date32(), [2**31 - 1, 0], r"row 1 has 1970-01-01 after 2147483647 \(date32\[day\]\)"),
    (pa.timestamp("us", "No/Where"), [1, 0], r"row 1 has 0 \(timestamp\[us, tz=No/Where\]\) after 1 \("),
])
def test_unsorted_times_that_python_cannot_show(kind: pa.DataType, times: list[int], message: str) -> None:
    ints = pa.array(times, pa.int32() if pa.types.is_date(kind) else pa.int64())
    table = pa.table({"t": ints.cast(kind)})
    with pytest.raises(InputError, match=message):
        order(table, table, "t")


def test_times_that_do_not_fit_the_finer_unit() -> None:
    r = pa.table({"t": pa.array([2**62], pa.int64()).cast(pa.timestamp("s"))})
    s = pa.table({"t": pa.array([0], pa.int64()).cast(pa.timestamp("ns"))})
    with pytest.raises(InputError, match=r"the time column r.t holds times that do not fit 64 bits in ns, the finer"):
        order(r, s, "t")


@pytest.mark.parametrize(("r", "s", "time", "message"), [
    ({"t": [1]}, {"t": [1.5]}, "t", "the time column s.t must be an integer, a date or a timestamp, not float64; make "
     r"whole numbers of it before the join, .*: \(t \* 1000\).round\(\).astype\('int64'\) in pandas$"),
    ({"t": pa.array([1], pa.decimal128(9, 2))}, {"t": [1]}, "t", r"not decimal\(9, 2\); .* as t \* 10\*\*2 as int64$"),
    ({"t": ["a"]}, {"t": [1]}, "t", "not string; cast it to int64, date32 or a timestamp before the join$"),
    ({"t": [1]}, {"t": [dt.date(2013, 1, 1)]}, "t", "must be of one kind, but r.t is int64 and s.t is date"),
    ({"t": [dt.datetime(2013, 1, 1)]}, {"t": pa.array([0], pa.timestamp("us", "UTC"))}, "t",
     r"must be of one kind, but r.t is timestamp\[us\] and s.t is timestamp\[us, UTC\]"),
    ({"t": [1]}, {"a": [1]}, "t", "stream s has no column 't'; its columns are a"),
    ({"t": [1]}, {"a": [1]}, ("t",), r"time must be a column name, a pair \(R's, S's\) or a mapping with 'r' and 's'"),
    ({"t": [1]}, {"t": pa.array([1], pa.uint64())}, "t",
     "the time column s.t must be an integer that fits int64, a date or a timestamp, not uint64; cast it to int64"),
    ({"t": pa.array([1], pa.decimal128(9))}, {"t": [1]}, "t", r"the time column r.t must be .* not decimal\(9, 0\)"),
    ({"t": [1]}, {"t": [1]}, [1, 2], r"time must be a column name, a pair .*, not \[1, 2\]"),
    ({"t": [1]}, {"t": [1]}, ("t", None), "time must be a column name, a pair"),
    ({"t": [1]}, {"t": [1]}, {"r": None, "s": "t"}, "time must be a column name, a pair"),
    ({"t": [1]}, {"a": [1]}, {"r": "t"}, "time must be a column name, a pair"),
])
def test_wrong_time_columns(r: dict[str, Any], s: dict[str, Any], time: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        query(pa.table(r), pa.table(s), time)


@given(st.lists(st.sampled_from([0, 1]), max_size=30), st.data(), st.booleans())
def test_slices_put_together_are_the_arrivals_they_were_cut_from(stream: list[int], data: st.DataObject,
                                                                timed: bool) -> None:
    r, s = pa.table({"x": range(stream.count(0))}), pa.table({"a": range(stream.count(1))})
    whole = Arrivals(np.array(stream, np.uint8), np.arange(len(stream)) if timed else None, r, s)
    parts, rest = [], whole
    while True:
        head, tail = rest.split(data.draw(st.integers(1, 9)))
        parts.append(head)
        if tail is None:
            break
        assert len(tail)
        rest = tail
    before, counts = 0, []
    for part in parts:
        counts.append(s_before_each_r(part.stream, before))
        before += len(part.s)
    ts = (np.flatnonzero(whole.stream == R), np.flatnonzero(whole.stream == S)) if timed else None
    found = interleave(pa.concat_tables([p.r for p in parts]), pa.concat_tables([p.s for p in parts]), ts,
                       np.concatenate(counts))
    assert found.stream.tolist() == stream
    assert (found.r, found.s) == (r, s)
    assert (None if found.ts is None else found.ts.tolist()) == (list(range(len(stream))) if timed else None)
