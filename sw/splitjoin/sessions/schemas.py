"""Schemas of a session: of its streams, their kept columns and the results; and the checks of batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.errors import InputError, SchemaError
from splitjoin.joins.computed import with_computed
from splitjoin.joins.join import result_columns
from splitjoin.joins.sql import Select, refuse_ordering
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema, Side
from splitjoin.lang.types import plain
from splitjoin.rows.aggregates import aggregate_fields
from splitjoin.rows.device_times import is_unordered
from splitjoin.rows.output import OPERATION, ResultNames, Selected, needed_columns, output_schema
from splitjoin.tables.inputs import as_batch, as_table


class SessionSchemas:
    """Schemas of streams and results of ``query`` with ``select``.

    Attributes:
        query: The query that the device runs.
        streams: The Arrow schema of each stream, with the columns that are computed of it.
        given: Without these, as the user gives its tuples.
        kept: The columns of each stream that results, condition and time need.
        columns, gathered: The columns that are gathered for the pairs, and their Arrow schema.
        result: The Arrow schema of the result, which is computed from the gathered columns if ``query`` is a `Select`.
        early: True if rows that wait come early; then their operation is the last of the gathered columns.
    """

    def __init__(self, query: Query | Select, select: Selected | None, *, early: bool = False):
        check_query(query)
        self._projection = query.projection if isinstance(query, Select) else None
        if isinstance(query, Select):
            if select is not None:
                raise SchemaError("the result columns are those of the statement's SELECT list; leave select out")
            refuse_ordering(query.statement, "leave it out, and sort or cut what a session gives")
            query = query.query
        self.query = query
        self.streams: dict[Side, pa.Schema] = {side: _arrow(query, side) for side in SIDES}
        self.given: dict[Side, pa.Schema] = {
            side: pa.schema([self.streams[side].field(name) for name in query.given(side)], self.streams[side].metadata)
            for side in SIDES}
        self.columns = (self._projection.gathered if self._projection is not None else
                        result_columns(query, self.given["r"], self.given["s"], ResultNames.of(select)))
        self.gathered = pa.schema([*output_schema(self.columns), *aggregate_fields(query)])
        self.result = self.gathered if self._projection is None else self._projection.schema
        self.early = early
        if early:
            _check_early(query, self.result)
            self.gathered, self.result = self.gathered.append(OPERATION), self.result.append(OPERATION)
        self.kept: dict[Side, list[str]] = {
            side: needed_columns(query, side, self.columns, self.streams[side].names) for side in SIDES}

    def kept_schema(self, side: Side) -> pa.Schema:
        """The schema of the kept columns of a stream."""
        return pa.schema([self.streams[side].field(name) for name in self.kept[side]])

    def kept_of(self, side: Side, table: pa.Table) -> pa.Table:
        """The kept columns of ``table``, checked tuples of a stream. Raises `InputError` for a value for which DuckDB
        has no result.
        """
        return with_computed(self.query, side, table).select(self.kept[side])

    def batch(self, side: Side, data: Any) -> pa.Table:
        """``data`` as a checked batch of stream ``side``, with the columns that are computed of it. Raises `InputError`
        and `SchemaError`.
        """
        table = with_computed(self.query, side, as_batch(data, side, self.given[side]))
        check_nulls(side, self.streams[side], table)
        self.query.schema(side).check(table)
        return table

    def without_computed(self, side: Side, table: pa.Table) -> pa.Table:
        """``table``, tuples of stream ``side``, as the user gave them."""
        return table.select(self.given[side].names)

    def rows(self, gathered: pa.RecordBatch) -> pa.RecordBatch:
        """The result rows for gathered ones. Raises `InputError` when a value does not fit the type of its column."""
        if self._projection is None:
            return gathered
        if not self.early:
            return self._projection.rows(gathered)
        *names, operation = gathered.schema.names
        rows = self._projection.rows(gathered.select(names))
        return pa.RecordBatch.from_arrays([*rows.columns, gathered.column(operation)], schema=self.result)


def check_nulls(side: Side, schema: pa.Schema, table: pa.Table) -> None:
    """Raise `InputError` for the first NULL of a batch in a column that ``schema`` says to hold none."""
    for field in schema:
        if not field.nullable and (column := plain(table.column(field.name))).null_count:
            row = pc.index(pc.is_null(column), True).as_py()
            raise InputError(f"column {side}.{field.name} must not hold NULL, as the schema says, but row {row} of a "
                             f"batch does; declare the column nullable in the schema, or leave such rows out")


def arrow_schema(side: Side, given: Any) -> Schema:
    """The schema of a stream as a user gives it. Raises `SchemaError` for what has none."""
    if not isinstance(given, pa.Schema):
        if hasattr(given, "__arrow_c_schema__"):
            given = pa.schema(given)
        elif hasattr(given, "__arrow_c_stream__"):
            given = as_table(given, side).schema
        else:
            raise SchemaError(f"the schema of stream {side} must be a pyarrow.Schema, or a table of Arrow, pandas or "
                              f"Polars, not {type(given).__name__}; pyarrow.schema([('x', pyarrow.int64()), …]) "
                              f"makes one")
    return Schema.from_arrow(side, given)


def check_query(query: object) -> None:
    """Raise `InputError` unless ``query`` can be that of a session."""
    if isinstance(query, (Query, Select)):
        return
    got = repr(query) if isinstance(query, str) else type(query).__name__
    raise InputError(f"a session needs a Query, as splitjoin.query(r_schema, s_schema, on=…, window=…) makes it, or a "
                     f"Select, as splitjoin.sql makes it of schemas, not {got}"
                     + ("; splitjoin.join joins whole tables" if hasattr(query, "__arrow_c_stream__") else ""))


def _check_early(query: Query, result: pa.Schema) -> None:
    """Raise `InputError` unless rows of ``query`` may come early."""
    if not is_unordered(query, early=True) or (not query.aggregates and query.kind.how in ("inner", "semi")):
        raise InputError(f"early=True needs aggregates or a join whose rows may change (how='left', 'right', 'full', "
                         f"'anti', 'asof' or 'asof_left'), order 'none', a time column, and windows of RANGE without "
                         f"ROWS, as rows that may be taken back have no place in an order; but the query is of kind "
                         f"'{query.kind}' in order '{query.order}'; leave early out, or change what differs")
    if OPERATION.name in result.names:
        raise SchemaError(f"early=True adds the column {OPERATION.name!r}, but the result has one of this name; "
                          f"rename it in the stream or leave it out with select")


def _arrow(query: Query, side: Side) -> pa.Schema:
    schema = query.schema(side).arrow
    if schema is None:
        raise SchemaError(f"a session needs the Arrow schema of stream {side}, but the query was made without one; "
                          f"make it with splitjoin.query(r_schema, s_schema, on=…, window=…)")
    if not len(schema):
        raise SchemaError(f"stream {side} must have at least one column")
    return schema
