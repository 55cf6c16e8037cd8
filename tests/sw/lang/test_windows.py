import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from splitjoin import WindowError
from splitjoin.lang.types import DATE, FLOAT64, Int, Timestamp, TimeUnit, Type
from splitjoin.lang.windows import Extent, Window, closed_windows, parse_window, parse_windows


@pytest.mark.parametrize(("text", "window"), [
    ("ROWS 1", Window(1)),
    ("rows  4096 ", Window(4096)),
    ("ROWS 7 TUPLES", Window(7)),
    ("RANGE 0", Window(None, 0)),
    ("RANGE 900", Window(None, 900)),
    ("RANGE 15 MINUTES", Window(None, 15, "MINUTE")),
    ("range 1 week", Window(None, 1, "WEEK")),
    ("ROWS 100 RANGE 900", Window(100, 900)),
    ("RANGE 2 HOURS ROWS 3", Window(3, 2, "HOUR")),
    ("ROWS 3 RANGE 10 NANOSECONDS", Window(3, 10, "NANOSECOND")),
    ("RANGE 900 OPEN", Window(None, 900, None, open=True)),
    ("range 2 hours open rows 3", Window(3, 2, "HOUR", open=True)),
])
def test_window_texts(text: str, window: Window) -> None:
    assert parse_window(text) == window
    assert parse_window(str(window)) == window


@given(st.integers(1, 10**12), st.integers(0, 10**18), st.sampled_from([None, "SECOND", "DAY"]))
def test_the_text_of_a_window_is_read_back(rows: int, length: int, unit: str | None) -> None:
    for window in (Window(rows), Window(None, length, unit), Window(rows, length, unit)):
        assert parse_window(str(window)) == window


@pytest.mark.parametrize(("text", "message"), [
    ("", "the window is empty; write 'ROWS 4096', 'RANGE 15 MINUTES' or both"),
    ("ROWS 0", "ROWS must be at least 1, not 0"),
    ("ROWS -3", "ROWS must be at least 1, not -3"),
    ("RANGE -1", "RANGE must be at least 0, not -1"),
    ("ROWS ten", "the window 'ROWS ten' needs a whole number after ROWS, not 'ten'"),
    ("RANGE 2s", "needs a whole number after RANGE, not '2s'; write 'RANGE 2 SECONDS'"),
    ("RANGE INTERVAL 2 SECONDS", "; write number and unit alone, such as 'RANGE 2 SECONDS'"),
    ("RANGE 1.5 HOURS", "needs a whole number after RANGE, not '1.5'"),
    ("RANGE '15' MINUTE", "needs a whole number after RANGE"),
    ("ROWS 1 ROWS 2", "has ROWS twice"),
    ("RANGE 1 RANGE 2", "has RANGE twice"),
    ("ROWS 5 MINUTES", "has 'MINUTES' after ROWS 5; ROWS takes a number only"),
    ("RANGE 5 MINITES", r"has the unknown unit 'MINITES' \(did you mean 'MINUTES'\?\); known are NANOSECONDS"),
    ("ROWS 5 OPEN", "has 'OPEN' after ROWS 5; ROWS takes a number only"),
    ("RANGE 1 MONTH", "has the unknown unit 'MONTH'"),
    ("4096", "the window '4096' cannot be read at '4096'; write 'ROWS 4096'"),
    ("ROWS 5 RANGE", "cannot be read at 'RANGE'"),
    ("TUMBLING 10 MINUTES", "tuples of one tumbling window are a condition on their times"),
    ("session 5 minutes", "sessions of tuples are numbered before the join"),
    ("ROWS 5, RANGE 3", "needs a whole number after ROWS, not '5,'"),
    ("ROWS BETWEEN 5 PRECEDING AND CURRENT ROW", "needs a whole number after ROWS, not 'BETWEEN'"),
])
def test_wrong_window_texts(text: str, message: str) -> None:
    with pytest.raises(WindowError, match=message):
        parse_window(text)


@pytest.mark.parametrize("text", ["ROWS " + "9" * 5000, "RANGE " + "9" * 5000, "RANGE -" + "9" * 101 + " DAYS"])
def test_numbers_that_are_too_long(text: str) -> None:
    with pytest.raises(WindowError, match="numbers must have at most 100 digits, but the one after"):
        parse_window(text)


@pytest.mark.parametrize("number", [5, 1.5, np.int32(5)])
def test_a_number_says_not_what_it_counts(number: Any) -> None:
    with pytest.raises(WindowError, match=rf"'ROWS {number}' for the last {number} tuples, 'RANGE {number}'"):
        parse_windows(number)


@pytest.mark.parametrize("wrong", [True, None, b"ROWS 5", np.timedelta64("NaT", "s"), np.timedelta64(1, "M"), pd.NaT])
def test_a_window_must_be_a_text_or_a_span_of_time(wrong: Any) -> None:
    with pytest.raises(WindowError, match=r"a window must be a text such as 'ROWS 4096' or|must be a span of time|"
                                          r"must be in weeks, days, hours"):
        parse_window(wrong)


@pytest.mark.parametrize(("span", "text"), [
    (dt.timedelta(minutes=5), "RANGE 5 MINUTES"), (dt.timedelta(hours=36), "RANGE 36 HOURS"),
    (dt.timedelta(weeks=2, microseconds=1), "RANGE 1209600000001 MICROSECONDS"), (dt.timedelta(), "RANGE 0 WEEKS"),
    (pd.Timedelta("1min 1ns"), "RANGE 60000000001 NANOSECONDS"), (pd.Timedelta(days=1), "RANGE 1 DAY"),
    (np.timedelta64(90, "s"), "RANGE 90 SECONDS"), (np.timedelta64(7, "ns"), "RANGE 7 NANOSECONDS")])
