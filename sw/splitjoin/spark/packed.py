"""Rows of batch DataFrames, packed as Arrow before the shuffle and unpacked in the task of their time partition.

A packed row of Spark holds some thousand tuples, as bytes of an Arrow IPC stream. So Spark converts every tuple to
Arrow once, and its shuffle neither copies nor sorts rows: `Pack` cuts the tuples by time with NumPy, and `PackedTask`
puts those of its partition in arrival order. `Pack` sees some rows of one stream only, so this serves RANGE windows:
which rows a partition needs for a ROWS window depends on the number of rows in others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from splitjoin.engines.arrival import R, S, event_ticks, interleave
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.output import OutputColumn

from .partitions import Cuts, InputStream, needed_columns, numbered
from .streaming.rows import Rows, arrival_order
from .task import PARTITION, STREAM, Task, null_time
from .versions import by_number
from .workers import shipped

__all__ = ["PACKED", "Pack", "PackedTask", "encoded", "packed", "packed_batch", "packed_tables", "unpacked_rows"]

#: The columns of packed rows: the partition, the stream (0 = R, 1 = S), the numbers of home and of warm tuples, and the
#: tuples by event time, the warm ones first.
PACKED = f"`{PARTITION}` int, {STREAM} int, home bigint, warm bigint, tuples binary"
_ARROW = pa.schema([(PARTITION, pa.int32()), (STREAM, pa.int32()), ("home", pa.int64()), ("warm", pa.int64()),
                    ("tuples", pa.binary())])

#: Tuples that are packed together, fewer if they have more bytes.
_PACK, _PACK_BYTES = 1 << 18, 1 << 26
#: Bytes of a batch of packed rows, about: `binary` holds less than 2 GiB in one.
_BATCH_BYTES = 1 << 24
_LEAST = -(2**63)


def packed(query: Query, streams: Sequence[InputStream], cuts: Cuts, gathered: Sequence[OutputColumn]) -> DataFrame:
    """The rows of both ``streams`` as `PACKED` ones, in the Spark partitions of their time partitions.

    ``gathered``: the result columns; of the others, only those travel that the join needs.
    """
    parts = []
    for stream in streams:
        names = needed_columns(query, stream.side, gathered, stream.ties)
        pack = Pack(query, stream.side, names, cuts.starts)
        parts.append(numbered(stream.data, names).mapInArrow(shipped(pack), PACKED))
    return by_number(parts[0].union(parts[1]), len(cuts), PARTITION)


@dataclass(frozen=True)
class Pack:
    """Packs the rows of stream ``side`` for the time partitions that need them; given to ``mapInArrow``.

    ``names``: the names of the columns, which come as `numbered` ones. ``starts``: the ticks at which partitions 1, 2,
    … begin, ascending.
    """

    query: Query
    side: Side
    names: Sequence[str]
    starts: Sequence[int]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, size = list[tuple[int, int, int, int, bytes]](), 0
        for table in packed_tables(batches):
            for partition, home, warm, part in self._cut(table.rename_columns(list(self.names))):
                rows.append((partition, R if self.side == "r" else S, home, warm, encoded(part)))
                size += len(rows[-1][-1])
                if size > _BATCH_BYTES:
                    yield packed_batch(rows)
                    rows, size = [], 0
        if rows:
            yield packed_batch(rows)

    def _cut(self, table: pa.Table) -> Iterator[tuple[int, int, int, pa.Table]]:
        """The partitions that need tuples of ``table``: number, home tuples, warm tuples, and all by event time."""
        assert self.query.time is not None
        if table.column(self.query.time.name(self.side)).null_count:
            raise null_time(self.query, self.side)
        table, ts = _by_time(self.query, self.side, table)
        length = warm_length(self.query, self.side)
        homes = [0, *_below(ts, self.starts), len(ts)]
        # Partition k needs the tuples from the beginning of its first window on.
        begins = [0, *_below(ts, [max(start - length, _LEAST) for start in self.starts])]
        for k, begin in enumerate(begins):
            if begin < homes[k + 1]:
                yield k, homes[k + 1] - homes[k], homes[k] - begin, table.slice(begin, homes[k + 1] - begin)


@dataclass(frozen=True)
class PackedTask:
    """Joins the partitions of a Spark task from packed rows, by ``task``; given to ``mapInArrow``.

    ``ties``: the columns of each stream that order rows with equal times; none if their order does not matter.
    """

    task: Task
    ties: Mapping[Side, Sequence[str]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = unpacked_rows(batches)
        for partition in sorted(parts):
            yield from self._join(partition, parts.pop(partition))

    def _join(self, partition: int, parts: Sequence[tuple[int, int, int, pa.Table]]) -> Iterator[pa.RecordBatch]:
        if not any(home for _, home, _, _ in parts) and self.task.query.is_pairs:
            return  # no home rows, so no results
        (r, r_ts), (s, s_ts) = (self._stream(side, [p[-1] for p in parts if SIDES[p[0]] == side]) for side in SIDES)
        warm = tuple(sum(p[2] for p in parts if SIDES[p[0]] == side) for side in SIDES)
        arrivals = interleave(r, s, (r_ts, s_ts), np.searchsorted(s_ts, r_ts, side="left"))
        yield from self.task.join(partition, arrivals, warm[0], warm[1])

    def _stream(self, side: Side, tables: Sequence[pa.Table]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The tuples of one stream in arrival order, and their event times."""
        query = self.task.query
        if not tables:
            schema = query.schema(side).arrow
            assert schema is not None
            return schema.empty_table(), np.empty(0, np.int64)
        # One chunk: `take` searches the chunk of every row otherwise.
        table = pa.concat_tables(tables).combine_chunks()
        if not self.ties[side]:
            return _by_time(query, side, table)
        assert query.time is not None
        order = np.arange(len(table))
        rows = arrival_order(Rows(table, event_ticks(query.time, side, table), order), self.ties[side], order)
        return rows.table, rows.ts


