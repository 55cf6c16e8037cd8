"""`stream_sql`: a SELECT over two DataFrames or more as streams, on any device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql import DataFrame

from splitjoin.base.errors import InputError
from splitjoin.engines.device import Device
from splitjoin.engines.registry import DeviceOption, merged_options
from splitjoin.joins.sql import Select, refuse_ordering
from splitjoin.joins.sql.api import bind_tables, check_named, check_options
from splitjoin.joins.sql.reader import TreeReader
from splitjoin.joins.sql.statement import check_steps, parse
from splitjoin.joins.sql.trees import StatementParser, StatementSql
from splitjoin.lang.local_times import session_zone
from splitjoin.lang.order import Order
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.sql.spark import SparkReader, spark_functions
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.windows import WindowSpec

from .batch import BatchJob
from .join import Partitions, check_names, checked_order, checked_schemas
from .joined_rows import marked, streams_of
from .multiway import SeveralFrames
from .select_columns import result_of, sources_of
from .settings import JoinSettings, StreamOptions
from .streaming.plan import StreamingJoin
from .ties import Ties
from .windows import ANY_WINDOW, windowed
from .workers import local_zone

if TYPE_CHECKING:
    from splitjoin.sessions.gate.lateness import Watermark
    from splitjoin.sessions.gate.times import Idle, Lateness

    from .metrics import JoinMetrics


class _SparkStatementParser(StatementParser):
    FUNCTIONS: ClassVar[dict[str, Any]] = spark_functions(StatementParser.FUNCTIONS)


class _SparkStatementSql(StatementSql):
    Parser = _SparkStatementParser


class SparkStatementReader(SparkReader, TreeReader):
    """Reads the conditions and values of a statement, with Spark's functions as in other conditions of Spark."""

    dialect = _SparkStatementSql


def stream_sql(text: str, *unnamed: Any, window: WindowSpec | None = None, time: TimeSpec | None = None,
               ties: Ties = (),
               order: str | Order = "none", device: str | Device = "cpu",
               device_options: Mapping[str, Any] | None = None, partitions: Partitions | None = None,
               metrics: JoinMetrics | None = None, tables: Mapping[str, DataFrame] | None = None,
               late: Lateness | None = None, late_to: str | None = None, null_time: str | None = None,
               idle: Idle | None = None, watermark: Watermark | None = None, early: bool = False,
               groups: int | None = None,
               state: str | None = None, name: str | None = None,
               fail_on_fallback: bool = True, aggregates: Mapping[str, Any] | None = None,
               **streams: DataFrame | DeviceOption) -> DataFrame:
    """Run a SELECT over two DataFrames or more, all batch or all streaming, as streams.

    ``text``, ``time``, ``tables``, ``aggregates`` and ``streams`` are as for `splitjoin.sql`, with DataFrames for
    tables, which are given by name; the other arguments are those of `stream_join`, and so is the way that it runs.
    ``ties`` by a mapping are those of ``"r"``, the first table, and ``"s"``. Spark's functions of times mean what they
    mean in Spark.

    Three DataFrames and more are joined in steps of two, in the order of FROM (semantics, section 11); the last join
    may be a LEFT JOIN. ``window``, ``time``, ``late`` and ``idle`` may be mappings by the names of the tables. Step n
    has the name ``name`` and ``_n`` behind it, and writes late rows to the subfolder n of ``late_to``.

    Returns:
        A lazy DataFrame of the SELECT list. Where rows with equal times need no order (RANGE windows, order "none"),
        only the columns needed are read.

    Raises:
        SplitJoinError: As `splitjoin.sql` and `stream_join`. A value that does not fit its type fails the action;
            `task_error` gets splitjoin's error out of Spark's.
    """
    if not isinstance(text, str):
        raise InputError(f"a statement must be a text, not {type(text).__name__}")
    statement = parse(text, SparkStatementReader)
    several = len(statement.tables) > 2
    if several:
        check_steps(statement, "left last")
    check_named([table.name for table in statement.tables], unnamed)
    given, more = bind_tables(statement, tables, streams)
    check_options(statement, more, device, stream_sql)
    device_options = merged_options(device_options, more, device, stream_sql)
    options = StreamOptions(late, late_to, null_time, idle, watermark, early or None, groups, state, name)
    settings = JoinSettings(ties, device, device_options, partitions, metrics, fail_on_fallback, options)
    if several:
        if refused := [what for what, value in (("ties", ties), ("aggregates", aggregates)) if value]:
            raise InputError(f"a join of three DataFrames and more has no {' and '.join(refused)}; leave it out, or "
                             f"join two of them first")
        return SeveralFrames(statement, given, window, time, settings).plan(order)
    left, right = given
    refuse_ordering(statement, "leave it out, and use the DataFrame's orderBy and limit")
    streaming = settings.check_kinds(left, right)
    r, s = checked_schemas(left, right, window, time)
    with session_zone(local_zone(left.sparkSession)):
        select = Select.make(statement, r, s, window=ANY_WINDOW if window is None else window, time=time,
                             order=checked_order(order), aggregates=aggregates)
    query = select.query if time is None else windowed(select.query, window, 2, streaming=streaming)
    two: dict[Side, DataFrame] = {"r": left, "s": right}
    result, projection = result_of(select, two), select.projection
    check_names(left, result.names, "give one of them another name by AS")
    times, sources = {side: streams_of(query, side, None) for side in SIDES}, sources_of(select)
    if streaming:
        made = StreamingJoin.make(query, two, result, projection.gathered, projection, settings, {})
        return replace(made, result=marked(made.result, query, times, sources, made.frontier)).plan()
    result = marked(result, query, times, sources)
    return BatchJob.of(query, two, result, projection.gathered, projection, settings).plan()
