"""Routes: which tasks of a join of batch DataFrames get a row, by event time or without a window.

Time partitions overlap by the windows (`TimeRoute`). Without windows (`PartRoute`), rows meet in the task of their key
where the condition has an equality. Otherwise the rows of each DataFrame are dealt to parts, and each task joins one
part of the left with one of the right (the 1-Bucket-Theta scheme: A. Okcan, M. Riedewald, "Processing theta-joins using
MapReduce", SIGMOD 2011). A row that needs to see all rows of the other side, as those of outer and as-of kinds do, does
so where the other side has one part. In a full join those of both sides do: some tasks join a part of the left with all
of the right, and others find the rows of a part of the right that meet nothing in all of the left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F  # noqa: N812  # the name all Spark code uses
from pyspark.sql.types import DataType, MapType

from splitjoin.engines.arrival import event_ticks
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side

from .streaming.rows import Rows
from .streaming.slots import Slots
from .versions import type_named

#: The tasks that get some rows, how many of these are home and how many are warm ones, and the rows.
Share = tuple[Iterable[int], int, int, pa.Table]

#: A time before which no tuple is.
LEAST = -(2**63)
#: The column with the number of a row's part, beside the row's own.
PART = "part"
#: Rows of the greater side in a task, about; and of the smaller side in a part, where it is cut at all.
_ROWS, _WHOLE = 250_000, 1_000_000
#: Tasks by default, and parts of one side, at most.
_MOST = 256


@dataclass(frozen=True)
class TimeRoute:
    """Time partitions, a task each; a row is at home in that of its time, and warm in later ones that need it.

    Attributes:
        starts: The ticks at which partitions 1, 2, … begin, ascending; partition 0 has all before them.
        needs: For each stream, the ticks from which on partitions 1, 2, … need its tuples.
    """

    starts: Sequence[int]
    needs: Mapping[Side, Sequence[int]]

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return len(self.starts) + 1

    def part(self, frame: DataFrame, side: Side, names: Sequence[str]) -> Column | None:
        """No more than the columns of a row tells its task."""
        return None

    def shares(self, query: Query, side: Side, table: pa.Table, part: Numbers | None) -> Iterator[Share]:
        """The rows of each partition that needs some of ``table``, tuples of ``side``: by time, the warm ones first."""
        assert query.time is not None
        rows = Rows(table, event_ticks(query.time, side, table), np.arange(len(table))).sorted()
        homes = [0, *_below(rows.ts, self.starts), len(rows)]
        for k, begin in enumerate([0, *_below(rows.ts, self.needs[side])]):
            if begin < homes[k + 1]:
                yield [k], homes[k + 1] - homes[k], homes[k] - begin, rows.table.slice(begin, homes[k + 1] - begin)


@dataclass(frozen=True)
class PartRoute:
    """Parts of the rows by their values, where time does not say which rows meet.

    Attributes:
        parts: The number of parts of R and of S; of hashed ones, the number of tasks and 1.
        hashed: True if rows meet by the key of an equality.
        full: True if each part meets all rows of the other side, those of R in the first tasks.
    """

    parts: tuple[int, int]
    hashed: bool
    full: bool = False

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        r, s = self.parts
        return r + s if self.full else r * s

    def __str__(self) -> str:
        if self.hashed:
            return f"{self.parts[0]}; a row goes to the one of its key"
        if self.tasks == 1:
            return "1, which joins all rows"
        r, s = self.parts
        if self.full:
            return (f"{self.tasks}: {r} join a part of left with all of right, {s} find the rows of a part of right "
                    f"that meet nothing in all of left")
        return f"{self.tasks}: each joins one of {r} parts of left with one of {s} parts of right"

    def part(self, frame: DataFrame, side: Side, names: Sequence[str]) -> Column | None:
        """The number of a row's part, a function of its columns ``c0``, ``c1``, … alone, which are ``names`` of
        ``frame``: so a task that Spark repeats deals alike.
        """
        if self.hashed:
            return None
        maps: tuple[type[DataType], ...] = (MapType, *type_named("VariantType"))  # which Spark does not hash
        hashed = [F.col(f"c{n}") for n, name in enumerate(names) if not isinstance(frame.schema[name].dataType, maps)]
        parts = self.parts[SIDES.index(side)] if hashed else 1
        return F.lit(0) if parts == 1 else F.pmod(F.xxhash64(*hashed), F.lit(parts)).cast("int")

    def shares(self, query: Query, side: Side, table: pa.Table, part: Numbers | None) -> Iterator[Share]:
        """The rows of each part in ``table``, tuples of ``side``; all are at home. ``part``: the column of `part`."""
        r, s = self.parts
        if part is None:
            part = Slots.make(query).of_keys(side, table) % r
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.arange((s if side == "s" and not self.hashed else r) + 1))
        for n, (first, end) in enumerate(pairwise(ends.tolist())):
            if first < end:
                yield self._tasks(side, n), end - first, 0, table.take(pa.array(order[first:end]))

    def _tasks(self, side: Side, n: int) -> Iterable[int]:
        r, s = self.parts
        if self.hashed:
            return [n]
        if self.full:
            return [n, *range(r, r + s)] if side == "r" else [*range(r), r + n]
        return range(n * s, n * s + s) if side == "r" else range(n, r * s, s)


Numbers = npt.NDArray[np.integer]
Route = Union[TimeRoute, PartRoute]


def number_of_tasks(rows: int, cores: int) -> int:
    """The number of tasks of a join of so many rows by default, at least one for each of the ``cores``."""
    return min(_MOST, max(cores, -(-rows // _ROWS)))


def numbers_of_parts(query: Query, rows: Mapping[Side, int], partitions: int | None, cores: int) -> tuple[int, int]:
    """The numbers of parts of R and of S, which have so many ``rows``, where no equality says which rows meet."""
    # A row that needs all rows of the other side demands that the other side is in one part.
    cut = {"r": not query.kind.gives_unmatched("s"),
           "s": not (query.aggregates or query.kind.gives_unmatched("r") or query.kind.needs_few_pairs)}
    if not cut["r"] and not cut["s"]:  # a full join, which does its work twice where it is cut
        if query.aggregates or (max(rows.values()) <= _ROWS and partitions is None):
            return 1, 1
        half = -(-(partitions or cores) // 2)
        return (half, half) if partitions else (number_of_tasks(rows["r"], half), number_of_tasks(rows["s"], half))
    great: Side = "r" if cut["r"] and (rows["r"] >= rows["s"] or not cut["s"]) else "s"
    small: Side = "s" if great == "r" else "r"
    few = min(_MOST, -(-rows[small] // _WHOLE)) if cut[small] and rows[small] > _WHOLE else 1
    many = -(-partitions // few) if partitions else number_of_tasks(rows[great], -(-cores // few))
    return (many, few) if great == "r" else (few, many)


def _below(ts: npt.NDArray[np.int64], times: Sequence[int]) -> list[int]:
    """For each of ``times`` the number of the ascending ``ts`` below it."""
    below: list[int] = np.searchsorted(ts, np.array(times, np.int64), side="left").tolist()
    return below
