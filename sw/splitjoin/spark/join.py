"""`stream_join`: joins two DataFrames as streams, under any condition, on any device."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from splitjoin.base.errors import OrderError, PredicateError, SchemaError
from splitjoin.engines.device import Device
from splitjoin.engines.registry import DeviceOption, device as find_device, merged_options
from splitjoin.joins.join import result_columns
from splitjoin.lang.local_times import session_zone
from splitjoin.lang.order import Order, parse_order
from splitjoin.lang.query import Predicate, Query
from splitjoin.lang.schema import Schema
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.windows import WindowSpec
from splitjoin.rows.aggregates import aggregate_fields
from splitjoin.rows.output import OutputColumn, ResultNames, Selected

from .batch import BatchJob
from .inputs import Inputs, column_first
from .metrics import JoinMetrics
from .named_conditions import NamedConditions, check_named
from .rewrite import RewrittenJoin, chosen_engine, is_rewritten, may_be_rewritten
from .settings import JoinSettings, StreamOptions
from .streaming.plan import StreamingJoin, state_folder
from .ties import Ties
from .time_cuts import Partitions
from .versions import arrow_type
from .views import Frame, frames
from .windows import windowed
from .workers import local_zone

if TYPE_CHECKING:
    from splitjoin.sessions.gate.lateness import Watermark
    from splitjoin.sessions.gate.times import Idle, Lateness

__all__ = [
    "AnyJoin", "Partitions", "check_names", "checked_order", "checked_schemas", "computed_field", "joined_with",
    "made_join", "made_query", "stream_join",
]

#: A join of DataFrames, checked; `plan` gives its result.
AnyJoin = BatchJob | StreamingJoin | RewrittenJoin


def stream_join(left: Frame, right: Frame, *, on: Predicate | Mapping[str, Predicate] | None = None,
                window: WindowSpec | None = None,
                time: TimeSpec | None = None, ties: Ties = (), order: str | Order = "none",
                select: Selected | None = None, suffixes: Sequence[str | None] | None = None,
                device: str | Device = "cpu", device_options: Mapping[str, Any] | None = None,
                partitions: Partitions | None = None, metrics: JoinMetrics | None = None, late: Lateness | None = None,
                late_to: str | None = None, null_time: str | None = None, idle: Idle | None = None,
                watermark: Watermark | None = None, early: bool = False,
                groups: int | None = None, state: str | None = None, name: str | None = None,
                fail_on_fallback: bool = True, how: str = "inner",
                direction: str | None = None, allow_exact: bool | None = None, by: str | None = None,
                aggregate: Mapping[str, str] | None = None, **options: DeviceOption) -> DataFrame:
    """Join two DataFrames, both batch or both streaming, as streams R and S within sliding windows.

    The result is that of `splitjoin.join` for the same rows in arrival order: by event time; at equal times R before S,
    then by ``ties``. Batch DataFrames are cut into time partitions that overlap by the length of the windows, and each
    Spark task joins one partition on the device. Tasks share no state, so Spark may run a task again. Streaming
    DataFrames are joined micro-batch by micro-batch, with the state in files: each pair comes out exactly once, even if
    tasks or the query fail and run again.

    Args:
        left: The stream R, or the name of a table or a view. Columns may have any type that Spark converts to Arrow.
        right: The stream S, likewise.
        on: The condition, as for `splitjoin.join`: SQL over ``r`` and ``s``, or a Python function; or a Spark
            `Column` over ``F.col("r.x")`` and ``F.col("s.x")``, or ``left["x"]`` and ``right["x"]``. Streaming
            inner joins take several, as a mapping of names to conditions: a pair has a row for each condition that is
            true of it, with the name in the first column, ``query``. All share one state. Not needed where times say
            all: of as-of joins, and with RANGE windows.
        window: ``"RANGE 15 MINUTES"``, ``"ROWS 4096"``, or both in one text; a pair or mapping gives one per stream. It
            may be left out if the condition itself bounds the times of a pair, as in ``s.ts BETWEEN r.ts AND r.ts +
            INTERVAL '1 HOUR'``: then the windows are as long as the condition needs. A RANGE that is shorter than that
            gets a warning. For rows of an earlier join, None in a pair leaves each tuple its own window, and a RANGE
            also says how old the latest tuple of such a row may be. An as-of join of batch DataFrames needs none: a
            partner may be of any age. Nor does a backward one of streaming DataFrames: it keeps the last row of right
            of each key, and its condition must consist of equalities and of conditions on one of both.
        time: The event-time column (integer, date or timestamp): a name, or a pair (left's, right's). Batch DataFrames
            may be joined without ``time`` and ``window``: every row of left meets every row of right. A DataFrame that
            `stream_join` or `stream_sql` gave, in which a name is no column, or for which a pair has None, has the
            times of the latest tuples that its rows are made of (semantics, section 11).
        ties: Columns that order rows of one stream with equal times, ascending, NULL first. The order of such rows
            matters only with ROWS windows, order ``"total"``, as-of joins, aggregates that choose a partner, or classes
            of your own. There, rows that are equal in these columns too are ordered by all other columns, so that the
            result depends on nothing but the rows.
        order: ``"none"``, or ``"total"``: ``collect()``, ``toArrow()``, ``show()`` and written files have the rows in
            the order of `splitjoin.join`, as after ``orderBy``; a later shuffle loses this order.
        select: Names of result columns to keep, in order, or a mapping of them to new names; all by default.
        suffixes: What columns whose names are alike get appended, ``("_r", "_s")`` by default, as for `splitjoin.join`.
        device: The name of a device, as for `splitjoin.join`, or a `Device` that can be pickled.
        device_options: Parameters of a device given by name, as a mapping: ``{"cores": 8}``.
        partitions: Number of time partitions (without windows, of parts), or the times at which the second, third, …
            begin: ints in the unit of an integer time column, dates for a date column, datetimes for a timestamp column
            (naive ones are UTC if it is zoned). By default one for each 250,000 rows, of about equal size; at least one
            for each core, and at most 256.
        metrics: Collects the devices' counters when the result is computed.
        late: Streaming only. The delay of the watermark, which is the lesser of both streams' greatest event times in
            earlier micro-batches, each less its delay, and never falls. (With
            ``spark.sql.streaming.multipleWatermarkPolicy=max`` it is the greater.) A row below the watermark is late:
            it is counted, and left out of the join. ``"10 SECONDS"``, a whole number for integer times, or a pair
            (left's, right's), in which None stands for a stream that has no say in the watermark; by default the delays
            of both DataFrames' ``withWatermark``. Joined rows bring the watermark of their join.
        late_to: Streaming only. A folder to which late rows are written as Parquet, in ``left/`` and ``right/``.
        null_time: Streaming only. The treatment of a row whose event time is NULL. ``"error"``, the default, stops the
            query; ``"late"`` leaves the row out of the join, counts it, and writes it where late rows are written.
        idle: Streaming only. A time without rows, such as ``"30 SECONDS"``, after which a stream no longer holds the
            watermark back, until it has a row again; that row may be late then. A pair (left's, right's) may have None
            for a stream that is to be waited for. By default both are. The time is that of Spark's micro-batches.
        watermark: Streaming only. By what a row is late: ``"min"``, the lesser of both streams, ``"max"``, the greater,
            ``"source"``, its own stream, or ``"spark"``, by which a row at the watermark is late too, as in Spark's own
            joins. By default, Spark's ``multipleWatermarkPolicy`` says "min" or "max" (semantics, section 9).
        early: Streaming only. True if a row that has met nothing so far is a result row at once, of a `left`, `right`,
            `full` or `anti` join with order ``"none"`` and RANGE windows, and is taken back when a partner comes. All
            result rows then have the column ``operation``: ``"+"``, or ``"-"`` for a row that is taken back.
        groups: Streaming only. The number of tasks that join a micro-batch, at most 32,768; by default the number of
            Spark's cores, and 1 with order ``"total"``. It may change when a query starts again.
        state: Streaming only. A folder for the state files, as a path or URI that driver and executors reach; by
            default the folder ``splitjoin`` in the query's checkpoint. Spark Connect does not tell it: there, the
            default is below ``spark.sql.streaming.checkpointLocation``, if that is set.
        name: Streaming only. A name for the state files and the observed metrics, by default ``"splitjoin"``; two joins
            in one streaming query need different names.
        fail_on_fallback: False to run the join on the CPU engine, with a warning, if the device refuses the query.
        how: The kind of join, as for `splitjoin.join`. For batch DataFrames, kinds other than inner and aggregates need
            RANGE windows without ROWS. For streaming ones, a row that depends on all partners of its tuple waits until
            the watermark has decided it.
        direction: Of as-of joins, as for `splitjoin.join`.
        allow_exact: Likewise.
        by: With ``aggregate``, the stream whose tuples get a row each: ``"r"``.
        aggregate: Names of result columns and the aggregates of all partners that they hold, as for `splitjoin.join`.
        options: Parameters of the device by their names, as in ``device="sim", cores=8``. ``engine="rewrite"`` makes a
            batch join one of Spark's own, without Python: in bins of the condition's band and of time.
            ``engine="auto"`` does so where that is estimated to take less CPU time; jobs count rows for it.

    Returns:
        A lazy DataFrame: all columns of left, then all of right, or those of ``select``; names that occur in both get
        ``suffixes``. With ``aggregate``, columns of left, then the aggregates.

    Checks the arguments before it runs any Spark job. For batch DataFrames, unless ``partitions`` is 1 or a list, or
    Spark's statistics say that there are few rows, one small job over the time columns then finds quantiles, or counts
    rows where there is no ``time``.
    Before the first join of a session, one task checks that the Python workers have this splitjoin.

    Raises:
        SplitJoinError: Says what must hold, which value was given, and what to do. An error that only a task can find
            (a NULL time, a RANGE window that holds more than the device can) fails the Spark action instead;
            `task_error` finds splitjoin's error in Spark's.
    """
    names = ResultNames.of(select, suffixes)
    device_options = merged_options(device_options, options, device, stream_join)
    streaming = StreamOptions(late, late_to, null_time, idle, watermark, early or None, groups, state, name)
    settings = JoinSettings(ties, device, device_options, partitions, metrics, fail_on_fallback, streaming)
    kind = {"how": how, "direction": direction, "allow_exact": allow_exact, "by": by, "aggregate": aggregate}
    r, s = frames(left, right)
    is_streaming = settings.check_kinds(r, s)
    inputs, named = Inputs.of(r, s, on, window, time), None
    if isinstance(on, Mapping):
        check_named(kind, streaming=is_streaming, rewrite=is_rewritten(settings), early=early)
        with session_zone(local_zone(r.sparkSession)):
            named = NamedConditions.read(on, *checked_schemas(r, s, window, time), {"r": r, "s": s})
        inputs = replace(inputs, on=named.any)
    return made_join(inputs, order=order, names=names, kind=kind, settings=settings, named=named)[0].plan()


def joined_with(right: Frame, **arguments: Any) -> Callable[[DataFrame], DataFrame]:
    """A function for ``left.transform(…)`` that joins ``left`` with ``right``.

    ``arguments`` are those of `stream_join`, so that these two are the same::

        left.where("x > 0").transform(joined_with(right, on="r.x < s.a", window="RANGE 9", time="ts"))
        stream_join(left.where("x > 0"), right, on="r.x < s.a", window="RANGE 9", time="ts")

    Raises `DeviceError` at once for an argument that neither `stream_join` nor the device has.
    """
    bound = inspect.signature(stream_join).bind(None, right, **arguments).arguments
    device = bound.get("device", "cpu")
    its_options = merged_options(bound.get("device_options"), bound.get("options", {}), device, stream_join)
    if not is_rewritten(JoinSettings(device=device, device_options=its_options)):
        find_device(device, **its_options)

    def join(left: DataFrame) -> DataFrame:
        return stream_join(left, right, **arguments)

    return join


def made_join(inputs: Inputs, *, order: str | Order, names: ResultNames, kind: Mapping[str, Any],
              settings: JoinSettings, named: NamedConditions | None = None) -> tuple[AnyJoin, str]:
    """Check the arguments of `stream_join`, and make the join of them; also why its engine was chosen, if it was.

    ``named``: the conditions of which that of ``inputs`` is any.
    """
    query, result, chosen = made_query(inputs, order=order, names=names, kind=kind)
    made, reason = None, ""
    if may_be_rewritten(settings, inputs.frames["r"]):
        rewritten, reason = chosen_engine(query, inputs.frames, inputs.marked(result, query, chosen), chosen,
                                          settings.device_options["engine"])
        if rewritten is not None:
            return rewritten, reason
    if not inputs.frames["r"].isStreaming:
        return BatchJob.of(query, inputs.frames, inputs.marked(result, query, chosen), chosen, None, settings), reason
    gathered = chosen
    if named is not None:
        made = named.over(query, chosen)
        result, gathered = made.result(result), made.gathered
    root = state_folder(inputs.frames["r"].sparkSession, settings.streaming.state)
    earlier = inputs.earlier(root) if inputs.joined else {}
    joined = StreamingJoin.make(query, inputs.frames, result, gathered, made, settings, earlier)
    return replace(joined, result=inputs.marked(joined.result, query, chosen, joined.frontier)), reason


def made_query(inputs: Inputs, *, order: str | Order, names: ResultNames,
               kind: Mapping[str, Any] | None = None) -> tuple[Query, StructType, Sequence[OutputColumn]]:
    """The query of a ``stream_join``, Spark's schema of its result, and the input columns that its rows consist of."""
    left, right, time = inputs.frames["r"], inputs.frames["s"], inputs.time
    schema_r, schema_s = checked_schemas(left, right, inputs.window, time)
    try:
        with session_zone(local_zone(left.sparkSession)):
            query = Query.make(schema_r, schema_s, on=inputs.condition(schema_r, schema_s), window=inputs.any_window,
                               time=time, order=checked_order(order), **(kind or {}))
    except PredicateError as refused:
        raise column_first(refused) from None
    if inputs.joined:
        query = inputs.within(query)
    elif time is not None:
        query = windowed(query, inputs.window, 4, streaming=left.isStreaming)
    assert schema_r.arrow is not None
    assert schema_s.arrow is not None
    chosen = result_columns(query, inputs.columns("r", schema_r.arrow), inputs.columns("s", schema_s.arrow), names)
    types = {"r": left.schema, "s": right.schema}
    result = StructType([StructField(c.name, types[c.side][c.source].dataType,
                                     types[c.side][c.source].nullable or query.kind.may_lack(c.side)) for c in chosen])
    for field, aggregate in zip(aggregate_fields(query), query.aggregates, strict=True):
        result.add(computed_field(field, aggregate.text))
    check_names(left, result.names, "leave one out by select=…")
    return query, result, chosen


