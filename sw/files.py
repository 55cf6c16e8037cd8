"""Tables from and to files: Parquet or CSV, by suffix."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from .errors import InputError, first_line
from .lang.types import plain

__all__ = ["check_columns", "check_output", "is_url", "read_schema", "read_table", "replacing", "write_table"]

_SUFFIXES = (".parquet", ".csv")
#: How the names of half-written files begin.
_PART = ".splitjoin-"
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
#: A cell that is a whole number, once spaces around it and a plus sign are gone; and the numbers that float64 loses.
_WHOLE = r"^-?[0-9]+$"
_INEXACT = 2.0**53


def read_table(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The table in ``path``, or some ``columns``.

    Raises `InputError` for a missing, unreadable or unknown file, and for a CSV file that is not in UTF-8 or has a
    column of whole numbers that fit neither int64 nor uint64.
    """
    path = _input(path)
    try:
        if path.suffix.lower() == ".parquet":
            return pyarrow.parquet.read_table(path, columns=columns)
        table = pyarrow.csv.read_csv(path)
        _ = table.column_names  # Arrow checks the UTF-8 of a header only here
    except UnicodeDecodeError:
        raise InputError(f"{path} must have column names in UTF-8, but its header holds other bytes; save it as UTF-8"
                         ) from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as {path.suffix[1:].upper()}: {first_line(error)}") from None
    table = _exact(path, table)
    return table if columns is None else table.select(columns)


def read_schema(path: str | Path) -> pa.Schema:
    """The schema of the table in ``path``, without its rows where the format allows that.

    The columns of a CSV file without rows, whose types are not known, are not nullable: there is no NULL in them.
    """
    path = _input(path)
    if path.suffix.lower() == ".csv":
        table = read_table(path)
        return table.schema if len(table) else pa.schema([field.with_nullable(False) for field in table.schema])
    try:
        return pyarrow.parquet.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as PARQUET: {first_line(error)}") from None


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write ``table`` to ``path``, whole or not at all: a file that was there stays until the new one is complete.

    A symbolic link stays, and the file that it leads to is written. Raises `InputError`.
    """
    path = check_output(path)
    check_columns(table.schema, path)
    try:
        with replacing(path) as part:
            if path.suffix.lower() == ".parquet":
                pyarrow.parquet.write_table(table, part)
            else:
                pyarrow.csv.write_csv(_writable(table), part)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be written: {first_line(error)}") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside the one that ``path`` leads to, which it replaces when the block ends, but not if it raises."""
    target = _target(path)
    handle, name = tempfile.mkstemp(prefix=_PART, suffix=path.suffix, dir=target.parent)
    part = Path(name)
    try:
        os.close(handle)
        yield part
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)  # as a file opened for writing would have; mkstemp gives 0600
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def check_output(path: str | Path) -> Path:
    """``path``, if a table could be written there. Raises `InputError`, before any work is done."""
    if is_url(path):
        raise InputError(f"the output must be a file of this machine, but {path} is a URL; give a file")
    path = _known(Path(path))
    try:
        target = _target(path)
        if not target.parent.is_dir():
            raise InputError(f"the folder of the output must exist, but {target.parent} does not; create it first")
        if target.is_dir():
            raise InputError(f"the output must be a file, but {path} is a folder; give a file in it, or another name")
        if target.exists() and not target.is_file():
            raise InputError(f"the output must be a file, but {path} is a device or a pipe; give another name")
        # Only trying tells whether a file can be made there: root may write to every folder, but not to all of /proc.
        with tempfile.NamedTemporaryFile(prefix=_PART, dir=target.parent):
            pass
    except OSError as error:
        raise InputError(f"{_short(path)} cannot be written: {error.strerror or error}; give another folder or name"
                         ) from None
    return path


def check_columns(schema: pa.Schema, path: str | Path) -> None:
    """Raise `InputError` for the first column of ``schema`` that the format of ``path`` cannot hold."""
    if Path(path).suffix.lower() != ".csv":
        return
    for field in schema:
        if not _fits_csv(field.type):
            raise InputError(f"a CSV file holds numbers, text and times, but column {field.name!r} of the result has "
                             f"type {field.type}; write a .parquet file, or select other columns")


def is_url(path: str | Path) -> bool:
    """True if ``path`` is the address of something on another machine."""
    return isinstance(path, str) and _URL.match(path) is not None


def _input(path: str | Path) -> Path:
    """``path``, if it is a file that a table can be in."""
    if is_url(path):
        raise InputError(f"the input must be a file of this machine, but {path} is a URL; download it first")
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(f"the input must be one file, but {path} is a folder; give a file in it, or read the "
                             f"folder with pyarrow.dataset and give splitjoin.join the table")
        if not _known(path).is_file():
            raise InputError(f"there is no file {path}")
    except OSError as error:  # a name that is too long
        raise InputError(f"{_short(path)} cannot be read: {error.strerror or error}; give another file") from None
    return path


def _known(path: Path) -> Path:
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"the format of a file is told by its suffix, which must be .parquet or .csv, but {path} has "
                         f"{path.suffix or 'none'}")
    return path


def _target(path: Path) -> Path:
    """The file that ``path`` leads to through symbolic links. Raises `OSError` for links in a circle."""
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        target.stat()
    return target


def _exact(path: Path, table: pa.Table) -> pa.Table:
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


def _fits_csv(type_: pa.DataType) -> bool:
    """True if Arrow writes every value of ``type_`` into a CSV file, perhaps as `_writable` lays it out."""
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return _fits_csv(type_.value_type)
    if pa.types.is_string_view(type_):
        return True
    if (pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_)
            or pa.types.is_interval(type_)):  # bytes are written only if they happen to be UTF-8
        return False
    try:
        pyarrow.csv.write_csv(pa.table({"x": pa.array([], type_)}), io.BytesIO())
    except pa.ArrowException:
        return False
    return True


def _writable(table: pa.Table) -> pa.Table:
    """``table`` without the layouts of text and numbers that Arrow does not write into CSV files."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type) or pa.types.is_run_end_encoded(field.type):
            table = table.set_column(at, field.name, plain(table.column(at)))
    return table


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:37]}…"


def _short(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 300 else f"{text[:100]} … {text[-100:]}"
