"""`Inputs`: the two DataFrames of a join with its condition, windows and times; joined rows get a time of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, functions as F  # noqa: N812  # the name all Spark code uses
from pyspark.sql.types import StructType

from splitjoin.base.errors import PredicateError, SchemaError, WindowError
from splitjoin.lang import build
from splitjoin.lang.ir import Expr
from splitjoin.lang.query import Predicate, Query
from splitjoin.lang.schema import SIDES, Schema, Side, other_side
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.types import TIME_UNITS
from splitjoin.lang.windows import Extent, WindowSpec, parse_window
from splitjoin.rows.output import TIME, OutputColumn

from .columns import read_condition
from .joined_rows import JoinedRows, marked, streams_of
from .streaming.frontier import Frontier
from .text import WHICH
from .views import quoted
from .windows import ANY_WINDOW


@dataclass(frozen=True)
class Inputs:
    """What a join reads.

    Attributes:
        frames: Both DataFrames; those of ``joined`` rows with the time of each row's latest tuple in `TIME`.
        on: The condition as the user gives it.
        window: The windows likewise.
        time: The time columns.
        joined: The inputs that are rows of earlier joins, by the times of their tuples.
        given: Both DataFrames without `TIME`.
    """

    frames: Mapping[Side, DataFrame]
    on: Predicate | None
    window: Any
    time: TimeSpec | None
    joined: Mapping[Side, JoinedRows] = field(default_factory=dict)
    given: Mapping[Side, DataFrame] = field(default_factory=dict)

    @classmethod
    def of(cls, left: DataFrame, right: DataFrame, on: Any, window: WindowSpec | None, time: TimeSpec | None) -> Inputs:
        """The inputs. Where ``time`` names no column of a DataFrame of joined rows, their times are those of their
        latest tuples (semantics, section 11).

        Raises a `SplitJoinError` for joined rows that cannot be joined again.
        """
        frames: dict[Side, DataFrame] = {"r": left, "s": right}
        names: Any = time
        if isinstance(time, str):
            names = {side: None if _lacks(frames[side], time) and JoinedRows.of(frames[side], side) else time
                     for side in SIDES}
        elif isinstance(time, Sequence) and len(time) == 2:
            names = dict(zip(SIDES, time, strict=True))
        if not isinstance(names, Mapping) or None not in names.values():
            return cls(frames, on, window, time, given=frames)
        joined, made = dict[Side, JoinedRows](), dict(frames)
        for side in SIDES:
            if names.get(side, "") is None:
                found = JoinedRows.of(frames[side], side)
                if found is None:
                    raise SchemaError(f"time=None is for rows of a stream_join by event time, which have the times of "
                                      f"their tuples, but the {WHICH[side]} DataFrame is none, or has lost them; name "
                                      f"its event-time column")
                joined[side], names = found, {**names, side: TIME}
                times = [F.col(quoted(t.column)) for t in found.times]
                made[side] = frames[side].withColumn(TIME, F.greatest(*times))
        if window is None:
            raise WindowError("a join of joined rows needs window=…, such as (None, 'RANGE 15 MINUTES'), in which None "
                              "leaves joined rows the windows of their tuples")
        return cls(made, on, window, names, joined, frames)

    def condition(self, r: Schema, s: Schema) -> Predicate | None:
        """The condition, over streams of these schemas."""
        found: Predicate | None = read_condition(self.on, r, s, self.given)
        return found

    @property
    def any_window(self) -> Any:
        """The windows for `Query.make`; `within` and `windowed` may replace them."""
        return ANY_WINDOW if self.joined or self.window is None else self.window

    def within(self, query: Query) -> Query:
        """``query`` with the windows of joined rows: a row lies in its window if each of its tuples lies in its own.

        Raises `WindowError` for windows other than RANGE.
        """
        specs = {side: _spec(self.window, side) for side in SIDES}
        terms: list[Expr] = [query.predicate]
        extents = {}
        time = query.time
        assert time is not None
        for side in SIDES:
            rows, length = self.joined.get(side), None
            if specs[side] is not None or rows is None:
                parsed = parse_window(specs[side])
                extent = parsed.resolve(time.type, time.tick)
                if extent.length is None or extent.rows is not None:
                    raise WindowError(f"a join of joined rows takes windows of RANGE, without ROWS, not "
                                      f"{str(parsed)!r}; give RANGE alone")
                length = extent.length
            if rows is not None:
                length = rows.window if length is None else min(length, rows.window)
                other = other_side(side)
                later = build.column(query.schema(other), time.name(other))
                for t in rows.times:
                    assert t.length is not None
                    most = build.literal(t.length, "window") if time.tick is None else build.duration(
                        t.length * TIME_UNITS[time.tick])
                    apart = build.arith("-", later, build.column(query.schema(side), t.column), "window")
                    terms.append(build.compare("<=", apart, most, "window"))
            extents[side] = Extent(None, length)
        return replace(query, predicate=build.and_(terms, "on"), window_r=extents["r"], window_s=extents["s"])

    def columns(self, side: Side, schema: pa.Schema) -> pa.Schema:
        """The columns of input ``side``, of the Arrow ``schema``, that the result has."""
        return pa.schema([f for f in schema if f.name != TIME]) if side in self.joined else schema

    def marked(self, result: StructType, query: Query, chosen: Sequence[OutputColumn],
               frontier: Frontier | None = None) -> StructType:
        """``result``, whose columns are the ``chosen`` ones, with marks for later joins; ``frontier``: of a streaming
        join.
        """
        streams = {side: streams_of(query, side, self.joined.get(side)) for side in SIDES}
        return marked(result, query, streams, {c.name: (c.side, c.source) for c in chosen}, frontier)

    def earlier(self, root: str | None) -> dict[Side, Frontier]:
        """Where the watermarks of joined rows are. ``root``: the folder of this join's state.

        Raises a `SplitJoinError` where a watermark does not hold for all rows.
        """
        return {side: rows.frontier(self.given[side], side, root) for side, rows in self.joined.items()}


def _lacks(frame: DataFrame, name: str) -> bool:
    """True if ``frame`` has no column of this name, in any case."""
    return name.lower() not in (column.lower() for column in frame.columns)


def column_first(refused: PredicateError) -> PredicateError:
    """``refused``, the error for a condition of a join in Spark, with the way for what the language does not have."""
    said, *mark = str(refused).split("\n")
    known = "is not supported in a condition; "
    if known not in said:
        return refused
    said = said.replace(known, f"{known}where it reads one DataFrame, make a column of it first, such as "
                               f"left.withColumn('c', F.expr('…')); ", 1)
    return PredicateError("\n".join([said, *mark]))


def _spec(window: Any, side: Side) -> Any:
    """The window that ``window``, as a user gives it, has for stream ``side``. Raises `WindowError`."""
    if isinstance(window, Mapping):
        if set(window) != set(SIDES):
            raise WindowError(f"a mapping of windows must have the keys 'r' and 's', not {sorted(map(str, window))}")
        return window[side]
    if isinstance(window, Sequence) and not isinstance(window, str):
        if len(window) != 2:
            raise WindowError(f"window must be one text, or a pair (left's, right's), not {window!r}")
        return window[SIDES.index(side)]
    return window