def test_a_span_of_time_is_a_range(span: Any, text: str) -> None:
    window = parse_window(text)
    assert parse_windows(span) == (window, window)
    assert parse_windows((span, "ROWS 3"))[0] == parse_windows({"r": span, "s": "ROWS 3"})["rs".index("r")] == window
    if span:
        with pytest.raises(WindowError, match="RANGE must be at least 0, not -"):
            parse_window(-span)


@pytest.mark.parametrize("spec", [("ROWS 1", "ROWS 2"), ["ROWS 1", "ROWS 2"], {"r": "ROWS 1", "s": "ROWS 2"}])
def test_windows_may_differ(spec: Any) -> None:
    assert parse_windows(spec) == (Window(1), Window(2))


def test_one_text_is_both_windows() -> None:
    assert parse_windows("RANGE 3") == (Window(None, 3), Window(None, 3))


@pytest.mark.parametrize(("spec", "message"), [
    (("ROWS 1",), r"window must be a text, a timedelta, a pair \(R's, S's\) or a mapping with 'r' and 's', not \('R"),
    (None, "window must be a text, a timedelta, a pair"),
    ({"r": "ROWS 1"}, r"a mapping of windows must have the keys 'r' and 's', not \['r'\]"),
    ({"r": "ROWS 1", "t": "ROWS 1"}, r"must have the keys 'r' and 's', not \['r', 't'\]"),
    (("ROWS 1", "ROWS 0"), "ROWS must be at least 1, not 0"),
])
def test_wrong_pairs_of_windows(spec: Any, message: str) -> None:
    with pytest.raises(WindowError, match=message):
        parse_windows(spec)


@pytest.mark.parametrize(("text", "time", "tick", "extent"), [
    ("ROWS 5", None, None, Extent(5, None)),
    ("RANGE 900", Int(32), None, Extent(None, 900)),
    ("ROWS 2 RANGE 900", Int(64), None, Extent(2, 900)),
    ("RANGE 15 MINUTES", Timestamp("us"), "us", Extent(None, 900 * 10**6)),
    ("RANGE 15 MINUTES", Timestamp("s"), "ns", Extent(None, 900 * 10**9)),
    ("RANGE 1 WEEK", DATE, None, Extent(None, 7)),
    ("RANGE 36 HOURS", DATE, None, Extent(None, 1)),
    ("RANGE 1999 MILLISECONDS", Timestamp("s"), "s", Extent(None, 1)),
    ("RANGE 1 NANOSECOND", Timestamp("us", "UTC"), "us", Extent(None, 0)),
])
def test_lengths_in_ticks_are_rounded_down(text: str, time: Type | None, tick: TimeUnit | None, extent: Extent) -> None:
    assert parse_window(text).resolve(time, tick) == extent


@pytest.mark.parametrize(("text", "time", "message"), [
    ("RANGE 5", None, "the window 'RANGE 5' has a RANGE, which needs a time column; name it with time="),
    ("RANGE 5 MINUTES", Int(64), r"is given in MINUTES, but the time column is an integer \(int64\)"),
    ("RANGE 5", Timestamp("us"), r"has no unit, but the time column is a timestamp\[us\]; write .* 'RANGE 5 SECONDS'"),
    ("ROWS 1 RANGE 1", DATE, "has no unit, but the time column is a date; write for example 'RANGE 1 DAY'"),
])
def test_lengths_that_do_not_fit_the_time_column(text: str, time: Type | None, message: str) -> None:
    assert time != FLOAT64  # a query refuses other types before
    with pytest.raises(WindowError, match=message):
        parse_window(text).resolve(time, None)


@pytest.mark.parametrize(("text", "time", "tick", "length"), [
    ("RANGE 9 OPEN", Int(64, True), None, 8), ("RANGE 2 SECONDS OPEN", Timestamp("ms"), "ms", 1999),
    ("RANGE 1500 NANOSECONDS OPEN", Timestamp("us"), "us", 1),  # 1.5 ticks: one tick is nearer
    ("RANGE 36 HOURS OPEN", DATE, None, 1)])
def test_an_open_window_ends_a_tick_sooner(text: str, time: Type, tick: TimeUnit | None, length: int) -> None:
    assert parse_window(text).resolve(time, tick) == Extent(None, length)


@pytest.mark.parametrize(("closed", "windows"), [
    (None, ("RANGE 1", "RANGE 2")), ("both", ("RANGE 1", "RANGE 2")), ("left", ("RANGE 1 OPEN", "RANGE 2")),
    ("right", ("RANGE 1", "RANGE 2 OPEN")), ("neither", ("RANGE 1 OPEN", "RANGE 2 OPEN"))])
def test_ends_are_closed_by_name(closed: str | None, windows: tuple[str, str]) -> None:
    assert closed_windows(("RANGE 1", "RANGE 2"), closed) == windows


@pytest.mark.parametrize(("window", "closed", "message"), [
    ("RANGE 1", "lef", r"closed must be 'both', 'left', 'right' or 'neither', not 'lef' \(did you mean 'left'\?\)"),
    ("ROWS 1", "left", "so both windows must be RANGE, without OPEN, not 'ROWS 1'"), (None, "both", "must be RANGE"),
    ("RANGE 1 OPEN", "left", "without OPEN")])
def test_ends_that_no_range_has_are_refused(window: str | None, closed: str, message: str) -> None:
    with pytest.raises(WindowError, match=message):
        closed_windows(window, closed)
