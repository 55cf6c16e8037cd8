"""Rows as users give them, in anything that offers Arrow, as Arrow tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .errors import InputError, SchemaError, first_line
from .lang.schema import Side, suggest

__all__ = ["as_batch", "as_table"]


def as_table(data: Any, name: str) -> pa.Table:
    """``data``, of the stream or table ``name``, as an Arrow table. Raises `InputError` unless it offers Arrow."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        try:
            return pa.table(data)
        except Exception as error:  # whatever the object itself raises
            raise InputError(f"stream {name} must be an Arrow table or offer __arrow_c_stream__ of one, but "
                             f"{type(data).__name__} does not give a table: {first_line(error)}") from error
    raise InputError(f"stream {name} must be an Arrow table or offer __arrow_c_stream__, not {type(data).__name__}")


def as_batch(data: Any, side: Side, schema: pa.Schema) -> pa.Table:
    """``data`` as a table with the columns of ``schema``, in its order.

    Columns may come in any order; declared nullability and metadata do not matter. Raises `InputError` unless ``data``
    offers Arrow, and `SchemaError` when names or types of columns differ.
    """
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
    return table
