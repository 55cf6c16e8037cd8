"""Columns as files hold them: their type in each format, and the declared type again when they are read, exactly."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from splitjoin.base.errors import InputError, first_line
from splitjoin.lang.layouts import decoded, encoded, is_encoded

from .formats import FORMATS, TableFormat


def stored_schema(schema: pa.Schema, form: TableFormat) -> pa.Schema:
    """The schema of a file of the format ``form`` that holds columns of ``schema``.

    Raises `InputError` for the first column that the format cannot hold.
    """
    fields = []
    for field in schema:
        type_ = form.stored_type(field.type)
        if type_ is None:
            other = next(one for one in FORMATS if one.columnar and one.stored_type(field.type) is not None)
            raise InputError(f"{form.holds}, but column {field.name!r} of the result has type {field.type}; write "
                             f"{other.title.split()[0]} {other.suffixes[0]} file, or select other columns")
        fields.append(field.with_type(type_))
    form.check_names(schema.names)
    return pa.schema(fields, schema.metadata)


def to_stored(table: pa.Table, stored: pa.Schema, form: TableFormat) -> pa.Table:
    """``table`` with the types of ``stored``, which `stored_schema` has made of its schema.

    Raises `InputError` for a column with a value that the format does not hold exactly.
    """
    columns = []
    for field, to, column in zip(table.schema, stored, table.columns, strict=True):
        try:
            made = _to_stored(column, to.type)
            if pa.types.is_date64(to.type):
                made.cast(pa.date32())  # raises for times of the day, which Arrow takes, but does not read
            form.check_values(made)
        except (pa.ArrowException, ValueError) as error:
            raise InputError(f"{form.title} cannot hold all values of column {field.name!r} of type {field.type}: "
                             f"{first_line(error)}; "
                             + ("" if form.is_exact or pa.types.is_date(field.type) else "write an .arrow file, or ")
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
