"""Tables from and to files: Parquet or CSV, by suffix."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from .errors import InputError

__all__ = ["check_output", "read_schema", "read_table", "write_table"]

_SUFFIXES = (".parquet", ".csv")


def read_table(path: str | Path) -> pa.Table:
    """The table in ``path``. Raises `InputError` for a missing, unreadable or unknown file."""
    path = _known(Path(path))
    _must_exist(path)
    try:
        return pyarrow.parquet.read_table(path) if path.suffix.lower() == ".parquet" else pyarrow.csv.read_csv(path)
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
    handle, part = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    try:
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
        Path(part).unlink(missing_ok=True)


def check_output(path: str | Path) -> Path:
    """``path``, if a table could be written there. Raises `InputError`, before any work is done."""
    path = _known(Path(path))
    if not path.parent.is_dir():
        raise InputError(f"the folder of the output must exist, but {path.parent} does not; create it first")
    return path


def _known(path: Path) -> Path:
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"the format of a file is told by its suffix, which must be .parquet or .csv, but {path} has "
                         f"{path.suffix or 'none'}")
    return path


def _must_exist(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"there is no file {path}")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
