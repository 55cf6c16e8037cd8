"""Schemas on the command line: a table file, or a text such as ``"ts:int64, x:int32, y:float32?"``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import pyarrow as pa

from splitjoin.base.errors import SchemaError
from splitjoin.lang.field import range_of, with_range

from . import has_format, is_url, read_schema
from .type_names import TYPES, named_type

#: Digits of the numbers of a range; more than any type's values have.
_DIGITS = 40
_KIND = re.compile(rf"(.*?)\s*(\??)\s*(?:(?<=[ ?])(-?\d{{1,{_DIGITS}}})\.\.(-?\d{{1,{_DIGITS}}}))?")
#: Names that stand in a text as they are.
_PLAIN = re.compile(r"[^:,()\[\]]+")


def parse_schema(text: str, types: Mapping[str, pa.DataType] | None = None) -> pa.Schema:
    """The schema in a file of a table, or that a text of ``name:type`` pairs describes; ``types``: of columns in CSV.

    A ``?`` behind a type marks a column that may hold NULL; two whole numbers after that, such as ``0..999``, say that
    its values lie between them (of a decimal, with its point left out; of times, in the type's unit). Raises
    `SchemaError` or `InputError`.
    """
    if has_format(text) or os.path.isdir(text) or is_url(text):
        return read_schema(text, types)
    fields = []
    for part in _split(text):
        name, colon, kind = (p.strip() for p in part.partition(":"))
        if not name or not colon:
            raise SchemaError(f"the schema {text!r} cannot be read at {part.strip()!r}; write 'name:type, …', such as "
                              f"'ts:int64, x:int32, y:float32?' (? = may hold NULL), or name a .parquet, .csv or "
                              f".arrow file")
        read = _KIND.fullmatch(kind)
        kind, null, low, high = (kind, "", None, None) if read is None else read.groups()
        type_ = named_type(kind, name)
        made = pa.field(name, type_, bool(null))
        fields.append(made if low is None or high is None else with_range(made, int(low), int(high)))
    return pa.schema(fields)


def schema_text(schema: pa.Schema) -> str:
    """A text that `parse_schema` reads as ``schema``. Raises `SchemaError` for a column that no text describes."""
    parts = []
    for column in schema:
        type_, range_ = column.type, range_of(column)
        if pa.types.is_decimal128(type_):
            name = f"decimal({type_.precision}, {type_.scale})"
        elif pa.types.is_fixed_size_binary(type_):
            name = f"binary[{type_.byte_width}]"
        else:
            name = next((name for name, known in TYPES.items() if known == type_), "")
        if not name or not _PLAIN.fullmatch(column.name) or column.name != column.name.strip():
            raise SchemaError(f"column {column.name!r} of type {type_} cannot be written as a text; rename or cast it, "
                              f"or leave it out of the schema")
        parts.append(f"{column.name}:{name}{'?' if column.nullable else ''}"
                     f"{'' if range_ is None else f' {range_[0]}..{range_[1]}'}")
    return ", ".join(parts)


def _split(text: str) -> list[str]:
    """Split at commas outside brackets and parentheses."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
