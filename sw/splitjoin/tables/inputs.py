"""Rows as users give them, in memory or in files, as Arrow tables: the one rule for what joins take."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, Union

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError, SchemaError, first_line
from splitjoin.base.ipc import with_copied_unions
from splitjoin.lang.schema import Side, suggest

from . import TableFiles
from .peers import table_of
from .stated import StatedColumns, nulls_of, with_nulls
from .values import column_of, typed


class ArrowStream(Protocol):
    """Whatever offers its rows as Arrow: tables and readers of PyArrow, DataFrames of pandas and Polars, relations of
    DuckDB, a `JoinResult`.
    """

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A PyCapsule with an Arrow C stream (the Arrow PyCapsule interface)."""


class ArrowSchema(Protocol):
    """Whatever offers a schema as Arrow, without rows: a `pyarrow.Schema`."""

    def __arrow_c_schema__(self) -> Any:
        """A PyCapsule with an Arrow C schema (the Arrow PyCapsule interface)."""


class LazyRows(Protocol):
    """Rows that are computed when they are asked for: a LazyFrame of Polars."""

    def collect(self) -> Any:
        """The rows, as something that offers Arrow."""


#: A table as users give it: anything that offers Arrow, a LazyFrame, columns by name, or the path of a Parquet, CSV or
#: Arrow file, a pattern such as "day-*.parquet", or a list of those.
Rows = Union[ArrowStream, LazyRows, Mapping[str, Any], str, "os.PathLike[str]",
             Sequence[Union[str, "os.PathLike[str]"]]]


def table_or_files(data: Any, name: str, *, index: bool = False) -> pa.Table | TableFiles:
    """``data``, of the stream or table ``name``, as an Arrow table; or the files that hold it, not read yet. ``index``:
    True if the index of a DataFrame of pandas is its column ``index``, unless it has another one of this name.

    Raises `InputError` unless it is of `Rows`.
    """
    found = _given(data, name, index=index)
    return found if isinstance(found, TableFiles) else with_copied_unions(found)