def unpacked_rows(batches: Iterator[pa.RecordBatch]) -> dict[int, list[tuple[int, int, int, pa.Table]]]:
    """For each partition what its `PACKED` rows hold: stream, home tuples, warm tuples, and the tuples."""
    parts = dict[int, list[tuple[int, int, int, pa.Table]]]()
    for batch in batches:
        partitions, *numbers, tuples = (batch.column(batch.schema.get_field_index(name)) for name in _ARROW.names)
        counts = zip(*(column.to_pylist() for column in numbers), strict=True)
        for partition, (stream, home, warm), data in zip(partitions.to_pylist(), counts, tuples, strict=True):
            table = pa.ipc.open_stream(data.as_buffer()).read_all()
            parts.setdefault(partition, []).append((stream, home, warm, table))
    return parts


def warm_length(query: Query, side: Side) -> int:
    """Lead of a partition: ticks by which its first needed tuples of stream ``side`` come before it.

    Kinds of join other than inner, and aggregates, need all partners of every tuple that the partition's times decide,
    so tuples as old as both windows together.
    """
    lengths = {one: query.window(one).length for one in SIDES}
    found = [lengths[side]] if query.is_pairs else list(lengths.values())
    assert None not in found, "rows are packed for RANGE windows only"
    return sum(length for length in found if length is not None)


def _by_time(query: Query, side: Side, table: pa.Table) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The tuples of ``table`` by event time, and these times; tuples with equal times keep their order."""
    assert query.time is not None
    ts = event_ticks(query.time, side, table)
    if not (ts[1:] < ts[:-1]).any():
        return table, ts
    order = np.argsort(ts, kind="stable")
    return table.take(pa.array(order)), ts[order]


def _below(ts: npt.NDArray[np.int64], times: Sequence[int]) -> list[int]:
    """For each of ``times`` the number of the ascending ``ts`` below it."""
    below: list[int] = np.searchsorted(ts, np.array(times, np.int64), side="left").tolist()
    return below


def packed_tables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows as larger tables; Spark's own batches are of some thousand rows."""
    held, rows, size = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if rows >= _PACK or size >= _PACK_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def encoded(table: pa.Table) -> bytes:
    table = table.combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def packed_batch(rows: Sequence[tuple[int, int, int, int, bytes]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(column, field.type) for column, field in
                                       zip(zip(*rows, strict=True), _ARROW, strict=True)], schema=_ARROW)
