"""The Parquet files of a replay, their rows by number, and how fast they are played."""

from __future__ import annotations

import datetime as dt
import glob
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import InputError, SchemaError, first_line
from splitjoin.base.parquet import ParquetSource
from splitjoin.tables.file_names import check_no_log


@dataclass(frozen=True)
class Options:
    """The arguments of `replay`; ``start`` as `_number` gives it."""

    path: str
    time: str
    rows_per_second: float | None
    speed: float | None
    rows_per_batch: int | None
    start: int | None

    @classmethod
    def checked(cls, path: str, time: str, rows_per_second: Any, speed: Any, rows_per_batch: Any,
                start: Any) -> Options:
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


class Files:
    """The files of a replay."""

    def __init__(self, options: Options):
        self.options = options

    @cached_property
    def paths(self) -> list[str]:
        """The files, by name."""
        path = Path(self.options.path)
        found = sorted(map(str, path.rglob("*.parquet")) if path.is_dir() else glob.glob(self.options.path))
        if not found:
            raise InputError(f"there is no Parquet file at {self.options.path!r}; give a file, a folder of files "
                             f"that end in .parquet, or a glob")
        for folder in {Path(one).parent for one in found}:
            check_no_log(folder.absolute())
        return found

    @cached_property
    def index(self) -> list[_Group]:
        """All row groups, in order."""
        groups, schema, at = list[_Group](), self.schema, 0
        for path in self.paths:
            file = opened(path)
            if not (found := _schema(file)).equals(schema):
                raise SchemaError(f"all files must have the columns of {self.paths[0]!r}, but {path!r} has "
                                  f"{', '.join(f'{f.name} {f.type}' for f in found)}")
            for number in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(number).num_rows
                groups.append(_Group(path, number, at, at + rows))
                at += rows
        return groups

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the files."""
        schema = _schema(opened(self.paths[0]))
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
        name = self.options.time
        return event_times(opened(group.file).row_group(group.number, [name]), name)

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


def _schema(file: ParquetSource) -> pa.Schema:
    """The columns of a file, without metadata. INT96 times, which Spark writes by default, are points in time, as
    Spark reads them; Arrow gives them no zone.
    """
    return pa.schema([pa.field(field.name, pa.timestamp(field.type.unit, "UTC"), field.nullable)
                      if field.name in file.int96 and pa.types.is_timestamp(field.type) else field
                      for field in file.schema])


def event_times(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """The event times of the column ``name``, int64 (n,), as `_number` gives them. Raises `InputError` for NULL."""
    column = table.column(name)
    if column.null_count:
        raise InputError(f"the time column {name!r} must not hold NULL, but it does; filter such rows out")
    if not pa.types.is_integer(column.type):
        column = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False)
    times: npt.NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return times


def opened(path: str) -> ParquetSource:
    """The Parquet file at ``path``. Raises `InputError` if it cannot be read."""
    try:
        return ParquetSource(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path!r} cannot be read as Parquet: {first_line(error)}") from error