def _given(data: Any, name: str, *, index: bool = False) -> pa.Table | TableFiles:
    """As `table_or_files`; also for small batches of streams, whose columns are looked at once."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, (str, os.PathLike)):
        return TableFiles.find(data)
    if isinstance(data, (list, tuple)) and data and all(isinstance(one, (str, os.PathLike)) for one in data):
        return TableFiles.find(data)
    try:
        found = _columns(data, name) if isinstance(data, Mapping) else table_of(data, name, index=index)
    except InputError:
        raise
    except Exception as error:  # whatever the object itself raises
        raise InputError(f"stream {name} must be a table, but {type(data).__name__} does not give one: "
                         f"{first_line(error)}{_remedy(data)}") from error
    if found is not None:
        return found
    raise InputError(f"stream {name} must be an Arrow table, a DataFrame, a dict of columns, the path of a file, or "
                     f"offer __arrow_c_stream__, not {type(data).__name__}{_remedy(data)}")


def as_stated(data: pa.Table | TableFiles, stated: StatedColumns) -> pa.Table | TableFiles:
    """``data`` with its columns as the user states them. Raises `InputError` and `SchemaError`, of files when these are
    read.
    """
    if isinstance(data, TableFiles):
        return replace(data, stated=stated)
    stated.check_types(data.schema, csv=False)
    return stated.table(data)


def _columns(data: Mapping[str, Any], name: str) -> pa.Table:
    """The columns of a dict as a table."""
    made = dict[str, Any]()
    for column, values in data.items():
        frame = values.to_frame() if type(values).__module__.startswith("polars.") else None
        part = None if frame is None else table_of(frame, name)
        made[column] = column_of(column, values) if part is None else part.column(0)
    return pa.table(made)


def _remedy(data: Any) -> str:
    """What makes a table of ``data``, which is none, behind a semicolon; nothing where that is not known."""
    kind = type(data).__name__
    if isinstance(data, (list, tuple)) and data:
        if isinstance(data[0], Mapping):
            return "; pyarrow.Table.from_pylist makes a table of a list of rows"
        if hasattr(data[0], "__arrow_c_stream__"):
            return ("; splitjoin.sql joins several tables, as in FROM r JOIN s ON … JOIN t ON …, and after import "
                    "splitjoin.frames a DataFrame of pandas has frame.splitjoin.merge_asof([a, b], on='ts'), one of "
                    "Polars frame.splitjoin.join_asof([a, b], on='ts')")
    if isinstance(data, np.ndarray):
        fields = data.dtype.names
        return ("; give {name: a[name] for name in a.dtype.names}" if fields
                else "; give its columns names, such as {'x': a}" if data.ndim == 1
                else "; give its columns names, such as {'x': a[:, 0], 'y': a[:, 1]}")
    if kind == "Series":
        return "; to_frame() makes a table of one column of it"
    if isinstance(data, Iterator):
        return ("; pyarrow.RecordBatchReader.from_batches(schema, batches) makes a table of an iterator of record "
                "batches")
    if kind == "DuckDBPyConnection":
        return "; give one of its relations, such as connection.table('name')"
    if type(data).__module__.startswith("pandas") and data.columns.has_duplicates:
        return f"; rename one of the columns {data.columns[data.columns.duplicated()][0]!r}"
    return ""


def as_table(data: Any, name: str) -> pa.Table:
    """``data``, of the stream or table ``name``, as an Arrow table. Raises `InputError` unless it is of `Rows`."""
    found = _given(data, name)
    return found.read() if isinstance(found, TableFiles) else found


def as_batch(data: Any, side: Side, schema: pa.Schema) -> pa.Table:
    """``data`` as a table with the columns of ``schema``, in its order.

    Columns may come in any order; declared nullability and metadata do not matter. Raises `InputError` unless ``data``
    offers Arrow, and `SchemaError` when names or types of columns differ. Lists of a dict and the cells of a CSV file
    have no types, so they get those of ``schema``. The values that stand for NULL by ``schema`` become NULL.
    """
    if isinstance(data, Mapping):
        data = {name: typed(f"{side}.{name}", values, schema.field(name).type)
                if isinstance(values, (list, tuple, range)) and name in schema.names else values
                for name, values in data.items()}
    found = table_or_files(data, side)
    if isinstance(found, TableFiles):
        types = {field.name: field.type for field in schema} if not found.columnar else {}
        found = replace(found, stated=StatedColumns(types, {}, None, f"{side}.")).read()
    table: pa.Table = found
    if table.schema.names != schema.names:
        names = table.schema.names
        for name in names:
            if name not in schema.names:
                raise SchemaError(f"stream {side} has no column {name!r}{suggest(name, schema.names)}; a batch must "
                                  f"have its columns {', '.join(schema.names)}")
        missing = [name for name in schema.names if name not in names]
        if missing or len(names) != len(schema.names):
            twice = sorted({n for n in names if names.count(n) > 1})
            raise SchemaError(f"a batch of stream {side} must have its columns {', '.join(schema.names)}, but "
                              + (f"lacks {', '.join(missing)}" if missing else f"has {', '.join(twice)} twice"))
        table = table.select(schema.names)
    for have, want in zip(table.schema, schema, strict=True):
        if have.type != want.type:
            raise SchemaError(f"column {side}.{want.name} must be {want.type}, but a batch has {have.type}; cast it "
                              f"before it is pushed")
    if nulls := nulls_of(schema):
        table = with_nulls(table, nulls, f"{side}.")
    if table.schema.equals(schema):
        return table
    # Tables of one stream are concatenated, which fields that differ in nullability alone would prevent.
    fields = [have if not want.nullable and column.null_count else want
              for have, want, column in zip(table.schema, schema, table.columns, strict=True)]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, table.schema.metadata))
