"""Rows as DataFrames and relations of other libraries: with the values that they have, or refused by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.errors import InputError, ToolError, first_line
from splitjoin.lang.layouts import decoded

#: Whole numbers up to this one have no neighbours among floats of 64 bits that are equal to them.
_FLOAT_WHOLE = 2**53


def to_pandas(table: pa.Table, **options: Any) -> Any:
    """``table`` as a pandas DataFrame; ``options`` are those of `pyarrow.Table.to_pandas`.

    Where a column of whole numbers holds NULL, pandas makes floats of it. If those would round a number, and no option
    says what to make of the column, it gets pandas' Int64 or UInt64, which have NULL.
    """
    pandas = _package("pandas")
    frame = _fitted(table, lambda type_: type_, "pandas").to_pandas(**options)  # it does not know all runs
    if options.get("types_mapper") or options.get("integer_object_nulls"):
        return frame
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count and column.type in (pa.int64(), pa.uint64()) and name in frame and _rounded(column):
            made = pandas.Int64Dtype() if column.type == pa.int64() else pandas.UInt64Dtype()
            frame[name] = made.__from_arrow__(column)
    return frame


def to_polars(table: pa.Table) -> Any:
    """``table`` as a Polars DataFrame. Raises `InputError` for a column that Polars does not take as it is."""

    def fitting(type_: pa.DataType) -> pa.DataType | None:
        type_ = _common(type_)
        if type_ is None:
            return None
        # Polars multiplies times in seconds without a look at the result.
        if pa.types.is_timestamp(type_) and type_.unit == "s":
            return pa.timestamp("ms", type_.tz)
        return pa.duration("ms") if type_ == pa.duration("s") else type_

    polars = _package("polars")
    made = _fitted(table, fitting, "Polars")
    try:
        return polars.from_arrow(made)
    except polars.exceptions.PolarsError as error:
        raise InputError(f"Polars does not take the rows: {first_line(error)}; take them with to_arrow(), or cast the "
                         f"column before the join") from None


def to_duckdb(table: pa.Table, connection: Any = None) -> Any:
    """``table`` as a DuckDB relation, of ``connection`` or of DuckDB's default one.

    Raises `InputError` for a column with values that DuckDB does not hold.
    """

    def fitting(type_: pa.DataType) -> pa.DataType | None:
        if pa.types.is_interval(type_):
            return type_
        type_ = _common(type_)
        if type_ is not None and pa.types.is_duration(type_):
            return pa.duration("us")  # DuckDB cuts off nanoseconds
        return pa.float32() if type_ is not None and pa.types.is_float16(type_) else type_

    duckdb = _package("duckdb")
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_interval(field.type) and not in_microseconds(column):
            raise _refused("DuckDB", field)
    return (duckdb if connection is None else connection).from_arrow(_fitted(table, fitting, "DuckDB"))


def in_microseconds(column: pa.ChunkedArray) -> bool:
    """True if no interval of ``column``, of months, days and nanoseconds, has parts of a microsecond, which DuckDB cuts
    off.
    """
    ns = (np.frombuffer(chunk.buffers()[1], np.int64)[1::2][chunk.offset:chunk.offset + len(chunk)][
        chunk.is_valid().to_numpy(zero_copy_only=False)] for chunk in column.chunks if len(chunk))
    return all(not (part % 1000).any() for part in ns)


def _common(type_: pa.DataType) -> pa.DataType | None:
    """The type of the values of ``type_`` that both Polars and DuckDB know; None if there is none."""
    if pa.types.is_decimal(type_):
        digits = type_.precision - min(type_.scale, 0)
        return None if digits > 38 else pa.decimal128(digits, max(type_.scale, 0))
    return None if pa.types.is_interval(type_) else type_


def _fitted(table: pa.Table, fitting: Callable[[pa.DataType], pa.DataType | None], library: str) -> pa.Table:
    """``table`` without runs, its columns of the types that ``fitting`` gives for theirs; None: there is none."""
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if pa.types.is_run_end_encoded(field.type):
            column = decoded(column)
        to = fitting(column.type)
        try:
            made = None if to is None else column if to == column.type else column.cast(to)
        except pa.ArrowInvalid:
            made = None
        if made is None:
            raise _refused(library, field)
        if made is not table.column(at):
            table = table.set_column(at, field.with_type(made.type), made)
    return table


def _refused(library: str, field: pa.Field) -> InputError:
    return InputError(f"{library} does not hold the values of column {field.name!r} of type {field.type}; take the "
                      f"rows with to_arrow(), or cast the column before the join")


def _rounded(column: pa.ChunkedArray) -> bool:
    """True if floats of 64 bits do not hold all of the whole numbers in ``column``, or may not."""
    ends = pc.min_max(column)
    return bool(ends["min"].is_valid and (ends["min"].as_py() < -_FLOAT_WHOLE or ends["max"].as_py() > _FLOAT_WHOLE))


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ToolError(f"to_{name} needs the Python package {name!r}, which is not installed; pip install {name}, or "
                        f"take the rows with to_arrow") from error
