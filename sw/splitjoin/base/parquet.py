"""Parquet from outside this process: the one place that opens it, so that INT96 times are read exactly or refused.

INT96 is the type in which Spark, by default, and Impala and Hive write timestamps: a day, and nanoseconds within it.
Arrow reads it as nanoseconds in 64 bits, which wrap beyond the years 1677 to 2262 without an error. So all is read as
microseconds, which hold the years 1 to 9999, and a time with parts of a microsecond is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .errors import InputError
from .ipc import validated

#: Bytes of each column that are read from a file at once, batch by batch.
_READ = 1 << 18


class ParquetSource:
    """The Parquet file ``path``, open for reading; a context manager. Raises what PyArrow raises, and `InputError`.

    ``options``: further ones of `pyarrow.parquet.ParquetFile`.

    Attributes:
        schema: Its Arrow schema.
        int96: The columns with INT96 times, also within lists and structs.
        metadata: Its `pyarrow.parquet.FileMetaData`.
    """

    def __init__(self, path: str | Path | pa.NativeFile, **options: Any):
        from pyarrow import parquet  # where a Parquet file is used: it takes 10 MiB

        self._path = path
        self._file = parquet.ParquetFile(path, coerce_int96_timestamp_unit="us", **options)
        self.schema: pa.Schema = self._file.schema_arrow
        self.metadata = self._file.metadata
        self.int96 = {name for name in self.schema.names if any(
            column.physical_type == "INT96" and f"{column.path}.".startswith(f"{name}.")
            for column in map(self._file.schema.column, range(len(self._file.schema))))}
        self._as_ns = parquet.ParquetFile(path, **options) if self.int96 else None

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, with all columns or some."""
        return self._checked(lambda file, names: file.read(names), columns)

    def row_group(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of one row group, with all columns or some."""
        return self._checked(lambda file, names: file.read_row_group(number, names), columns)

    def batches(self, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in batches of at most ``rows``, with all columns or some."""
        names = self._asked(columns)
        found = self._file.iter_batches(rows, columns=None if columns is None else list(columns))
        if not names or self._as_ns is None:
            yield from map(validated, found)
            return
        for batch, raw in zip(found, self._as_ns.iter_batches(rows, columns=names), strict=True):
            self._check(names, batch, raw)
            yield validated(batch)

    def close(self) -> None:
        """Close the file."""
        for file in (self._file, self._as_ns):
            if file is not None:
                file.close()

    def __enter__(self) -> ParquetSource:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def _asked(self, columns: Sequence[str] | None) -> list[str]:
        return sorted(self.int96 if columns is None else self.int96 & set(columns))

    def _checked(self, read: Any, columns: Sequence[str] | None) -> pa.Table:
        found = validated(read(self._file, None if columns is None else list(columns)))
        names = self._asked(columns)
        if names:
            self._check(names, found, read(self._as_ns, names))
        return found if columns is None else found.select(columns)

    def _check(self, names: Sequence[str], found: Any, raw: Any) -> None:
        """Raise `InputError` if a time of ``raw``, which counts nanoseconds modulo 2^64, is not that of ``found``."""
        for name in names:
            for time, ns in zip(*(_times(one.column(name)) for one in (found, raw)), strict=True):
                counted = pc.multiply(time.cast(pa.int64()), 1000)  # modulo 2^64, too
                if pc.any(pc.not_equal(counted, ns.cast(pa.int64()))).as_py():
                    raise InputError(f"INT96 times of Parquet are read as microseconds, but column {name!r} of "
                                     f"{self._path} holds parts of one; if all lie in the years 1678 to 2261, give "
                                     f"pyarrow.parquet.read_table(FILE), else write the file with INT64 timestamps")


def parquet_batches(path: Path, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of the file ``path`` in batches of at most ``rows``, with all columns or some, of which memory holds
    one. Raises as `ParquetSource`.
    """
    # Arrow's own read-ahead keeps all that it has read until the file is closed (apache/arrow issue 39808), and without
    # a buffer, a row group's bytes are read as a whole.
    with ParquetSource(path, pre_buffer=False, buffer_size=_READ) as source:
        yield from source.batches(rows, columns)


def _times(column: Any) -> Iterator[Any]:
    """The timestamps in ``column``, an array of Arrow, also those within lists and structs, each as an array."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_timestamp(column.type):
        yield column
    elif pa.types.is_struct(column.type):
        for child in column.flatten():
            yield from _times(child)
    elif pa.types.is_nested(column.type):
        yield from _times(column.flatten())
