"""Rows as users give them, in memory or in files, as Arrow tables: the one rule for what joins take."""

from __future__ import annotations

import importlib
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Protocol, Union

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError, SchemaError, first_line
from splitjoin.lang.schema import Side, suggest

from . import TableFiles

__all__ = ["ArrowSchema", "ArrowStream", "Rows", "as_batch", "as_table", "table_or_files"]


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


#: Units of NumPy's times that become days; all others that Arrow lacks become seconds.
_DAYS = ("Y", "M", "W", "D")

#: A table as users give it: anything that offers Arrow, a LazyFrame, columns by name, or the path of a Parquet, CSV or
#: Arrow file, a pattern such as "day-*.parquet", or a list of those.
Rows = Union[ArrowStream, LazyRows, Mapping[str, Any], str, "os.PathLike[str]",
             Sequence[Union[str, "os.PathLike[str]"]]]


def table_or_files(data: Any, name: str, *, index: bool = False) -> pa.Table | TableFiles:
    """``data``, of the stream or table ``name``, as an Arrow table; or the files that hold it, not read yet. ``index``:
    True if the index of a DataFrame of pandas is its column ``index``, unless it has another one of this name.

    Raises `InputError` unless it is of `Rows`.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, (str, os.PathLike)):
        return TableFiles.find(data)
    if isinstance(data, (list, tuple)) and data and all(isinstance(one, (str, os.PathLike)) for one in data):
        return TableFiles.find(data)
    made = data
    if index and type(data).__module__.partition(".")[0] == "pandas" and "index" not in getattr(data, "columns", ()):
        made = data.rename_axis("index")
    try:
        if type(data).__name__ == "LazyFrame":
            made = _with_decimals(data.collect())
        elif type(data).__module__ == "pyarrow._dataset":  # which imports pandas, so it is not imported here
            return data.to_table()
        elif isinstance(data, Mapping):
            return pa.table({column: _column(column, values) for column, values in data.items()})
        elif type(data).__module__ == "polars.dataframe.frame":
            made = _with_decimals(data)
        if hasattr(made, "__arrow_c_stream__") or hasattr(made, "__arrow_c_array__"):
            for column, type_ in _polars_types(made).items():
                if type_ == "Object":  # of which Polars gives addresses
                    raise InputError(f"stream {name} must have columns of types that Arrow has, but {column!r} holds "
                                     f"Python objects; drop it, or convert its values")
            table = pa.table(made)
            if type(made).__module__.partition(".")[0] == "duckdb":
                return _with_enums(table, made)
            if type(made).__module__.partition(".")[0] != "pandas":  # all of it since pandas 3
                return table
            if any(isinstance(index, dict) and index["name"] is not None for index in _pandas_index(table)):
                table = pa.Table.from_pandas(made, preserve_index=True)  # a range is in the metadata alone
            return _with_named_index(table, name)
    except InputError:
        raise
    except Exception as error:  # whatever the object itself raises
        raise InputError(f"stream {name} must be a table, but {type(data).__name__} does not give one: "
                         f"{first_line(error)}{_remedy(data)}") from error
    raise InputError(f"stream {name} must be an Arrow table, a DataFrame, a dict of columns, the path of a file, or "
                     f"offer __arrow_c_stream__, not {type(data).__name__}{_remedy(data)}")


def _with_decimals(frame: Any) -> Any:
    """``frame``, of Polars, with decimals where its columns hold integers of 128 bits, which Arrow does not have: of 38
    digits, or where these do not hold the values, of 39, which no condition takes.
    """
    wide = [name for name, type_ in _polars_types(frame).items() if type_ in ("Int128", "UInt128")]
    if not wide:
        return frame
    decimal = importlib.import_module("polars").Decimal(38, 0)
    fits = [name for name in wide if frame[name].cast(decimal, strict=False).null_count() == frame[name].null_count()]
    table = pa.table(frame.drop([name for name in wide if name not in fits]).cast(dict.fromkeys(fits, decimal)))
    for at, name in enumerate(frame.columns):
        if name in wide and name not in fits:
            table = table.add_column(at, name, pa.array(frame[name].to_list(), pa.decimal256(39, 0)))
    return table


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
    found = table_or_files(data, name)
    return found.read() if isinstance(found, TableFiles) else found


def _polars_types(frame: Any) -> dict[str, str]:
    """The types of the columns of ``frame``, by their names, if it is a DataFrame of Polars."""
    is_one = type(frame).__module__.startswith("polars.dataframe")
    return {column: str(type_) for column, type_ in frame.schema.items()} if is_one else {}


def _pandas_index(table: pa.Table) -> list[Any]:
    """The levels of the index of the DataFrame of pandas that ``table`` was made of: the name of a column of ``table``,
    or of a range a dict.
    """
    return list((table.schema.pandas_metadata or {}).get("index_columns", []))


def _with_enums(table: pa.Table, relation: Any) -> pa.Table:
    """``table``, made of a ``relation`` of DuckDB, with ordered dictionaries where DuckDB has enums: it compares these
    by their order, which Arrow is not told.

    Raises `InputError` for times of day with a zone, of which Arrow is not told the zone.
    """
    for at, type_ in enumerate(getattr(relation, "types", ())):
        field = table.schema.field(at)
        if getattr(type_, "id", "") == "time with time zone":
            raise InputError(f"a table must have columns of types that Arrow has, but {field.name!r} is a time of day "
                             f"with a time zone; cast it to TIME in DuckDB")
        if getattr(type_, "id", "") == "enum" and pa.types.is_dictionary(field.type):
            ordered = pa.dictionary(field.type.index_type, field.type.value_type, ordered=True)
            chunks = [pa.DictionaryArray.from_arrays(c.indices, c.dictionary, ordered=True)
                      for c in table.column(at).chunks]
            table = table.set_column(at, field.with_type(ordered), pa.chunked_array(chunks, ordered))
    return table


def _with_named_index(table: pa.Table, name: str) -> pa.Table:
    """``table``, made of a DataFrame of pandas, without levels of the index that have no name, such as the row labels
    that a filter leaves: pandas' own joins drop them, too.

    Raises `InputError` for a level with the name of a column, which Arrow takes as one without a name.
    """
    columns = [index for index in _pandas_index(table) if isinstance(index, str)]
    unnamed = [column for column in columns if re.fullmatch(r"__index_level_\d+__", column)]
    for column in (table.schema.pandas_metadata or {}).get("columns", []):
        if column["field_name"] in unnamed and column["name"] is not None:
            raise InputError(f"a named index is a column, but the DataFrame of stream {name} has both an index and a "
                             f"column with the name {column['name']!r}; rename one of them, or drop the index with "
                             f"reset_index(drop=True)")
    return table.drop_columns(unnamed)


def _typed(name: str, values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """``values`` as a column of this type. Raises `SchemaError` if one would change; floats are rounded."""
    try:
        made = pa.array(values, type_)
        if not isinstance(type_, pa.BaseExtensionType):
            for one, is_now in zip(values, made.to_pylist(), strict=True):  # Arrow makes 1 of 1.5, a date of a datetime
                if not _is_same(one, is_now):
                    raise ValueError(f"{one!r} is none")
        return made
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise SchemaError(f"the column {name} must hold values of the type {type_}, but: {first_line(error)}") from None


def _is_same(value: Any, made: Any) -> bool:
    """True if ``made``, a value of Arrow, is ``value``, but for the rounding of floats."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if made is None:
        return True  # of NULL alone
    if isinstance(made, float) and isinstance(value, (float, np.floating)):
        return math.isnan(value) == math.isnan(made) and math.isinf(value) == math.isinf(made)
    if isinstance(made, list) and isinstance(value, Mapping):  # of a map
        value = list(value.items())
    if isinstance(made, (list, tuple)) and isinstance(value, (list, tuple, np.ndarray)):
        return len(made) == len(value) and all(map(_is_same, value, made))
    if isinstance(made, dict) and isinstance(value, Mapping):
        return value.keys() <= made.keys() and all(_is_same(one, made[name]) for name, one in value.items())
    return bool(made == value)


