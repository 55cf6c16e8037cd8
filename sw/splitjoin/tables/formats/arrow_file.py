"""Files of Arrow IPC, which may also hold a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.ipc

from splitjoin.base.ipc import ipc_batches, ipc_schema, read_ipc_file

from .table_format import TableFormat


class ArrowFile(TableFormat):
    """Arrow IPC."""

    suffixes = ".arrow", ".feather"
    title = "an Arrow file"
    is_exact: ClassVar[bool] = True

    def read(self, path: Path, columns: Sequence[str] | None, types: Mapping[str, pa.DataType]) -> pa.Table:
        return read_ipc_file(path, columns)

    def schema(self, path: Path, types: Mapping[str, pa.DataType]) -> pa.Schema:
        return ipc_schema(path)

    def batches(self, path: Path, rows: int, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        for batch in ipc_batches(path, columns):
            yield from (batch.slice(at, rows) for at in range(0, len(batch), rows))

    def nbytes(self, path: Path, columns: Sequence[str]) -> int:
        return path.stat().st_size * len(columns) // max(len(ipc_schema(path)), 1)

    def writer(self, file: Any, schema: pa.Schema) -> Any:
        return pa.ipc.new_file(file, schema)

    def stored_type(self, type_: pa.DataType) -> pa.DataType | None:
        # A file has one dictionary a column, but each batch brings its own.
        return self.stored_type(type_.value_type) if pa.types.is_dictionary(type_) else type_
