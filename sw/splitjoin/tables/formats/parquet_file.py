"""Files of Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from splitjoin.base.parquet import ParquetSource, parquet_batches
from splitjoin.lang.layouts import is_encoded

from .table_format import TableFormat, without_negative_scale


class ParquetFile(TableFormat):
    """Parquet."""

    suffixes = (".parquet",)
    title = "a Parquet file"
    combined: ClassVar[bool] = True

    def read(self, path: Path, columns: Sequence[str] | None, types: Mapping[str, pa.DataType]) -> pa.Table:
        with ParquetSource(path) as source:
            return source.read(columns)

    def schema(self, path: Path, types: Mapping[str, pa.DataType]) -> pa.Schema:
        with ParquetSource(path) as source:
            return source.schema  # names that are not in UTF-8 have raised

    def batches(self, path: Path, rows: int, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        return parquet_batches(path, rows, columns)

    def nbytes(self, path: Path, columns: Sequence[str]) -> int:
        with ParquetSource(path) as source:
            groups = [source.metadata.row_group(n) for n in range(source.metadata.num_row_groups)]
        return sum(max(column.total_uncompressed_size, 4 * group.num_rows) for group in groups
                   for column in map(group.column, range(group.num_columns))
                   if column.path_in_schema.partition(".")[0] in columns)

    def writer(self, file: Any, schema: pa.Schema) -> Any:
        from pyarrow import parquet  # where a Parquet file is used: it takes 10 MiB

        return parquet.ParquetWriter(file, schema)

    def stored_type(self, type_: pa.DataType) -> pa.DataType | None:
        if pa.types.is_decimal(type_) and type_.scale < 0:
            return without_negative_scale(type_)
        if pa.types.is_dictionary(type_) and type_.value_type in (pa.string(), pa.large_string()):
            return pa.dictionary(pa.int32(), pa.string(), type_.ordered)
        return self.stored_type(type_.value_type) if is_encoded(type_) else _given_type(type_)


@cache
def _given_type(type_: pa.DataType) -> pa.DataType | None:
    """The type that a file gives for a column of ``type_``; None if it holds none, or cannot be cast back."""
    from pyarrow import parquet

    file = io.BytesIO()
    try:
        parquet.write_table(pa.table({"x": pa.array([], type_)}), file)
        found = parquet.read_schema(io.BytesIO(file.getvalue())).field(0).type
        pa.array([], type_).cast(found).cast(type_)
    except (pa.ArrowException, OSError):
        return None
    return found if found == type_ or _given_type(found) == found else None
