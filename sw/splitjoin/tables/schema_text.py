"""Schemas on the command line: a table file, or a text such as ``"ts:int64, x:int32, y:float32?"``."""

from __future__ import annotations

import os
import re

import pyarrow as pa

from splitjoin.base.errors import SchemaError
from splitjoin.lang.field import range_of, with_range
from splitjoin.lang.schema import suggest

from . import has_format, is_url, read_schema

__all__ = ["parse_schema", "schema_text"]

_TYPES: dict[str, pa.DataType] = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "float32": pa.float32(),
    "float64": pa.float64(), "bool": pa.bool_(), "date": pa.date32(), "string": pa.string(),
    **{f"timestamp[{unit}]": pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp[{unit}, UTC]": pa.timestamp(unit, "UTC") for unit in ("s", "ms", "us", "ns")},
    "timestamp": pa.timestamp("us"), "binary": pa.binary(),
    **{f"uint{bits}": getattr(pa, f"uint{bits}")() for bits in (8, 16, 32, 64)},
    **{f"duration[{unit}]": pa.duration(unit) for unit in ("s", "ms", "us", "ns")}, "float16": pa.float16(),
    **{f"time[{unit}]": pa.time32(unit) for unit in ("s", "ms")}, **{f"time[{unit}]": pa.time64(unit)
                                                                     for unit in ("us", "ns")},
}
#: SQL's names, which casts in conditions take, too.
_SQL_TYPES: dict[str, pa.DataType] = {
    "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "integer": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "varchar": pa.string(),
}
#: Digits of the numbers of a range; more than any type's values have.
_DIGITS = 40
_KIND = re.compile(rf"(.*?)\s*(\??)\s*(?:(?<=[ ?])(-?\d{{1,{_DIGITS}}})\.\.(-?\d{{1,{_DIGITS}}}))?")
#: Names that stand in a text as they are.
_PLAIN = re.compile(r"[^:,()\[\]]+")
_SIZED = re.compile(r"(decimal)\((\d{1,3}),\s*(\d{1,3})\)|(binary)\[(\d{1,10})\]")


def parse_schema(text: str) -> pa.Schema:
    """The schema in a file of a table, or that a text of ``name:type`` pairs describes.

    A ``?`` behind a type marks a column that may hold NULL; two whole numbers after that, such as ``0..999``, say that
    its values lie between them (of a decimal, with its point left out; of times, in the type's unit). Raises
    `SchemaError` or `InputError`.
    """
    if has_format(text) or os.path.isdir(text) or is_url(text):
        return read_schema(text)
    fields = []
    for part in _split(text):
        name, colon, kind = (p.strip() for p in part.partition(":"))
        if not name or not colon:
            raise SchemaError(f"the schema {text!r} cannot be read at {part.strip()!r}; write 'name:type, …', such as "
                              f"'ts:int64, x:int32, y:float32?' (? = may hold NULL), or name a .parquet, .csv or "
                              f".arrow file")
        read = _KIND.fullmatch(kind)
        kind, null, low, high = (kind, "", None, None) if read is None else read.groups()
        type_ = _TYPES.get(kind) or _SQL_TYPES.get(kind.lower()) or _sized(kind)
        if type_ is None:
            kind = kind if len(kind) <= 80 else f"{kind[:50]} … {kind[-25:]}"
            raise SchemaError(f"column {name!r} has the unknown type {kind!r}{suggest(kind, _TYPES)}; known are "
                              f"{', '.join(_TYPES)}, decimal(9, 2) and binary[16], and SQL's names "
                              f"{', '.join(_SQL_TYPES)}")
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
            name = next((name for name, known in _TYPES.items() if known == type_), "")
        if not name or not _PLAIN.fullmatch(column.name) or column.name != column.name.strip():
            raise SchemaError(f"column {column.name!r} of type {type_} cannot be written as a text; rename or cast it, "
                              f"or leave it out of the schema")
        parts.append(f"{column.name}:{name}{'?' if column.nullable else ''}"
                     f"{'' if range_ is None else f' {range_[0]}..{range_[1]}'}")
    return ", ".join(parts)


def _sized(kind: str) -> pa.DataType | None:
    """A type with sizes in its name; None if it is none, or has none of these sizes."""
    match = _SIZED.fullmatch(kind)
    if match is None:
        return None
    if match[4]:
        return pa.binary(int(match[5])) if int(match[5]) < 2**31 else None
    precision, scale = int(match[2]), int(match[3])
    return pa.decimal128(precision, scale) if 1 <= precision <= 38 and scale <= precision else None


def _split(text: str) -> list[str]:
    """Split at commas outside brackets and parentheses."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
