"""`join`: runs a query over two whole tables, on any device."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from splitjoin.base.errors import OptionError, SchemaError, SplitJoinError, UnsupportedError, WindowError
from splitjoin.engines.device import Device
from splitjoin.engines.registry import device as find_device, merged_options
from splitjoin.lang.order import Order
from splitjoin.lang.query import Predicate, Query
from splitjoin.lang.schema import SIDES, Schema
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.types import BOOL
from splitjoin.lang.windows import Tolerance, WindowSpec, closed_windows
from splitjoin.rows.aggregates import aggregate_fields, identical_rows
from splitjoin.rows.output import OutputColumn, ResultNames, Selected, output_columns, output_schema
from splitjoin.rows.result import JoinResult
from splitjoin.tables import TableFiles, check_columns, check_output
from splitjoin.tables.inputs import Rows, as_stated, table_or_files
from splitjoin.tables.stated import NullValues, Stated, Types

from .arranged import arranged, sorts, whole_window
from .computed import make_query, with_computed
from .execution import Output, run
from .in_parts import join_in_parts, suits_parts


def join(r: Rows, s: Rows, *, on: Predicate | None = None, window: WindowSpec | None = None, closed: str | None = None,
         prevailing: bool = False, time: TimeSpec | None = None, order: str | Order | None = None,
         select: Selected | None = None,
         suffixes: Sequence[str | None] | None = None, device: str | Device = "cpu",
         device_options: Mapping[str, Any] | None = None, how: str = "inner", direction: str | None = None,
         allow_exact: bool | None = None, k: int | None = None, ties: str | None = None,
         tolerance: Tolerance | None = None, ended: str | None = None, by: str | Sequence[str] | None = None,
         aggregate: Mapping[str, Any] | None = None, sort: bool = False, to: str | os.PathLike[str] | None = None,
         types: Types | None = None, null_values: NullValues | None = None, **options: Any) -> JoinResult:
    """Join two streams, given as whole tables, under any condition within sliding windows.

    Each tuple is compared with the tuples of the other stream that precede it in arrival order and lie in that
    stream's window; a pair is a result when the condition is true.

    Args:
        r: The first stream: an Arrow table, batch or reader, a DataFrame of pandas or Polars (a LazyFrame too), a
            DuckDB relation, a dict of arrays, the path of a Parquet, CSV or Arrow file, a pattern of paths or a list of
            them; anything with ``__arrow_c_stream__``.
        s: The second stream, likewise.
        on: The condition: SQL over ``r`` and ``s`` such as ``"abs(r.x - s.a) <= 10"``, or a Python function such as
            ``lambda r, s: abs(r.x - s.a) <= 10``. Not needed where times say all: of as-of joins, and with
            RANGE windows.
        window: ``"ROWS 4096"``, ``"RANGE 15 MINUTES"``, ``"RANGE 900"`` (integer time column), or both; or a
            `datetime.timedelta`, which is a RANGE; one for both streams, or a pair (R's, S's), or ``{"r": …, "s":
            …}``. A RANGE is closed: a difference of exactly its length is within it, but not with OPEN behind it, as in
            ``"RANGE 15 MINUTES OPEN"``. Without it, every earlier tuple is in the window, as both tables end; then
            both must fit into memory as the device stores them.
        closed: Which ends of the times that a tuple of r meets belong to them, where both windows are RANGE: ``"both"``
            (by default), ``"left"``, ``"right"`` or ``"neither"``. The left end is S's RANGE before the tuple, the
            right one R's RANGE behind it.
        prevailing: True if each tuple of r also meets its last partner before S's window, which kdb+ calls prevailing.
            The condition must consist of equalities and of conditions on one table, ``how`` be inner or left, and the
            device "cpu" or "golden".
        time: The event-time column by which both tables are sorted (a name, or a pair): numbers, dates, timestamps,
            durations or text. Rows in which it is NULL meet nothing. ``"index"`` is the index of DataFrames of pandas
            without such a column. Without it, tuples arrive alternately: r0, s0, r1, s1, …
        order: ``"total"`` (by the probe's, then the stored tuple's arrival), ``"left"`` (the rows of r as they were
            given, unmatched ones in place, each with its partners by arrival; then those of s alone), ``"none"``,
            ``"outer(N)"`` or ``"inner(n)"``. By default "total"; or "left" with ``k`` or ``ties="last"``, and for
            ``"nearest"`` by floats.
        select: Names of result columns to keep, in order; ``"r.x"`` and ``"s.a"`` name a side. Or a mapping of them to
            the names that they get, None for their own: ``{"r.x": "x", "s.x": None}``. All by default.
        suffixes: What columns of r and of s whose names are alike get appended, ``("_r", "_s")`` by default. None
            leaves a name as it is.
        device: ``"cpu"``, ``"golden"``, ``"pysim"``, ``"sim"``, or a `Device` with parameters.
        device_options: Parameters of a device given by name, as a mapping: ``{"cores": 8}``.
        how: The kind of join: ``"inner"``, ``"left"``, ``"right"``, ``"full"``, ``"semi"``, ``"anti"``, or ``"asof"``
            and ``"asof_left"``, which give each tuple of r its nearest partner. docs/kinds.md explains them.
        direction: Of as-of joins: ``"backward"`` (the last partner not after the tuple of r; by default),
            ``"forward"`` or ``"nearest"``.
        allow_exact: Of as-of joins: False for partners at other times than the tuple of r only. True by default.
        k: Of as-of joins: the most partners of each tuple of r, the nearest first; 1 by default.
        ties: Of ``direction="nearest"``: which of equally near partners comes first: "backward", the one before the
            tuple of r (by default), or "last", the one that came last, as in Polars.
        tolerance: Of as-of joins: how far from the tuple of r a partner may be: a number in the unit of ``time``, a
            timedelta, or a text such as ``"15 MINUTES"``.
        ended: Of as-of joins that look backward: a column of s of truth values, true (or NULL) in rows that end what s
            says of a key, as where a version of a table is deleted: who has such a row for a partner has none.
        by: With ``aggregate``, the stream whose tuples get a row each: ``"r"``; or a list of its columns, such as
            ``["sym"]``, whose combinations of values get a row each, of the first tuple that has partners.
        aggregate: Names of result columns and the aggregates of all partners that they hold, such as ``{"n":
            "count(*)", "high": "max(s.price)"}``, or calls of a class under `splitjoin.aggregate`, in place of the
            pairs; with ``how="left"`` also for tuples of r that meet nothing. docs/aggregates.md explains them.
        sort: True to sort both tables by ``time`` first (rows with equal times keep their order).
        to: A .parquet, .csv or .arrow file that the rows go to, part by part: memory holds only some of them at a time.
        types: The types of columns of CSV files, such as ``{"zip": "string", "price": "decimal(9, 2)"}``; ``"r.x"``
            names the column of one stream.
        null_values: The values of columns that stand for NULL, such as ``{"ts": 2**64 - 1}``; a list of several.
        options: Parameters of the device by their names, as in ``device="sim", cores=8``.

    Returns:
        A `JoinResult` with all columns of r, then all of s (none of s for semi and anti; with ``aggregate``, its
        columns instead); names that occur in both get ``suffixes`` appended.

    Raises:
        SplitJoinError: With what must hold, what came and what to do.
    """
    window = closed_windows(window, closed)
    chosen = find_device(device, **merged_options(device_options, options, device, join))
    if prevailing is not False:
        _check_prevailing(prevailing, window, chosen)
    left = table_or_files(r, "r", index=time == "index")
    right = left if s is r else table_or_files(s, "s", index=time == "index")  # a reader gives its rows only once
    if stated := Stated(types, null_values, SIDES):
        same = right is left and stated.alike
        left, right = as_stated(left, stated.of("r")), as_stated(right, stated.of("s"))
        right = left if same else right
    keys, by = (None, by) if by is None or isinstance(by, str) else (_key_columns(by, left, select, aggregate), None)
    sort, path = sorts(sort), None if to is None else check_output(to)
    names = ResultNames.of(keys if select is None else select, suffixes)
    parts: dict[str, Any] = {"on": on, "time": time, "order": order, "how": how, "direction": direction,
                             "allow_exact": allow_exact, "k": k, "ties": ties, "tolerance": tolerance, "by": by,
                             "aggregate": aggregate, "prevailing": prevailing, "whole": True}

    def made(r: Schema, s: Schema, window: WindowSpec) -> tuple[Query, Output]:
        assert r.arrow is not None
        assert s.arrow is not None
        query = make_query(r, s, window=window, **parts)
        columns = result_columns(query, r.arrow, s.arrow, names)
        if path is not None:  # before any work
            check_columns(pa.schema([*output_schema(columns), *aggregate_fields(query)]), path)
        return query, Output(columns, ended=None if ended is None else _ended(ended, query))

    files = {side: data for side, data in zip(SIDES, (left, right), strict=True) if isinstance(data, TableFiles)}
    if path is not None and window is not None and len(files) == len(SIDES) and keys is None and ended is None:
        declared = None
        with suppress(SplitJoinError):  # the rows show more than the schemas of files
            declared = made(Schema.from_arrow("r", files["r"].schema()), Schema.from_arrow("s", files["s"].schema()),
                            window)
        if declared is not None and suits_parts(declared[0], files, declared[1], sort=sort):
            stated.check()
            return join_in_parts(declared[0], files, declared[1], chosen, path, sort=sort)
    tr = left.read() if isinstance(left, TableFiles) else left
    ts = tr if right is left else right.read() if isinstance(right, TableFiles) else right
    stated.check()
    query, output = made(Schema.from_table("r", tr), Schema.from_table("s", ts),
                         whole_window(tr, ts) if window is None else window)
    query.r.check(tr)
    query.s.check(ts)
    tr, ts = with_computed(query, "r", tr), with_computed(query, "s", ts)
    tables = arranged(query, tr, ts, sort=sort)
    groups = None if keys is None else identical_rows(tables.incoming.r.select(keys))
    return run(query, tables, output, chosen, path, groups)


def _key_columns(by: Sequence[str], r: pa.Table | TableFiles, select: Any, aggregate: Any) -> list[str]:
    """The columns ``by`` of r. Raises `OptionError` unless they are some, and ``select`` chooses among them."""
    names = r.schema().names if isinstance(r, TableFiles) else r.schema.names
    found = [name.removeprefix("r.") if name not in names and isinstance(name, str) else name for name in by]
    wrong = [name for name in found if name not in names]
    if not found or wrong or aggregate is None:
        raise OptionError(f"by must be 'r', or a list of columns of r beside aggregate, not {by!r}; r has "
                          f"{', '.join(map(str, names))}")
    others = [name for name in select or () if str(name).removeprefix("r.") not in found]
    if others:
        raise OptionError(f"select must choose columns of by={list(by)!r}, which have one value for each row, not "
                          f"{others[0]!r}; leave it out, or aggregate it")
    return found


def _ended(name: Any, query: Query) -> str:
    """The column ``name`` of S. Raises an error unless it tells which partners of an as-of join have ended."""
    kind = query.kind
    if not kind.is_asof or kind.direction != "backward" or kind.k > 1:
        raise OptionError(f"ended belongs to how='asof' and 'asof_left' that look backward for one partner, but this "
                          f"is {kind}; leave ended out")
    if not isinstance(name, str):
        raise OptionError(f"ended must be the name of a column of s, not {name!r}")
    column = query.s.find(name.removeprefix("s."))
    if column.type != BOOL:
        raise SchemaError(f"ended must name a column of s of truth values, but {name!r} is {column.type}; cast it")
    return column.name


def _check_prevailing(prevailing: Any, window: WindowSpec | None, device: Device) -> None:
    """Raise an error unless a join with this ``window`` may have prevailing rows on ``device``."""
    if prevailing is not True:
        raise OptionError(f"prevailing must be True or False, not {prevailing!r}")
    if window is None:
        raise WindowError("prevailing=True adds the last partner before a window, but there is none; give it, such as "
                          "window='RANGE 15 MINUTES'")
    if not device.has_prevailing:
        raise UnsupportedError(f"prevailing=True runs over whole tables by device='cpu', without engine=, and "
                               f"'golden', not by {device.name!r}; choose one of these, or leave prevailing out")


def result_columns(query: Query, r: pa.Schema, s: pa.Schema, names: ResultNames) -> tuple[OutputColumn, ...]:
    """The columns that are gathered for a row, with these ``names``: of both streams, or of R if aggregates follow.

    Raises `SchemaError` where an aggregate has the name of one of them.
    """
    if not query.aggregates:
        chosen = output_columns(r, s, names, query.kind)
        if names.select is not None and not chosen:
            raise SchemaError("select must name at least one column, as a table without columns has no rows")
        return chosen
    for a in query.aggregates:
        if a.name in dict(names.select or ()) and a.name not in r.names:
            raise SchemaError(f"select chooses columns of r, and all aggregates follow them; leave {a.name!r} out of "
                              f"select")
    chosen = output_columns(r, pa.schema([]), names)
    twice = [a.name for a in query.aggregates if a.name in {c.name for c in chosen}]
    if twice:
        raise SchemaError(f"an aggregate must not have the name of a column of r, but {twice[0]!r} has; give it "
                          f"another name, or choose columns of r with select")
    return chosen
