"""Tables of other libraries as Arrow: each value comes exactly, or its column is refused by name.

`table_of` is the one door for rows in memory. docs/tables.md says what each library's types become.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import InputError
from splitjoin.base.parquet import ParquetSource

from .values import check_objects

#: The widest whole numbers of DuckDB and Polars, as decimals: of 38 digits where these hold the values, else of 39,
#: which no condition takes.
_NARROW, _WIDE = pa.decimal128(38, 0), pa.decimal256(39, 0)


def table_of(data: Any, name: str, *, index: bool = False) -> pa.Table | None:
    """``data``, of the stream or table ``name``, as an Arrow table; None if it offers none. ``index``: True if the
    index of a DataFrame of pandas is its column ``index``, unless it has another one of this name.

    Raises `InputError` for a column whose values Arrow would not have exactly, and what the object itself raises.
    """
    library = type(data).__module__.partition(".")[0]
    if library == "polars":
        return _of_polars(collected(data), name)
    if library == "pandas":
        named = index and "index" not in getattr(data, "columns", ())
        return _of_pandas(data.rename_axis("index") if named else data, name)
    if library == "duckdb" and hasattr(data, "__arrow_c_stream__"):
        return of_duckdb(data)
    if library == "deltalake" and type(data).__name__ == "DeltaTable":
        options = importlib.import_module("pyarrow.dataset").ParquetReadOptions(coerce_int96_timestamp_unit="us")
        return data.to_pyarrow_dataset(parquet_read_options=options).to_table()
    if library == "pyiceberg":
        data = data.scan() if hasattr(data, "scan") else data  # a Table
        return data.to_arrow() if hasattr(data, "to_arrow") else None
    if any(base.__module__ == "pyarrow._dataset" for base in type(data).__mro__):  # which imports pandas
        if type(data).__module__ == "pyarrow._dataset":  # and not that of Lance
            _check_int96(data, name)
        return data.to_table()
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return pa.table(data)
    return None


def collected(frame: Any) -> Any:
    """``frame``, of Polars; a LazyFrame with its rows, in their order, which the streaming engine that Polars chooses
    by itself does not keep.
    """
    return frame.collect(engine="in-memory") if type(frame).__name__ == "LazyFrame" else frame


def _of_polars(frame: Any, name: str) -> pa.Table | None:
    if not hasattr(frame, "columns"):  # a Series
        return None
    types = {column: str(type_) for column, type_ in frame.schema.items()}
    for column, type_ in types.items():
        if type_ == "Object":  # of which Polars gives addresses
            raise InputError(f"stream {name} must have columns of types that Arrow has, but {column!r} holds Python "
                             f"objects; drop it, or convert its values")
    wide = [column for column, type_ in types.items() if type_ in ("Int128", "UInt128")]
    table = pa.table(frame.drop(wide))
    decimal = importlib.import_module("polars").Decimal(38, 0) if wide else None
    for at, column in enumerate(frame.columns):
        if column in wide:
            values = frame[column]
            narrow = values.cast(decimal, strict=False)
            made = (pa.chunked_array(narrow) if narrow.null_count() == values.null_count()
                    else pa.array(values.to_list(), _WIDE))
            table = table.add_column(at, column, made)
    return table


def _of_pandas(frame: Any, name: str) -> pa.Table | None:
    """A DataFrame as a table, without levels of the index that have no name, such as the row labels that a filter
    leaves: pandas' own joins drop them, too.
    """
    if not hasattr(frame, "columns"):  # a Series
        return None
    table = pa.table(frame)
    if any(isinstance(index, dict) and index["name"] is not None for index in _pandas_index(table)):
        table = pa.Table.from_pandas(frame, preserve_index=True)  # a range is in the metadata alone
    table = _with_named_index(table, name)
    for column, type_ in zip(frame.columns, frame.dtypes, strict=True):
        if type_.kind == "O" and str(column) in table.column_names:
            check_objects(str(column), frame[column].tolist(), table.column(str(column)))
    return table


def _pandas_index(table: pa.Table) -> list[Any]:
    """The levels of the index of the DataFrame of pandas that ``table`` was made of: the name of a column of ``table``,
    or of a range a dict.
    """
    return list((table.schema.pandas_metadata or {}).get("index_columns", []))


def _with_named_index(table: pa.Table, name: str) -> pa.Table:
    """``table``, made of a DataFrame of pandas, without levels of the index that have no name.

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


