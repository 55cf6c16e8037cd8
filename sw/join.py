"""`join`: runs a query over two whole tables, on any device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .arrival import arrivals
from .device.api import Device, Items, pairs
from .device.registry import device as find_device
from .golden import GoldenDevice
from .kinds import decide, reference_rows
from .lang.order import Order
from .lang.query import Predicate, Query, TimeSpec
from .lang.schema import Schema
from .lang.windows import WindowSpec
from .memory import check_memory, too_large
from .output import OutputColumn, gather, output_columns
from .tables import as_table

__all__ = ["JoinResult", "execute", "join", "run"]


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
         how: str = "inner", direction: str | None = None, allow_exact: bool | None = None) -> pa.Table:
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

    Returns:
        All columns of r, then all of s (none of s for semi and anti); names that occur in both get ``_r`` and ``_s``
        appended.

    Raises:
        SplitJoinError: With what must hold, what came and what to do.
    """
    return execute(r, s, on=on, window=window, time=time, order=order, select=select, device=device, how=how,
                   direction=direction, allow_exact=allow_exact).table


def execute(r: Any, s: Any, *, on: Predicate, window: WindowSpec, time: TimeSpec | None = None,
            order: str | Order = "total", select: Sequence[str] | None = None, device: str | Device = "cpu",
            how: str = "inner", direction: str | None = None, allow_exact: bool | None = None) -> JoinResult:
    """Like `join`, with the result items, counters and latencies beside the table."""
    tr, ts = as_table(r, "r"), as_table(s, "s")
    query = Query.make(Schema.from_table("r", tr), Schema.from_table("s", ts), on=on, window=window, time=time,
                       order=order, how=how, direction=direction, allow_exact=allow_exact)
    query.r.check(tr)
    query.s.check(ts)
    return run(query, tr, ts, output_columns(tr.schema, ts.schema, select, query.kind), device)


def run(query: Query, r: pa.Table, s: pa.Table, columns: Sequence[OutputColumn], device: str | Device) -> JoinResult:
    """Run ``query`` over two tables, which need hold no more than its columns and ``columns``, those of the result."""
    incoming = arrivals(query, r, s)
    chosen = find_device(device)
    with chosen.open(query.pairs) as session:
        session.push(incoming)
        items = session.flush()
        counters, latencies, plan = session.counters(), session.latencies(), session.plan()
        regions = session.region_counters()
    if not query.kind.is_inner:
        items = (reference_rows if isinstance(chosen, GoldenDevice) else decide)(query, incoming, items)
    r_rows, s_rows = pairs(items)
    try:
        check_memory(len(r_rows), len(r_rows) * _row_bytes(columns, {"r": r, "s": s}))
        table = gather(columns, r, s, r_rows, s_rows)
    except MemoryError as error:
        raise too_large(len(r_rows)) from error
    return JoinResult(table, items, counters, latencies, plan, regions)


def _row_bytes(columns: Sequence[OutputColumn], tables: dict[str, pa.Table]) -> int:
    """About how many bytes a result row has: the mean of its columns' values."""
    return sum(column.nbytes // max(len(column), 1) for column in (tables[c.side].column(c.source) for c in columns))
