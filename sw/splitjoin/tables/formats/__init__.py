"""The formats of files that hold a table: a file each in this package, and a line here."""

from __future__ import annotations

from pathlib import Path

from .arrow_file import ArrowFile
from .csv_file import CsvFile
from .parquet_file import ParquetFile
from .table_format import TableFormat

__all__ = ["FORMATS", "TableFormat", "format_of", "has_format"]

FORMATS: tuple[TableFormat, ...] = (ParquetFile(), CsvFile(), ArrowFile())
_BY_SUFFIX = {suffix: one for one in FORMATS for suffix in one.suffixes}


def has_format(path: str | Path) -> bool:
    """True if the suffix of ``path`` tells a format."""
    return Path(path).suffix.lower() in _BY_SUFFIX


def format_of(path: str | Path) -> TableFormat:
    """The format that the suffix of ``path`` tells; it must tell one."""
    return _BY_SUFFIX[Path(path).suffix.lower()]
