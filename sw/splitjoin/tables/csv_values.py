"""Tables from CSV, exactly: whole numbers keep their digits, and NULL, empty text and NaN are three things."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from splitjoin.base.errors import InputError

from .csv_source import CsvSource

__all__ = ["read_csv"]

#: Cells that are NULL in columns other than text: those of Arrow, but for the floats among them.
_NULLS = [cell for cell in pyarrow.csv.ConvertOptions().null_values if cell.strip("-").lower() != "nan"]
#: A cell that is a whole number, once spaces around it and a plus sign are gone; and the numbers that float64 loses.
_WHOLE = r"^-?[0-9]+$"
_INEXACT = 2.0**53


def read_csv(source: CsvSource) -> pa.Table:
    """The table of ``source``. Raises `InputError` for values that no column holds exactly, and what Arrow raises.

    An empty cell is NULL, and in a text column ``""`` is the empty text. Arrow gives bytes where text is not in UTF-8,
    and float64 where a whole number does not fit int64.
    """
    table = source.read(pyarrow.csv.ConvertOptions(null_values=_NULLS))
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if pa.types.is_binary(field.type):
            row, cell = next((n, v) for n, v in enumerate(column.to_pylist()) if v is not None and not _is_utf8(v))
            raise InputError(f"the text in column {field.name!r} of {source.name} must be in UTF-8, but row {row} "
                             f"holds {_cut(repr(cell))}; save the file as UTF-8")
        if table.column_names.count(field.name) > 1:  # which Arrow cannot read alone
            continue
        if pa.types.is_string(field.type) and pc.any(pc.equal(column, "")).as_py():
            table = table.set_column(at, field.name, _cells(source, field.name, nulls=[""], quoted=False))
        if pa.types.is_float64(field.type) and pc.any(pc.greater_equal(pc.abs(column), _INEXACT)).as_py():
            whole = _whole_numbers(source, field.name)
            if whole is not None:
                table = table.set_column(at, field.name, whole)
    return table


def _cells(source: CsvSource, name: str, *, nulls: list[str], quoted: bool) -> pa.ChunkedArray:
    """The cells of the column ``name`` as text, those in ``nulls`` as NULL; ``quoted``: also those in quotes."""
    return source.read(pyarrow.csv.ConvertOptions(
        include_columns=[name], column_types={name: pa.string()}, null_values=nulls, strings_can_be_null=True,
        quoted_strings_can_be_null=quoted)).column(0)


def _whole_numbers(source: CsvSource, name: str) -> pa.ChunkedArray | None:
    """The column ``name`` of ``source``, which Arrow reads as float64, as int64 or uint64; None if not all of its cells
    are integers. Raises `InputError` for a whole number that would be rounded.
    """
    cells = _cells(source, name, nulls=_NULLS, quoted=True)
    cells = pc.replace_substring_regex(pc.ascii_trim_whitespace(cells), r"^\+", "")
    whole = pc.match_substring_regex(cells, _WHOLE)
    if not pc.all(whole).as_py():
        for cell in cells.filter(whole).unique().to_pylist():
            if len(cell) > 15 and not _fits_float(cell):
                raise InputError(f"the numbers in column {name!r} of {source.name} are floats, as not all of them are "
                                 f"whole, but float64 does not hold {_cut(cell)} exactly; write whole numbers to a "
                                 f"column of their own, or all as decimals in a Parquet file")
        return None
    for type_ in (pa.int64(), pa.uint64()):
        try:
            return cells.cast(type_)
        except pa.ArrowInvalid:
            continue
    first = next(cell for cell in cells.to_pylist() if cell is not None and not _fits_int64(cell))
    raise InputError(f"the whole numbers in column {name!r} of {source.name} must fit int64 or uint64, but it holds "
                     f"{_cut(first)}; write them with a letter in front, as text, or as decimals in a Parquet file")


def _fits_float(cell: str) -> bool:
    """True if float64 holds the whole number ``cell``, of any length."""
    digits = cell.lstrip("-").lstrip("0")
    return len(digits) <= 309 and float(digits or 0) < float("inf") and int(float(digits or 0)) == int(digits or 0)


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
