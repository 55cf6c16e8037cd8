"""`join`: runs a query over two whole tables, on any device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .aggregates import FoldedRows, aggregate_fields, decide_bases, reference_aggregates
from .arrival import Arrivals, arrivals
from .device.api import Device, Items, pairs
from .device.registry import device as find_device
from .errors import SchemaError
from .golden import GoldenDevice
from .kinds import decide, reference_rows
from .lang.order import Order
from .lang.query import Predicate, Query, TimeSpec
from .lang.schema import Schema
from .lang.windows import WindowSpec
from .memory import check_memory, too_large
from .output import OutputColumn, gather, output_columns, take
from .tables import as_table

__all__ = ["JoinResult", "execute", "join", "result_columns", "run"]


@dataclass(frozen=True)
class JoinResult:
    """The result of a run: the result rows, the items they came from, and the counters of the device.

    ``latencies`` are cycles per probe in arrival order, None where the device does not measure them. ``plan`` says in
    words what the device chose to do, empty where it has no choice. ``region_counters``
    as of `Session.region_counters`.
    """

    table: pa.Table
    items: Items
    counters: dict[str, int]
    latencies: npt.NDArray[np.int64] | None
    plan: str = ""
    region_counters: dict[str, npt.NDArray[np.int64]] | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The result rows, for whatever takes Arrow: ``pa.table(result)``, Polars, DuckDB, pandas."""
        return self.table.__arrow_c_stream__(requested_schema)


def join(r: Any, s: Any, *, on: Predicate, window: WindowSpec, time: TimeSpec | None = None,
         order: str | Order = "total", select: Sequence[str] | None = None, device: str | Device = "cpu",
         how: str = "inner", direction: str | None = None, allow_exact: bool | None = None, by: str | None = None,
         aggregate: Mapping[str, str] | None = None) -> pa.Table:
    """Join two streams, given as whole tables, under any condition within sliding windows.

    Each tuple is compared with the tuples of the other stream that precede it in arrival order and lie in that
    stream's window; a pair is a result when the condition is true.

    Args:
        r: The first stream: an Arrow table, a record batch, or anything with ``__arrow_c_stream__`` (pandas, Polars,
            DuckDB).
        s: The second stream, likewise.
        on: The condition: SQL over ``r`` and ``s`` such as ``"abs(r.x - s.a) <= 10"``, or a Python function such as
            ``lambda r, s: abs(r.x - s.a) <= 10``.
        window: ``"ROWS 4096"``, ``"RANGE 15 MINUTES"``, ``"RANGE 900"`` (integer time column), or both; one text for
            both streams, or a pair (R's, S's), or ``{"r": …, "s": …}``.
        time: The event-time column by which both tables are sorted (a name, or a pair). Without it, tuples arrive
            alternately: r0, s0, r1, s1, …
        order: ``"total"`` (by the probe's, then the stored tuple's arrival), ``"outer(N)"``, ``"inner(n)"`` or
            ``"none"``.
        select: Names of result columns to keep, in order; ``"r.x"`` and ``"s.a"`` name a side. All by default.
        device: ``"cpu"``, ``"golden"``, ``"pysim"``, ``"sim"``, or a `Device` with parameters.
        how: The kind of join: ``"inner"``, ``"left"``, ``"right"``, ``"full"``, ``"semi"``, ``"anti"``, or ``"asof"``
            and ``"asof_left"``, which give each tuple of r its nearest partner. docs/kinds.md explains them.
        direction: Of as-of joins: ``"backward"`` (the last partner not after the tuple of r; by default),
            ``"forward"`` or ``"nearest"``.
        allow_exact: Of as-of joins: False for partners at other times than the tuple of r only. True by default.
        by: With ``aggregate``, the stream whose tuples get a row each: ``"r"``.
        aggregate: Names of result columns and the aggregates of all partners that they hold, such as ``{"n":
            "count(*)", "high": "max(s.price)"}``, in place of the pairs; with ``how="left"`` also for tuples of r that
            meet nothing. docs/aggregates.md explains them.

    Returns:
        All columns of r, then all of s (none of s for semi and anti; with ``aggregate``, its columns instead); names
        that occur in both get ``_r`` and ``_s`` appended.

    Raises:
        SplitJoinError: With what must hold, what came and what to do.
    """
    return execute(r, s, on=on, window=window, time=time, order=order, select=select, device=device, how=how,
                   direction=direction, allow_exact=allow_exact, by=by, aggregate=aggregate).table


