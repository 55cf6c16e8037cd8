"""`UntimedJoin`: a join of batch DataFrames without event time or windows, under any condition.

Where the condition has an equality, rows meet in the task of its key. Otherwise the rows of each DataFrame are dealt to
parts, and each task joins one part of the left with one of the right (the 1-Bucket-Theta scheme: A. Okcan, M.
Riedewald, "Processing theta-joins using MapReduce", SIGMOD 2011). A row that needs to see all rows of the other side,
as those of outer kinds do, does so where the other side has one part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F  # noqa: N812  # the name all Spark code uses
from pyspark.sql.types import DataType, MapType, StructType

from splitjoin.base.errors import InputError, OrderError, UnsupportedError
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import Device
from splitjoin.engines.registry import device as find_device
from splitjoin.joins.sql import Projection
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.windows import Extent
from splitjoin.rows.output import OutputColumn
from splitjoin.rows.whole import WholeRows

from .metrics import JoinMetrics
from .packed import PACKED, encoded, packed_batch, packed_tables, unpacked_rows
from .partitions import number_of_rows, numbered
from .placement import choose_device
from .resources import leased
from .results import ResultRows
from .streaming.slots import Slots
from .task import PARTITION
from .versions import by_number, type_named
from .workers import check_workers, cores, shipped

__all__ = ["UntimedJoin", "numbers_of_parts"]

#: Rows of the greater side in a part, about; and of the smaller side, where it is cut at all.
_ROWS, _WHOLE = 250_000, 1_000_000
#: Parts of one side at most.
_MOST = 256
#: The most pairs of a part that are found at once, as other tasks of the worker do so too.
_AT_ONCE = 1 << 22
#: The number of the part, beside a row's columns.
_PART = "part"


@dataclass(frozen=True)
class UntimedJoin:
    """A join of batch DataFrames without event time, checked by the driver.

    Attributes:
        query: The query; its windows are those of a task, which holds all rows that it gets.
        frames: Both DataFrames.
        result: Spark's schema of the result.
        gathered: The columns that are gathered for a pair.
        projection: The SELECT list of a statement over the gathered columns; None for `stream_join`.
        parts: The number of parts of R and of S; of hashed ones, the number of tasks and 1.
        hashed: True if rows meet by the key of an equality.
        device: The device that runs in tasks.
        options: Its options there.
        refused: The error by which the device that was asked for refused the query; empty if it did not.
    """

    query: Query
    frames: Mapping[Side, DataFrame]
    result: StructType
    gathered: Sequence[OutputColumn]
    projection: Projection | None
    parts: tuple[int, int]
    hashed: bool
    device: str | Device
    options: Mapping[str, Any]
    refused: str

    @classmethod
    def of(cls, query: Query, left: DataFrame, right: DataFrame, result: StructType, gathered: Sequence[OutputColumn],
           projection: Projection | None, *, device: str | Device, device_options: Mapping[str, Any],
           partitions: Any, fail_on_fallback: bool) -> UntimedJoin:
        """The join by ``query``, which has no time. Unless ``partitions`` is 1, it counts the rows, by a Spark job."""
        if query.order.kind != "none":
            raise OrderError(f"order {str(query.order)!r} is by arrival, and rows of DataFrames have none without "
                             f"time=…; use order 'none', and orderBy on the result")
        ordered = [aggregate.text for aggregate in query.aggregates if aggregate.ordered]
        if query.kind.is_asof or ordered:
            raise UnsupportedError(f"{ordered[0] if ordered else query.kind.how} chooses by the time of rows, but the "
                                   f"join has no time=…; name the time columns of both DataFrames")
        if partitions is not None and (isinstance(partitions, bool) or not isinstance(partitions, int) or
                                       not 1 <= partitions <= 100_000):
            raise InputError(f"without time=…, partitions must be a number from 1 to 100000, not {partitions!r}")
        chosen, options, refused = choose_device(query, device, device_options, fail_on_fallback)
        check_workers(left.sparkSession)
        hashed = Slots.make(query).hashed
        frames: dict[Side, DataFrame] = {"r": left, "s": right}
        parts = (1, 1)
        if partitions != 1:
            rows, at_once = {side: number_of_rows(frames[side]) for side in SIDES}, cores(left.sparkSession)
            parts = ((partitions or _number(sum(rows.values()), at_once), 1) if hashed else
                     numbers_of_parts(query, rows, partitions, at_once))
        return cls(query, frames, result, gathered, projection, parts, hashed, chosen, options, refused)

    def plan(self, metrics: JoinMetrics | None) -> DataFrame:
        """The result rows, and with them the work of Spark and of the tasks."""
        packed = []
        for side in SIDES:
            names = _needed(self.query, side, self.gathered)
            rows = numbered(self.frames[side], names)
            if not self.hashed:
                rows = rows.withColumn(_PART, _dealt(self.frames[side], names, self.parts[SIDES.index(side)]))
            scatter = _Scatter(self.query, side, names, self.parts, self.hashed)
            packed.append(rows.mapInArrow(shipped(scatter), PACKED))
        task = _Task(self.query, self.device, self.options, ResultRows(self.query, self.gathered, self.projection),
                     {side: _needed(self.query, side, self.gathered) for side in SIDES}, metrics)
        rows = by_number(packed[0].union(packed[1]), self.parts[0] * self.parts[1], PARTITION)
        return rows.mapInArrow(shipped(task), self.result)

    def said(self) -> str:
        """How the rows are spread, in words."""
        if self.hashed:
            return f"{self.parts[0]}; a row goes to the one of its key"
        r, s = self.parts
        if r == s == 1:
            return "1, which joins all rows"
        return f"{r * s}: each joins one of {r} parts of left with one of {s} parts of right"


def numbers_of_parts(query: Query, rows: Mapping[Side, int], partitions: int | None, cores: int) -> tuple[int, int]:
    """The numbers of parts of R and of S, which have so many ``rows``, where no equality says which rows meet."""
    # A row that needs all rows of the other side demands that the other side is in one part.
    cut = {"r": not query.kind.gives_unmatched("s"),
           "s": not (query.aggregates or query.kind.gives_unmatched("r") or query.kind.how == "semi")}
    if not cut["r"] and not cut["s"]:
        return 1, 1
    great: Side = "r" if cut["r"] and (rows["r"] >= rows["s"] or not cut["s"]) else "s"
    small: Side = "s" if great == "r" else "r"
    few = min(_MOST, -(-rows[small] // _WHOLE)) if cut[small] and rows[small] > _WHOLE else 1
    many = -(-partitions // few) if partitions else _number(rows[great], -(-cores // few))
    return (many, few) if great == "r" else (few, many)


def _number(rows: int, least: int) -> int:
    return min(_MOST, max(least, -(-rows // _ROWS)))


def _needed(query: Query, side: Side, gathered: Sequence[OutputColumn]) -> list[str]:
    """The columns of stream ``side`` that condition, aggregates and result need; one at least, which counts rows."""
    read = [query.predicate, *(e for aggregate in query.aggregates for e in aggregate.args)]
    needed = {*(c.name for e in read for c in columns(e) if c.side == side),
              *(c.source for c in gathered if c.side == side)}
    names = query.schema(side).names
    return [name for name in names if name in needed] or [names[0]]


def _dealt(frame: DataFrame, names: Sequence[str], parts: int) -> Column:
    """The number of a row's part, a function of its values alone: so a task that Spark repeats deals alike."""
    maps: tuple[type[DataType], ...] = (MapType, *type_named("VariantType"))  # which Spark does not hash
    hashed = [F.col(f"c{n}") for n, name in enumerate(names) if not isinstance(frame.schema[name].dataType, maps)]
    if parts == 1 or not hashed:
        return F.lit(0)
    return F.pmod(F.xxhash64(*hashed), F.lit(parts)).cast("int")


