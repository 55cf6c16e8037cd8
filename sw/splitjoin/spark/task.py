"""`Task`: runs inside a Spark task, and joins the rows of each of its time partitions in a device session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.errors import InputError, WindowOverflow
from splitjoin.engines.arrival import Arrivals, R, S
from splitjoin.engines.device import Device
from splitjoin.engines.registry import device as find_device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side
from splitjoin.rows.output import OutputColumn
from splitjoin.rows.whole import WholeRows

from .metrics import JoinMetrics
from .resources import leased
from .results import ResultRows
from .text import WHICH

if TYPE_CHECKING:
    from splitjoin.joins.sql import Projection

__all__ = ["HOME", "PARTITION", "STREAM", "TS", "Task"]

#: Columns that the driver adds. The users' own columns are inside the structs "r" and "s", so names cannot collide.
PARTITION, HOME, STREAM, TS = "partition", "home", "stream", "ts"


@dataclass(frozen=True)
class Task:
    """Joins the partitions of a Spark task; given to ``mapInArrow``.

    Input rows are sorted by (partition, arrival).

    Attributes:
        query: The query.
        device: The device, by name or itself.
        options: Parameters of a device given by name.
        gathered: The columns that are gathered for a pair.
        expected: For queries whose warm rows were chosen by counting, the number of home rows (R's, S's) of each
            partition; None otherwise.
        metrics: Collects the device's counters; None for nothing.
        projection: The SELECT list of a statement over the gathered columns, or None.
        starts: The ticks at which partitions 1, 2, … begin.
    """

    query: Query
    device: str | Device
    options: Mapping[str, Any]
    gathered: Sequence[OutputColumn]
    expected: Sequence[tuple[int, int]] | None
    metrics: JoinMetrics | None
    projection: Projection | None = None
    starts: Sequence[int] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for partition, pieces in _partitions(batches):
            yield from self._join(partition, pieces)

    def _join(self, partition: int, pieces: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(pieces)
        self._check_times(rows)
        r, s = (_stream(pieces, side) for side in (R, S))
        stream = rows.column(STREAM).to_numpy().astype(np.uint8)
        warm = rows.column(HOME).to_numpy() != partition
        warm_r, warm_s = (int(np.count_nonzero(warm & (stream == side))) for side in (R, S))
        self._check_counts(partition, (len(r) - warm_r, len(s) - warm_s), (warm_r, warm_s))
        if warm.all():
            return  # no home rows, so no results
        yield from self.join(partition, Arrivals(stream, rows.column(TS).to_numpy(), r, s), warm_r, warm_s)

    def join(self, partition: int, arrivals: Arrivals, warm_r: int, warm_s: int) -> Iterator[pa.RecordBatch]:
        """The result rows of a partition with these ``arrivals``: the first ``warm_r`` of R, ``warm_s`` of S are warm.

        A pair belongs to its later tuple's home partition. Warm rows precede all home rows, so a pair belongs to
        another partition exactly when both of its tuples are warm: rows numbered below ``warm_r`` and ``warm_s``. A row
        of another kind of join that waits belongs to the partition of the time up to which it waits.
        """
        device = find_device(self.device, **leased(self.device, self.options))
        bounds = [None, *self.starts, None]
        found = WholeRows(self.query, device, arrivals,
                          between=(warm_r + warm_s, bounds[partition], bounds[partition + 1]))
        with _told(partition):
            rows = found.table()
        if self.metrics is not None:
            latencies = found.facts.get("latencies")
            self.metrics.add(found.facts["counters"], None if latencies is None else latencies[warm_r + warm_s:],
                             partitions=1, tuples=len(arrivals) - warm_r - warm_s, warm=warm_r + warm_s,
                             pairs=len(rows))
        made = ResultRows(self.query, self.gathered, self.projection)
        for table in made.of_rows(arrivals.r, arrivals.s, rows):
            yield from table.combine_chunks().to_batches()

    def _check_times(self, rows: pa.Table) -> None:
        if rows.column(TS).null_count:
            first = pc.index(rows.column(TS).is_null(), True).as_py()
            raise null_time(self.query, "r" if rows.column(STREAM)[first].as_py() == R else "s")

    def _check_counts(self, partition: int, home: tuple[int, int], warm: tuple[int, int]) -> None:
        """Check that the counts by which a separate Spark job chose the warm rows still hold."""
        if self.expected is None:
            return
        was, now = list(self.expected[partition]), list(home)
        for side, window in ((R, self.query.window_r), (S, self.query.window_s)):
            if window.rows is not None and window.length is None:
                was[side] += min(window.rows, sum(counts[side] for counts in self.expected[:partition]))
                now[side] += warm[side]
        if was != now:
            raise InputError(f"the input changed while it was joined: time partition {partition} should read {was[R]} "
                             f"rows of the left and {was[S]} of the right DataFrame by the numbers of rows when "
                             f"stream_join was called, but reads {now[R]} and {now[S]}; a ROWS window needs unchanged "
                             f"inputs, so cache() or write them first")


@contextmanager
def _told(partition: int) -> Iterator[None]:
    """Add to an error for a window that is too small of which rows it tells."""
    try:
        yield
    except WindowOverflow as error:
        error.add_note(f"This was in time partition {partition}; rows count from its first warm one.")
        raise


def null_time(query: Query, side: Side, instead: str = "") -> InputError:
    """The error for a NULL in the time column of stream ``side``. ``instead``: what else may be done about it."""
    assert query.time is not None
    name, which = query.time.name(side), WHICH[side]
    return InputError(f"the time column {side}.{name} (of the {which} DataFrame) must not hold NULL, but it does; "
                      f"{instead}filter such rows out with {which}.where(\"{name} IS NOT NULL\")")


def _partitions(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
    """The batches cut where the partition number changes. Spark gives each task one partition; nothing relies on it."""
    pieces: list[pa.RecordBatch] = []
    current = -1
    for batch in batches:
        numbers = batch.column(batch.schema.get_field_index(PARTITION)).to_numpy()
        for start, end in pairwise([0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]):
            if start == end:
                continue
            if pieces and numbers[start] != current:
                yield current, pieces
                pieces = []
            current = int(numbers[start])
            pieces.append(batch.slice(start, end - start))
    if pieces:
        yield current, pieces


def _stream(pieces: Sequence[pa.RecordBatch], side: int) -> pa.Table:
    """The tuples of one stream as a table of its own columns, in arrival order."""
    rows = []
    for piece in pieces:
        struct = piece.column(piece.schema.get_field_index("r" if side == R else "s"))
        chosen = struct.filter(pc.equal(piece.column(piece.schema.get_field_index(STREAM)), side))
        rows.append(pa.RecordBatch.from_struct_array(chosen))
    # One chunk: `take` searches the chunk of every row otherwise.
    return pa.Table.from_batches(rows).combine_chunks()