def of_duckdb(relation: Any) -> pa.Table:
    """A relation of DuckDB, whose integers of 128 bits are decimals, bit strings text, and enums ordered dictionaries:
    DuckDB compares these by their order, which Arrow is not told.
    """
    table = relation.to_arrow_table()
    for at, type_ in enumerate(relation.types):
        column, field, kind = table.column(at), table.schema.field(at), _kind(type_)
        if kind in _REFUSED:
            raise InputError(f"a table must have columns of types that Arrow has, but {field.name!r} is a "
                             f"{_REFUSED[kind]}; cast it in DuckDB")
        inner = set(_inner_kinds(type_))
        for lost in (*_REFUSED, *_MADE):
            if lost in inner:
                raise InputError(f"a table must have columns of types that Arrow has, but {field.name!r} of DuckDB is "
                                 f"{type_}, and {lost.upper()} in lists and structs is not exact in Arrow; cast it in "
                                 f"DuckDB")
        if kind in _MADE:
            made = _chunks(column, _MADE[kind])
            table = table.set_column(at, field.with_type(made.type), made)
        elif kind == "enum":
            ordered = pa.dictionary(field.type.index_type, field.type.value_type, ordered=True)
            chunks = [pa.DictionaryArray.from_arrays(c.indices, c.dictionary, ordered=True) for c in column.chunks]
            table = table.set_column(at, field.with_type(ordered), pa.chunked_array(chunks, ordered))
    return table


def _kind(type_: Any) -> str:
    return str(getattr(type_, "id", ""))


def _inner_kinds(type_: Any) -> Iterator[str]:
    """The kinds of the values within a type of DuckDB: of lists, structs, maps and unions."""
    if _kind(type_) in ("list", "array", "struct", "map", "union"):
        for _, child in type_.children:
            if hasattr(child, "id"):  # beside the length of an array
                yield _kind(child)
                yield from _inner_kinds(child)


def _chunks(column: pa.ChunkedArray, make: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    made = [make(chunk) for chunk in column.chunks] or [make(pa.array([], column.type))]
    if any(one.type == _WIDE for one in made):
        made = [one.cast(_WIDE) for one in made]
    return pa.chunked_array(made)


def _whole(array: pa.Array, *, signed: bool) -> pa.Array:
    """Integers of 128 bits, which DuckDB hands over as the bits of decimals that may have more than 38 digits."""
    words = _words(array)
    wide = np.zeros((len(array), 4), np.uint64)
    wide[:, :2] = words
    if signed:
        wide[:, 2:] = (words[:, 1:].view(np.int64) >> 63).view(np.uint64)
    made = pa.Array.from_buffers(_WIDE, len(array), [array.is_valid().buffers()[1], pa.py_buffer(wide.tobytes())])
    try:
        return made.cast(_NARROW)
    except pa.ArrowInvalid:
        return made


def _words(array: pa.Array) -> npt.NDArray[np.uint64]:
    """The low and the high word of each value: uint64 (n, 2); zero where it is NULL."""
    buffer = array.buffers()[1]
    found = np.zeros((len(array), 2), np.uint64)
    if buffer is not None and len(array):
        found[:] = np.frombuffer(buffer, np.uint64)[2 * array.offset:2 * (array.offset + len(array))].reshape(-1, 2)
        found[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def _bits(array: pa.Array) -> pa.Array:
    """Bit strings as texts of 0 and 1, which compare alike. DuckDB hands over the number of bits that the first byte
    lacks, and the bytes.
    """
    return pa.array([None if one is None else f"{int.from_bytes(one[1:], 'big'):0{8 * (len(one) - 1)}b}"[one[0]:]
                     for one in array.to_pylist()], pa.string())


#: Kinds of DuckDB's types whose values Arrow gets otherwise, and what makes a column of them.
_MADE: dict[str, Callable[[pa.Array], pa.Array]] = {
    "hugeint": lambda array: _whole(array, signed=True), "uhugeint": lambda array: _whole(array, signed=False),
    "bit": _bits}
#: Those of which Arrow gets too little.
_REFUSED = {"time with time zone": "time of day with a time zone"}


def _check_int96(data: Any, name: str) -> None:
    """Raise `InputError` for a dataset of Parquet files that reads INT96 times as nanoseconds, which wrap."""
    for part in getattr(data, "children", [data]):
        options = getattr(getattr(part, "format", None), "read_options", None)
        counts_ns = any("timestamp[ns" in str(field.type) for field in data.schema)  # a cast to microseconds is checked
        if getattr(options, "coerce_int96_timestamp_unit", "us") == "us" or not counts_ns:
            continue
        for path in part.files:
            with part.filesystem.open_input_file(path) as file, ParquetSource(file) as source:
                if source.int96:
                    raise InputError(f"times of the Parquet type INT96 wrap in nanoseconds, as the dataset of stream "
                                     f"{name} reads {min(source.int96)!r} of {path}; give the files themselves, the "
                                     f"DeltaTable, or a dataset with format=ParquetFileFormat(read_options="
                                     f"ParquetReadOptions(coerce_int96_timestamp_unit='us'))")
