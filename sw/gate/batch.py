"""Batches of a stream as users hand them over: anything Arrow, of the stream's schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..errors import SchemaError
from ..join import as_table
from ..lang.schema import Side, suggest

__all__ = ["as_batch"]


def as_batch(data: Any, side: Side, schema: pa.Schema) -> pa.Table:
    """``data`` as a table with the columns of ``schema``, in its order.

    Raises `InputError` for what is not Arrow, and `SchemaError` when names or types of columns differ. Columns may come
    in any order; declared nullability and metadata do not matter.
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
