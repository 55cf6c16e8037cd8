"""Tables from files: Parquet, CSV or Arrow IPC, by suffix; and patterns that name several files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from splitjoin.base.errors import InputError, first_line
from splitjoin.base.ipc import read_ipc_stream, translated
from splitjoin.lang.layouts import decoded, is_encoded
from splitjoin.lang.types import Binary, String, Timestamp, finer, from_arrow

from .csv_source import CsvSource
from .csv_values import read_csv
from .csv_words import csv_cure
from .file_names import check_no_log, is_url, known, short
from .formats import format_of
from .stated import UNSTATED, StatedColumns


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """A type to which columns of types ``a`` and ``b`` are cast without another value; None if there is none.

    It may hold only most values of one of them, such as float64 those of int64: the cast raises for others.
    """
    if a == b or pa.types.is_null(b):
        return a
    if pa.types.is_null(a):
        return b
    if pa.types.is_dictionary(a) and pa.types.is_dictionary(b) and (a.value_type, a.ordered) == (b.value_type,
                                                                                                 b.ordered):
        return max(a, b, key=lambda type_: type_.index_type.bit_width)
    if is_encoded(a) or is_encoded(b):
        return common_type(a.value_type if is_encoded(a) else a, b.value_type if is_encoded(b) else b)
    ta, tb = from_arrow(a), from_arrow(b)
    if isinstance(ta, Timestamp) and isinstance(tb, Timestamp):
        return None if (ta.tz is None) != (tb.tz is None) else pa.timestamp(finer(ta.unit, tb.unit), ta.tz)
    for date, time in ((a, tb), (b, ta)):
        if pa.types.is_date(date) and isinstance(time, Timestamp):
            unit = time.unit if pa.types.is_date32(date) else finer("ms", time.unit)
            return None if time.tz is not None else pa.timestamp(unit)
    if isinstance(ta, String) and isinstance(tb, String):
        return pa.large_string()
    if isinstance(ta, Binary) and isinstance(tb, Binary):
        return pa.large_binary()
    if pa.uint64() in (a, b) and pa.types.is_integer(a) and pa.types.is_integer(b):
        return pa.uint64()
    if (pa.types.is_nested(a) or isinstance(ta, (String, Binary)) or isinstance(tb, (String, Binary))
            or (pa.types.is_decimal(a) and pa.types.is_floating(b))
            or (pa.types.is_floating(a) and pa.types.is_decimal(b))):
        return None
    for decimal, whole in ((a, b), (b, a)):
        if pa.types.is_decimal(decimal) and pa.types.is_integer(whole):
            return _with_whole_numbers(decimal, whole)
    try:
        both = pa.unify_schemas([pa.schema([("x", type_)]) for type_ in (a, b)], promote_options="permissive")
    except pa.ArrowException:
        return None
    return both.field("x").type


def _with_whole_numbers(decimal: pa.DataType, whole: pa.DataType) -> pa.DataType:
    """A decimal of up to 38 digits for ``decimal`` and the integer ``whole``, or of up to 76 if it has more."""
    scale = max(decimal.scale, 0)
    digits = max(decimal.precision - decimal.scale, len(str(2**whole.bit_width))) + scale
    if decimal.precision <= 38:
        return pa.decimal128(min(digits, 38), scale)
    return pa.decimal256(min(digits, 76), scale)


#: The first bytes of an Arrow IPC stream: the continuation marker of its first message.
_STREAM = b"\xff\xff\xff\xff"


def read_table(path: str | Path, columns: Sequence[str] | None = None,
               types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """The table in ``path``, or some ``columns``; those of CSV with ``types``, or as their cells tell.

    Raises `InputError` for a missing, unreadable, damaged or unknown file, and for a CSV file that is not in UTF-8 or
    has a column of whole numbers that no type holds exactly.
    """
    path = _input(path)
    with _reading(path):
        return format_of(path).read(path, columns, types or {})


def read_schema(path: str | Path, types: Mapping[str, pa.DataType] | None = None) -> pa.Schema:
    """The schema of `read_table`, without the rows where the format allows that."""
    path = _input(path)
    with _reading(path):
        return format_of(path).schema(path, types or {})


def read_piped(data: pa.Buffer, name: str, stated: StatedColumns = UNSTATED) -> pa.Table:
    """The table in ``data``, an Arrow IPC stream, or else CSV, which is read like a file.

    ``name``: its name in messages; ``stated``: what the user says of its columns. Raises `InputError`.
    """
    if not data.size:
        raise InputError(f"{name} must hold a table, as an Arrow IPC stream or as CSV, but it is empty")
    is_stream = bytes(memoryview(data)[:len(_STREAM)]) == _STREAM
    try:
        with translated():
            found = read_ipc_stream(data) if is_stream else read_csv(CsvSource(data, name), stated.types or {})
        stated.check_types(found.schema, csv=not is_stream)
        return stated.table(found)
    except (pa.ArrowException, OSError) as error:
        cure = "it must be an Arrow IPC stream or CSV" if is_stream else csv_cure(CsvSource(data, name), name)
        raise InputError(f"{name} cannot be read as {'an Arrow IPC stream' if is_stream else 'CSV'}: "
                         f"{first_line(error)}; {cure}") from None


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Within the block, `InputError` is raised for bytes of ``path`` that Arrow cannot read."""
    try:
        with translated():
            yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as {path.suffix[1:].upper()}: {first_line(error)}"
                         f"{format_of(path).cure(path)}") from None


