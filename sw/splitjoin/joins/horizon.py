"""`horizon`: an as-of join of two whole tables at a grid of offsets from the times of the first one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.errors import InputError, OptionError, SchemaError, WindowError
from splitjoin.lang.query import Predicate
from splitjoin.lang.schema import Schema
from splitjoin.lang.time_columns import TimeSpec, time_columns
from splitjoin.lang.types import TIME_UNITS, UNIT_NS
from splitjoin.lang.windows import Tolerance, parse_tolerance
from splitjoin.rows.output import Selected
from splitjoin.tables.inputs import Rows, as_table

from .join import join

_TIMES = (pa.types.is_integer, pa.types.is_floating, pa.types.is_date, pa.types.is_timestamp, pa.types.is_duration)


def horizon(r: Rows, s: Rows, *, offsets: Sequence[Tolerance], time: TimeSpec, on: Predicate = "TRUE",
            tolerance: Tolerance | None = None, name: str = "offset",
            suffixes: Sequence[str | None] | None = None, select: Selected | None = None,
            others: Mapping[str, Rows] | None = None) -> pa.Table:
    """Each row of ``r`` at each of the ``offsets``, with the row of ``s`` as it was at that time: the last one that
    satisfies the condition and is not later than the time of ``r`` plus the offset.

    Args:
        r: The first table, in whatever form `splitjoin.join` takes it. It need not be sorted.
        s: The second one, likewise.
        offsets: Numbers in the unit of ``time``, timedeltas, or texts such as ``"-30 SECONDS"``, below, at or above 0.
        time: The time column of both tables, or a pair: whole numbers, floats, dates, timestamps or durations.
        on: The condition, as `splitjoin.join` takes it, such as ``"r.sym = s.sym"``.
        tolerance: How long before that time the row of ``s`` may be; without it, as long as the table is.
        name: What the column of offsets is called.
        suffixes: As `splitjoin.join` takes them.
        select: The columns of the result, as `splitjoin.join` takes them, such as ``["sym", "offset", "bid"]``: fewer
            take less time.
        others: More tables by their names, each joined as ``s`` is, with the same condition and time.

    Returns:
        A row for each row of ``r`` and each offset, in this order: the columns of ``r``, the offset (a duration, or a
        number where times are numbers), and the columns of ``s``, NULL where it has no such row; or those of
        ``select``. Behind them stand those of ``others``, with ``_`` and the table's name where r, s or a
        table before has the name, too.

    Raises:
        SplitJoinError: If an offset is no whole number of the time's unit, a time plus its offset does not fit the
            type, and as `splitjoin.join` does.
    """
    left, right = as_table(r, "r"), as_table(s, "s")
    times = time_columns(Schema.from_table("r", left), Schema.from_table("s", right), time, whole=True)
    names = {*left.column_names, *right.column_names}
    if name in names:
        raise SchemaError(f"the column of offsets must have a name of its own, but {name!r} is a column of r or s; "
                          f"give another one by name=")
    if isinstance(offsets, str) or not isinstance(offsets, Sequence | np.ndarray) or not len(offsets):
        raise OptionError(f"offsets must be a list of one offset at least, such as [0, 60], not {offsets!r}")
    if others is not None and not isinstance(others, Mapping):
        raise OptionError(f"others must be a mapping from names to tables, not {type(others).__name__}")
    column = left.column(times.r)
    column = column.cast(pa.date32()) if pa.types.is_date64(column.type) else column
    if pa.types.is_null(column.type):  # an empty list, whose times are of the other table's type
        theirs = right.column(times.s).type
        column = column.cast(pa.int64() if pa.types.is_null(theirs) else theirs)
    if not any(is_a(column.type) for is_a in _TIMES):
        raise SchemaError(f"times of a horizon join must be whole numbers, floats, dates, timestamps or durations, but "
                          f"r.{times.r} is {column.type}")
    steps = [_step(offset, column.type, f"r.{times.r}") for offset in offsets]
    rows = left.take(pa.array(np.repeat(np.arange(len(left)), len(steps))))
    is_float, is_date = pa.types.is_floating(column.type), pa.types.is_date32(column.type)
    number = pa.float64() if is_float else pa.int64()
    grid = pa.array(np.tile(np.array(steps, np.float64 if is_float else np.int64), len(left)))
    shown = grid
    if is_date:
        shown = pc.multiply(grid, 86400).cast(pa.duration("s"))
    elif not is_float and not pa.types.is_integer(column.type):
        shown = grid.cast(pa.duration(column.type.unit))
    when = column.take(pa.array(np.repeat(np.arange(len(left)), len(steps))))
    when = when.cast(pa.int32()) if is_date else when
    try:
        when = pc.add_checked(when.cast(number), grid)
        when = when.cast(pa.int32()) if is_date else when
    except pa.ArrowInvalid:
        raise InputError(f"r.{times.r} plus an offset must fit its type, {column.type}, but does not in every row; "
                         f"choose smaller offsets") from None
    at = f"{times.r} + {name}"
    while at in names:
        at += "'"
    rows = rows.append_column(name, shown).append_column(
        at, when if pa.types.is_integer(column.type) or is_float else when.cast(column.type))
    joined = partial(join, on=on, time=(at, times.s), how="asof_left", order="left", sort=True, tolerance=tolerance)
    found = joined(rows, right, suffixes=suffixes, select=select).table
    found = found if select is not None else found.drop_columns([at])
    for label, other in (others or {}).items():
        table = as_table(other, label)
        theirs = joined(rows, table, select=[f"s.{column}" for column in table.column_names]).table
        for column, values in zip(table.column_names, theirs.columns, strict=True):
            taken = column in names or column in found.column_names
            found = found.append_column(f"{column}_{label}" if taken else column, values)
    twice = [column for column in found.column_names if found.column_names.count(column) > 1]
    if twice:
        raise SchemaError(f"columns of a horizon join must have names of their own, but {twice[0]!r} would occur more "
                          f"than once; rename it in one of the tables")
    return found


def _step(offset: Any, time: pa.DataType, column: str) -> int | float:
    """The ``offset`` as a number of the units of a ``time`` column."""
    length: Any
    if isinstance(offset, str):
        negative, length = offset.strip().startswith("-"), offset.strip().removeprefix("-").strip()
    elif isinstance(offset, (dt.timedelta, np.timedelta64)):
        negative = bool(offset < type(offset)(0))
        length = abs(offset)
    else:
        negative = isinstance(offset, (int, float, np.number)) and bool(offset < 0)
        length = -offset if negative else offset
    try:
        window = parse_tolerance(length)
    except WindowError as error:
        raise WindowError(f"offset {offset!r} of a horizon join: {error}") from None
    assert window.length is not None
    if window.open:
        raise WindowError(f"an offset is a span of time, such as '-30 SECONDS', not {offset!r}")
    sign, found = -1 if negative else 1, window.length
    if pa.types.is_floating(time) and window.unit is None:
        return sign * float(found)
    if pa.types.is_integer(time) and window.unit is None:
        ticks = Fraction(found)
    elif not found:
        ticks = Fraction(0)
    elif window.unit is not None and (pa.types.is_date(time) or pa.types.is_timestamp(time)
                                      or pa.types.is_duration(time)):
        ticks = Fraction(found * UNIT_NS[window.unit], UNIT_NS["DAY"] if pa.types.is_date(time) else
                         TIME_UNITS[time.unit])
    else:
        raise WindowError(f"offsets must be numbers where times are whole numbers or floats, and timedeltas or texts "
                          f"such as '-30 SECONDS' where these are dates, timestamps or durations; but {column} is "
                          f"{time}, and the offset {offset!r}")
    if ticks.denominator != 1:
        raise WindowError(f"an offset must be a whole number of the units of {column}, which is {time}, but {offset!r} "
                          f"is not; cast the column to a finer unit")
    return sign * ticks.numerator