@dataclass(frozen=True)
class _Scatter:
    """Packs the rows of stream ``side`` for the tasks that join them; given to ``mapInArrow``."""

    query: Query
    side: Side
    names: Sequence[str]
    parts: tuple[int, int]
    hashed: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in packed_tables(batches):
            part = (Slots.make(self.query).of_keys(self.side, table.rename_columns(list(self.names))) % self.parts[0]
                    if self.hashed else table.column(_PART).to_numpy())
            rows = table.select(range(len(self.names))).rename_columns(list(self.names))
            order = np.argsort(part, kind="stable")
            ends = np.searchsorted(part[order], np.arange(self.parts[self.side == "s" and not self.hashed] + 1))
            for number, (first, end) in enumerate(pairwise(ends.tolist())):
                if first < end:
                    data = encoded(rows.take(pa.array(order[first:end])))
                    for task in self._tasks(number):
                        yield packed_batch([(task, SIDES.index(self.side), end - first, 0, data)])

    def _tasks(self, part: int) -> range | list[int]:
        """The tasks that get the rows of ``part``."""
        r, s = self.parts
        if self.hashed:
            return [part]
        return range(part * s, part * s + s) if self.side == "r" else range(part, r * s, s)


@dataclass(frozen=True)
class _Task:
    """Joins the rows of each part that a Spark task has; given to ``mapInArrow``."""

    query: Query
    device: str | Device
    options: Mapping[str, Any]
    made: ResultRows
    names: Mapping[Side, Sequence[str]]
    metrics: JoinMetrics | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = unpacked_rows(batches)
        for partition in sorted(parts):
            tables = parts.pop(partition)
            yield from self._join([pa.concat_tables([t for stream, _, _, t in tables if stream == number] or
                                                    [self._none(side)]).combine_chunks()
                                   for number, side in enumerate(SIDES)])

    def _join(self, tables: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
        r, s = tables
        query = replace(self.query, window_r=Extent(max(1, len(r)), None), window_s=Extent(max(1, len(s)), None))
        device = find_device(self.device, **leased(self.device, self.options))
        found = WholeRows(query, device, arrivals(query, r, s), room=_AT_ONCE)
        rows = 0
        for part in found.tables(1 << 20):
            rows += len(part)
            for table in self.made.of_rows(r, s, part):
                yield from table.combine_chunks().to_batches()
        if self.metrics is not None:
            self.metrics.add(found.facts["counters"], None, partitions=1, tuples=len(r) + len(s), warm=0, pairs=rows)

    def _none(self, side: Side) -> pa.Table:
        """No rows of stream ``side``."""
        schema = self.query.schema(side).arrow
        assert schema is not None
        return schema.empty_table().select(list(self.names[side]))
