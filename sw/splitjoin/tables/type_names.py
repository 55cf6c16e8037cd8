"""Names of Arrow types, as texts of schemas and ``types`` have them: Arrow's, and SQL's."""

from __future__ import annotations

import re

import pyarrow as pa

from splitjoin.base.errors import SchemaError
from splitjoin.lang.schema import suggest

TYPES: dict[str, pa.DataType] = {
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
_SIZED = re.compile(r"(decimal)\((\d{1,3}),\s*(\d{1,3})\)|(binary)\[(\d{1,10})\]")


def named_type(kind: str, column: str) -> pa.DataType:
    """The type called ``kind``, of a ``column``. Raises `SchemaError` for others."""
    type_ = TYPES.get(kind) or _SQL_TYPES.get(kind.lower()) or _sized(kind)
    if type_ is None:
        kind = kind if len(kind) <= 80 else f"{kind[:50]} … {kind[-25:]}"
        raise SchemaError(f"column {column!r} has the unknown type {kind!r}{suggest(kind, TYPES)}; known are "
                          f"{', '.join(TYPES)}, decimal(9, 2) and binary[16], and SQL's names {', '.join(_SQL_TYPES)}")
    return type_


def _sized(kind: str) -> pa.DataType | None:
    """A type with sizes in its name; None if it is none, or has none of these sizes."""
    match = _SIZED.fullmatch(kind)
    if match is None:
        return None
    if match[4]:
        return pa.binary(int(match[5])) if int(match[5]) < 2**31 else None
    precision, scale = int(match[2]), int(match[3])
    return pa.decimal128(precision, scale) if 1 <= precision <= 38 and scale <= precision else None
