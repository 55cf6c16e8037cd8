"""`sql`: a SELECT over two streams, run over whole tables or made ready for streams."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

import pyarrow as pa

from splitjoin.base.errors import InputError, WindowError
from splitjoin.engines.device import PAIR, Device
from splitjoin.engines.registry import DeviceOption, device as find_device, merged_options
from splitjoin.lang.layouts import take
from splitjoin.lang.order import Order
from splitjoin.lang.python.aggregate import AggregateClass
from splitjoin.lang.query import TimeSpec
from splitjoin.lang.schema import SIDES, Schema, Side
from splitjoin.lang.windows import WindowSpec
from splitjoin.rows.aggregates import identical_rows
from splitjoin.rows.result import JoinResult
from splitjoin.tables import TableFiles, TableWriter, check_columns, check_output
from splitjoin.tables.inputs import ArrowSchema, Rows, table_or_files

from ..execution import Output, run
from ..join import sorted_tables, sorts, whole_window
from .inputs import bind_tables, check_named, check_options, is_schema, read_columns, schema_of
from .ordering import sorted_rows
from .parts import Statement, parse
from .select import Select

__all__ = ["sql"]


@overload
def sql(text: str, *, window: WindowSpec | None = None, time: TimeSpec | None = None, order: str | Order = "total",
        device: str | Device | None = None, device_options: Mapping[str, Any] | None = None,
        tables: Mapping[str, Rows] | None = None,
        aggregates: Mapping[str, AggregateClass] | None = None, sort: bool = False,
        to: str | os.PathLike[str] | None = None, **streams: Rows | DeviceOption) -> JoinResult: ...


@overload
def sql(text: str, *, window: WindowSpec, time: TimeSpec | None = None, order: str | Order = "total",
        device: None = None, device_options: None = None, tables: Mapping[str, ArrowSchema] | None = None,
        aggregates: Mapping[str, AggregateClass] | None = None, sort: Literal[False] = False, to: None = None,
        **streams: ArrowSchema) -> Select: ...


def sql(text: str, *unnamed: Any, window: WindowSpec | None = None, time: TimeSpec | None = None,
        order: str | Order = "total", device: str | Device | None = None,
        device_options: Mapping[str, Any] | None = None, tables: Mapping[str, Any] | None = None,
        aggregates: Mapping[str, AggregateClass] | None = None, sort: bool = False,
        to: str | os.PathLike[str] | None = None, **streams: Any) -> Any:
    """Run a SELECT over two streams, or prepare it for a streaming session.

    ``SELECT … FROM trades t JOIN quotes q ON … WHERE …``, over windows. The first table is R, the second S; docs/sql.md
    says what a statement may hold.

    Args:
        text: The statement.
        unnamed: No table: each is given by its name.
        window: As for `splitjoin.join`; a mapping may use the names of the tables. Streams that do not end need one.
        time: As for `splitjoin.join`, likewise.
        order: As for `splitjoin.join`.
        device: As for `splitjoin.join`; "cpu" by default.
        device_options: As for `splitjoin.join`.
        tables: The tables by the names that the text has for them, where those are no Python names, or names of
            arguments such as ``order``.
        aggregates: Classes under `splitjoin.aggregate` by the names that the text calls them by.
        sort: As for `splitjoin.join`.
        to: As for `splitjoin.join`.
        streams: The tables by name: ``trades=…, quotes=…``. Each is what `splitjoin.join` takes (of Parquet and Arrow
            files, only the columns needed are read); or a schema. Other names are options of the device, as in
            ``device="sim", cores=8``.

    Returns:
        A `JoinResult` for tables; for schemas a `Select`, which `splitjoin.open` runs and whose `explain` tells how.

    Raises:
        SplitJoinError: With what must hold, what came and what to do; errors in the text show the place.
    """
    if not isinstance(text, str):
        raise InputError(f"a statement must be a text, not {type(text).__name__}")
    sort = sorts(sort)
    statement = parse(text)
    check_named(statement, unnamed)
    *given, options = bind_tables(statement, tables, streams)
    schemas = [is_schema(data) for data in given]
    if all(schemas):
        if device is None:
            check_options(statement, options, "cpu", sql)
        if device is not None or device_options or options:
            raise InputError("a device runs rows, but schemas were given; give the device to splitjoin.open")
        if sort or to is not None:
            raise InputError(f"{'sort' if sort else 'to'} is for rows, but schemas were given; leave it out")
        if window is None:
            raise WindowError("streams that do not end need a window, such as window='RANGE 15 MINUTES'")
        r, s = (schema_of(side, data) for side, data in zip(SIDES, given, strict=True))
        return Select.make(statement, r, s, window=window, time=time, order=order, aggregates=aggregates)
    if any(schemas):
        name = statement.tables[schemas.index(True)].name
        raise InputError(f"the tables must be given as rows both, or as schemas both, but {name!r} is a schema")
    left = _opened(given[0], statement.tables[0].name)
    # One table under two names is read once, as some can be read only once.
    right = left if given[1] is given[0] else _opened(given[1], statement.tables[1].name)
    device = "cpu" if device is None else device
    check_options(statement, options, device, sql)
    chosen = find_device(device, **merged_options(device_options, options, device, sql))
    path = None if to is None else check_output(to)
    return _run(statement, {"r": left, "s": right}, chosen, sort, path, window=window, time=time, order=order,
                aggregates=aggregates)


def _opened(data: Any, name: str) -> pa.Table | TableFiles:
    """``data`` as a table; files whose columns can be read separately as they are."""
    found = table_or_files(data, name)
    return found if not isinstance(found, TableFiles) or found.columnar else found.read()


def _run(statement: Statement, tables: Mapping[Side, Any], device: Device, sort: bool,
         to: Path | None, *, window: WindowSpec | None, **how: Any) -> JoinResult:
    def made(schemas: Mapping[Side, Schema], window: WindowSpec) -> Select:
        select = Select.make(statement, schemas["r"], schemas["s"], window=window, **how)
        if to is not None:  # before any work
            check_columns(select.schema, to)
        return select

    rows, declared = dict(tables), {side: schema_of(side, data) for side, data in tables.items()}
    files = any(isinstance(data, TableFiles) for data in tables.values())
    if files:  # of which the columns that are needed are read, and no others
        first = made(declared, "ROWS 1" if window is None else window)
        rows = {side: read_columns(data, first.needed(side)) for side, data in tables.items()}
    # The rows show which columns contain NULL.
    measured = {side: _measured(declared[side], rows[side]) for side in rows}
    select = made(measured, whole_window(rows["r"], rows["s"]) if window is None else window)
    if not files:
        rows = {side: read_columns(data, select.needed(side)) for side, data in tables.items()}
    same = statement.grouped and identical_rows(rows["r"]) is not None
    if same:  # in the columns that are needed; perhaps not in others
        rows["r"] = read_columns(tables["r"], declared["r"].names)
    if sort:
        times = select.query.time
        rows["r"], rows["s"] = sorted_tables(rows["r"], rows["s"], None if times is None else (times.r, times.s))
    for side, schema in measured.items():
        schema.check(rows[side])
    groups = identical_rows(rows["r"]) if same else None
    output = Output(select.projection.gathered, select.projection.rows, select.schema)
    if statement.ordering.is_empty:
        return run(select.query, rows["r"], rows["s"], output, device, to, groups)
    return _ordered(run(select.query, rows["r"], rows["s"], output, device, None, groups), select, to)


def _ordered(result: JoinResult, select: Select, to: Path | None) -> JoinResult:
    """``result`` after ORDER BY, LIMIT and OFFSET; with ``to``, in this file."""
    chosen = sorted_rows(result.table, select.sort_keys, select.statement)
    rows = pa.array(chosen)
    table = pa.table([take(column, rows) for column in result.table.columns], schema=result.schema)
    told: dict[str, Any] = {"counters": result.counters, "plan": result.plan, "latencies": result.latencies,
                            "region_counters": result.region_counters}
    if to is None:
        return JoinResult(table, lambda: result.items[result.items["kind"] == PAIR][chosen], **told)
    with TableWriter(to, table.schema) as writer:
        writer.write(table)
    return JoinResult(writer.stored(), None, **told)


def _measured(schema: Schema, rows: pa.Table) -> Schema:
    """``schema`` with the nullability and the categories of ``rows``, which has some of its columns."""
    found = {c.name: c for c in Schema.from_table(schema.side, rows)}
    return Schema(schema.side, [replace(c, nullable=found[c.name].nullable, type=found[c.name].type)
                                if c.name in found else c for c in schema], schema.arrow)
