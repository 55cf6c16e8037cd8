"""`Spread`: the stage before the shuffle. It packs the rows of one stream for the groups that get them.

Packed rows cross the shuffle as a few binary values instead of one row each: Spark converts every row to Arrow once,
and sorts and copies none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.engines.arrival import R, S, event_ticks
from splitjoin.lang.schema import SIDES, Side

from ..packing import ipc_bytes, null_time, tables_of
from .group import GroupJoin
from .micro_batch import MicroBatch
from .rows import Rows
from .slots import are_hot
from .state_files import StateFiles
from .watermark import BatchTimes

#: The columns of packed rows: the group; the stream (0 = R, 1 = S); how many tuples the partition of the input had, and
#: their greatest event time (once in each partition and group, else 0 and NULL); and the tuples with their slots. If
#: ``timeless`` is true, ``rows`` holds tuples whose event time is NULL.
PACKED = "`group` int, stream int, tuples bigint, greatest bigint, timeless boolean, `rows` binary"
_ARROW = pa.schema([("group", pa.int32()), ("stream", pa.int32()), ("tuples", pa.int64()), ("greatest", pa.int64()),
                    ("timeless", pa.bool_()), ("rows", pa.binary())])

#: A column that the driver adds to them, beside the micro-batch: its time, which Spark keeps in the checkpoint, in
#: milliseconds since 1970; and those that the rule of Catalyst adds in its place, Spark's watermarks (`BatchTimes`).
NOW, WATERMARKS = "now", ("late", "evicted")

#: Rows that are packed together.
_PACK = 1 << 16


@dataclass(frozen=True)
class Spread:
    """Packs the rows of stream ``side``; given to ``mapInArrow``.

    ``root`` and ``name``: as of `GroupTask`. ``batch``: the micro-batch; None if a last column of the rows has the hot
    slots of the state before it, where `reads_hot` is true.
    """

    join: GroupJoin
    side: Side
    root: str | None
    name: str
    batch: MicroBatch | None = None

    @property
    def reads_hot(self) -> bool:
        """True if rows of hot keys go to all groups."""
        return self.join.slots.hashed and self.join.groups > 1

    def hot(self, batch: MicroBatch) -> frozenset[int]:
        """The hot slots of the state before ``batch``."""
        files = StateFiles(batch.root(self.root), batch.query, self.name)
        return files.hot_before(batch.number, self.join.groups) if self.reads_hot else frozenset()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self.batch is not None:
            return self.packed(self.hot(self.batch), batches)
        first = next((b for b in batches if b.num_rows), None) if self.reads_hot else None
        if first is None:
            return self.packed(frozenset(), batches)
        hot = frozenset(first.columns[-1][0].as_py())
        return self.packed(hot, (b.select(range(b.num_columns - 1)) for b in chain([first], batches)))

    def packed(self, hot: frozenset[int], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of a partition as `PACKED` ones, with a last one for every group. ``hot``: the hot slots."""
        tuples, greatest = 0, None
        for table in (_typed(table, self.join.schemas[self.side]) for table in tables_of(batches, _PACK)):
            time = self.join.query.time
            assert time is not None
            times = table.column(time.name(self.side))
            if times.null_count:
                if not self.join.nulls_are_late:
                    raise null_time(self.join.query, self.side, "give null_time='late' to leave such rows out, or ")
                lost = table.filter(times.is_null())
                yield self._batch(0, 0, None, _encoded(lost, np.zeros(len(lost), np.uint16)), timeless=True)
                table = table.filter(times.is_valid())
            if not len(table):
                continue
            ts = event_ticks(time, self.side, table)
            tuples += len(ts)
            greatest = max(int(ts.max()), greatest if greatest is not None else int(ts.min()))
            yield from self._slotted(table, hot)
        for group in range(self.join.groups):
            yield self._batch(group, tuples, greatest, b"")

    def _slotted(self, table: pa.Table, hot: frozenset[int]) -> Iterator[pa.RecordBatch]:
        join = self.join
        if not join.slots.hashed:
            data = _encoded(table, join.slots.of_values(table))
            for group in range(join.groups):
                yield self._batch(group, 0, None, data)
            return
        everywhere = are_hot(join.slots.of_keys(self.side, table), hot)
        slots = join.slots.of(self.side, table, hot)
        for group in range(join.groups):
            mask = everywhere | (slots % join.groups == group)
            if mask.any():
                yield self._batch(group, 0, None, _encoded(table.filter(pa.array(mask)), slots[mask]))

    def _batch(self, group: int, tuples: int, greatest: int | None, data: bytes, *,
               timeless: bool = False) -> pa.RecordBatch:
        stream = R if self.side == "r" else S
        return pa.RecordBatch.from_pylist([{"group": group, "stream": stream, "tuples": tuples, "greatest": greatest,
                                            "timeless": timeless, "rows": data}], schema=_ARROW)


