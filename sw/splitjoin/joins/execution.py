"""Runs a query over two whole tables: rows into memory, or part by part into a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from splitjoin.base.memory import check_memory, too_large
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, Device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.aggregates import Groups, aggregate_fields
from splitjoin.rows.output import OutputColumn, gather, output_schema
from splitjoin.rows.result import JoinResult
from splitjoin.rows.table_rows import TableRows
from splitjoin.rows.whole import WholeRows
from splitjoin.tables import TableWriter

from .arranged import Arranged
from .expected_size import ExpectedSize

#: Result rows that are gathered and written at once.
_WRITTEN = 1 << 21
#: Result rows that a thread gathers at once.
_TAKEN = 1 << 17


@dataclass(frozen=True)
class Output:
    """The rows to make: the columns that are gathered for them, and what makes the result of these.

    ``finish``: a table of gathered rows, with the aggregates behind them, as one of the result. ``schema``: the Arrow
    schema of the result; of the gathered rows by default. ``ended``: a column of S, of an as-of join whose rows lack
    the partners for which it is true or NULL.
    """

    columns: Sequence[OutputColumn]
    finish: Callable[[pa.Table], pa.Table] = lambda table: table
    schema: pa.Schema | None = None
    ended: str | None = None


def run(query: Query, tables: Arranged, output: Output, device: Device, to: str | Path | None = None,
        groups: Groups = None) -> JoinResult:
    """Run ``query`` over two tables, which need hold no more than its columns and those of ``output``.

    With ``to``, the rows go to this file part by part, and memory holds only some of them at a time. ``groups``: as of
    `identical_rows`, where identical tuples of R are one base of the aggregates; None where each is one of its own.
    """
    query, incoming = tables.bounded(query), tables.incoming
    row = _row_bytes(output.columns, incoming) if to is None else 0
    rows = WholeRows(query, device, incoming, groups, row_bytes=row,
                     watch=ExpectedSize(query, incoming, ITEM.itemsize + row).check)
    given: dict[Side, pa.Table] = {side: incoming.table(side) for side in SIDES}

    def by_left() -> TableRows:
        return tables.by_left(rows.table(), nearest_first=query.chooses_by_distance)

    def current(found: TableRows) -> TableRows:
        return found if output.ended is None else found.without(
            given["s"].column(output.ended).fill_null(True).to_numpy(), alone=query.kind.gives_unmatched("r"))

    if to is not None:
        with TableWriter(to, output.schema or rows_schema(query, output)) as writer:
            for part in by_left().parts(_WRITTEN) if query.order.kind == "left" else rows.tables(_WRITTEN):
                writer.write(output.finish(gathered(query, given, output, current(part))))
        return JoinResult(writer.stored(), None, **rows.facts)
    table = current(by_left() if query.order.kind == "left" else rows.table())
    try:
        check_memory(len(table), len(table) * row)
        whole = given if len(table) <= _TAKEN else _in_one_chunk(given, output.columns)
        made = table.work.map_long(lambda part: output.finish(gathered(query, whole, output, part)),
                                   table.parts(_TAKEN))
        items = table.items  # the result does not keep the threads
        return JoinResult(pa.concat_tables(made), lambda: tables.numbered(items()), **rows.facts)
    except MemoryError as error:
        raise too_large(len(table)) from error


def rows_schema(query: Query, output: Output) -> pa.Schema:
    """The schema of the gathered columns, and the aggregates behind them."""
    return pa.schema([*output_schema(output.columns), *aggregate_fields(query)])


def _in_one_chunk(tables: Mapping[Side, pa.Table], columns: Sequence[OutputColumn]) -> dict[Side, pa.Table]:
    """The tables with those of their columns that ``columns`` name, in one chunk each, from which many rows are taken
    fastest.
    """
    return {side: tables[side].select(list(dict.fromkeys(c.source for c in columns if c.side == side)))
            .combine_chunks() for side in SIDES}


def gathered(query: Query, tables: Mapping[Side, pa.Table], output: Output, rows: TableRows) -> pa.Table:
    """The gathered columns of ``rows``, and the aggregates behind them."""
    table = gather(output.columns, tables["r"], tables["s"], rows.r, rows.s)
    return pa.table([*table.columns, *rows.values], schema=rows_schema(query, output))


def _row_bytes(columns: Sequence[OutputColumn], incoming: Arrivals) -> int:
    """About how many bytes a result row has: the mean of its columns' values."""
    return sum(column.nbytes // max(len(column), 1)
               for column in (incoming.table(c.side).column(c.source) for c in columns))
