"""`replay`: a streaming source that plays Parquet files with event times, at a chosen rate or at once."""

from __future__ import annotations

import datetime as dt
import glob
import hashlib
import json
import time as clock
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from splitjoin.base.errors import InputError, SchemaError, first_line

__all__ = ["FORMAT", "ReplaySource", "replay"]

#: The name of the source for ``spark.readStream.format``.
FORMAT = "splitjoin-replay"

#: Tasks that read a micro-batch at most, and rows that are worth a task.
_TASKS, _TASK_ROWS = 4, 100_000
#: Rows of a batch that is handed to Spark.
_ROWS = 10_000


def replay(spark: SparkSession, path: str | Path, *, time: str, rows_per_second: float | None = None,
           speed: float | None = None, rows_per_batch: int | None = None,
           start: int | dt.date | dt.datetime | None = None) -> DataFrame:
    """A streaming DataFrame of the rows of Parquet files, in their order.

    Args:
        spark: The session.
        path: A file, a folder or a glob of Parquet files that driver and executors reach. Files are read by their
            names; together they must be in order of ``time``.
        time: The event-time column: an integer, a date or a timestamp, without NULL.
        rows_per_second: The rate, more than 0.
        speed: How many times as fast as the clock event time passes, more than 0; with an integer column, how many
            units of it pass in a second. Give one of ``rows_per_second`` and ``speed``, or none of them for all rows at
            once.
        rows_per_batch: The most rows of a micro-batch, from 1; no limit by default.
        start: With ``speed``, the event time at which the query starts, a value of the column's type; by default that
            of the first row. Two streams with one ``start`` play side by side.

    An offset is a number of rows, so a query that starts again reads the same rows in the same micro-batches, and plays
    on from where it was. The trigger ``availableNow`` delivers all rows, ``rows_per_batch`` at a time, and ends.

    Raises `InputError` and `SchemaError`; what only reading can find (rows that are not in order, NULL times, files
    that change meanwhile) fails the query.
    """
    options = _Options.checked(str(path), time, rows_per_second, speed, rows_per_batch, start)
    _Files(options).index  # noqa: B018  # reads the footers, so that what is wrong is told here
    spark.dataSource.register(ReplaySource)
    return spark.readStream.format(FORMAT).option("splitjoin", json.dumps(asdict(options))).load()


@dataclass(frozen=True)
class _Options:
    """The arguments of `replay`; ``start`` as `_number` gives it."""

    path: str
    time: str
    rows_per_second: float | None
    speed: float | None
    rows_per_batch: int | None
    start: int | None

    @classmethod
    def checked(cls, path: str, time: str, rows_per_second: Any, speed: Any, rows_per_batch: Any,
                start: Any) -> _Options:
        for name, value in (("rows_per_second", rows_per_second), ("speed", speed)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))
                                      or not 0 < value < float("inf")):
                raise InputError(f"{name} must be a number more than 0, not {value!r}")
        if rows_per_second is not None and speed is not None:
            raise InputError("rows_per_second and speed both say how fast rows come; give one of them")
        if rows_per_batch is not None and (isinstance(rows_per_batch, bool) or not isinstance(rows_per_batch, int)
                                           or rows_per_batch < 1):
            raise InputError(f"rows_per_batch must be a whole number from 1, not {rows_per_batch!r}")
        if start is not None and speed is None:
            raise InputError("start says at which event time the query starts, which needs speed=…")
        if not isinstance(time, str):
            raise InputError(f"time must be the name of a column, not {time!r}")
        return cls(path, time, rows_per_second, speed, rows_per_batch, None if start is None else _number(start))


def _number(value: Any) -> int:
    """A time as a number: an integer as it is, others in microseconds since 1970."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, dt.datetime):
        zoned = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        return (zoned - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days * 86_400_000_000
    raise InputError(f"start must be an integer, a date or a datetime, as the time column has them, not {value!r}")


@dataclass(frozen=True)
class _Group:
    """A row group: its file, its number in it, its rows from ``first`` to ``last`` (excluded)."""

    file: str
    number: int
    first: int
    last: int


class _Files:
    """The files of a replay."""

    def __init__(self, options: _Options):
        self.options = options

    @cached_property
    def paths(self) -> list[str]:
        """The files, by name."""
        path = Path(self.options.path)
        found = sorted(map(str, path.rglob("*.parquet")) if path.is_dir() else glob.glob(self.options.path))
        if not found:
            raise InputError(f"there is no Parquet file at {self.options.path!r}; give a file, a folder of files "
                             f"that end in .parquet, or a glob")
        return found

    @cached_property
    def index(self) -> list[_Group]:
        """All row groups, in order."""
        groups, schema, at = list[_Group](), self.schema, 0
        for path in self.paths:
            file = _opened(path)
            if not file.schema_arrow.equals(schema):
                raise SchemaError(f"all files must have the columns of {self.paths[0]!r}, but {path!r} has "
                                  f"{', '.join(f'{f.name} {f.type}' for f in file.schema_arrow)}")
            for number in range(file.num_row_groups):
                rows = file.metadata.row_group(number).num_rows
                groups.append(_Group(path, number, at, at + rows))
                at += rows
        return groups

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the files."""
        schema = _opened(self.paths[0]).schema_arrow.remove_metadata()
        if self.options.time not in schema.names:
            raise SchemaError(f"{self.paths[0]!r} has no column {self.options.time!r}; its columns are "
                              f"{', '.join(schema.names)}")
        kind = schema.field(self.options.time).type
        if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise SchemaError(f"the time column {self.options.time!r} must be an integer, a date or a timestamp, not "
                              f"{kind}")
        return schema

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.index[-1].last if self.index else 0

    @cached_property
    def digest(self) -> str:
        """A digest of names, sizes and row groups: it differs when files were changed."""
        said = [(Path(g.file).name, Path(g.file).stat().st_size, g.first, g.last) for g in self.index]
        return hashlib.sha256(repr(said).encode()).hexdigest()[:16]

    def times(self, group: _Group) -> npt.NDArray[np.int64]:
        """The event times of a row group, as `_number` gives them."""
        return _times(_opened(group.file).read_row_group(group.number, columns=[self.options.time]), self.options.time)

    def time_of(self, row: int) -> int:
        """The event time of ``row``."""
        group = next(g for g in self.index if g.first <= row < g.last)
        return int(self.times(group)[row - group.first])

    def rows_until(self, time: float, row: int) -> int:
        """The number of rows from the first that are not after ``time``, at least ``row``."""
        for group in self.index:
            if group.last > row and len(times := self.times(group)) and times[-1] > time:
                return max(row, group.first + int(np.searchsorted(times, time, side="right")))
        return self.rows


