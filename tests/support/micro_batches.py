"""Streaming joins without Spark: micro-batches through both stages of `splitjoin.spark.streaming`, in one process."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from splitjoin.engines.device import Device
from splitjoin.joins.join import result_columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema, Side
from splitjoin.rows.output import ResultNames
from splitjoin.sessions.gate.times import parse_lateness
from splitjoin.spark.streaming import task as tasks
from splitjoin.spark.streaming.frontier import Frontier
from splitjoin.spark.streaming.group import GroupJoin
from splitjoin.spark.streaming.micro_batch import MicroBatch
from splitjoin.spark.streaming.slots import Slots
from splitjoin.spark.streaming.spread import NOW, Spread
from splitjoin.spark.streaming.task import METRICS, GroupTask
from splitjoin.spark.streaming.watermark import WatermarkRule


@dataclass
class MicroBatches:
    """A streaming query with one join.

    ``root``: the folder of the state files. ``late``: the lateness of both streams. ``query``: arguments of
    `Query.make`. ``partition``: the number of every task of a group, in place of that of the group. ``kept``: sessions
    are kept. ``nulls_are_late``: rows without a time are left out. ``rule``: the rule of the watermark, in place of
    ``late``. ``early``: rows come early. ``now``: the time of the next micro-batch in milliseconds. ``name``: that of
    the join. ``earlier``: of streams that are rows of earlier joins, where their watermark is.
    """

    root: str
    r: pa.Schema
    s: pa.Schema
    late: int | str
    query: Mapping[str, Any]
    groups: int = 1
    device: str | Device = "golden"
    ties: Mapping[Side, Sequence[str]] = field(default_factory=lambda: {"r": (), "s": ()})
    retained: int = 100
    late_to: str | None = None
    partition: int | None = None
    kept: bool = False
    nulls_are_late: bool = False
    rule: WatermarkRule | None = None
    early: bool = False
    now: int = 0
    batch: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    name: str = "join"
    earlier: Mapping[Side, Frontier] = field(default_factory=dict)

    def task(self) -> GroupTask:
        """The function that runs in every group."""
        made = Query.make(Schema.from_arrow("r", self.r), Schema.from_arrow("s", self.s), **self.query).narrowed
        columns = result_columns(made, self.r, self.s, ResultNames())
        assert made.time is not None
        rule = self.rule or WatermarkRule(dict.fromkeys(SIDES, parse_lateness(self.late, made.time)))
        join = GroupJoin(made, {"r": self.r, "s": self.s}, columns, None, rule, self.ties, self.groups, self.device,
                         {}, Slots.make(made), self.kept, self.nulls_are_late, self.early)
        return GroupTask(join, join.result.schema, self.root, self.name, self.retained, self.late_to, None,
                         self.earlier)

    def run(self, r: Sequence[pa.Table], s: Sequence[pa.Table], *, again: random.Random | None = None) -> pa.Table:
        """The results of the next micro-batch, whose input partitions are ``r`` and ``s``.

        ``again``: a source of chance by which groups run twice, or stop before their end and run once more, with or
        without what the Python worker remembers.
        """
        task = self.task()
        found: list[pa.RecordBatch] = []
        self.counts = {}
        for group in range(self.groups):
            if again is not None and again.random() < 0.3:
                tasks._CACHE.clear()
                if again.random() < 0.5:
                    tasks._SESSIONS.clear()
                if again.random() < 0.5:
                    tasks._ROWS.clear()
            if again is not None and again.random() < 0.4:
                cut = self._group(task, group, r, s)
                for _ in range(again.randrange(4)):
                    next(cut, None)
                cut.close()  # type: ignore[attr-defined]
            if again is not None and again.random() < 0.3:
                list(self._group(task, group, r, s))
            found += self._group(task, group, r, s)
        self.batch += 1
        table = pa.Table.from_batches(found)
        for row in table.column(METRICS).drop_null().to_pylist():
            for name, n in row.items():
                self.counts[name] = self.counts.get(name, 0) + n
        return table.filter(table.column(METRICS).is_null()).drop_columns([METRICS]).cast(task.result)

    def restarted(self, **changes: Any) -> MicroBatches:
        """The query after a stop and a start, with other arguments."""
        tasks._CACHE.clear()
        tasks._SESSIONS.clear()
        tasks._ROWS.clear()
        return replace(self, **changes)

    def _group(self, task: GroupTask, group: int, r: Sequence[pa.Table],
               s: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
        packed, batch = list[pa.RecordBatch](), MicroBatch(self.batch, "query", None)
        for side, parts in zip(SIDES, (r, s), strict=True):
            spread = Spread(task.join, side, self.root, self.name)
            for part in parts:
                packed += spread.packed(spread.hot(batch), iter(part.to_batches(max_chunksize=7)))
        packed = [b.append_column(NOW, pa.array([self.now] * len(b), pa.int64())) for b in packed]
        mine = [b.filter(pa.compute.equal(b.column("group"), group)) for b in packed]
        task = replace(task, batch=batch)
        return task.run(group if self.partition is None else self.partition, iter(mine))