def check_names(frame: DataFrame, names: Sequence[str], cure: str) -> None:
    """Raise `SchemaError` if two result columns differ in case only, unless Spark is set to tell case apart.

    ``frame``: a DataFrame of the session that has the setting; ``cure``: what to do about it in the call.
    """
    if str(frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return
    met: dict[str, str] = {}
    for name in names:
        if (other := met.setdefault(name.lower(), name)) != name:
            raise SchemaError(f"Spark does not tell the result columns {other!r} and {name!r} apart, as their names "
                              f"differ in case only; rename an input column, {cure}, or set "
                              f"spark.sql.caseSensitive to true")


def computed_field(field: pa.Field, text: str) -> StructField:
    """Spark's field for values that are computed, by ``text``. Raises `SchemaError` for a type that Spark lacks."""
    try:
        return StructField(field.name, from_arrow_type(field.type, prefer_timestamp_ntz=True))
    except PySparkTypeError:
        raise SchemaError(f"the values of {text!r} have the type {field.type}, which Spark has not; select what they "
                          f"are computed from") from None


def checked_schemas(left: DataFrame, right: DataFrame, window: object, time: object) -> tuple[Schema, Schema]:
    """The schemas of R and S. Raises `SchemaError` for types that Arrow does not have, and for streams or windows
    without ``time``.
    """
    if time is None and (window is not None or left.isStreaming):
        what = "streaming DataFrames need" if left.isStreaming else "a window needs"
        raise SchemaError(f"{what} time=…, the event-time column: the rows of a DataFrame have no order of their own, "
                          f"so without it there is no arrival order; a column of row numbers will do")
    return (Schema.from_arrow("r", _arrow("left", left.schema)), Schema.from_arrow("s", _arrow("right", right.schema)))


def _arrow(which: str, schema: StructType) -> pa.Schema:
    fields = []
    for field in schema:
        try:
            fields.append(pa.field(field.name, arrow_type(field.dataType), field.nullable))
        except PySparkTypeError:
            raise SchemaError(f"column {field.name!r} of the {which} DataFrame has type "
                              f"{field.dataType.simpleString()}, which Spark cannot hand to Python through Arrow; cast "
                              f"or drop it before the join") from None
    return pa.schema(fields)


def checked_order(order: str | Order) -> Order:
    """The parsed ``order``. Raises `OrderError` for orders with stars, which a DataFrame cannot hold."""
    parsed = parse_order(order)
    if parsed.kind not in ("none", "total"):
        raise OrderError(f"order {str(parsed)!r} marks groups of results with stars, for which a DataFrame has no "
                         f"place; use 'none' or 'total'")
    return parsed
