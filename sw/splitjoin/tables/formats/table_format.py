"""The interface of a format of files that hold a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa


class TableFormat(ABC):
    """A format of files. What reads a file raises what Arrow raises for damaged bytes, and `InputError`.

    Attributes:
        suffixes: Those of the names of its files, in lower case, the usual one first.
        title: The words for one of its files.
        holds: What it holds, for errors about a column that it does not hold.
        columnar: True if a file tells the types of its columns, and gives some without the rest.
        combined: True if a table is written in one chunk, so that the same rows make the same file.
        is_exact: True if it holds all values of each type that it holds.
    """

    suffixes: ClassVar[tuple[str, ...]]
    title: ClassVar[str]
    columnar: ClassVar[bool] = True
    combined: ClassVar[bool] = False
    is_exact: ClassVar[bool] = False

    @property
    def holds(self) -> str:
        return f"{self.title} cannot hold every type"

    @abstractmethod
    def read(self, path: Path, columns: Sequence[str] | None, types: Mapping[str, pa.DataType]) -> pa.Table:
        """The table in ``path``, or some ``columns``; where a file does not tell types, with ``types``, or as its
        cells tell.
        """

    @abstractmethod
    def schema(self, path: Path, types: Mapping[str, pa.DataType]) -> pa.Schema:
        """The schema of `read`, without the rows where the format allows that."""

    def batches(self, path: Path, rows: int, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """The table in batches of at most ``rows``, of which memory holds one; if it is `columnar`."""
        raise NotImplementedError  # of a format that is not columnar, nobody asks it

    def nbytes(self, path: Path, columns: Sequence[str]) -> int:
        """About how many bytes some ``columns`` have in memory, without reading rows; if it is `columnar`."""
        raise NotImplementedError  # nor this

    @abstractmethod
    def writer(self, file: Any, schema: pa.Schema) -> Any:
        """Arrow's writer of tables with ``schema`` to the open ``file``, by ``write_table``; a context manager."""

    @abstractmethod
    def stored_type(self, type_: pa.DataType) -> pa.DataType | None:
        """The type by which a file has a column of ``type_``; None if it has none."""

    def check_names(self, names: Sequence[str]) -> None:  # noqa: B027  # most can
        """Raise `InputError` if it cannot have columns with these ``names``."""

    def check_values(self, column: pa.ChunkedArray) -> None:  # noqa: B027  # most do
        """Raise ValueError if it does not hold all values of ``column``, which has a type of `stored_type`."""

    def read_stored(self, path: Path, schema: pa.Schema) -> pa.Table:
        """The table that was written with ``schema``."""
        return self.read(path, None, {})

    def stored_batches(self, path: Path, rows: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The table that was written with ``schema`` in batches, of about ``rows`` where that can be chosen."""
        return self.batches(path, rows, None)

    def cure(self, path: Path) -> str:
        """What to do with a file that cannot be read, behind the reason."""
        return ""


def without_negative_scale(type_: pa.DataType) -> pa.DataType | None:
    """A decimal without digits behind the point for ``type_``, whose scale is negative; None if it has too many."""
    digits = type_.precision - type_.scale
    return None if digits > 76 else (pa.decimal128 if digits <= 38 else pa.decimal256)(digits, 0)
