"""`WindowlessJoin`: a join of batch DataFrames without windows, under any condition; of as-of joins by event time.

Where the condition has an equality, rows meet in the task of its key. Otherwise the rows of each DataFrame are dealt to
parts, and each task joins one part of the left with one of the right (the 1-Bucket-Theta scheme: A. Okcan, M.
Riedewald, "Processing theta-joins using MapReduce", SIGMOD 2011). A row that needs to see all rows of the other side,
as those of outer and as-of kinds do, does so where the other side has one part.
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
from splitjoin.engines.arrival import arrivals, event_ticks, timed_arrivals
from splitjoin.engines.device import Device
from splitjoin.engines.registry import device as find_device
from splitjoin.joins.sql import Projection
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.windows import Extent
from splitjoin.rows.output import OutputColumn
from splitjoin.rows.whole import WholeRows

from .metrics import JoinMetrics
from .packed import PACKED, encoded, packed_batch, packed_tables, unpacked_rows
from .partitions import needed_columns, number_of_rows, numbered
from .placement import choose_device
from .resources import leased
from .results import ResultRows
from .streaming.rows import Rows, arrival_order
from .streaming.slots import Slots
from .task import PARTITION, null_time
from .ties import Ties, tie_breakers
from .versions import by_number, type_named
from .workers import check_workers, cores, shipped

__all__ = ["WindowlessJoin", "numbers_of_parts"]

#: Rows of the greater side in a part, about; and of the smaller side, where it is cut at all.
_ROWS, _WHOLE = 250_000, 1_000_000
#: Parts of one side at most.
_MOST = 256
#: The most pairs of a part that are found at once, as other tasks of the worker do so too.
_AT_ONCE = 1 << 22
#: The number of the part, beside a row's columns.
_PART = "part"


@dataclass(frozen=True)
class WindowlessJoin:
    """A join of batch DataFrames without windows, checked by the driver.

    Attributes:
        query: The query, without windows: a task holds all rows that it gets.
        frames: Both DataFrames.
        ties: Of joins by event time, the columns that order rows of each stream with equal times.
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
    ties: Mapping[Side, Sequence[str]]
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
           projection: Projection | None, *, ties: Ties, device: str | Device, device_options: Mapping[str, Any],
           partitions: Any, fail_on_fallback: bool) -> WindowlessJoin:
        """The join by ``query``, whose windows do not count. Unless ``partitions`` is 1, a Spark job counts the rows.

        Raises a `SplitJoinError` for what needs event time, and for an order, as tasks are not those of times.
        """
        timed = query.time is not None
        if ties and not timed:
            raise InputError("ties order rows with equal times, but the join has no time=…; leave ties out")
        if query.order.kind != "none":
            why = ("and without a window the tasks have keys or parts of left, not times; give window=…, or" if timed
                   else "and rows of DataFrames have none without time=…;")
            raise OrderError(f"order {str(query.order)!r} is by arrival, {why} use order 'none', and orderBy on the "
                             f"result")
        ordered = [aggregate.text for aggregate in query.aggregates if aggregate.ordered]
        if not timed and (query.kind.is_asof or ordered):
            raise UnsupportedError(f"{ordered[0] if ordered else query.kind.how} chooses by the time of rows, but the "
                                   f"join has no time=…; name the time columns of both DataFrames")
        if partitions is not None and (isinstance(partitions, bool) or not isinstance(partitions, int) or
                                       not 1 <= partitions <= 100_000):
            raise InputError(f"without {'a window' if timed else 'time=…'}, partitions must be a number from 1 to "
                             f"100000, not {partitions!r}")
        keys: dict[Side, Sequence[str]] = {side: tie_breakers(query, side, frame.schema, ties) if timed else ()
                                           for side, frame in zip(SIDES, (left, right), strict=True)}
        chosen, options, refused = choose_device(_within(query, 1, 1), device, device_options, fail_on_fallback)
        query = _within(query, None, None)
        check_workers(left.sparkSession)
        hashed = Slots.make(query).hashed
        frames: dict[Side, DataFrame] = {"r": left, "s": right}
        parts = (1, 1)
        if partitions != 1:
            rows, at_once = {side: number_of_rows(frames[side]) for side in SIDES}, cores(left.sparkSession)
            parts = ((partitions or _number(sum(rows.values()), at_once), 1) if hashed else
                     numbers_of_parts(query, rows, partitions, at_once))
        return cls(query, frames, keys, result, gathered, projection, parts, hashed, chosen, options, refused)

    def plan(self, metrics: JoinMetrics | None) -> DataFrame:
        """The result rows, and with them the work of Spark and of the tasks."""
        packed, needed = [], dict[Side, Sequence[str]]()
        for side in SIDES:
            names = needed[side] = needed_columns(self.query, side, self.gathered, self.ties[side])
            rows = numbered(self.frames[side], names)
            if not self.hashed:
                rows = rows.withColumn(_PART, _dealt(self.frames[side], names, self.parts[SIDES.index(side)]))
            scatter = _Scatter(self.query, side, names, self.parts, self.hashed)
            packed.append(rows.mapInArrow(shipped(scatter), PACKED))
        task = _Task(self.query, self.device, self.options, ResultRows(self.query, self.gathered, self.projection),
                     needed, self.ties, metrics)
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
           "s": not (query.aggregates or query.kind.gives_unmatched("r") or query.kind.needs_few_pairs)}
    if not cut["r"] and not cut["s"]:
        return 1, 1
    great: Side = "r" if cut["r"] and (rows["r"] >= rows["s"] or not cut["s"]) else "s"
    small: Side = "s" if great == "r" else "r"
    few = min(_MOST, -(-rows[small] // _WHOLE)) if cut[small] and rows[small] > _WHOLE else 1
    many = -(-partitions // few) if partitions else _number(rows[great], -(-cores // few))
    return (many, few) if great == "r" else (few, many)


def _number(rows: int, least: int) -> int:
    return min(_MOST, max(least, -(-rows // _ROWS)))


def _within(query: Query, r: int | None, s: int | None) -> Query:
    """``query`` with windows of so many rows of R and of S, None for none."""
    return replace(query, window_r=Extent(r, None), window_s=Extent(s, None))


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
        time = self.query.time
        for table in packed_tables(batches):
            if time is not None and table.column(list(self.names).index(time.name(self.side))).null_count:
                raise null_time(self.query, self.side)
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
    ties: Mapping[Side, Sequence[str]]
    metrics: JoinMetrics | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = unpacked_rows(batches)
        for partition in sorted(parts):
            tables = parts.pop(partition)
            yield from self._join([pa.concat_tables([t for stream, _, _, t in tables if stream == number] or
                                                    [self._none(side)]).combine_chunks()
                                   for number, side in enumerate(SIDES)])

    def _join(self, tables: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
        query = _within(self.query, *(max(1, len(table)) for table in tables))
        device = find_device(self.device, **leased(self.device, self.options))
        if query.time is None:
            incoming = arrivals(query, *tables)
        else:
            ordered = [self._in_order(side, table) for side, table in zip(SIDES, tables, strict=True)]
            incoming = timed_arrivals(*(rows.table for rows in ordered), *(rows.ts for rows in ordered))
        r, s = incoming.r, incoming.s
        found = WholeRows(query, device, incoming, room=_AT_ONCE)
        rows = 0
        for part in found.tables(1 << 20):
            rows += len(part)
            for table in self.made.of_rows(r, s, part):
                yield from table.combine_chunks().to_batches()
        if self.metrics is not None:
            self.metrics.add(found.facts["counters"], None, partitions=1, tuples=len(r) + len(s), warm=0, pairs=rows)

    def _in_order(self, side: Side, table: pa.Table) -> Rows:
        """The rows of stream ``side`` by event time and ties."""
        assert self.query.time is not None
        numbers = np.arange(len(table))
        return arrival_order(Rows(table, event_ticks(self.query.time, side, table), numbers), self.ties[side], numbers)

    def _none(self, side: Side) -> pa.Table:
        """No rows of stream ``side``."""
        schema = self.query.schema(side).arrow
        assert schema is not None
        return schema.empty_table().select(list(self.names[side]))