@dataclass(frozen=True)
class Unpacked:
    """The packed rows of a group in a micro-batch.

    Attributes:
        group: The number of the group; None if there are no packed rows, because no input had a partition.
        rows: The tuples of each stream with their slots.
        times: What the watermark depends on, but for the run of the query.
        tuples: The number of tuples in all groups.
        batch: The micro-batch; None if the packed rows do not tell it.
        timeless: The tuples of each stream whose event time is NULL, of all groups; group 0 gets them.
    """

    group: int | None
    rows: Mapping[Side, tuple[Rows, npt.NDArray[np.uint16]]]
    times: BatchTimes
    tuples: int
    timeless: Mapping[Side, pa.Table]
    batch: MicroBatch | None


def unpacked(join: GroupJoin, batches: Iterator[pa.RecordBatch]) -> Unpacked:
    """The packed rows ``batches`` of one group."""
    groups: set[int] = set()
    tables, timeless = ({side: [join.schemas[side].empty_table()] for side in SIDES} for _ in range(2))
    slots: dict[Side, list[npt.NDArray[np.uint16]]] = {side: [np.empty(0, np.uint16)] for side in SIDES}
    greatest: dict[Side, int | None] = dict.fromkeys(SIDES)
    tuples = dict.fromkeys(SIDES, 0)
    now, watermarks, micro_batch = 0, None, None
    for batch in batches:
        if micro_batch is None and batch.num_rows and "micro_batch" in batch.schema.names:
            micro_batch = MicroBatch.of(batch.column("micro_batch")[0].as_py())
        if NOW in batch.schema.names:
            now = max([now, *batch.column(NOW).to_pylist()])
        elif batch.num_rows:
            late, evicted = (batch.column(name)[0].as_py() for name in WATERMARKS)
            watermarks = late, evicted
        groups.update(batch.column("group").to_pylist())
        for stream, n, last, lost, data in zip(*(batch.column(batch.schema.get_field_index(name)) for name in
                                                 ("stream", "tuples", "greatest", "timeless", "rows")), strict=True):
            side = SIDES[stream.as_py()]
            tuples[side] += n.as_py()
            if last.is_valid:
                most = greatest[side]
                greatest[side] = last.as_py() if most is None else max(most, last.as_py())
            buffer = data.as_buffer()
            if buffer.size:
                packed = pa.ipc.open_stream(buffer).read_all()
                schema = join.schemas[side]
                table = pa.table(packed.columns[:len(schema)], schema=schema)
                if lost.as_py():
                    timeless[side].append(table)
                else:
                    slots[side].append(packed.column("slot").to_numpy())
                    tables[side].append(table)
    assert join.query.time is not None
    rows = {}
    for side in SIDES:
        table = pa.concat_tables(tables[side])
        ts = event_ticks(join.query.time, side, table)
        rows[side] = Rows(table, ts, np.full(len(ts), -1, np.int64)), np.concatenate(slots[side])
    assert len(groups) <= 1, f"a task got the rows of the groups {sorted(groups)}"
    return Unpacked(min(groups, default=None), rows, BatchTimes(greatest, now, watermarks=watermarks),
                    sum(tuples.values()), {side: pa.concat_tables(timeless[side]) for side in SIDES}, micro_batch)


def _typed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    # Spark names the session's time zone in the type of timestamps; the values are the same.
    return pa.table([c if c.type == f.type else c.cast(f.type) for c, f in zip(table.columns, schema, strict=True)],
                    schema=schema)


def _encoded(table: pa.Table, slots: npt.NDArray[np.uint16]) -> bytes:
    names = [*(str(n) for n in range(table.num_columns)), "slot"]
    return ipc_bytes(pa.table([*table.columns, pa.array(slots)], names=names))
