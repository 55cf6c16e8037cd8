"""Tables from CSV, exactly: whole numbers keep their digits, codes with leading zeros are text, and NULL, empty text
and NaN are three things.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from splitjoin.base.errors import InputError, first_line

from .csv_source import CsvSource

#: Cells that are NULL in columns other than text: those of Arrow, but for the floats among them.
_NULLS = [cell for cell in pyarrow.csv.ConvertOptions().null_values if cell.strip("-").lower() != "nan"]
#: A cell that is a whole number, once spaces around it and a plus sign are gone; one that Arrow takes as a number, and
#: whose digits say more than that: a code of fixed length, or hexadecimal; and the whole numbers that float64 loses.
_WHOLE, _CODE = r"^-?[0-9]+$", r"^[ \t]*[+-]?0[0-9xX]"
_INEXACT = 2.0**53
#: Digits of the numbers that float64 tells apart, and the most of a float64 itself.
_DIGITS, _MOST = 15, 767


def read_csv(source: CsvSource, types: Mapping[str, pa.DataType]) -> pa.Table:
    """The table of ``source``, its columns of ``types`` or as their cells tell. Raises `InputError` for values that no
    column, or not the one stated, holds exactly, and what Arrow raises.

    An empty cell is NULL, and in a text column ``""`` is the empty text. Arrow gives bytes where text is not in UTF-8,
    and float64 where a whole number does not fit int64.
    """
    try:
        table = _typed(source, types)
    except UnicodeDecodeError:
        raise InputError(f"{source.name} must have column names in UTF-8, but its header holds other bytes; save it as "
                         f"UTF-8") from None
    once = [field for field in table.schema if table.column_names.count(field.name) == 1]  # Arrow reads no others alone
    told = [field.name for field in once if field.name not in types
            and (pa.types.is_int64(field.type) or pa.types.is_float64(field.type))]
    codes = _codes(source, told, [n for n in told if pa.types.is_float64(table.schema.field(n).type)])
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if pa.types.is_binary(field.type) and field.name not in types:
            row, cell = next((n, v) for n, v in enumerate(column.to_pylist()) if v is not None and not _is_utf8(v))
            raise InputError(f"the text in column {field.name!r} of {source.name} must be in UTF-8, but row {row} "
                             f"holds {_cut(repr(cell))}; save the file as UTF-8")
        if field not in once:
            continue
        if field.name in codes or (pa.types.is_string(field.type) and pc.any(pc.equal(column, "")).as_py()):
            table = table.set_column(at, field.name, _cells(source, field.name, nulls=[""], quoted=False))
        elif field.name in told and pa.types.is_float64(field.type) and pc.any(pc.greater_equal(pc.abs(column), _INEXACT
                                                                                                )).as_py():
            whole = _whole_numbers(source, field.name)
            if whole is not None:
                table = table.set_column(at, field.name, whole)
    return table


def _typed(source: CsvSource, types: Mapping[str, pa.DataType]) -> pa.Table:
    """The table as Arrow reads it, with columns of ``types``. Raises `InputError` for cells that do not fit these."""
    try:
        table = source.read(pyarrow.csv.ConvertOptions(null_values=_NULLS, column_types={
            name: csv_read_type(type_) for name, type_ in types.items()}))
        for at, field in enumerate(table.schema):
            type_ = types.get(field.name, field.type)
            if field.type != type_:
                table = table.set_column(at, field.with_type(type_), table.column(at).cast(type_))
        return table
    except pa.ArrowNotImplementedError as error:
        raise InputError(f"a column of {source.name} cannot have the type that types says, as CSV holds numbers, text "
                         f"and times: {first_line(error)}") from None
    except pa.ArrowInvalid as error:
        place = re.search(r"CSV column #(\d+)", str(error))
        if not types or place is None:
            raise
        raise InputError(f"the cells of {source.name} must fit the types that types says, but of its column "
                         f"{int(place[1]) + 1}: {first_line(error)}") from None


def _codes(source: CsvSource, names: list[str], floats: list[str]) -> set[str]:
    """Those columns of numbers ``names`` of which a cell is a code, such as 01234 and 0x10, which differs from other
    cells of the same number. Raises `InputError` for a number of other ``floats`` that float64 rounds.
    """
    found, rounded = set[str](), dict[str, str]()
    if not names:
        return found
    convert = pyarrow.csv.ConvertOptions(include_columns=names, column_types=dict.fromkeys(names, pa.string()),
                                         null_values=_NULLS, strings_can_be_null=True)
    for batch in source.batches(convert):
        for name in names:
            cells = batch.column(name)
            if name not in found and pc.any(pc.match_substring_regex(cells, _CODE)).as_py():
                found.add(name)
            if name in floats and name not in rounded:
                cell = _rounded(cells)
                rounded |= {} if cell is None else {name: cell}
    for name, cell in rounded.items():
        if name not in found and not _all_whole(source, name):
            raise InputError(f"the numbers in column {name!r} of {source.name} are floats, as not all of them are "
                             f"whole, but float64 does not hold {_cut(cell)} exactly; say types={{{name!r}: "
                             f"'decimal(38, {len(cell.strip().partition('.')[2])})'}}, or 'double' to round them")
    return found


def _rounded(cells: pa.StringArray) -> str | None:
    """The first cell that float64 does not hold with all its digits; None if there is none."""
    cells = cells.filter(pc.greater(pc.binary_length(cells), _DIGITS))
    values = pc.utf8_trim_whitespace(cells).cast(pa.float64())
    unlike = cells.filter(pc.and_(pc.is_finite(values), pc.not_equal(values.cast(pa.string()), cells)))
    for cell in unlike.unique().to_pylist():
        given = Decimal(cell)
        digits = len("".join(map(str, given.as_tuple().digits)).strip("0"))
        if digits > _DIGITS and (digits > _MOST or Decimal(f"{float(cell):.{digits - 1}e}") != given):
            return str(cell)
    return None


def _cells(source: CsvSource, name: str, *, nulls: list[str], quoted: bool) -> pa.ChunkedArray:
    """The cells of the column ``name`` as text, those in ``nulls`` as NULL; ``quoted``: also those in quotes."""
    return source.read(pyarrow.csv.ConvertOptions(
        include_columns=[name], column_types={name: pa.string()}, null_values=nulls, strings_can_be_null=True,
        quoted_strings_can_be_null=quoted)).column(0)


def _numbers(source: CsvSource, name: str) -> pa.ChunkedArray:
    """The cells of the column ``name``, which Arrow reads as numbers, without spaces and plus signs."""
    cells = _cells(source, name, nulls=_NULLS, quoted=True)
    return pc.replace_substring_regex(pc.ascii_trim_whitespace(cells), r"^\+", "")


def _all_whole(source: CsvSource, name: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(_numbers(source, name), _WHOLE)).as_py())


def _whole_numbers(source: CsvSource, name: str) -> pa.ChunkedArray | None:
    """The column ``name`` of ``source``, which Arrow reads as float64, as int64 or uint64; None if not all of its cells
    are integers. Raises `InputError` for a whole number that would be rounded.
    """
    cells = _numbers(source, name)
    if not pc.all(pc.match_substring_regex(cells, _WHOLE)).as_py():
        return None
    for type_ in (pa.int64(), pa.uint64()):
        try:
            return cells.cast(type_)
        except pa.ArrowInvalid:
            continue
    first = next(cell for cell in cells.to_pylist() if cell is not None and not _fits_int64(cell))
    raise InputError(f"the whole numbers in column {name!r} of {source.name} must fit int64 or uint64, but it holds "
                     f"{_cut(first)}; say types={{{name!r}: 'string'}}, or 'decimal(38, 0)'")


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


def csv_read_type(type_: pa.DataType) -> pa.DataType:
    """The type by which Arrow reads cells of ``type_`` exactly; a cast gives that type itself."""
    if not pa.types.is_decimal(type_) or pa.types.is_decimal128(type_):
        return type_
    return pa.string() if pa.types.is_decimal256(type_) else pa.decimal128(type_.precision, type_.scale)
