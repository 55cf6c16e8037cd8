"""Runs a query over two whole tables: rows into memory, or part by part into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.memory import check_memory, too_large
from splitjoin.base.progress import progress_bar
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.cpu.device import INTERVAL_ENGINES
from splitjoin.engines.device import ITEM, PAIR, STAR, DecidingPairs, Device, Items, Session, joined_items, pairs
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.layouts import take
from splitjoin.lang.query import Query
from splitjoin.rows.aggregates import (
    AggregateOperator,
    Decided,
    FoldedRows,
    Gather,
    SortedFolds,
    StateOverflow,
    aggregate_fields,
    decide_bases,
    folded_rows,
    joined_bases,
    merged_bases,
    reference_aggregates,
    sorted_folds,
    states_circuit,
)
from splitjoin.rows.interval_joins.operators import interval_engine
from splitjoin.rows.kinds import KindOperator, decide, reference_rows
from splitjoin.rows.output import OutputColumn, gather, indices, output_schema
from splitjoin.rows.result import JoinResult
from splitjoin.tables import TableWriter

from .expected_size import ExpectedSize

if TYPE_CHECKING:
    from splitjoin.circuit.driver import CircuitDevice
    from splitjoin.circuit.query_circuit import QueryCircuit
    from splitjoin.rows.interval_joins.choice import IntervalChoice

__all__ = ["Output", "run"]

#: The most arrivals that are pushed at once: a device has no more of them in memory as it encodes them.
_SLICE = 1 << 16
#: Result rows that are gathered and written at once; and the arrivals of the first slice.
_WRITTEN, _FIRST = 1 << 21, 1 << 10


#: For each tuple of R the first one that is identical; None where each is a base of its own.
Groups = npt.NDArray[np.int64] | None


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
    choice = interval_engine(query, device)
    if groups is None and choice is not None:
        return _run_without_pairs(query, incoming, output, choice, to)
    if groups is not None and isinstance(device, CpuDevice) and device.engine in INTERVAL_ENGINES:
        device = replace(device, engine="auto")  # states cannot be put together, but pairs can
    elif (circuit := states_circuit(device, query)) is not None:
        circuits = cast("CircuitDevice", device)
        if groups is None:
            with suppress(StateOverflow):  # the pairs tell, and a circuit that was built to fold gives none
                return _run_folding(query, incoming, output, circuits, circuit, to)
        device = device if circuits.masked else CpuDevice()  # which has no cores to mask
    if groups is None and query.aggregates and (folds := sorted_folds(query, incoming, device)) is not None:
        return _run_without_others(query, incoming, output, folds.items, folds, to, folds.values)
    if (found := device.deciding_pairs(query, incoming)) is not None:
        return _run_without_others(query, incoming, output, decide(query, incoming, found.items), found, to)
    if to is not None:
        return _stored(query, incoming, output, device, to, groups)
    with device.open_deciding(query) as session:
        items = _items(query, incoming, output, session)
        told = _told(session)
    plain, folded = isinstance(device, GoldenDevice), list[pa.ChunkedArray]()
    if query.aggregates:
        decided = None if plain else _merged(query, decide_bases(query, incoming, items), groups)
        items, folded = (reference_aggregates(query, incoming, items, groups) if decided is None
                         else (decided.items, _folder(query, incoming).arrays(decided)))
    elif not query.kind.is_inner:
        items = (reference_rows if plain else decide)(query, incoming, items)
    rows = len(items) - int(np.count_nonzero(items["kind"] == STAR))
    try:
        check_memory(rows, rows * _row_bytes(output.columns, incoming))
        table = output.finish(_gathered(query, incoming, output, items, folded))
    except MemoryError as error:
        raise too_large(rows) from error
    return JoinResult(table, items, **told)


def _run_folding(query: Query, incoming: Arrivals, output: Output, device: CircuitDevice, circuit: QueryCircuit,
                 to: str | Path | None) -> JoinResult:
    """As `run`, on the ``circuit`` of ``device`` that folds the aggregates itself."""
    with device.start(circuit) as session:
        items = _items(query, incoming, output, session)
        items, folded = folded_rows(query, incoming, items, session, _gather(incoming))
        told = _told(session)
    table = output.finish(_gathered(query, incoming, output, items, folded))
    if to is None:
        return JoinResult(table, items, **told)
    with TableWriter(to, table.schema) as writer:
        writer.write(table)
    return JoinResult(writer.stored(), None, **told)


def _run_without_others(query: Query, incoming: Arrivals, output: Output, items: Items,
                        found: DecidingPairs | SortedFolds, to: str | Path | None,
                        values: Sequence[pa.ChunkedArray] = ()) -> JoinResult:
    """As `run`, from the ``items`` of all rows, which were ``found`` without all pairs, and their aggregates."""
    rows = items[items["kind"] != STAR]
    told: dict[str, Any] = {"plan": found.plan, "counters": found.counters}
    try:
        if to is None:
            check_memory(len(rows), len(rows) * _row_bytes(output.columns, incoming))
            return JoinResult(output.finish(_gathered(query, incoming, output, rows, values)), items, **told)
        with TableWriter(to, _schema(query, output)) as writer:
            for at in range(0, len(rows), _WRITTEN):
                folded = [v.slice(at, _WRITTEN) for v in values]
                writer.write(output.finish(_gathered(query, incoming, output, rows[at:at + _WRITTEN], folded)))
        return JoinResult(writer.stored(), None, **told)
    except MemoryError as error:
        raise too_large(len(rows)) from error


def _told(session: Session) -> dict[str, Any]:
    """Facts about a session that has flushed, as arguments of `JoinResult`."""
    return {"counters": session.counters(), "plan": session.plan(), "latencies": session.latencies(),
            "region_counters": session.region_counters()}


def _items(query: Query, incoming: Arrivals, output: Output, session: Session) -> Items:
    """All items of the query's pairs. Raises `CapacityError` once it is clear that the rows will not fit."""
    found: list[Items] = []
    matches = 0
    expected = ExpectedSize(query, incoming, ITEM.itemsize + _row_bytes(output.columns, incoming))
    with progress_bar(len(incoming), "join", "rows") as bar:
        rest: Arrivals | None = incoming
        while rest is not None:
            part, rest = rest.split(_SLICE)
            session.push(part)
            found.append(session.poll())
            matches += int(np.count_nonzero(found[-1]["kind"] == PAIR))
            bar.update(len(part))
            expected.check(len(incoming) - (0 if rest is None else len(rest)), matches)
    found = [part for part in (*found, session.flush()) if len(part)]
    if len(found) == 1:
        return found[0]
    try:
        check_memory(matches, sum(part.nbytes for part in found))
        return joined_items(found)
    except MemoryError as error:
        raise too_large(matches) from error


