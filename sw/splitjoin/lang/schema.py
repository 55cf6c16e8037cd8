"""Schemas: the columns of a stream, taken from an Arrow schema."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from splitjoin.base.errors import SchemaError

from .field import check_range, range_of
from .types import Opaque, Type, column_type, plain

#: The stream that a column or a tuple belongs to.
Side = Literal["r", "s"]
#: Both streams, R first: a stream's index here is its number in records and result items.
SIDES: tuple[Side, Side] = ("r", "s")


#: The beginning of the name of a type that conditions cannot use → how else it is written.
_WAYS = {"extension<pandas.period": ", such as by .dt.to_timestamp()", "extension<pandas.interval": ", to its ends: "
         ".array.left and .right", "struct<": ", or over tables name a field of it, as in r.a.b",
         "list<": ", or over tables write list_contains(r.a, s.b) in splitjoin.sql"}


def other_side(side: str) -> Side:
    """The stream that tuples of stream ``side`` are joined with."""
    return "s" if side == "r" else "r"


@dataclass(frozen=True)
class Column:
    """One column: its name, its type, whether it may hold NULL, and the range of its values if one is known.

    ``range``: see `splitjoin.lang.ir.Col`.
    """

    name: str
    type: Type
    nullable: bool
    range: tuple[int, int] | None = None


class Schema:
    """The columns of one stream, in order.

    Column names are matched exactly first, then without regard to case if that is unambiguous, as Spark does.
    ``arrow`` is the Arrow schema that it was made from, None where there was none.
    """

    def __init__(self, side: Side, columns: Iterable[Column], arrow: pa.Schema | None = None):
        self.side: Side = side
        self.arrow = arrow
        self.columns = tuple(columns)
        names = [c.name for c in self.columns]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise SchemaError(f"column names of stream {side} must be unique, but {', '.join(map(repr, twice))} "
                              f"occurs more than once; rename the columns")

    @classmethod
    def from_arrow(cls, side: Side, schema: pa.Schema) -> Schema:
        """The schema of stream ``side`` ("r" or "s"). A field's nullability is taken as declared."""
        return cls(side, (Column(f.name, column_type(f.type), f.nullable, range_of(f)) for f in schema), schema)

    @classmethod
    def from_table(cls, side: Side, table: pa.Table) -> Schema:
        """Like `from_arrow`, but a column is nullable exactly if it holds NULL, whatever its field declares."""
        return cls(side, (Column(f.name, column_type(f.type, table.column(i)), plain(table.column(i)).null_count > 0,
                                 range_of(f)) for i, f in enumerate(table.schema)), table.schema)

    def check(self, table: pa.Table) -> None:
        """Raise `InputError` for the first value of ``table`` outside its column's range. Columns may be missing."""
        for column in self.columns:
            if column.range is not None and column.name in table.column_names:
                check_range(f"{self.side}.{column.name}", table.column(column.name), column.range)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [c.name for c in self.columns]

    def find(self, name: str) -> Column:
        """The column called ``name``, of any type. Raises `SchemaError`, which lists all names, if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        folded = [c for c in self.columns if c.name.lower() == name.lower()]
        if len(folded) == 1:
            return folded[0]
        if folded:
            raise SchemaError(f"column {self.side}.{name} is ambiguous: it could be "
                              f"{' or '.join(repr(c.name) for c in folded)}; write the exact name")
        raise SchemaError(f"stream {self.side} has no column {name!r}{suggest(name, self.names)}; "
                          f"its columns are {', '.join(self.names) or '(none)'}{self.dropped_index()}")

    def dropped_index(self) -> str:
        """A hint, for the error on a missing column, that the index of a DataFrame has no name and so is no column.

        It is empty for other streams, and for an index that only numbers the rows.
        """
        for index in ((self.arrow.pandas_metadata or {}) if self.arrow is not None else {}).get("index_columns", []):
            if isinstance(index, str) and index not in self.names:
                return ("; the index of the DataFrame has no name, so it is no column: give it one, such as "
                        "frame.rename_axis('ts')")
        return ""

    def __getitem__(self, name: str) -> Column:
        """The column called ``name``. Raises `SchemaError` also if its type cannot be used in expressions."""
        column = self.find(name)
        if isinstance(column.type, Opaque):
            way = next((way for kind, way in _WAYS.items() if column.type.arrow.startswith(kind)), "")
            raise SchemaError(f"column {self.side}.{column.name} has type {column.type}, which a join condition cannot "
                              f"use; it may hold integer, float, decimal (up to 38 digits), bool, date, timestamp, "
                              f"time, duration, string and binary columns (cast it before the join{way})")
        return column


class UnknownName(SchemaError):
    """A name of a column or a table that no table has, or several have, so that no other engine knows it either."""


def suggest(word: str, words: Iterable[str], *, likeness: float = 0.6) -> str:
    """`` (did you mean 'x'?)`` when one of ``words`` is close to ``word``, else the empty string. If the only word is a
    row of names that something else than a comma separates, with ``word`` among them, the text says so instead.

    ``likeness``: how close it must be, from 0 to 1, as `difflib.get_close_matches` measures it.
    """
    words = list(words)
    if len(words) == 1:
        for separator in ";\t|":
            if word in (name.strip() for name in words[0].split(separator)) and separator in words[0]:
                return f" (the values of a CSV file must be separated by commas, not by {separator!r})"
    close = difflib.get_close_matches(word, words, n=1, cutoff=likeness)
    return f" (did you mean {close[0]!r}?)" if close else ""
