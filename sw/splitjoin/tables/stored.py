"""Columns as files hold them: their type in each format, and the declared type again when they are read, exactly."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from splitjoin.base.errors import InputError, first_line
from splitjoin.lang.layouts import decoded, encoded, is_encoded
from splitjoin.lang.types import TIME_UNITS

from .names import IPC

__all__ = ["csv_read_type", "csv_read_types", "from_stored", "stored_schema", "to_stored"]

#: Kinds of types whose values a CSV file holds.
_CSV = ("is_null", "is_boolean", "is_integer", "is_float32", "is_float64", "is_decimal", "is_string", "is_large_string",
        "is_date", "is_time", "is_timestamp", "is_duration")
#: The seconds from 1970 of the times that Arrow reads as it writes them: the first, and that behind the last.
_YEARS, _NS_SECONDS = (-62167219200, 253402300800), (-9223372036, 9223372037)


def stored_schema(schema: pa.Schema, suffix: str) -> pa.Schema:
    """The schema of a file with this ``suffix`` that holds columns of ``schema``.

    Raises `InputError` for the first column that the format cannot hold.
    """
    fields = []
    for field in schema:
        type_ = _stored_type(field.type, suffix)
        if type_ is None:
            which = ("a CSV file holds numbers, text and times" if suffix == ".csv"
                     else f"{_format(suffix)} cannot hold every type")
            other = ".parquet" if suffix == ".csv" and _stored_type(field.type, ".parquet") else ".arrow"
            raise InputError(f"{which}, but column {field.name!r} of the result has type {field.type}; write a"
                             f"{'n' if other == '.arrow' else ''} {other} file, or select other columns")
        fields.append(field.with_type(type_))
    made = pa.schema(fields, schema.metadata)
    if suffix == ".csv":
        for name in made.names:
            try:
                pyarrow.csv.write_csv(pa.table({name: pa.array([], pa.int8())}), io.BytesIO())
            except pa.ArrowException:
                raise InputError(f"a CSV file cannot hold the column name {name!r}; rename the column, or write a "
                                 f".parquet file") from None
    return made


def to_stored(table: pa.Table, stored: pa.Schema, suffix: str) -> pa.Table:
    """``table`` with the types of ``stored``, which `stored_schema` has made of its schema.

    Raises `InputError` for a column with a value that the format does not hold exactly.
    """
    columns = []
    for field, to, column in zip(table.schema, stored, table.columns, strict=True):
        try:
            made = _to_stored(column, to.type)
            if pa.types.is_date64(to.type):
                made.cast(pa.date32())  # raises for times of the day, which Arrow takes, but does not read
            if suffix == ".csv":
                _check_times(made)
        except (pa.ArrowException, _Unreadable) as error:
            raise InputError(f"{_format(suffix)} cannot hold all values of column {field.name!r} of type {field.type}: "
                             f"{first_line(error)}; "
                             + ("" if suffix in IPC or pa.types.is_date(field.type) else "write an .arrow file, or ")
                             + "cast the column before the join") from None
        columns.append(made)
    return pa.Table.from_arrays(columns, schema=stored)


def from_stored(table: pa.Table, schema: pa.Schema, dictionaries: Mapping[str, pa.Array]) -> pa.Table:
    """``table``, as read from a file that `to_stored` has filled, with the ``schema`` that its columns had before.

    ``dictionaries``: the values of columns with a dictionary, by name.
    """
    columns = []
    for field, column in zip(schema, table.columns, strict=True):
        type_, made = field.type, column
        if is_encoded(type_) and (column.type != type_ or pa.types.is_dictionary(type_)):
            value = type_.value_type
            made = encoded(_cast(decoded(column), value), type_, dictionaries.get(field.name))
        columns.append(_cast(made, type_))
    return pa.Table.from_arrays(columns, schema=schema)


def csv_read_types(stored: pa.Schema) -> dict[str, pa.DataType]:
    """The types by which Arrow reads a CSV file that holds ``stored`` exactly; a cast gives its own types."""
    return {field.name: csv_read_type(field.type) for field in stored}


class _Unreadable(ValueError):
    """A value that Arrow writes as text, but does not read."""


@cache
def _stored_type(type_: pa.DataType, suffix: str) -> pa.DataType | None:
    """The type by which a column of ``type_`` is in files with ``suffix``; None if there is none."""
    if pa.types.is_decimal(type_) and type_.scale < 0 and suffix not in IPC:
        digits = type_.precision - type_.scale
        return None if digits > 76 else (pa.decimal128 if digits <= 38 else pa.decimal256)(digits, 0)
    if suffix == ".parquet":
        if pa.types.is_dictionary(type_) and type_.value_type in (pa.string(), pa.large_string()):
            return pa.dictionary(pa.int32(), pa.string(), type_.ordered)
        return _stored_type(type_.value_type, suffix) if is_encoded(type_) else _parquet_type(type_)
    if suffix in IPC:  # a file has one dictionary a column, but each batch brings its own
        return _stored_type(type_.value_type, suffix) if pa.types.is_dictionary(type_) else type_
    if is_encoded(type_):
        return _stored_type(type_.value_type, suffix)
    if pa.types.is_string_view(type_):
        return pa.large_string()
    if pa.types.is_float16(type_):
        return pa.float32()
    return type_ if any(getattr(pa.types, kind)(type_) for kind in _CSV) else None


def _parquet_type(type_: pa.DataType) -> pa.DataType | None:
    """The type that a Parquet file gives for a column of ``type_``; None if it holds none, or cannot be cast back."""
    from pyarrow import parquet  # where a Parquet file is used: it takes 10 MiB

    file = io.BytesIO()
    try:
        parquet.write_table(pa.table({"x": pa.array([], type_)}), file)
        found = parquet.read_schema(io.BytesIO(file.getvalue())).field(0).type
        pa.array([], type_).cast(found).cast(type_)
    except (pa.ArrowException, OSError):
        return None
    return found if found == type_ or _parquet_type(found) == found else None


def _to_stored(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    type_ = column.type
    if pa.types.is_dictionary(type_) and pa.types.is_dictionary(to):
        if any(chunk.dictionary.null_count for chunk in column.chunks):
            return encoded(_cast(decoded(column), to.value_type), to)
        return pa.chunked_array([pa.DictionaryArray.from_arrays(
            chunk.indices.cast(to.index_type), chunk.dictionary.cast(to.value_type), ordered=to.ordered)
            for chunk in column.chunks], to)
    return _cast(decoded(column) if is_encoded(type_) and not is_encoded(to) else column, to)


def _cast(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == to else column.cast(to)


def _check_times(column: pa.ChunkedArray) -> None:
    """Raise `_Unreadable` if Arrow does not read one of the dates or times of ``column`` that it writes as text."""
    type_ = column.type
    if not (pa.types.is_timestamp(type_) or pa.types.is_date(type_)):
        return
    ends = pc.min_max(column)
    least, most = _NS_SECONDS if pa.types.is_timestamp(type_) and type_.unit == "ns" else _YEARS
    for end in (ends["min"], ends["max"]):
        if end.is_valid and not least <= _seconds(end) < most:
            raise _Unreadable(f"as text, dates and times must be in the years 0 to 9999, and in nanoseconds from "
                              f"1677-09-21 00:12:44 on, but one is {_seconds(end):,} seconds from 1970")


def _seconds(time: pa.Scalar) -> int:
    """The whole seconds from 1970 to a date or timestamp."""
    if pa.types.is_date32(time.type):
        return int(time.value) * 86400
    per = TIME_UNITS["ms" if pa.types.is_date64(time.type) else time.type.unit]
    return int(time.value) // (TIME_UNITS["s"] // per)


def csv_read_type(type_: pa.DataType) -> pa.DataType:
    """The type by which Arrow reads cells of ``type_`` exactly; a cast gives that type itself."""
    if not pa.types.is_decimal(type_) or pa.types.is_decimal128(type_):
        return type_
    return pa.string() if pa.types.is_decimal256(type_) else pa.decimal128(type_.precision, type_.scale)


def _format(suffix: str) -> str:
    return {".parquet": "a Parquet file", ".csv": "a CSV file"}.get(suffix, "an Arrow file")
