"""Tables of intervals as arrays of whole numbers, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError, OptionError, SchemaError
from splitjoin.joins.join import join
from splitjoin.lang.schema import suggest
from splitjoin.tables.inputs import Rows, as_table

Numbers = Ints
_MAX = 2**63 - 1


@dataclass(frozen=True)
class Intervals:
    """A table's intervals, half-open.

    Attributes:
        table: The table as it was given.
        start, end: The names of its columns.
        closed: True if the table's ends belong to its intervals.
        rows: The numbers of the rows that have an interval: no NULL in start, end and the columns of the group.
        group: The group of each of these; 0, 1, … in the order in which groups come first.
        low, high: Where each begins, and where it has ended.
    """

    table: pa.Table
    start: str
    end: str
    closed: bool
    rows: Numbers
    group: Numbers
    low: Numbers
    high: Numbers

    def as_columns(self, low: Numbers, high: Numbers) -> dict[str, pa.Array]:
        """Columns start and end, of the table's types, of the intervals from ``low`` to before ``high``."""
        return {name: _of_type(values, self.table.schema.field(name).type)
                for name, values in ((self.start, low), (self.end, high - 1 if self.closed else high))}

    def with_bounds(self, rows: Numbers, low: Numbers, high: Numbers) -> pa.Table:
        """The table's ``rows`` with other bounds."""
        found = self.table.take(pa.array(rows))
        for name, values in self.as_columns(low, high).items():
            at = found.schema.get_field_index(name)
            found = found.set_column(at, found.schema.field(at).with_nullable(True), values)
        return found


def intervals_of(tables: Sequence[tuple[Rows, str]], by: str | Sequence[str] | None, start: str, end: str,
                 closed: bool) -> list[Intervals]:
    """The intervals of ``tables``, each with what messages call it; groups have the same numbers in all of them.

    Raises `SchemaError` if a column is missing or of a type that has no steps, or of another type in another table;
    `InputError` if an interval ends before it starts.
    """
    names = [by] if isinstance(by, str) else list(by or ())
    if len({*names, start, end}) < len(names) + 2:
        raise OptionError(f"start, end and by must be different columns, but are {start}, {end} and {', '.join(names)}")
    read = [(as_table(data, name), name) for data, name in tables]
    for table, name in read:
        for column in (*names, start, end):
            if column not in table.column_names:
                raise SchemaError(f"{name} must have the column {column!r}, but has {', '.join(table.column_names)}"
                                  f"{suggest(column, table.column_names)}; start=, end= and by= name the columns")
    for column in (start, end):
        kinds = {str(table.schema.field(column).type): name for table, name in read}
        if len(kinds) > 1:
            raise SchemaError(f"column {column!r} must have one type in both tables, but has "
                              f"{' and '.join(kinds)}; cast one of them")
    known = [table.column(start).is_valid().to_numpy() & table.column(end).is_valid().to_numpy() for table, _ in read]
    codes = [np.zeros(len(table), np.int64) for table, _ in read]
    if names:
        codes = _groups([table.select(names) for table, _ in read])
        known = [valid & (code >= 0) for valid, code in zip(known, codes, strict=True)]
    found = []
    for (table, name), valid, code in zip(read, known, codes, strict=True):
        rows = np.flatnonzero(valid)
        low, high = (_whole(table.column(column), column, name)[rows] for column in (start, end))
        wrong = np.flatnonzero(low > high)
        if len(wrong):
            row = int(rows[wrong[0]])
            raise InputError(f"an interval must not end before it starts, but row {row} of {name} goes from "
                             f"{table.column(start)[row]} to {table.column(end)[row]}; swap them, or leave it out")
        if closed and len(high) and high.max() == _MAX:
            raise InputError(f"the ends of closed intervals must be below 2**63 - 1, but {name} has that one")
        found.append(Intervals(table, start, end, closed, rows, code[rows], low, high + closed))
    return found


def with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """``table`` with a further column. Raises `OptionError` if it has one of this ``name``."""
    if name in table.column_names:
        raise OptionError(f"name must be that of no other column, but there is {name!r}; give another name=")
    return table.append_column(name, values)


def whole_number(value: Any, name: str, least: int) -> int:
    """``value`` as it is. Raises `OptionError` unless it is a whole number, ``least`` or more."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise OptionError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def _groups(tables: Sequence[pa.Table]) -> list[Numbers]:
    """Numbers of the groups of each table's rows, −1 where a column is NULL."""
    try:
        together = pa.concat_tables([table.replace_schema_metadata(None) for table in tables],
                                    promote_options="permissive")
    except pa.ArrowException as error:
        raise SchemaError(f"the columns of by= must have types that can be compared: {error}") from error
    number = np.zeros(len(together), np.int64)
    null = np.zeros(len(together), bool)
    for name, column in zip(together.column_names, together.columns, strict=True):
        if pa.types.is_nested(column.type):
            raise SchemaError(f"columns of by= must not be nested, but {name!r} is {column.type}; make columns of its "
                              f"parts")
        encoded = pc.dictionary_encode(column).combine_chunks()
        codes = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
        null |= codes < 0
        number = np.unique(number * (len(encoded.dictionary) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    first = np.full(int(number.max(initial=-1)) + 1, len(number), np.int64)
    np.minimum.at(first, number, np.arange(len(number)))
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    number = np.where(null, -1, rank[number] if len(number) else number)
    return np.split(number, np.cumsum([len(table) for table in tables])[:-1])


def _whole(column: Any, name: str, table: str) -> Numbers:
    """``column`` as int64, with 0 for NULL."""
    kind = column.type
    steps = pa.types.is_integer(kind) or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
    if not steps:
        raise SchemaError(f"column {name!r} of {table} must hold whole numbers, dates, times or durations, but is "
                          f"{kind}; for floats, join by 'r.{name} < s.…' with splitjoin.join")
    if pa.types.is_date64(kind) or _narrow(kind):
        column = column.cast(pa.int64() if pa.types.is_date64(kind) else pa.int32())
    try:
        return np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy())
    except pa.ArrowException as error:
        raise InputError(f"column {name!r} of {table} must fit 64 bits with a sign: {error}") from error


def _of_type(values: Numbers, kind: pa.DataType) -> pa.Array:
    """``values`` as an Arrow array of ``kind``."""
    whole = pa.array(values, pa.int64())
    return whole.cast(pa.int32()).cast(kind) if _narrow(kind) else whole.cast(kind)


def _narrow(kind: pa.DataType) -> bool:
    """True for dates and times of day of 32 bits, which Arrow casts from int32 alone."""
    return bool(pa.types.is_temporal(kind)) and kind.bit_width == 32


#: The condition on tables that `bounds_of` gives.
OVERLAP = "r.g = s.g AND r.lo < s.hi AND s.lo < r.hi"


def overlapping(left: Intervals, right: Intervals) -> tuple[Numbers, Numbers]:
    """The rows of both tables whose intervals overlap, in the order of these rows."""
    if not len(left.rows) or not len(right.rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    found = join(bounds_of(left, "n"), bounds_of(right, "m"), on=OVERLAP, order="none", select=["n", "m"]).to_arrow()
    mine, theirs = found.column("n").to_numpy(), found.column("m").to_numpy()
    order = np.lexsort((theirs, mine))
    return mine[order], theirs[order]


def bounds_of(intervals: Intervals, row: str) -> pa.Table:
    """Group, bounds, and in the column ``row`` the row number of each interval."""
    return pa.table({"g": intervals.group, "lo": intervals.low, "hi": intervals.high, row: intervals.rows})
