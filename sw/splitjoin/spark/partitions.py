"""The Spark plan before the tasks: both DataFrames as one, cut into time partitions that overlap by the windows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Union

from pyspark.sql import Column, DataFrame, Window, functions as F  # noqa: N812  # the name all Spark code uses
from pyspark.sql.types import ByteType, DateType, LongType, StructType, TimestampNTZType, TimestampType

from splitjoin.base.errors import InputError
from splitjoin.engines.arrival import R, S
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.types import TIME_UNITS, Date, Int, Timestamp
from splitjoin.rows.output import OutputColumn

from .task import HOME, PARTITION, STREAM, TS, null_time
from .versions import by_number

__all__ = ["Cuts", "InputStream", "Partitions", "balanced_cuts", "count_rows", "given_starts", "needed_columns",
           "number_of_rows", "numbered", "partitioned", "quoted", "ticks"]

#: Number of time partitions, or the times at which the second, third, … begin.
Partitions = Union[int, Sequence[Union[int, dt.date, dt.datetime]]]

_MIN, _MAX = -(2**63), 2**63 - 1

#: The default number of partitions: one for this many rows, at least one for each core, at most `_MAX_PARTITIONS`.
_ROWS_PER_PARTITION, _MAX_PARTITIONS = 250_000, 256

#: Accuracy of the quantiles: a cut is off by at most one row in this many.
_ACCURACY = 10_000


@dataclass(frozen=True)
class InputStream:
    """One input: its DataFrame, and the columns that order rows with equal times (if that matters)."""

    side: Side
    data: DataFrame
    ties: tuple[str, ...]

    @property
    def number(self) -> int:
        """0 for R, 1 for S."""
        return R if self.side == "r" else S


@dataclass(frozen=True)
class Cuts:
    """The start times of time partitions.

    ``starts``: the ticks at which partitions 1, 2, … start, ascending; partition 0 has all rows before them.
    ``counts``: the numbers of rows of R and of S in each partition; None without a ROWS window.
    """

    starts: tuple[int, ...]
    counts: tuple[tuple[int, int], ...] | None = None

    def __len__(self) -> int:
        """The number of partitions."""
        return len(self.starts) + 1


def ticks(data: DataFrame, column: str) -> Column:
    """Event time as a bigint: microseconds since 1970 for timestamps, days for dates, the value itself for integers."""
    c = F.col(quoted(column))
    kind = data.schema[column].dataType
    if isinstance(kind, TimestampType):
        return F.unix_micros(c)
    if isinstance(kind, TimestampNTZType):
        # Wall-clock fields, since a cast to a zoned timestamp would depend on the session's zone and its clock changes.
        of_day = F.hour(c) * 3600 + F.minute(c) * 60
        return (F.unix_date(c.cast("date")).cast("bigint") * 86_400 + of_day) * 1_000_000 + \
            (F.extract(F.lit("SECOND"), c) * 1_000_000).cast("bigint")
    if isinstance(kind, DateType):
        return F.unix_date(c).cast("bigint")
    return c.cast("bigint")


def balanced_cuts(query: Query, left: DataFrame, right: DataFrame, partitions: int | None, cores: int) -> Cuts:
    """Cuts at quantiles of the event time. Runs one small Spark job over the time columns.

    ``partitions``: how many; None to choose it by the number of rows. There are fewer if few times are distinct.
    Raises `InputError` if a time column holds NULL.
    """
    assert query.time is not None
    if partitions == 1:
        return Cuts(())
    parts = _MAX_PARTITIONS if partitions is None else partitions
    times = left.select(F.lit(R).alias(STREAM), ticks(left, query.time.r).alias(TS)).union(
        right.select(F.lit(S).alias(STREAM), ticks(right, query.time.s).alias(TS)))
    row = times.agg(
        F.count("*").alias("n"), F.min(TS).alias("first"),
        F.min(F.when(F.col(TS).isNull(), F.col(STREAM))).alias("null"),
        F.percentile_approx(TS, [i / parts for i in range(1, parts)], _ACCURACY).alias("cuts"),
    ).first()
    assert row is not None
    if row["null"] is not None:
        raise null_time(query, "r" if row["null"] == R else "s")
    if not row["n"]:
        return Cuts(())
    starts = list(row["cuts"])
    if partitions is None:
        wanted = min(_MAX_PARTITIONS, max(cores, -(-row["n"] // _ROWS_PER_PARTITION)))
        starts = [starts[i * _MAX_PARTITIONS // wanted - 1] for i in range(1, wanted)]
    return Cuts(tuple(sorted({t for t in starts if t > row["first"]})))


def count_rows(query: Query, streams: Sequence[InputStream], cuts: Cuts) -> Cuts:
    """``cuts`` with the number of rows of each stream in each partition. Runs one Spark job over the time columns."""
    assert query.time is not None
    counts = [[0, 0] for _ in range(len(cuts))]
    parts = [s.data.select(F.lit(s.number).alias(STREAM), ticks(s.data, query.time.name(s.side)).alias(TS))
             for s in streams]
    times = parts[0].union(parts[1]).select(STREAM, F.expr(_position(TS, cuts.starts)).alias(HOME),
                                            F.col(TS).isNull().alias("null"))
    for row in times.groupBy(STREAM, HOME, "null").count().collect():
        if row["null"]:
            raise null_time(query, "r" if row[STREAM] == R else "s")
        counts[row[HOME]][row[STREAM]] = row["count"]
    return Cuts(cuts.starts, tuple((r, s) for r, s in counts))


def partitioned(query: Query, streams: Sequence[InputStream], cuts: Cuts) -> DataFrame:
    """The input rows as rows ``(partition, home, stream, ts, r, s)``, sorted by partition and arrival order.

    Each input row occurs once in its home partition, and once, as a warm row, in every later partition whose windows
    may still contain it. The user's columns are the fields of the struct ``r`` or ``s``; the other struct is NULL.
    """
    schemas = {s.side: s.data.schema for s in streams}
    both = [_copies(query, s, schemas, cuts) for s in streams]
    rows = by_number(both[0].union(both[1]), len(cuts), PARTITION)
    keys = [F.col(PARTITION), F.col(TS), F.col(STREAM)]
    keys += [F.col(f"{s.side}.{quoted(name)}") for s in streams for name in s.ties]
    return rows.sortWithinPartitions(*keys)


def _copies(query: Query, stream: InputStream, schemas: dict[Side, StructType], cuts: Cuts) -> DataFrame:
    assert query.time is not None
    structs = [F.struct("*").alias(side) if side == stream.side else F.lit(None).cast(schemas[side]).alias(side)
               for side in SIDES]
    rows = stream.data.select(F.lit(stream.number).cast(ByteType()).alias(STREAM),
                              ticks(stream.data, query.time.name(stream.side)).alias(TS), *structs)
    rows = rows.withColumn(HOME, F.expr(_position(TS, cuts.starts)))
    window = query.window(stream.side)
    last: list[Column] = []  # the last partition whose windows may contain a row, by RANGE and by ROWS
    if window.length is not None:
        # Partition k needs the rows with ts >= start - length. A start below the least bigint holds for all rows.
        needs = [max(start - window.length, _MIN) for start in cuts.starts]
        last.append(F.expr(_position(TS, needs)))
    if window.rows is not None:
        assert cuts.counts is not None
        begins = list(accumulate((c[stream.number] for c in cuts.counts), initial=0))
        # Rows are numbered from the end of their home partition; numbers within the stream would need a single task
        # for all of it. `from_end` is 1 for the last row. With ROWS n, partition k needs a row if at most n rows,
        # itself included, lie between it and the start of k.
        order = [F.col(TS).desc(), *(F.col(f"{stream.side}.{quoted(name)}").desc() for name in stream.ties)]
        in_home = Window.partitionBy(HOME).orderBy(*order)
        rows = rows.withColumn("from_end", F.row_number().over(in_home).cast(LongType()))
        ends = f"element_at(array({', '.join(f'{n}L' for n in begins[1:])}), {HOME} + 1)"
        reach = f"({ends} - from_end + {min(window.rows, begins[-1])}L)"
        rows = rows.withColumn("reach", F.expr(reach))
        last.append(F.greatest(F.col(HOME), F.expr(_position("reach", begins[1:-1]))))
    until = last[0] if len(last) == 1 else F.least(*last)
    partition = F.explode(F.sequence(F.col(HOME), until)).alias(PARTITION)
    return rows.select(partition, HOME, STREAM, TS, "r", "s")


def _position(value: str, starts: Sequence[int]) -> str:
    """SQL for the number of the ascending ``starts`` that are at most ``value``: a binary search. NULL is large."""
    def search(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        return f"CASE WHEN {value} < {_bigint(starts[middle])} THEN {search(low, middle)} " \
               f"ELSE {search(middle + 1, high)} END"

    return search(0, len(starts))


def _bigint(value: int) -> str:
    # The least bigint cannot be written as a literal, as the sign is not part of a literal.
    return f"({value}L)" if value > _MIN else f"({_MIN + 1}L - 1L)"


def needed_columns(query: Query, side: Side, gathered: Sequence[OutputColumn], ties: Sequence[str] = ()) -> list[str]:
    """The columns of stream ``side`` that condition, aggregates, result columns ``gathered``, time and ties need; one
    at least, which counts rows.
    """
    read = [query.predicate, *(e for aggregate in query.aggregates for e in aggregate.args)]
    needed = {*ties, *(c.name for e in read for c in columns(e) if c.side == side),
              *(c.source for c in gathered if c.side == side)}
    if query.time is not None:
        needed.add(query.time.name(side))
    names = query.schema(side).names
    return [name for name in names if name in needed] or names[:1]


def number_of_rows(data: DataFrame) -> int:
    """The number of rows, by a Spark job."""
    return data.select(F.lit(1)).count()  # `count` refuses a DataFrame that has a TIME column


def numbered(data: DataFrame, names: Sequence[str]) -> DataFrame:
    """The columns ``names`` of ``data`` as ``c0``, ``c1``, …: ``mapInArrow`` takes none with a dot or a backquote."""
    return data.select([data[quoted(name)].alias(f"c{n}") for n, name in enumerate(names)])


def quoted(name: str) -> str:
    """The column ``name``, quoted for Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def check_starts(starts: Sequence[int]) -> Cuts:
    """Cuts at the user's start times. Raises `InputError` unless they ascend and fit 64 bits."""
    for a, b in pairwise(starts):
        if b <= a:
            raise InputError(f"the starts of partitions must ascend, but {b} follows {a}")
    for start in starts:
        if not _MIN <= start <= _MAX:
            raise InputError(f"the start of a partition must fit 64 bits, but {start} does not")
    return Cuts(tuple(starts))


def given_starts(query: Query, partitions: Partitions | Cuts | None) -> Cuts | int | None:
    """The cuts at the times that a user gives; or the number of partitions, None to choose it.

    Raises `InputError` for what is neither.
    """
    if isinstance(partitions, Cuts):
        return partitions
    if partitions is None or isinstance(partitions, int):
        if isinstance(partitions, int) and not 1 <= partitions <= 100_000:
            raise InputError(f"partitions must be 1 to 100000, or a list of times, not {partitions}")
        return partitions
    if not isinstance(partitions, Sequence) or isinstance(partitions, str):
        raise InputError(f"partitions must be a number or a list of times, not {partitions!r}")
    return check_starts([_tick(query, p) for p in partitions])


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
