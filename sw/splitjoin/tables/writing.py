"""Tables to files: whole or not at all, in one piece or in parts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from splitjoin.base import disk
from splitjoin.base.errors import InputError, first_line
from splitjoin.lang.layouts import empty_table

from .file_names import is_url, known, short
from .formats import format_of
from .stored import stored_schema, to_stored
from .stored_table import StoredTable, merged, signature

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
        self._format = format_of(self.path)
        self._stored = stored_schema(schema, self._format)
        self._rows = self._nbytes = 0
        self._schema = schema
        self._dictionaries: dict[str, pa.Array] = {}
        self._stack = ExitStack()
        self._writer: Any = None
        self._waiting: list[pa.Table] = []
        self._held = 0

    def __enter__(self) -> TableWriter:
        with self._translated(), ExitStack() as stack:
            file = stack.enter_context(disk.replacing(target_of(self.path)))
            self._writer = stack.enter_context(self._format.writer(file, self._stored))
            self._stack = stack.pop_all()
        return self

    def write(self, rows: pa.Table) -> None:
        """Add ``rows``, a table with the schema."""
        self._rows += len(rows)
        self._nbytes += rows.nbytes
        merged(self._dictionaries, rows)
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
                self._write(pa.concat_tables([empty_table(self._schema), *self._waiting]))
            except BaseException as failed:
                with suppress(pa.ArrowException, OSError):  # of Arrow's writer, which still has rows to write
                    self._stack.__exit__(type(failed), failed, failed.__traceback__)
                raise
        with self._translated():
            self._stack.__exit__(kind, error, trace)

    def stored(self) -> StoredTable:
        """The table that has been written, once the block has ended."""
        return StoredTable(self.path, self._schema, self._rows, self._nbytes, self._dictionaries, signature(self.path))

    def _write(self, rows: pa.Table) -> None:
        table = to_stored(rows, self._stored, self._format)
        with self._translated():
            self._writer.write_table(table.combine_chunks() if self._format.combined else table)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except disk.NotDurable as error:
            raise InputError(f"{first_line(error)}; look at the disk, and write it again") from None
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self.path} cannot be written: {first_line(error)}") from None


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
        target = target_of(path)
        if not target.parent.is_dir():
            raise InputError(f"the folder of the output must exist, but {target.parent} does not; create it first")
        if target.is_dir():
            raise InputError(f"the output must be a file, but {path} is a folder; give a file in it, or another name")
        if target.exists() and not target.is_file():
            raise InputError(f"the output must be a file, but {path} is a device or a pipe; give another name")
        # Only trying tells whether a file can be made there: root may write to every folder, but not to all of /proc.
        with tempfile.NamedTemporaryFile(prefix=disk.PART, dir=target.parent):
            pass
    except OSError as error:
        raise InputError(f"{short(path)} cannot be written: {error.strerror or error}; give another folder or name"
                         ) from None
    return path


def check_columns(schema: pa.Schema, path: str | Path) -> None:
    """Raise `InputError` for the first column of ``schema`` that the format of ``path`` cannot hold."""
    stored_schema(schema, format_of(path))


def target_of(path: Path) -> Path:
    """The file that ``path`` leads to through symbolic links. Raises `OSError` for links in a circle."""
    if not path.is_symlink():
        return path
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        target.stat()
    return target
