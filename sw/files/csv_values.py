"""Whole numbers and text in CSV files: exact, or refused by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ..errors import InputError

__all__ = ["exact"]

#: A cell that is a whole number, once spaces around it and a plus sign are gone; and the numbers that float64 loses.
_WHOLE = r"^-?[0-9]+$"
_INEXACT = 2.0**53


def exact(path: Path, table: pa.Table) -> pa.Table:
    """``table`` as read from the CSV file ``path``, its whole numbers as integers. Raises `InputError`.

    Arrow gives bytes where text is not in UTF-8, and float64 where a whole number does not fit int64.
    """
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if pa.types.is_binary(field.type):
            row, cell = next((n, v) for n, v in enumerate(column.to_pylist()) if v is not None and not _is_utf8(v))
            raise InputError(f"the text in column {field.name!r} of {path} must be in UTF-8, but row {row} holds "
                             f"{_cut(repr(cell))}; save the file as UTF-8")
        if (pa.types.is_float64(field.type) and table.column_names.count(field.name) == 1
                and pc.any(pc.greater_equal(pc.abs(column), _INEXACT)).as_py()):
            whole = _whole_numbers(path, field.name)
            if whole is not None:
                table = table.set_column(at, field.name, whole)
    return table


def _whole_numbers(path: Path, name: str) -> pa.ChunkedArray | None:
    """The column ``name`` of the CSV file ``path`` as int64 or uint64; None if not all of its cells are integers."""
    options = pyarrow.csv.ConvertOptions(include_columns=[name], column_types={name: pa.string()},
                                         strings_can_be_null=True)
    cells = pyarrow.csv.read_csv(path, convert_options=options).column(0)
    cells = pc.replace_substring_regex(pc.ascii_trim_whitespace(cells), r"^\+", "")
    if not pc.all(pc.match_substring_regex(cells, _WHOLE)).as_py():
        return None
    for type_ in (pa.int64(), pa.uint64()):
        try:
            return cells.cast(type_)
        except pa.ArrowInvalid:
            continue
    first = next(cell for cell in cells.to_pylist() if cell is not None and not _fits_int64(cell))
    raise InputError(f"the whole numbers in column {name!r} of {path} must fit int64 or uint64, but it holds "
                     f"{_cut(first)}; write them with a letter in front, as text, or as decimals in a Parquet file")


def _fits_int64(cell: str) -> bool:
    digits = cell.lstrip("-").lstrip("0")
    return len(digits) <= 19 and -2**63 <= int(f"-{digits or 0}" if cell.startswith("-") else digits or 0) < 2**63


def _is_utf8(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:37]}…"