def _run_without_pairs(query: Query, incoming: Arrivals, output: Output, choice: IntervalChoice,
                       to: str | Path | None) -> JoinResult:
    """As `run`, with an engine that folds aggregates itself."""
    from splitjoin.rows.interval_joins.operator import fold_slices

    told: dict[str, Any] = {"plan": str(choice), "counters": {}}

    def tables(items: list[Items]) -> Iterator[pa.Table]:
        with progress_bar(len(incoming), "join", "rows") as bar:
            for found in fold_slices(query, choice, incoming, _gather(incoming)):
                items.append(found.items)
                told["counters"] = found.counters
                bar.update(found.arrivals)
                if len(found.items):
                    yield output.finish(_gathered(query, incoming, output, found.items, found.values))

    items: list[Items] = [np.empty(0, ITEM)]
    if to is not None:
        with TableWriter(to, _schema(query, output)) as writer:
            for rows in tables(items):
                writer.write(rows)
                items.clear()
        return JoinResult(writer.stored(), None, **told)
    try:
        parts = list(tables(items))
        none = _gathered(query, incoming, output, items[0], [pa.array([], f.type) for f in aggregate_fields(query)])
        return JoinResult(pa.concat_tables(parts) if parts else output.finish(none), np.concatenate(items), **told)
    except MemoryError as error:
        raise too_large(sum(map(len, items))) from error


def _merged(query: Query, decided: Decided, groups: Groups) -> Decided:
    """``decided`` with identical base tuples as one, where ``groups`` tells which are."""
    return decided if groups is None else merged_bases(decided, groups, lacking=not query.kind.is_inner)


def _stored(query: Query, incoming: Arrivals, output: Output, device: Device, to: str | Path,
            groups: Groups) -> JoinResult:
    """The result with its rows in the file ``to``."""
    with TableWriter(to, _schema(query, output)) as writer, device.open_deciding(query) as session:
        for rows in _parts(query, incoming, output, device, session, groups):
            writer.write(rows)
        told = _told(session)
    return JoinResult(writer.stored(), None, **told)


