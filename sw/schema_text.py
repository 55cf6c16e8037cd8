"""Schemas on the command line: a table file, or a text such as ``"ts:int64, x:int32, y:float32?"``."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from .errors import SchemaError
from .files import read_schema
from .lang.schema import suggest

__all__ = ["parse_schema"]

_TYPES: dict[str, pa.DataType] = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "float32": pa.float32(),
    "float64": pa.float64(), "bool": pa.bool_(), "date": pa.date32(), "string": pa.string(),
    **{f"timestamp[{unit}]": pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp[{unit}, UTC]": pa.timestamp(unit, "UTC") for unit in ("s", "ms", "us", "ns")},
    "timestamp": pa.timestamp("us"),
}


def parse_schema(text: str) -> pa.Schema:
    """The schema in a ``.parquet`` or ``.csv`` file, or that a text of ``name:type`` pairs describes.

    A ``?`` behind a type marks a column that may hold NULL. Raises `SchemaError` or `InputError`.
    """
    if Path(text).suffix.lower() in (".parquet", ".csv"):
        return read_schema(text)
    fields = []
    for part in _split(text):
        name, colon, kind = (p.strip() for p in part.partition(":"))
        if not name or not colon:
            raise SchemaError(f"the schema {text!r} cannot be read at {part.strip()!r}; write 'name:type, …', such as "
                              f"'ts:int64, x:int32, y:float32?' (? = may hold NULL), or name a .parquet or .csv file")
        nullable = kind.endswith("?")
        kind = kind.removesuffix("?").strip()
        if kind not in _TYPES:
            raise SchemaError(f"column {name!r} has the unknown type {kind!r}{suggest(kind, _TYPES)}; known are "
                              f"{', '.join(_TYPES)}")
        fields.append(pa.field(name, _TYPES[kind], nullable))
    return pa.schema(fields)


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c == "[") - (c == "]")
        if c == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