def _column(name: str, values: Any) -> Any:
    """``values`` of the column ``name`` of a dict as what Arrow makes a column of."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(f"the column {name!r} must be an array of one dimension, not of shape {values.shape}")
        values = _native(name, values)
    if isinstance(values, (str, bytes, Mapping, Set)):  # of which Arrow takes letters and keys
        raise ValueError(f"the column {name!r} must be a list or an array of values, not {type(values).__name__}")
    try:
        return values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise ValueError(f"the column {name!r} is none for Arrow: {first_line(error)}") from error


def _native(name: str, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """``values`` with the byte order of this machine, and times in units that Arrow has.

    Raises `ValueError` for numbers of types that Arrow lacks.
    """
    type_ = values.dtype
    if type_.kind == "c" or (type_.kind == "f" and type_.itemsize > 8):
        raise ValueError(f"the column {name!r} has the type {type_}, which Arrow lacks; "
                         + ("give .real and .imag as two columns" if type_.kind == "c" else "make it float64"))
    if type_.kind in "mM":
        unit, count = np.datetime_data(type_)
        known = unit in ("s", "ms", "us", "ns")
        if not known or count != 1:  # Arrow takes steps of 25 s as seconds
            arrows = unit if known else "D" if type_.kind == "M" and unit in _DAYS else "s"
            made = values.astype(f"{type_.kind}8[{arrows}]")
            if ((type_.kind == "m" and unit in ("Y", "M", "generic"))
                    or not np.array_equal(made.astype(type_), values, equal_nan=True)):
                raise ValueError(f"the column {name!r} has times of the type {type_}, which {made.dtype} of Arrow "
                                 f"cannot hold; make it {type_.kind}8[ns]")
            values = made
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def as_batch(data: Any, side: Side, schema: pa.Schema) -> pa.Table:
    """``data`` as a table with the columns of ``schema``, in its order.

    Columns may come in any order; declared nullability and metadata do not matter. Raises `InputError` unless ``data``
    offers Arrow, and `SchemaError` when names or types of columns differ. Lists of a dict have no types, so they get
    those of ``schema``.
    """
    if isinstance(data, Mapping):
        data = {name: _typed(f"{side}.{name}", values, schema.field(name).type)
                if isinstance(values, (list, tuple, range)) and name in schema.names else values
                for name, values in data.items()}
    table = as_table(data, side)
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
    if table.schema.equals(schema):
        return table
    # Tables of one stream are concatenated, which fields that differ in nullability alone would prevent.
    fields = [have if not want.nullable and column.null_count else want
              for have, want, column in zip(table.schema, schema, table.columns, strict=True)]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, table.schema.metadata))
