"""Runs a query over two whole tables: rows into memory, or part by part into a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from splitjoin.base.memory import available_memory, check_memory, too_large
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.device import ITEM, Device, TablePairs
from splitjoin.lang.query import Query
from splitjoin.rows.aggregates import Groups, aggregate_fields
from splitjoin.rows.kinds import table_rows
from splitjoin.rows.operator import RowBatch
from splitjoin.rows.output import OutputColumn, gather, output_schema
from splitjoin.rows.result import JoinResult
from splitjoin.rows.whole import WholeRows
from splitjoin.tables import TableWriter

from .expected_size import ExpectedSize

__all__ = ["Output", "run"]

#: Result rows that are gathered and written at once.
_WRITTEN = 1 << 21
#: Bytes of a row that is found at once, beside its values.
_FOUND = 64


@dataclass(frozen=True)
class Output:
    """The rows to make: the columns that are gathered for them, and what makes the result of these.

    ``finish``: a table of gathered rows, with the aggregates behind them, as one of the result. ``schema``: the Arrow
    schema of the result; of the gathered rows by default.
    """

    columns: Sequence[OutputColumn]
    finish: Callable[[pa.Table], pa.Table] = lambda table: table
    schema: pa.Schema | None = None


def run(query: Query, r: pa.Table, s: pa.Table, output: Output, device: Device,
        to: str | Path | None = None, groups: Groups = None) -> JoinResult:
    """Run ``query`` over two tables, which need hold no more than its columns and those of ``output``.

    With ``to``, the rows go to this file part by part, and memory holds only some of them at a time. ``groups``: as of
    `identical_rows`, where identical tuples of R are one base of the aggregates; None where each is one of its own.
    """
    incoming = arrivals(query, r, s)
    if not query.aggregates:
        row = _row_bytes(output.columns, incoming) if to is None else 0
        pairs = device.table_pairs(query, incoming, available_memory() // (_FOUND + row) // 2)
        if pairs is not None:
            return _of_table_pairs(query, incoming, output, pairs, to)
    found = WholeRows(query, device, incoming, groups)
    if to is not None:
        with TableWriter(to, output.schema or _schema(query, output)) as writer:
            for batch in found.batches(_WRITTEN):
                for part in batch.parts(_WRITTEN):
                    writer.write(output.finish(_gathered(query, incoming, output, part)))
        return JoinResult(writer.stored(), None, **found.facts)
    found.watch = ExpectedSize(query, incoming, ITEM.itemsize + _row_bytes(output.columns, incoming)).check
    batch = found.batch()
    given = batch.rows()
    try:
        check_memory(len(given.items), len(given.items) * _row_bytes(output.columns, incoming))
        return JoinResult(output.finish(_gathered(query, incoming, output, given)), batch.items, **found.facts)
    except MemoryError as error:
        raise too_large(len(given.items)) from error


def _of_table_pairs(query: Query, incoming: Arrivals, output: Output, pairs: TablePairs,
                    to: str | Path | None) -> JoinResult:
    """As `run`, from the pairs that decide all rows."""
    told: dict[str, Any] = {"plan": pairs.plan, "counters": pairs.counters}
    found = table_rows(query, incoming, pairs)
    parts = (output.finish(gather(output.columns, incoming.r, incoming.s, found.r[at:at + _WRITTEN],
                                  found.s[at:at + _WRITTEN])) for at in range(0, max(len(found.r), 1), _WRITTEN))
    try:
        if to is None:
            check_memory(len(found.r), len(found.r) * _row_bytes(output.columns, incoming))
            return JoinResult(pa.concat_tables(parts), lambda: found.items(query, incoming), **told)
        with TableWriter(to, output.schema or output_schema(output.columns)) as writer:
            for part in parts:
                writer.write(part)
        return JoinResult(writer.stored(), None, **told)
    except MemoryError as error:
        raise too_large(len(found.r)) from error


def _schema(query: Query, output: Output) -> pa.Schema:
    """The schema of the gathered columns, and the aggregates behind them."""
    return pa.schema([*output_schema(output.columns), *aggregate_fields(query)])


def _gathered(query: Query, incoming: Arrivals, output: Output, rows: RowBatch) -> pa.Table:
    """The gathered columns of ``rows``, and the aggregates behind them."""
    table = gather(output.columns, incoming.r, incoming.s, rows.items["r"], rows.items["s"])
    return pa.table([*table.columns, *rows.values], schema=_schema(query, output))


def _row_bytes(columns: Sequence[OutputColumn], incoming: Arrivals) -> int:
    """About how many bytes a result row has: the mean of its columns' values."""
    return sum(column.nbytes // max(len(column), 1)
               for column in (incoming.table(c.side).column(c.source) for c in columns))