@dataclass(frozen=True)
class TableFiles:
    """A table in files, whose rows follow each other in the order of ``paths``; ``name``: the user's name of it, and
    ``stated``: what the user says of its columns.
    """

    paths: tuple[Path, ...]
    name: str
    stated: StatedColumns = UNSTATED

    @property
    def columnar(self) -> bool:
        """True if schema and single columns can be read without all the rest."""
        return all(format_of(path).columnar for path in self.paths)

    @classmethod
    def find(cls, given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
             stated: StatedColumns = UNSTATED) -> TableFiles:
        """The file ``given``, the files of a pattern such as ``day-*.parquet`` by name, or of a list as it is.

        ``~`` is the home folder. Raises `InputError` where there is none.
        """
        if isinstance(given, (str, os.PathLike)):
            name = os.path.expanduser(given)
            if glob.has_magic(name) and not is_url(name) and not Path(name).exists():
                found = tuple(Path(path) for path in sorted(glob.glob(name, recursive=True)))
                if not found:
                    raise InputError(f"no file fits the pattern {name}")
                for folder in {one.parent for one in found}:
                    check_no_log(folder.absolute())
                return cls(found, name, stated)
            return cls((_input(name),), name, stated)
        parts = [cls.find(one) for one in given]
        if not parts:
            raise InputError("a list of files must name at least one")
        return cls(tuple(path for part in parts for path in part.paths), f"{parts[0].name}, …", stated)

    def schema(self) -> pa.Schema:
        """The schema, as `read` gives it, without reading rows where the format allows that."""
        return self.stated.schema(_unified(self, [self._checked(read_schema(path, self.stated.types), path)
                                                  for path in self.paths]))

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The table, or some ``columns``. Raises `InputError`, also for files whose columns or their types differ."""
        tables = [read_table(path, columns, self.stated.types) for path in self.paths]
        schema = _unified(self, [self._checked(table.schema, path)
                                 for path, table in zip(self.paths, tables, strict=True)])
        return self.stated.table(tables[0] if len(tables) == 1 else pa.concat_tables([
            _converted(table, schema, path) for path, table in zip(self.paths, tables, strict=True)]))

    def _checked(self, schema: pa.Schema, path: Path) -> pa.Schema:
        self.stated.check_types(schema, csv=not format_of(path).columnar)
        return schema

    def nbytes(self, columns: Sequence[str]) -> int:
        """About how many bytes some ``columns`` have in memory, without reading rows; `columnar` must hold."""
        found = 0
        for path in self.paths:
            with _reading(path):
                found += format_of(path).nbytes(path, columns)
        return found

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
        """Some ``columns`` in parts of about ``rows``, of which memory holds one; `columnar` must hold. Raises
        `InputError` like `read`.
        """
        schema = pa.schema([self.schema().field(name) for name in columns])
        for path in self.paths:
            with _reading(path):
                for batch in format_of(path).batches(path, rows, columns):
                    yield self.stated.table(_converted(pa.Table.from_batches([batch]), schema, path))


def _unified(files: TableFiles, schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The one schema of several files: the columns of the first, with types that hold the values of all."""
    first = schemas[0]
    for path, schema in zip(files.paths[1:], schemas[1:], strict=True):
        if sorted(schema.names) != sorted(first.names):
            raise InputError(f"the files of {files.name} must have the same columns, but {files.paths[0]} has "
                             f"{', '.join(first.names)}, and {path} {', '.join(schema.names)}")
        for at, name in enumerate(first.names):
            a, b = first.field(at), schema.field(name)
            type_ = common_type(a.type, b.type)
            if type_ is None:
                raise InputError(f"the files of {files.name} must have columns whose types have one in common, but "
                                 f"{name!r} is {a.type} in {files.paths[0]} and {b.type} in {path}; write both as "
                                 f"Parquet files of one type")
            first = first.set(at, a.with_type(type_).with_nullable(a.nullable or b.nullable))
    return first


def _converted(table: pa.Table, schema: pa.Schema, path: Path) -> pa.Table:
    """``table``, from the file ``path``, with the columns of ``schema``, their values unchanged."""
    columns = []
    for field in schema:
        column = table.column(field.name)
        try:
            if is_encoded(column.type) and not is_encoded(field.type):
                column = decoded(column)
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowInvalid as error:
            raise InputError(f"the column {field.name!r} has type {field.type} because of the other files, which must "
                             f"hold all values of {path}, where it is {column.type}: {first_line(error)}; write all "
                             f"as Parquet files of one type") from None
    return pa.Table.from_arrays(columns, schema=schema)


def _input(path: str | Path) -> Path:
    """``path``, if it is a file that a table can be in."""
    if is_url(path):
        raise InputError(f"the input must be a file of this machine, but {path} is a URL; download it first")
    path = Path(path)
    try:
        if path.is_dir():
            check_no_log(path.absolute())
            raise InputError(f"the input must be one file, but {path} is a folder; give a pattern for the files "
                             f"in it, such as '{path}/*.parquet'")
        if not known(path, read=True).is_file():
            raise InputError(f"there is no file {path}")
    except OSError as error:  # a name that is too long
        raise InputError(f"{short(path)} cannot be read: {error.strerror or error}; give another file") from None
    return path