def _parts(query: Query, incoming: Arrivals, output: Output, device: Device, session: Session,
           groups: Groups) -> Iterator[pa.Table]:
    """The result rows, a part after the other."""
    folder = _folder(query, incoming) if query.aggregates else None
    decided = _decided(query, incoming, device, session)
    if groups is not None:  # identical tuples may be far apart
        decided = iter([_merged(query, joined_bases(cast("list[Decided]", list(decided))), groups)])
    for found in decided:
        if isinstance(found, Decided):
            assert folder is not None
            parts = [found.part(at, at + _WRITTEN) for at in range(0, len(found.bases), _WRITTEN)]
            tables = (_gathered(query, incoming, output, part.items, folder.arrays(part)) for part in parts)
        else:
            tables = (_gathered(query, incoming, output, found[at:at + _WRITTEN], [])
                      for at in range(0, len(found), _WRITTEN))
        yield from (output.finish(table) for table in tables if len(table))


def _decided(query: Query, incoming: Arrivals, device: Device, session: Session) -> Iterator[Items | Decided]:
    """The rows of the query, of whatever kind, as the items of its pairs decide them."""
    if query.is_pairs:
        yield from (items for _, items in _slices(incoming, device, session))
        return
    operator = AggregateOperator(query) if query.aggregates else KindOperator(query)
    held, settled = np.empty(0, ITEM), [0, 0]
    for part, items in _slices(incoming, device, session):
        if part is not None:
            operator.arrive(part)
        # In total order a star ends the items of each probe: those behind the last one wait for the rest.
        held = np.concatenate([held, items])
        stars = np.flatnonzero(held["kind"] == STAR)
        if len(stars):
            known, held = held[:stars[-1] + 1], held[stars[-1] + 1:]
            for side, name in enumerate(("r", "s")):
                mine = known[(known["kind"] == STAR) & (known["side"] == side)]
                settled[side] = int(mine[name][-1]) + 1 if len(mine) else settled[side]
            yield operator.take(known, (settled[0], settled[1]))
    yield operator.finish(held)


def _slices(incoming: Arrivals, device: Device, session: Session) -> Iterator[tuple[Arrivals | None, Items]]:
    """Push all arrivals, and give each slice of them with the items that have come; at last None with the rest.

    The slices of a device whose results are there at once have so many arrivals that about as many rows come as are
    written at once.
    """
    size, rest = _FIRST, incoming if len(incoming) else None
    with progress_bar(len(incoming), "join", "rows") as bar:
        while rest is not None:
            part, rest = rest.split(size)
            session.push(part)
            items = session.poll()
            bar.update(len(part))
            yield part, items
            wanted = len(part) * _WRITTEN // max(len(items), 1) if device.immediate else _SLICE
            size = max(1, min(2 * size, wanted, _SLICE))
    yield None, session.flush()


def _schema(query: Query, output: Output) -> pa.Schema:
    """The schema of the result."""
    return output.schema or pa.schema([*output_schema(output.columns), *aggregate_fields(query)])


def _gathered(query: Query, incoming: Arrivals, output: Output, items: Items,
              folded: Sequence[pa.ChunkedArray]) -> pa.Table:
    """The gathered columns of ``items``, and the aggregates ``folded`` behind them."""
    table = gather(output.columns, incoming.r, incoming.s, *pairs(items))
    if not query.aggregates:
        return table
    return pa.table([*table.columns, *folded], schema=pa.schema([*table.schema, *aggregate_fields(query)]))


def _folder(query: Query, incoming: Arrivals) -> FoldedRows:
    """Computes the aggregates of decided rows."""
    return FoldedRows(query, _gather(incoming))


def _gather(incoming: Arrivals) -> Gather:
    """Gets columns by row id."""
    return lambda side, names, rows: [take(incoming.table(side).column(name), indices(rows)) for name in names]


def _row_bytes(columns: Sequence[OutputColumn], incoming: Arrivals) -> int:
    """About how many bytes a result row has: the mean of its columns' values."""
    return sum(column.nbytes // max(len(column), 1)
               for column in (incoming.table(c.side).column(c.source) for c in columns))
