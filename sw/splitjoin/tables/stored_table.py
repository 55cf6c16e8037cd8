"""A table that was written to a file: it reads with the schema that it was written with, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from splitjoin.base.errors import InputError, first_line
from splitjoin.base.ipc import translated

from .formats import format_of
from .stored import from_stored, stored_schema


@dataclass(frozen=True)
class StoredTable:
    """A table in the file ``path``, as a `TableWriter` has written it.

    ``schema``: its schema, which the file may express by other types. ``rows``: their number. ``nbytes``: about how
    many bytes they take in memory. ``dictionaries``: by name, the values of columns with a dictionary, in its order.
    ``signature``: what `signature` gives for the file as long as it holds this table.
    """

    path: Path
    schema: pa.Schema
    rows: int
    nbytes: int
    dictionaries: dict[str, pa.Array]
    signature: tuple[int, int, int]

    def read(self) -> pa.Table:
        """The table. Raises `InputError` if the file is gone, or is another one by now."""
        with self._reading():
            form = format_of(self.path)
            found = form.read_stored(self.path, stored_schema(self.schema, form))
            return from_stored(found, self.schema, self.dictionaries)

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """The table in batches of at most ``rows``, of which memory holds one. Raises `InputError` like `read`."""
        with self._reading():
            form = format_of(self.path)
            for batch in form.stored_batches(self.path, rows, stored_schema(self.schema, form)):
                table = from_stored(pa.Table.from_batches([batch]), self.schema, self.dictionaries)
                yield from table.to_batches(max_chunksize=rows)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            if signature(self.path) != self.signature:
                raise InputError(f"the rows of this result were in {self.path}, but that file has been replaced or "
                                 f"changed since; run the join again, and give each result a file of its own")
            with translated():
                yield
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self.path}, which holds the rows of this result, cannot be read: {first_line(error)}"
                             ) from None


def signature(path: Path) -> tuple[int, int, int]:
    """The number, size and time of change of a file: another table in its place has others."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def merged(known: dict[str, pa.Array], table: pa.Table) -> None:
    """Add to ``known``, the values of columns with a dictionary by name, those of ``table`` that are not among them."""
    for field, column in zip(table.schema, table.columns, strict=True):
        if not pa.types.is_dictionary(field.type):
            continue
        for chunk in column.chunks:
            old, new = known.get(field.name), chunk.dictionary
            if old is None or not old.equals(new):
                with suppress(pa.ArrowNotImplementedError):  # as for lists, whose rows get entries of their own
                    known[field.name] = pa.chunked_array([new] if old is None else [old, new]).unique().drop_null()
