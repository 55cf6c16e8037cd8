"""Parquet files batch by batch, in the memory of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from splitjoin.base.ipc import validated

__all__ = ["parquet_batches"]

#: Bytes of each column that are read from a file at once.
_READ = 1 << 18


def parquet_batches(path: Path, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of the file ``path`` in batches of at most ``rows``, with all columns or some, of which memory holds
    one. Raises as `validated`, and OSError.
    """
    from pyarrow import parquet  # where a Parquet file is used: it takes 10 MiB

    # Arrow's own read-ahead keeps all that it has read until the file is closed (apache/arrow issue 39808), and without
    # a buffer, a row group's bytes are read as a whole.
    with parquet.ParquetFile(path, pre_buffer=False, buffer_size=_READ) as file:
        yield from map(validated, file.iter_batches(rows, columns=None if columns is None else list(columns)))