def execute(r: Any, s: Any, *, on: Predicate, window: WindowSpec, time: TimeSpec | None = None,
            order: str | Order = "total", select: Sequence[str] | None = None, device: str | Device = "cpu",
            how: str = "inner", direction: str | None = None, allow_exact: bool | None = None, by: str | None = None,
            aggregate: Mapping[str, str] | None = None) -> JoinResult:
    """Like `join`, with the result items, counters and latencies beside the table."""
    tr, ts = as_table(r, "r"), as_table(s, "s")
    query = Query.make(Schema.from_table("r", tr), Schema.from_table("s", ts), on=on, window=window, time=time,
                       order=order, how=how, direction=direction, allow_exact=allow_exact, by=by, aggregate=aggregate)
    query.r.check(tr)
    query.s.check(ts)
    return run(query, tr, ts, result_columns(query, tr.schema, ts.schema, select), device)


def run(query: Query, r: pa.Table, s: pa.Table, columns: Sequence[OutputColumn], device: str | Device) -> JoinResult:
    """Run ``query`` over two tables, which need hold no more than its columns and ``columns``, those of the result."""
    incoming = arrivals(query, r, s)
    chosen = find_device(device)
    with chosen.open(query.pairs) as session:
        session.push(incoming)
        items = session.flush()
        counters, latencies, plan = session.counters(), session.latencies(), session.plan()
        regions = session.region_counters()
    plain, folded = isinstance(chosen, GoldenDevice), list[pa.ChunkedArray]()
    if query.aggregates:
        items, folded = (reference_aggregates if plain else _folded)(query, incoming, items)
    elif not query.kind.is_inner:
        items = (reference_rows if plain else decide)(query, incoming, items)
    r_rows, s_rows = pairs(items)
    try:
        check_memory(len(r_rows), len(r_rows) * _row_bytes(columns, {"r": r, "s": s}))
        table = gather(columns, r, s, r_rows, s_rows)
        if query.aggregates:
            table = pa.table([*table.columns, *folded], schema=pa.schema([*table.schema, *aggregate_fields(query)]))
    except MemoryError as error:
        raise too_large(len(r_rows)) from error
    return JoinResult(table, items, counters, latencies, plan, regions)


def result_columns(query: Query, r: pa.Schema, s: pa.Schema,
                   select: Sequence[str] | None) -> tuple[OutputColumn, ...]:
    """The columns that are gathered for a row: of both streams, or of R if aggregates follow them.

    Raises `SchemaError` where an aggregate has the name of one of them.
    """
    if not query.aggregates:
        return output_columns(r, s, select, query.kind)
    chosen = output_columns(r, pa.schema([]), select)
    twice = [a.name for a in query.aggregates if a.name in {c.name for c in chosen}]
    if twice:
        raise SchemaError(f"an aggregate must not have the name of a column of r, but {twice[0]!r} has; give it "
                          f"another name, or choose columns of r with select")
    return chosen


def _folded(query: Query, incoming: Arrivals, items: Items) -> tuple[Items, list[pa.ChunkedArray]]:
    """The rows of a query with aggregates, and their values."""
    decided = decide_bases(query, incoming, items)
    tables = {"r": incoming.r, "s": incoming.s}
    folded = FoldedRows(query, lambda side, names, rows: [take(tables[side].column(name), pa.array(rows))
                                                          for name in names])
    return decided.items, folded.arrays(decided)


def _row_bytes(columns: Sequence[OutputColumn], tables: dict[str, pa.Table]) -> int:
    """About how many bytes a result row has: the mean of its columns' values."""
    return sum(column.nbytes // max(len(column), 1) for column in (tables[c.side].column(c.source) for c in columns))
