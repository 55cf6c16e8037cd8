"""Runs a query over two whole tables: rows into memory, or part by part into a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import CapacityError
from splitjoin.base.memory import available_memory, check_memory, size_text, too_large
from splitjoin.engines.arrival import Arrivals, S
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


#: Bytes of the rows so far from which on an estimate is made.
_LEAST = 1 << 27
#: The share of what is free that they must take.
_SHARE = 16
#: The estimate is of a sample: a result is refused if it needs so many times what is free.
_MARGIN = 2


def compared_pairs(query: Query, incoming: Arrivals) -> Ints:
    """The pairs within the windows up to each arrival: int64 (n,)."""
    n = len(incoming)
    from_s = incoming.stream == S
    lengths = np.empty(n, np.int64)
    for mine, own in ((~from_s, "s"), (from_s, "r")):  # the probes, and the stream that they look into
        stored = ~mine
        extent = query.window(own)
        at = np.flatnonzero(mine)
        before = (np.cumsum(stored) - stored)[at]
        count = before if extent.rows is None else np.minimum(before, extent.rows)
        if extent.length is not None and incoming.ts is not None:
            ts, limit = incoming.ts, min(extent.length, 2**63 - 1)
            oldest = np.where(ts[at] < np.iinfo(np.int64).min + limit, np.iinfo(np.int64).min, ts[at] - limit)
            count = np.minimum(count, before - np.searchsorted(ts[stored], oldest, side="left"))
        lengths[at] = np.maximum(count, 0)
    return np.cumsum(lengths)


class ExpectedSize:
    """Estimates the rows of a result from those of its first arrivals. ``row``: bytes that a row takes."""

    def __init__(self, query: Query, incoming: Arrivals, row: int):
        self._query, self._incoming, self._row = query, incoming, row
        self._compared: Ints | None = None

    def check(self, done: int, rows: int) -> None:
        """Raise `CapacityError` if ``rows`` of the first ``done`` arrivals mean that all rows cannot fit in memory."""
        if rows * self._row < _LEAST or done >= len(self._incoming):
            return
        free = available_memory()
        if rows * self._row < free // _SHARE:  # the estimate takes a while, and there is time to refuse later
            return
        if self._compared is None:
            self._compared = compared_pairs(self._query, self._incoming)
        expected = rows * int(self._compared[-1]) // max(int(self._compared[done - 1]), 1)
        need = (expected - rows) * self._row
        if need > _MARGIN * free:
            raise CapacityError(
                f"the result must fit into memory, but {done / len(self._incoming):.0%} of the input gave {rows:,} "
                f"rows, so about {expected:,} are expected, which take about {size_text(expected * self._row)}, and "
                f"{size_text(free)} are free; write it to a file with to='OUT.parquet', or use a shorter window or a "
                f"tighter condition")
