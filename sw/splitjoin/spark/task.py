"""`Task`: runs inside a Spark task, and joins the packed rows of a batch job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError, WindowOverflow
from splitjoin.engines.arrival import Arrivals, arrivals, event_ticks, timed_arrivals
from splitjoin.engines.device import Device
from splitjoin.engines.registry import device as find_device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.windows import Extent
from splitjoin.rows.answers import EVERY
from splitjoin.rows.table_rows import TableRows
from splitjoin.rows.whole import WholeRows

from .metrics import JoinMetrics
from .packing import Packed, unpacked
from .resources import leased
from .results import ResultRows
from .routes import LEAST, PartRoute, Route, TimeRoute
from .streaming.rows import Rows, arrival_order
from .text import WHICH

#: Result rows that are made at once, and the most pairs that are found at once, as other tasks of the worker do so too.
_ROWS, _AT_ONCE = 1 << 20, 1 << 22


@dataclass(frozen=True)
class Task:
    """Joins the rows of each task number that a Spark task has; given to ``mapInArrow``.

    Attributes:
        query: The query; where it has no window, a task holds all rows that it gets.
        device: The device, by name or itself.
        options: Parameters of a device given by name.
        made: What makes the result rows.
        names: The columns of each stream that the rows have.
        ties: The columns of each stream that order rows with equal times; none if their order does not matter.
        route: Which rows a task gets.
        metrics: Collects the device's counters; None for nothing.
    """

    query: Query
    device: str | Device
    options: Mapping[str, Any]
    made: ResultRows
    names: Mapping[Side, Sequence[str]]
    ties: Mapping[Side, Sequence[str]]
    route: Route
    metrics: JoinMetrics | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = unpacked(batches)
        for number in sorted(parts):
            yield from self._packed(number, parts.pop(number))

    def _packed(self, number: int, parts: Sequence[Packed]) -> Iterator[pa.RecordBatch]:
        query = self.query
        if query.is_pairs and not any(home for _, home, _, _ in parts):
            return  # no home rows, so no results
        tables = {side: self._table(side, [p[-1] for p in parts if SIDES[p[0]] == side]) for side in SIDES}
        if query.time is None:
            yield from self.join(number, arrivals(query, tables["r"], tables["s"]), 0, 0)
            return
        streams, warm = {}, {}
        for side, table in tables.items():
            ids = np.arange(len(table))
            rows, ties = Rows(table, event_ticks(query.time, side, table), ids), self.ties[side]
            rows = arrival_order(rows, ties, ids) if ties else rows.sorted()
            count, last = sum(p[2] for p in parts if SIDES[p[0]] == side), query.window(side).rows
            if last is not None and number:
                self._check_needed(number, side, count, last)
                rows, count = rows.slice(count - last, len(rows)), min(count, last)
            streams[side], warm[side] = rows, count
        r, s = streams["r"], streams["s"]
        yield from self.join(number, timed_arrivals(r.table, s.table, r.ts, s.ts), warm["r"], warm["s"])

    def join(self, number: int, incoming: Arrivals, warm_r: int, warm_s: int) -> Iterator[pa.RecordBatch]:
        """The result rows of the task ``number``: the first ``warm_r`` tuples of R and ``warm_s`` of S are warm.

        A pair belongs to its later tuple's home partition. Warm rows precede all home rows, so a pair belongs to
        another partition exactly when both of its tuples are warm: rows numbered below ``warm_r`` and ``warm_s``. A row
        of another kind of join that waits belongs to the partition of the time up to which it waits.
        """
        query, warm = self.query, warm_r + warm_s
        between: tuple[int, int | None, int | None] = EVERY
        if isinstance(self.route, TimeRoute):
            bounds = [None, *self.route.starts, None]
            between = warm, bounds[number], bounds[number + 1]
        else:
            query = replace(query, window_r=Extent(max(1, len(incoming.r)), None),
                            window_s=Extent(max(1, len(incoming.s)), None))
            if self.route.full:
                query = replace(query, kind=replace(query.kind, how="right" if self._finds_unmet(number) else "left"))
        device = find_device(self.device, **leased(self.device, self.options))
        found = WholeRows(query, device, incoming, between=between, room=_AT_ONCE)
        count = 0
        try:
            for part in found.tables(_ROWS) if between == EVERY else [found.table()]:
                if self._finds_unmet(number):
                    part = TableRows(part.r[part.r < 0], part.s[part.r < 0], (), part.items)
                count += len(part)
                for table in self.made.of_rows(incoming.r, incoming.s, part):
                    yield from table.combine_chunks().to_batches()
        except WindowOverflow as error:
            error.add_note(f"This was in time partition {number}; rows count from its first warm one.")
            raise
        if self.metrics is not None:
            latencies = found.facts.get("latencies")
            self.metrics.add(found.facts["counters"], None if latencies is None else latencies[warm:], partitions=1,
                             tuples=len(incoming) - warm, warm=warm, pairs=count)

    def _finds_unmet(self, number: int) -> bool:
        """True if the task's only rows are those of S that meet nothing."""
        return isinstance(self.route, PartRoute) and self.route.full and number >= self.route.parts[0]

    def _table(self, side: Side, tables: Sequence[pa.Table]) -> pa.Table:
        """The tuples of stream ``side`` in one chunk: `take` searches the chunk of every row otherwise."""
        if not tables:
            schema = self.query.schema(side).arrow
            assert schema is not None
            return schema.empty_table().select(list(self.names[side]))
        return pa.concat_tables(tables).combine_chunks()

    def _check_needed(self, number: int, side: Side, warm: int, last: int) -> None:
        """Check that partition ``number`` has the ``last`` rows before it, as a job found the time of the first."""
        assert isinstance(self.route, TimeRoute)
        need, length = self.route.needs[side][number - 1], self.query.window(side).length
        if warm < last and need != LEAST and (length is None or need > self.route.starts[number - 1] - length):
            raise InputError(f"the input changed while it was joined: time partition {number} needs {last} rows of "
                             f"the {WHICH[side]} DataFrame before it, which were there when stream_join was called, "
                             f"but reads {warm}; a ROWS window needs unchanged inputs, so cache() or write them first")
