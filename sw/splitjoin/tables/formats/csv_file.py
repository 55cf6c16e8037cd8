"""Files of CSV, in UTF-8, with a header and commas."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from splitjoin.base.errors import InputError
from splitjoin.lang.layouts import is_encoded
from splitjoin.lang.types import TIME_UNITS

from ..csv_source import CsvSource
from ..csv_values import csv_read_type, read_csv
from ..csv_words import csv_cure
from .table_format import TableFormat, without_negative_scale

#: Kinds of types whose values a file holds.
_KINDS = ("is_null", "is_boolean", "is_integer", "is_float32", "is_float64", "is_decimal", "is_string",
          "is_large_string", "is_date", "is_time", "is_timestamp", "is_duration")
#: The seconds from 1970 of the times that Arrow reads as it writes them: the first, and that behind the last.
_YEARS, _NS_SECONDS = (-62167219200, 253402300800), (-9223372036, 9223372037)


class CsvFile(TableFormat):
    """CSV, whose columns have the types that their cells tell."""

    suffixes = (".csv",)
    title = "a CSV file"
    columnar: ClassVar[bool] = False

    @property
    def holds(self) -> str:
        return "a CSV file holds numbers, text and times"

    def read(self, path: Path, columns: Sequence[str] | None, types: Mapping[str, pa.DataType]) -> pa.Table:
        table = read_csv(CsvSource.of_file(path), types)
        return table if columns is None else table.select(columns)

    def schema(self, path: Path, types: Mapping[str, pa.DataType]) -> pa.Schema:
        """The columns of a file without rows, whose types are not known, are not nullable: there is no NULL in them."""
        table = self.read(path, None, types)
        return table.schema if len(table) else pa.schema([field.with_nullable(False) for field in table.schema])

    def writer(self, file: Any, schema: pa.Schema) -> Any:
        return pyarrow.csv.CSVWriter(file, schema)

    def stored_type(self, type_: pa.DataType) -> pa.DataType | None:
        if pa.types.is_decimal(type_) and type_.scale < 0:
            return without_negative_scale(type_)
        if is_encoded(type_):
            return self.stored_type(type_.value_type)
        if pa.types.is_string_view(type_):
            return pa.large_string()
        if pa.types.is_float16(type_):
            return pa.float32()
        return type_ if any(getattr(pa.types, kind)(type_) for kind in _KINDS) else None

    def check_names(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                pyarrow.csv.write_csv(pa.table({name: pa.array([], pa.int8())}), io.BytesIO())
            except pa.ArrowException:
                raise InputError(f"a CSV file cannot hold the column name {name!r}; rename the column, or write a "
                                 f".parquet file") from None

    def check_values(self, column: pa.ChunkedArray) -> None:
        """Raise ValueError if Arrow does not read one of the dates or times of ``column`` that it writes as text."""
        type_ = column.type
        if not (pa.types.is_timestamp(type_) or pa.types.is_date(type_)):
            return
        ends = pc.min_max(column)
        least, most = _NS_SECONDS if pa.types.is_timestamp(type_) and type_.unit == "ns" else _YEARS
        for end in (ends["min"], ends["max"]):
            if end.is_valid and not least <= _seconds(end) < most:
                raise ValueError(f"as text, dates and times must be in the years 0 to 9999, and in nanoseconds from "
                                 f"1677-09-21 00:12:44 on, but one is {_seconds(end):,} seconds from 1970")

    def read_stored(self, path: Path, schema: pa.Schema) -> pa.Table:
        return CsvSource.of_file(path).read(_exact(schema))

    def stored_batches(self, path: Path, rows: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return CsvSource.of_file(path).batches(_exact(schema))

    def cure(self, path: Path) -> str:
        return f"; {csv_cure(CsvSource.of_file(path), 'FILE')}"


def _exact(schema: pa.Schema) -> pyarrow.csv.ConvertOptions:
    """The options by which Arrow reads what it has written with ``schema``; a cast gives the types of that."""
    return pyarrow.csv.ConvertOptions(
        column_types={field.name: csv_read_type(field.type) for field in schema}, null_values=[""],
        strings_can_be_null=True, quoted_strings_can_be_null=False)


def _seconds(time: pa.Scalar) -> int:
    """The whole seconds from 1970 to a date or timestamp."""
    if pa.types.is_date32(time.type):
        return int(time.value) * 86400
    per = TIME_UNITS["ms" if pa.types.is_date64(time.type) else time.type.unit]
    return int(time.value) // (TIME_UNITS["s"] // per)
