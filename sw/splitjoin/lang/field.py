"""Ranges of columns: declared with a field, measured on a table, or taken from a Parquet file's statistics.

A range is stored in the metadata of the Arrow field, and narrows the comparison keys: a 64-bit column that is declared
to hold 0 to 999 has a key of 10 bits. A value outside its range is an error, not a wrong answer.
"""

from __future__ import annotations

from decimal import Context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.errors import InputError, SchemaError, first_line
from splitjoin.base.ipc import translated
from splitjoin.base.parquet import ParquetSource

from .types import Type, from_arrow, limits, plain

#: The key of the metadata: "least greatest", whole numbers as `splitjoin.lang.ir.Col.range` has them.
_KEY = b"splitjoin.range"
#: 38 digits are more than Python's default.
_EXACT = Context(prec=40)


def field(name: str, type: pa.DataType | str, *, min: Any = None, max: Any = None, nullable: bool = True,  # noqa: A002  # Arrow's
          ) -> pa.Field:
    """An Arrow field whose values lie between ``min`` and ``max``, both included; None stands for the type's limit.

    ``type``: an Arrow type, or its name such as ``"int32"``. The ends are values of that type: integers,
    `Decimal`, dates, datetimes, timedeltas. Raises `SchemaError` for types without ranges, and for ends that do not
    fit.
    """
    try:
        arrow = pa.type_for_alias(type) if isinstance(type, str) else type
    except ValueError:
        raise SchemaError(f"field {name!r} must have an Arrow type, or the name of one such as 'int32' or "
                          f"'timestamp[us]', not {type!r}") from None
    plain_field = pa.field(name, arrow, nullable)
    if min is None and max is None:
        return plain_field
    low, high = _limits(name, from_arrow(arrow))
    ends = []
    for word, value, limit in (("min", min, low), ("max", max, high)):
        end = limit if value is None else _whole(name, word, value, arrow)
        if not low <= end <= high:
            raise SchemaError(f"{word} of field {name!r} must be a value of {arrow}, not {value!r}")
        ends.append(end)
    if ends[0] > ends[1]:
        raise SchemaError(f"min of field {name!r} must not be greater than its max, but {min!r} is greater than "
                          f"{max!r}")
    return _with_range(plain_field, (ends[0], ends[1]))


def measured(table: pa.Table) -> pa.Table:
    """The table with the ranges of its values declared in its fields; one is nullable only if its column holds NULL.

    A circuit made for such a schema fits these values; other data may need another circuit.
    """
    fields = []
    for n, f in enumerate(table.schema):
        column = plain(table.column(n))
        found = f.with_nullable(column.null_count > 0)
        if limits(from_arrow(f.type)):
            found = _with_range(found, _ends(column) or (0, 0))
        fields.append(found)
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, table.schema.metadata))


def parquet_schema(path: str | Path) -> pa.Schema:
    """The schema of a Parquet file with ranges from its statistics; a field is not nullable if they count no NULL.

    Raises `InputError` if the file cannot be read.
    """
    try:
        with translated(), ParquetSource(path) as source:
            schema, metadata = source.schema, source.metadata
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read as Parquet: {first_line(error)}") from None
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    at = {groups[0].column(n).path_in_schema: n for n in range(groups[0].num_columns)} if groups else {}
    fields = []
    for f in schema:
        found = f
        if f.name in at and all(g.column(at[f.name]).is_stats_set for g in groups):
            all_ = [g.column(at[f.name]).statistics for g in groups]
            if all(s.has_null_count for s in all_):
                found = found.with_nullable(any(s.null_count for s in all_))
            # A row group without values has no ends.
            ends = [s for s in all_ if s.has_min_max]
            known = all(s.has_min_max or s.num_values == 0 for s in all_)
            if known and ends and limits(from_arrow(f.type)):
                values = [_whole(f.name, "a statistic", v, f.type) for s in ends for v in (s.min, s.max)]
                found = _with_range(found, (min(values), max(values)))
        fields.append(found)
    return pa.schema(fields, schema.metadata)


def with_range(f: pa.Field, low: int, high: int) -> pa.Field:
    """``f`` with the range ``low`` to ``high``, whole numbers as `range_of` gives them.

    Raises `SchemaError` for types without ranges, and for ends that do not fit.
    """
    least, most = _limits(f.name, from_arrow(f.type))
    if not least <= low <= high <= most:
        raise SchemaError(f"the range of field {f.name!r} must lie between {least} and {most}, its least value first, "
                          f"not from {low} to {high}")
    return _with_range(f, (low, high))


def range_of(f: pa.Field) -> tuple[int, int] | None:
    """The range that ``f`` carries; None if it carries none."""
    text = (f.metadata or {}).get(_KEY)
    if text is None:
        return None
    low, high = text.split()
    return int(low), int(high)


def check_range(name: str, column: pa.ChunkedArray, range_: tuple[int, int]) -> None:
    """Raise `InputError` if a value of ``column`` is outside ``range_``; the error names the first such row."""
    column = plain(column)
    ends = _ends(column)
    if ends is None or range_[0] <= ends[0] <= ends[1] <= range_[1]:
        return
    row = next(i for i, v in enumerate(column) if v.is_valid and not range_[0] <= _number(v) <= range_[1])
    raise InputError(f"the values of {name} must be within the range that its field declares, but row {row} has "
                     f"{column[row]}; declare a wider one")


def _ends(column: pa.ChunkedArray) -> tuple[int, int] | None:
    """The least and the greatest value of a plain column as whole numbers; None if there is no value."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(column.type):
        column = column.cast(pa.int64())
    ends = pc.min_max(column)
    return (_number(ends["min"]), _number(ends["max"])) if ends["min"].is_valid else None


def _limits(name: str, t: Type) -> tuple[int, int]:
    found = limits(t)
    if found is None:
        raise SchemaError(f"field {name!r} of type {t} must not have min or max; integers, decimals, dates, timestamps "
                          f"and durations may")
    return found


def _whole(name: str, word: str, value: Any, arrow: pa.DataType) -> int:
    if isinstance(value, (bool, float)):
        raise SchemaError(f"{word} of field {name!r} must be a value of {arrow}, not {value!r}")
    inner = arrow.value_type if pa.types.is_dictionary(arrow) or pa.types.is_run_end_encoded(arrow) else arrow
    try:
        # A whole number for decimals too: Arrow takes it as such.
        return _number(plain(pa.chunked_array([pa.array([value], inner)]))[0])
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        raise SchemaError(f"{word} of field {name!r} must be a value of {arrow}, not {value!r}") from None


def _number(value: pa.Scalar) -> int:
    if pa.types.is_decimal(value.type):
        return int(value.as_py().scaleb(value.type.scale, _EXACT))
    if pa.types.is_date32(value.type) or pa.types.is_timestamp(value.type) or pa.types.is_duration(value.type):
        return int(value.value)
    return int(value.as_py())


def _with_range(f: pa.Field, range_: tuple[int, int]) -> pa.Field:
    return f.with_metadata({**(f.metadata or {}), _KEY: f"{range_[0]} {range_[1]}".encode()})
