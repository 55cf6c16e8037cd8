"""The bytes of a CSV table, which can be read several times, and by which options Arrow parses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

#: Bytes that are parsed at once, in which each row must fit: at first, how many times more if one does not, at most.
_BLOCK, _TIMES, _MOST = 1 << 20, 16, 1 << 30
#: How Arrow says that a row does not fit.
_TOO_LONG = "straddl"


@dataclass(frozen=True)
class CsvSource:
    """A CSV table: in a file, or in a buffer. ``name``: its name in messages."""

    data: Path | pa.Buffer
    name: str

    @classmethod
    def of_file(cls, path: Path) -> CsvSource:
        """The table in the file ``path``."""
        return cls(path, str(path))

    def read(self, convert: pyarrow.csv.ConvertOptions | None = None) -> pa.Table:
        """The table, its cells read as ``convert`` says. Raises what Arrow raises."""
        block, (reading, parsing) = _BLOCK, self._options()
        while True:
            try:
                reading.block_size = block
                table = pyarrow.csv.read_csv(self._open(), reading, parsing, convert)
                _ = table.column_names  # Arrow checks the UTF-8 of a header only here
                return table
            except pa.ArrowInvalid as error:
                block = _longer(block, error)

    def batches(self, convert: pyarrow.csv.ConvertOptions) -> Iterator[pa.RecordBatch]:
        """The table in batches of about a megabyte, like `read`; ``convert`` gives the types of all columns."""
        block, done, (reading, parsing) = _BLOCK, 0, self._options()
        while True:
            at = 0
            try:
                reading.block_size = block
                for batch in pyarrow.csv.open_csv(self._open(), reading, parsing, convert):
                    at += len(batch)
                    if at > done:
                        yield batch.slice(max(0, done - at + len(batch)))
                        done = at
                return
            except pa.ArrowInvalid as error:
                block = _longer(block, error)

    def head(self, size: int) -> bytes:
        """The first bytes, at most ``size``."""
        with pa.input_stream(self._open()) as stream:
            return bytes(stream.read(size))

    def _open(self) -> Any:
        return str(self.data) if isinstance(self.data, Path) else pa.BufferReader(self.data)

    def _options(self) -> tuple[pyarrow.csv.ReadOptions, pyarrow.csv.ParseOptions]:
        """Text may hold line ends. In a table of one column, an empty line is a row, as for Polars and DuckDB."""
        one = self._columns() == 1
        return (pyarrow.csv.ReadOptions(skip_rows=self._empty_lines() if one else 0),
                pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=not one))

    def _columns(self) -> int:
        """The number of columns."""
        block, reading = _BLOCK, pyarrow.csv.ReadOptions()
        while True:
            try:
                reading.block_size = block
                with pyarrow.csv.open_csv(self._open(), reading, pyarrow.csv.ParseOptions(newlines_in_values=True)
                                          ) as reader:
                    return len(reader.schema)
            except pa.ArrowInvalid as error:
                block = _longer(block, error)

    def _empty_lines(self) -> int:
        """The number of empty lines before the header."""
        with pa.input_stream(self._open()) as stream:
            count = 0
            while (byte := stream.read(1)) in (b"\n", b"\r"):
                count += byte == b"\n"
            return count


def _longer(block: int, error: pa.ArrowInvalid) -> int:
    """A longer block than ``block``, in which a row did not fit. Raises ``error`` if it tells something else."""
    if _TOO_LONG not in str(error) or block >= _MOST:
        raise error
    return block * _TIMES
