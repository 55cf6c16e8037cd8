"""`sql`: a SELECT over two streams, run over whole tables or made ready for streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..device.api import Device
from ..errors import InputError
from ..files import read_table
from ..join import JoinResult, run
from ..lang.order import Order
from ..lang.query import TimeSpec
from ..lang.schema import SIDES, Schema, Side
from ..lang.types import plain
from ..lang.windows import WindowSpec
from ..tables import as_table
from .inputs import bind_tables, is_schema, merge_tables, read_columns, schema_of
from .parts import Statement, parse
from .select import Select

__all__ = ["sql"]



def sql(text: str, *, window: WindowSpec, time: TimeSpec | None = None, order: str | Order = "total",
        device: str | Device | None = None, tables: Mapping[str, Any] | None = None, **streams: Any) -> Any:
    """Run a SELECT over two streams, or prepare it for a streaming session.

    ``SELECT … FROM trades t JOIN quotes q ON … WHERE …``, over windows. The first table is R, the second S; docs/sql.md
    says what a statement may hold.

    Args:
        text: The statement.
        window: As for `splitjoin.join`; a mapping may use the names of the tables.
        time: As for `splitjoin.join`, likewise.
        order: As for `splitjoin.join`.
        device: As for `splitjoin.join`; "cpu" by default.
        tables: The tables by the names that the text has for them, where those are no Python names, or names of
            arguments such as ``order``.
        streams: The tables by name: ``trades=…, quotes=…``. Each is an Arrow table or a record batch, anything with
            ``__arrow_c_stream__``, a path of a Parquet or CSV file (only the columns needed are read); or a schema.

    Returns:
        Of tables, a `JoinResult`; it is a table for whatever takes Arrow, and ``.table`` is one. Of schemas, a `Select`
        for `splitjoin.open`; its `explain` says what is done where.

    Raises:
        SplitJoinError: With what must hold, what came and what to do; errors in the text show the place.
    """
    if not isinstance(text, str):
        raise InputError(f"a statement must be a text, not {type(text).__name__}")
    statement = parse(text)
    given = bind_tables(statement, merge_tables(tables, streams))
    schemas = [is_schema(data) for data in given]
    if all(schemas):
        if device is not None:
            raise InputError("a device runs rows, but schemas were given; give the device to splitjoin.open")
        r, s = (schema_of(side, data) for side, data in zip(SIDES, given, strict=True))
        return Select.make(statement, r, s, window=window, time=time, order=order)
    if any(schemas):
        name = statement.tables[schemas.index(True)].name
        raise InputError(f"the tables must be given as rows both, or as schemas both, but {name!r} is a schema")
    left = _opened(given[0], statement.tables[0].name)
    # One table under two names is read once, as some can be read only once.
    right = left if given[1] is given[0] else _opened(given[1], statement.tables[1].name)
    return _run(statement, {"r": left, "s": right}, device or "cpu", window=window, time=time, order=order)


def _opened(data: Any, name: str) -> Any:
    """``data`` as a table; for Parquet files, whose columns can be read separately, the path."""
    if not isinstance(data, (str, Path)):
        return as_table(data, name)
    return data if Path(data).suffix.lower() == ".parquet" else read_table(data)


def _run(statement: Statement, tables: Mapping[Side, Any], device: str | Device, **how: Any) -> JoinResult:
    schemas: dict[Side, Schema] = {side: schema_of(side, data) for side, data in tables.items()}
    needed = Select.make(statement, schemas["r"], schemas["s"], **how).needed
    rows: dict[Side, pa.Table] = {side: read_columns(data, needed(side)) for side, data in tables.items()}
    # The rows show which columns contain NULL.
    measured = {side: _measured(schemas[side], rows[side]) for side in rows}
    for side, schema in measured.items():
        schema.check(rows[side])
    select = Select.make(statement, measured["r"], measured["s"], **how)
    found = run(select.query, rows["r"], rows["s"], select.projection.gathered, device)
    return replace(found, table=select.projection.rows(found.table))


def _measured(schema: Schema, rows: pa.Table) -> Schema:
    """``schema`` with the nullability of ``rows``, which has some of its columns."""
    nulls = {name: plain(rows.column(name)).null_count > 0 for name in rows.column_names}
    return Schema(schema.side, [replace(c, nullable=nulls.get(c.name, c.nullable)) for c in schema], schema.arrow)