class _Rows(InputPartition):
    """Rows ``first`` to ``last`` (excluded); ``before``: if the row before them is to be compared, too."""

    def __init__(self, first: int, last: int, before: bool):
        super().__init__((first, last, before))
        self.first, self.last, self.before = first, last, before


class ReplaySource(DataSource):
    """The source `FORMAT`; `replay` sets its options."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def _files(self) -> _Files:
        return _Files(_Options(**json.loads(self.options["splitjoin"])))

    def schema(self) -> StructType:
        return from_arrow_schema(self._files().schema, prefer_timestamp_ntz=True)

    def streamReader(self, schema: StructType) -> ReplayReader:  # noqa: N802  # Spark's name
        return ReplayReader(self._files(), to_arrow_schema(schema, timezone="UTC"))


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the rows between two offsets, which are ``{"row": …, "files": digest}``."""

    def __init__(self, files: _Files, schema: pa.Schema):
        self._files, self._schema = files, schema
        self._everything = False
        self._began: tuple[float, int, int] | None = None  # the clock, the row and the event time of the first call

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        return {"row": 0, "files": self._files.digest}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        most = self._files.options.rows_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        self._everything = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  # Spark's name
        self._check(start)
        row = start["row"]
        due = self._files.rows if self._everything else self._due(row)
        if isinstance(limit, ReadMaxRows):
            due = min(due, row + limit.max_rows)
        return {"row": max(row, due), "files": self._files.digest}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._check(start)
        self._check(end)
        first, last = start["row"], end["row"]
        tasks = max(1, min(_TASKS, (last - first) // _TASK_ROWS))
        cuts = [first + (last - first) * n // tasks for n in range(tasks + 1)]
        return [_Rows(a, b, a > 0) for a, b in pairwise(cuts) if b > a]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Rows)
        last = self._files.time_of(partition.first - 1) if partition.before else None
        for group in self._files.index:
            first, end = max(partition.first, group.first), min(partition.last, group.last)
            if first >= end:
                continue
            table = _opened(group.file).read_row_group(group.number).slice(first - group.first, end - first)
            times = _times(table, self._files.options.time)
            falls = np.flatnonzero(np.diff(times, prepend=times[0] if last is None else last) < 0)
            if len(falls):
                raise InputError(f"the rows must be in order of {self._files.options.time!r}, but row "
                                 f"{first + int(falls[0])} of {self._files.options.path!r} is before the row in front "
                                 f"of it; sort the files")
            last = int(times[-1])
            yield from table.cast(self._schema).to_batches(max_chunksize=_ROWS)

    def _due(self, row: int) -> int:
        """The number of rows that have come by now."""
        options, now = self._files.options, clock.monotonic()
        if self._began is None:
            begins = 0
            if options.speed is not None and row < self._files.rows:
                first = options.start is not None and row == 0
                begins = options.start if first and options.start is not None else self._files.time_of(row)
            self._began = now, row, begins
        began, first_row, begins = self._began
        if options.rows_per_second is not None:
            return min(self._files.rows, first_row + int((now - began) * options.rows_per_second))
        if options.speed is not None:
            per_second = options.speed * (1 if _counts(self._files.schema, options.time) else 10**6)
            return self._files.rows_until(begins + (now - began) * per_second, row)
        return self._files.rows

    def _check(self, offset: dict[str, Any]) -> None:
        if offset["files"] != self._files.digest:
            raise InputError(f"the files at {self._files.options.path!r} have changed since the query began, so row "
                             f"numbers do not mean the same rows any more; start with a new checkpoint")


def _counts(schema: pa.Schema, name: str) -> bool:
    """True if the time column is an integer, whose unit is the user's own."""
    return bool(pa.types.is_integer(schema.field(name).type))


def _times(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    column = table.column(name)
    if column.null_count:
        raise InputError(f"the time column {name!r} must not hold NULL, but it does; filter such rows out")
    if not pa.types.is_integer(column.type):
        column = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False)
    times: npt.NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return times


def _opened(path: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path!r} cannot be read as Parquet: {first_line(error)}") from error
