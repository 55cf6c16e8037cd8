"""Tables to files: whole or not at all, in one piece or in parts."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from ..errors import InputError, first_line
from ..lang.types import plain
from .names import IPC, is_url, known, short

__all__ = ["TableWriter", "check_columns", "check_output", "replacing", "write_table"]

#: How the names of half-written files begin.
_PART = ".splitjoin-"
#: Rows that are written together, whatever the parts that they come in: the same rows make the same file.
_GROUP = 1 << 20


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write ``table`` to ``path``, whole or not at all: a file that was there stays until the new one is complete.

    A symbolic link stays, and the file that it leads to is written. Raises `InputError`.
    """
    with TableWriter(path, table.schema) as writer:
        writer.write(table)


class TableWriter:
    """A table that is written to ``path`` in parts, as a context manager: the file is there when the block ends.

    If the block raises, the file that was there before stays. Raises `InputError`, before anything is written where
    the place or the format does not suit ``schema``.
    """

    def __init__(self, path: str | Path, schema: pa.Schema):
        self.path = check_output(path)
        check_columns(schema, self.path)
        self.rows = 0
        self._schema = schema
        self._stack = ExitStack()
        self._writer: Any = None
        self._waiting: list[pa.Table] = []
        self._held = 0

    def __enter__(self) -> TableWriter:
        with self._translated(), ExitStack() as stack:
            part = stack.enter_context(replacing(self.path))
            suffix = self.path.suffix.lower()
            schema = _writable(self._schema.empty_table(), suffix).schema
            if suffix == ".parquet":
                made = pyarrow.parquet.ParquetWriter(part, schema)
            elif suffix in IPC:
                made = pa.ipc.new_file(str(part), schema)
            else:
                made = pyarrow.csv.CSVWriter(part, schema)
            self._writer = stack.enter_context(made)
            self._stack = stack.pop_all()
        return self

    def write(self, rows: pa.Table) -> None:
        """Add ``rows``, a table with the schema."""
        self.rows += len(rows)
        self._waiting.append(rows)
        self._held += len(rows)
        if self._held >= _GROUP:
            table = pa.concat_tables(self._waiting)
            whole = self._held - self._held % _GROUP
            for at in range(0, whole, _GROUP):
                self._write(table.slice(at, _GROUP))
            self._waiting, self._held = [table.slice(whole)], self._held - whole

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if kind is None:
            try:
                self._write(pa.concat_tables([self._schema.empty_table(), *self._waiting]))
            except BaseException as failed:
                self._stack.__exit__(type(failed), failed, failed.__traceback__)
                raise
        with self._translated():
            self._stack.__exit__(kind, error, trace)

    def _write(self, rows: pa.Table) -> None:
        with self._translated():
            suffix = self.path.suffix.lower()
            table = _writable(rows, suffix)
            self._writer.write_table(table.combine_chunks() if suffix == ".parquet" else table)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self.path} cannot be written: {first_line(error)}") from None


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


def check_output(path: str | os.PathLike[str]) -> Path:
    """``path``, with ``~`` for the home folder, if a table could be written there. Raises `InputError`, before any work
    is done.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"the output must be the path of a file, such as 'out.parquet', not {path!r}")
    if is_url(path):
        raise InputError(f"the output must be a file of this machine, but {path} is a URL; give a file")
    path = known(Path(os.path.expanduser(path)))
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
        raise InputError(f"{short(path)} cannot be written: {error.strerror or error}; give another folder or name"
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


def _target(path: Path) -> Path:
    """The file that ``path`` leads to through symbolic links. Raises `OSError` for links in a circle."""
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        target.stat()
    return target


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


def _writable(table: pa.Table, suffix: str) -> pa.Table:
    """``table`` without the layouts of columns that Arrow does not write into files of ``suffix``."""
    for at, field in enumerate(table.schema):
        if _needs_plain(field.type, suffix):
            table = table.set_column(at, field.name, plain(table.column(at)))
    return table


def _needs_plain(type_: pa.DataType, suffix: str) -> bool:
    if pa.types.is_dictionary(type_):  # an IPC file has one dictionary a column, but each batch brings its own
        return (suffix in IPC or bool(pa.types.is_nested(type_.value_type))
                or type_.value_type in (pa.string_view(), pa.binary_view()))
    if pa.types.is_run_end_encoded(type_):
        return suffix not in IPC
    return suffix == ".csv" and bool(pa.types.is_string_view(type_))
