"""`time_route`: cuts the event times of a batch join into partitions, by a sketch of them that one small job makes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from splitjoin.base.errors import InputError
from splitjoin.engines.arrival import event_ticks
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.types import TIME_UNITS, Date, Int, Timestamp

from .packing import null_time, tables_of
from .routes import LEAST, TimeRoute, number_of_tasks
from .views import estimated_rows, has_few_rows, numbered
from .workers import cores, shipped

#: Number of time partitions, or the times at which the second, third, … begin.
Partitions = Union[int, Sequence[Union[int, dt.date, dt.datetime]]]

Numbers = npt.NDArray[np.int64]
#: Of so many rows one is looked at, where there seem to be `_MANY` and only quantiles are wanted: a row takes Python as
#: long as dozens take the JVM. Unless `_ENOUGH` of them are there, all are looked at.
_OF, _MANY, _ENOUGH = 64, range(1 << 18, 10**12), 1 << 11
#: Blocks of a task's event times, in their order; each tells its first and last time.
_BLOCKS = 1 << 11
_SKETCH = "stream int, nulls boolean, `rows` bigint, `first` binary, `last` binary"


@dataclass(frozen=True)
class _Sketch:
    """Event times in blocks, by their last ones: ``first`` and ``last`` time, and the number of ``rows`` (n,)."""

    first: Numbers
    last: Numbers
    rows: Numbers

    @classmethod
    def of(cls, parts: Sequence[Mapping[str, Any]]) -> _Sketch:
        """Of what `_sketched` gives for each part of the times."""
        made = [np.empty((3, 0), np.int64)]
        for part in parts:
            first, last = (np.frombuffer(part[name], np.int64) for name in ("first", "last"))
            size = -(-part["rows"] // max(1, len(first)))
            made.append(np.stack([first, last, np.diff(np.minimum(np.arange(len(first) + 1) * size, part["rows"]))]))
        whole = np.concatenate(made, axis=1)
        return cls(*whole[:, np.argsort(whole[1], kind="stable")])

    def needs(self, starts: Sequence[int], rows: int) -> list[int]:
        """For each of ``starts``, a time from which on there are so many rows before it; `LEAST` if there may not be.

        There are at most a block of each task's more rows than that.
        """
        count, found = np.concatenate([[0], np.cumsum(self.rows)]), list[int]()
        for end in np.searchsorted(self.last, np.array(starts, np.int64), side="left").tolist():
            begin = int(np.searchsorted(count, max(int(count[end]) - rows, -1), side="right")) - 1
            found.append(int(self.first[begin:end].min()) if begin >= 0 else LEAST)
        return found


def time_route(query: Query, frames: Mapping[Side, DataFrame], given: Sequence[int] | int | None) -> TimeRoute:
    """The partitions whose ``given`` starts or number it is; by default one for so many rows and one for each core, or
    one for few rows.

    Unless there is one partition, or starts are given and no window counts rows, runs a small job over the time
    columns, or over a sample of them, and raises `InputError` if it meets NULL. There are fewer partitions if few times
    are distinct.
    """
    few = given is None and has_few_rows(frames)
    starts = [] if given == 1 or few else given if isinstance(given, Sequence) else None
    by_rows = any(query.window(side).rows is not None for side in SIDES)
    sketches = _sketches(query, frames, whole=by_rows) if starts is None or (by_rows and starts) else {}
    if starts is None:
        number = given if isinstance(given, int) else number_of_tasks(
            sum(int(sketch.rows.sum()) for sketch in sketches.values()), cores(frames["r"].sparkSession))
        starts = _quantiles(list(sketches.values()), number)
    needs = dict[Side, Sequence[int]]()
    for side in SIDES:
        window, found = query.window(side), list[Sequence[int]]()
        if window.length is not None:
            lead = _lead(query, side)
            found.append([max(start - lead, LEAST) for start in starts])
        if window.rows is not None:
            found.append(sketches[side].needs(starts, window.rows) if starts else [])
        needs[side] = found[0] if len(found) == 1 else list(map(max, *found))
    return TimeRoute(starts, needs)


def _lead(query: Query, side: Side) -> int:
    """The ticks by which the first tuples of stream ``side`` that a partition needs may come before it.

    Kinds of join other than inner, and aggregates, need all partners of every tuple that the partition's times decide,
    so tuples as old as both windows together.
    """
    lengths = {one: query.window(one).length for one in SIDES}
    return sum(length for one, length in lengths.items() if length is not None and (one == side or not query.is_pairs))


def _sketches(query: Query, frames: Mapping[Side, DataFrame], whole: bool) -> dict[Side, _Sketch]:
    """A sketch of the event times of each stream; unless ``whole``, of a sample where there are many, with as many rows
    as all have, about. Runs one Spark job, or two. Raises `InputError` for a NULL.
    """
    assert query.time is not None
    times = {side: numbered(frames[side], [query.time.name(side)]) for side in SIDES}
    of = {side: _OF if not whole and int(estimated_rows(times[side])[0]) in _MANY else 1 for side in SIDES}
    rows = [times[side] if of[side] == 1 else times[side].sample(fraction=1 / of[side], seed=0) for side in SIDES]
    parts = [frame.mapInArrow(shipped(partial(_sketched, query, side)), _SKETCH)
             for side, frame in zip(SIDES, rows, strict=True)]
    found: dict[Side, list[Any]] = {side: [] for side in SIDES}
    for row in parts[0].union(parts[1]).collect():
        if row["nulls"]:
            raise null_time(query, SIDES[row["stream"]])
        found[SIDES[row["stream"]]].append(row)
    sketches = {side: _Sketch.of(found[side]) for side in SIDES}
    if any(of[side] > 1 and sketches[side].rows.sum() < _ENOUGH for side in SIDES):
        return _sketches(query, frames, whole=True)  # Spark does not know how many rows a condition leaves
    return {side: replace(sketches[side], rows=sketches[side].rows * of[side]) for side in SIDES}


def _sketched(query: Query, side: Side, batches: Iterator[pa.RecordBatch],
              most: int = _BLOCKS) -> Iterator[pa.RecordBatch]:
    """The at ``most`` so many blocks of the event times in a partition of Spark's, whose only column they are."""
    assert query.time is not None
    times, nulls = [np.empty(0, np.int64)], False
    for table in tables_of(batches):
        nulls = nulls or bool(table.column(0).null_count)
        if not nulls:
            times.append(event_ticks(query.time, side, table.rename_columns([query.time.name(side)])))
    ts = np.sort(np.concatenate(times))
    if len(ts) or nulls:
        # Blocks of one size, so that their number tells it.
        size = max(1, -(-len(ts) // most))
        first, last = ts[::size], ts[np.minimum(np.arange(size - 1, len(ts) + size - 1, size), len(ts) - 1)]
        yield pa.RecordBatch.from_pylist([{"stream": SIDES.index(side), "nulls": nulls, "rows": len(ts),
                                           "first": first.tobytes(), "last": last.tobytes()}], schema=_ARROW)


_ARROW = pa.schema([("stream", pa.int32()), ("nulls", pa.bool_()), ("rows", pa.int64()), ("first", pa.binary()),
                    ("last", pa.binary())])


def _quantiles(sketches: Sequence[_Sketch], number: int) -> list[int]:
    """Times that cut all into about so many parts of equal size."""
    first = np.concatenate([sketch.first for sketch in sketches])
    if not len(first):
        return []
    order = np.argsort(first, kind="stable")
    ends = np.cumsum(np.concatenate([sketch.rows for sketch in sketches])[order])
    wanted = [int(ends[-1]) * n // number for n in range(1, number)]
    found = first[order][np.searchsorted(ends, wanted, side="right")]
    return sorted({time for time in found.tolist() if time > first.min()})


def given_starts(query: Query, partitions: Partitions | TimeRoute | None) -> Sequence[int] | int | None:
    """The ticks at the times that a user gives; or the number of partitions, None to choose it.

    Raises `InputError` for what is neither.
    """
    if isinstance(partitions, TimeRoute):
        return partitions.starts
    if partitions is None or isinstance(partitions, int):
        if isinstance(partitions, int) and not 1 <= partitions <= 100_000:
            raise InputError(f"partitions must be 1 to 100000, or a list of times, not {partitions}")
        return partitions
    if not isinstance(partitions, Sequence) or isinstance(partitions, str):
        raise InputError(f"partitions must be a number or a list of times, not {partitions!r}")
    starts = [_tick(query, p) for p in partitions]
    for a, b in pairwise(starts):
        if b <= a:
            raise InputError(f"the starts of partitions must ascend, but {b} follows {a}")
    for start in starts:
        if not LEAST <= start < -LEAST:
            raise InputError(f"the start of a partition must fit 64 bits, but {start} does not")
    return starts


def _tick(query: Query, value: object) -> int:
    """A time that the user gave, in ticks of the event time."""
    assert query.time is not None
    match query.time.type, value:
        case Int(), int():
            return value
        case Timestamp(), dt.datetime():
            epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
            if value.tzinfo is not None and query.time.type.tz is None:
                raise InputError(f"the time columns have no time zone, so the start of a partition must have none, but "
                                 f"{value} does")
            assert query.time.tick is not None
            moment = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
            return (moment - epoch) // dt.timedelta(microseconds=1) * TIME_UNITS["us"] // TIME_UNITS[query.time.tick]
        case Date(), dt.date() if not isinstance(value, dt.datetime):
            return (value - dt.date(1970, 1, 1)).days
    raise InputError(f"the start of a partition must be a value of the time columns' type, {query.time.type}, not "
                     f"{value!r}")
