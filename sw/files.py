"""Tables from and to files: Parquet or CSV, by suffix."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from .errors import InputError

__all__ = ["check_output", "read_schema", "read_table", "write_table"]

_SUFFIXES = (".parquet", ".csv")
#: How the names of half-written files begin.
_PART = ".splitjoin-"


def read_table(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The table in ``path``, or some ``columns``. Raises `InputError` for a missing, unreadable or unknown file."""
    path = _known(Path(path))
    _must_exist(path)
    try:
        if path.suffix.lower() == ".parquet":
            return pyarrow.parquet.read_table(path, columns=columns)
        table = pyarrow.csv.read_csv(path)
        _ = table.column_names  # Arrow checks the UTF-8 of a header only here
        return table if columns is None else table.select(columns)
    except UnicodeDecodeError:
        raise InputError(f"{path} must have column names in UTF-8, but its header holds other bytes; save it as UTF-8"
                         ) from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as {path.suffix[1:].upper()}: {_first_line(error)}") from None


def read_schema(path: str | Path) -> pa.Schema:
    """The schema of the table in ``path``, without its rows where the format allows that."""
    path = _known(Path(path))
    _must_exist(path)
    if path.suffix.lower() == ".csv":
        return read_table(path).schema
    try:
        return pyarrow.parquet.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as PARQUET: {_first_line(error)}") from None


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write ``table`` to ``path``, whole or not at all: a file that was there stays until the new one is complete."""
    path = check_output(path)
    part = None
    try:
        handle, part = tempfile.mkstemp(prefix=_PART, suffix=path.suffix, dir=path.parent)
        os.close(handle)
        if path.suffix.lower() == ".parquet":
            pyarrow.parquet.write_table(table, part)
        else:
            pyarrow.csv.write_csv(table, part)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(part, 0o666 & ~umask)  # as a file opened for writing would have; mkstemp gives 0600
        os.replace(part, path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be written: {_first_line(error)}") from None
    finally:
        if part is not None:
            Path(part).unlink(missing_ok=True)


def check_output(path: str | Path) -> Path:
    """``path``, if a table could be written there. Raises `InputError`, before any work is done."""
    path = _known(Path(path))
    try:
        if not path.parent.is_dir():
            raise InputError(f"the folder of the output must exist, but {path.parent} does not; create it first")
        if path.is_dir():
            raise InputError(f"the output must be a file, but {path} is a folder; give a file in it, or another name")
        # Only trying tells whether a file can be made there: root may write to every folder, but not to all of /proc.
        with tempfile.NamedTemporaryFile(prefix=_PART, dir=path.parent):
            pass
    except OSError as error:
        raise InputError(f"{_short(path)} cannot be written: {error.strerror or error}; give another folder or name"
                         ) from None
    return path


def _known(path: Path) -> Path:
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"the format of a file is told by its suffix, which must be .parquet or .csv, but {path} has "
                         f"{path.suffix or 'none'}")
    return path


def _must_exist(path: Path) -> None:
    try:
        found = path.is_file()
    except OSError as error:  # a name that is too long
        raise InputError(f"{_short(path)} cannot be read: {error.strerror or error}; give another file") from None
    if not found:
        raise InputError(f"there is no file {path}")


def _short(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 300 else f"{text[:100]} … {text[-100:]}"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
