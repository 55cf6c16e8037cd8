"""Tables from standard input and to standard output, which the command line calls ``-``: Arrow IPC streams or CSV."""

from __future__ import annotations

import io
import mmap
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import IO, Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc

from splitjoin.base.errors import InputError, first_line
from splitjoin.base.safe_text import printable
from splitjoin.tables import TableFiles, check_columns, check_output, format_of, read_piped, stored_schema, to_stored
from splitjoin.tables.stated import UNSTATED, StatedColumns

#: The name of standard input and output.
STANDARD = "-"
#: Formats of standard output.
FORMATS = ("arrow", "csv")


def once(names: list[str]) -> None:
    """Raise `InputError` if more than one of ``names`` is standard input."""
    if names.count(STANDARD) > 1:
        raise InputError("standard input holds one table, but - stands for two; give the other one as a file")


def read_source(name: str, stated: StatedColumns = UNSTATED) -> pa.Table:
    """The table in the file ``name``, or in those of a pattern, or from standard input: an Arrow IPC stream, or else
    CSV; its columns as ``stated``. Raises `InputError`.
    """
    if name != STANDARD:
        return TableFiles.find(name, stated).read()
    return read_piped(_spooled(), "standard input", stated)


def _spooled() -> pa.Buffer:
    """The bytes of standard input, in a file without a name, as a table is read from it more than once."""
    if sys.stdin is None:
        raise InputError("standard input must hold a table, but it is closed; pipe a table into it, or give a file")
    try:
        with tempfile.TemporaryFile() as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
            file.flush()
            return pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file.tell() else b"")
    except OSError as error:
        raise InputError(f"standard input must fit into a file of the folder for temporary files, but that failed: "
                         f"{error.strerror or error}; make room there, or set TMPDIR to another folder") from None


def check_target(name: str, form: str | None, out: IO[str]) -> None:
    """Raise `InputError` if no table could be written to ``name``, or to standard output ``out`` in format ``form``."""
    if name != STANDARD:
        if form is not None:
            raise InputError(f"--format is for standard output, and the format of {name} follows from its suffix; "
                             f"leave it out, or write -o -")
        check_output(name)
    elif out.isatty() and form != "csv":
        raise InputError("an Arrow IPC stream is not for a terminal; write --format csv, pipe it on, or give -o FILE")


def check_schema(schema: pa.Schema, name: str, form: str | None) -> None:
    """Raise `InputError` for the first column of ``schema`` that the target cannot hold."""
    check_columns(schema, name if name != STANDARD else f"standard output.{form or FORMATS[0]}")


class _Shown:
    """The text output ``out``, which gets escapes in place of characters that a terminal obeys: names of columns, files
    and applications come from others. Bytes, such as tables, go to its ``buffer`` as they are.

    Once it is no longer ``escaping``, texts do too: whoever has kept it, as colorama does, which numba imports, may end
    the process with a sequence that resets the terminal.
    """

    def __init__(self, out: IO[str]):
        self._out, self.escaping = out, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        self._out.write(printable(text) if self.escaping else text)
        return len(text)


@contextmanager
def _printing(out: IO[str]) -> Iterator[None]:
    """Within the block, what is printed goes to ``out`` through `_Shown`."""
    escaped = _Shown(out)
    try:
        with redirect_stdout(cast(IO[str], escaped)):
            yield
    finally:
        escaped.escaping = False


def log_event(command: str, event: str) -> None:
    """Write a line about an ``event`` of ``command`` to standard error."""
    text = printable(event).replace("\n", r"\n")  # names that clients give themselves are in it: one event, one line
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} splitjoin {command}: {text}", file=sys.stderr, flush=True)


@contextmanager
def shown() -> Iterator[None]:
    """Within the block, what is printed holds no characters that a terminal obeys."""
    if sys.stdout is None:  # the caller has closed it
        yield
        return
    with _printing(sys.stdout):
        yield


@contextmanager
def reporting(name: str) -> Iterator[IO[str]]:
    """Within the block, what is printed goes to standard error if ``name`` is standard output; yields the latter."""
    out = sys.stdout
    if name != STANDARD:
        yield out
        return
    with _printing(sys.stderr):
        yield out


def write_target(table: pa.Table, form: str | None, out: IO[str]) -> None:
    """Write ``table`` to standard output ``out``, in the format ``form``. Raises `InputError`.

    A reader that goes away ends the process quietly, as it would end others.
    """
    if form == "csv":
        stored = format_of("-.csv")
        table = to_stored(table, stored_schema(table.schema, stored), stored)
    whole = _Whole(out.buffer)  # type: ignore[attr-defined]  # of a text stream over bytes
    try:
        if form == "csv":
            pyarrow.csv.write_csv(table, whole)
        else:
            with pa.ipc.new_stream(whole, table.schema) as writer:
                writer.write_table(table)
        out.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())  # Python flushes again when it ends
    except OSError as error:
        raise InputError(f"standard output cannot be written: {error.strerror or first_line(error)}") from None


class _Whole(io.RawIOBase):
    """A binary stream to ``out`` that writes all it is given, where that takes several writes: an unbuffered file, as
    PYTHONUNBUFFERED makes standard output, writes as much as fits, and never more than 2 GiB.
    """

    def __init__(self, out: BinaryIO):
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write all of ``data``; gives the number of its bytes."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        while len(rest):
            rest = rest[self._out.write(rest) or 0:]
        return size
