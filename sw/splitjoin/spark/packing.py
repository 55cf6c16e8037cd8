"""`Pack`: packs the rows of a batch DataFrame as Arrow before the shuffle, for the tasks that join them.

A packed row of Spark holds some thousand tuples, as bytes of an Arrow IPC stream. So Spark converts every tuple to
Arrow once, and its shuffle neither copies nor sorts rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from splitjoin.base.errors import InputError
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side

from .routes import Route
from .text import WHICH

#: The columns of packed rows: the task, the stream (0 = R, 1 = S), the numbers of home and of warm tuples, and the
#: tuples, of a time partition by event time and the warm ones first.
TASK = "task"
PACKED = f"{TASK} int, stream int, home bigint, warm bigint, tuples binary"
_ARROW = pa.schema([(TASK, pa.int32()), ("stream", pa.int32()), ("home", pa.int64()), ("warm", pa.int64()),
                    ("tuples", pa.binary())])

#: Tuples that are packed together, fewer if they have more bytes.
_PACK, _PACK_BYTES = 1 << 18, 1 << 26
#: Bytes of a batch of packed rows, about: `binary` holds less than 2 GiB in one.
_BATCH_BYTES = 1 << 24

#: Stream, home tuples, warm tuples, and the tuples.
Packed = tuple[int, int, int, pa.Table]


@dataclass(frozen=True)
class Pack:
    """Packs the rows of stream ``side`` for the tasks of ``route``; given to ``mapInArrow``.

    ``names``: the names of the columns, which come as numbered ones, perhaps with the number of the row's part behind.
    """

    query: Query
    side: Side
    names: Sequence[str]
    route: Route

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, size, time, count = list[tuple[int, int, int, int, bytes]](), 0, self.query.time, len(self.names)
        for table in tables_of(batches):
            part = table.column(count).to_numpy() if table.num_columns > count else None
            table = table.select(range(count)).rename_columns(list(self.names))
            if time is not None and table.column(time.name(self.side)).null_count:
                raise null_time(self.query, self.side)
            for tasks, home, warm, mine in self.route.shares(self.query, self.side, table, part):
                data = ipc_bytes(mine)
                for task in tasks:
                    rows.append((task, SIDES.index(self.side), home, warm, data))
                    size += len(data)
                    if size > _BATCH_BYTES:
                        yield _batch(rows)
                        rows, size = [], 0
        if rows:
            yield _batch(rows)


def unpacked(batches: Iterator[pa.RecordBatch]) -> dict[int, list[Packed]]:
    """For each task what its `PACKED` rows hold."""
    parts = dict[int, list[Packed]]()
    for batch in batches:
        tasks, *numbers, tuples = (batch.column(batch.schema.get_field_index(name)) for name in _ARROW.names)
        counts = zip(*(column.to_pylist() for column in numbers), strict=True)
        for task, (stream, home, warm), data in zip(tasks.to_pylist(), counts, tuples, strict=True):
            parts.setdefault(task, []).append((stream, home, warm, pa.ipc.open_stream(data.as_buffer()).read_all()))
    return parts


def tables_of(batches: Iterator[pa.RecordBatch], most: int = _PACK) -> Iterator[pa.Table]:
    """The rows as tables of about ``most`` rows each; Spark's own batches are of some thousand rows."""
    held, rows, size = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if rows >= most or size >= _PACK_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def null_time(query: Query, side: Side, instead: str = "") -> InputError:
    """The error for a NULL in the time column of stream ``side``. ``instead``: what else may be done about it."""
    assert query.time is not None
    name, which = query.time.name(side), WHICH[side]
    return InputError(f"the time column {side}.{name} (of the {which} DataFrame) must not hold NULL, but it does; "
                      f"{instead}filter such rows out with {which}.where(\"{name} IS NOT NULL\")")


def ipc_bytes(table: pa.Table, compression: str | None = None) -> bytes:
    """An Arrow IPC stream of ``table`` in one batch."""
    table = table.combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _batch(rows: Sequence[tuple[int, int, int, int, bytes]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(column, field.type) for column, field in
                                       zip(zip(*rows, strict=True), _ARROW, strict=True)], schema=_ARROW)
