"""Tables from standard input and to standard output, which the command line calls ``-``: Arrow IPC streams or CSV."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc

from ..errors import InputError, first_line
from ..files import check_columns, check_output
from ..ipc import read_ipc_stream
from ..safe_text import printable
from ..tables import as_table

__all__ = ["FORMATS", "STANDARD", "check_schema", "check_target", "once", "read_source", "reporting", "shown",
           "write_target"]

#: The name of standard input and output.
STANDARD = "-"
#: Formats of standard output.
FORMATS = ("arrow", "csv")
#: The first bytes of an Arrow IPC stream: the continuation marker of its first message.
_STREAM = b"\xff\xff\xff\xff"


def once(names: list[str]) -> None:
    """Raise `InputError` if more than one of ``names`` is standard input."""
    if names.count(STANDARD) > 1:
        raise InputError("standard input holds one table, but - stands for two; give the other one as a file")


def read_source(name: str) -> pa.Table:
    """The table in the file ``name``, or in those of a pattern, or from standard input: an Arrow IPC stream, or else
    CSV. Raises `InputError`.
    """
    if name != STANDARD:
        return as_table(name, name)
    data = sys.stdin.buffer.read()
    if not data:
        raise InputError("standard input must hold a table, as an Arrow IPC stream or as CSV, but it is empty")
    form = "an Arrow IPC stream" if data.startswith(_STREAM) else "CSV"
    try:
        if data.startswith(_STREAM):
            return read_ipc_stream(data)
        table = pyarrow.csv.read_csv(io.BytesIO(data))
        _ = table.column_names  # Arrow checks the UTF-8 of a header only here
        return table
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"standard input cannot be read as {form}: {first_line(error)}; it must be an Arrow IPC "
                         f"stream or CSV") from None


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
    """

    def __init__(self, out: IO[str]):
        self._out = out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        self._out.write(printable(text))
        return len(text)


@contextmanager
def shown() -> Iterator[None]:
    """Within the block, what is printed holds no characters that a terminal obeys."""
    if sys.stdout is None:  # the caller has closed it
        yield
        return
    with redirect_stdout(cast(IO[str], _Shown(sys.stdout))):
        yield


@contextmanager
def reporting(name: str) -> Iterator[IO[str]]:
    """Within the block, what is printed goes to standard error if ``name`` is standard output; yields the latter."""
    out = sys.stdout
    if name != STANDARD:
        yield out
        return
    with redirect_stdout(cast(IO[str], _Shown(sys.stderr))):
        yield out


def write_target(table: pa.Table, form: str | None, out: IO[str]) -> None:
    """Write ``table`` to standard output ``out``, in the format ``form``. Raises `InputError`.

    A reader that goes away ends the process quietly, as it would end others.
    """
    made = io.BytesIO()
    if form == "csv":
        pyarrow.csv.write_csv(table, made)
    else:
        with pa.ipc.new_stream(made, table.schema) as writer:
            writer.write_table(table)
    try:
        out.buffer.write(made.getbuffer())  # type: ignore[attr-defined]  # of a text stream over bytes
        out.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())  # Python flushes again when it ends
    except OSError as error:
        raise InputError(f"standard output cannot be written: {error.strerror or error}") from None
