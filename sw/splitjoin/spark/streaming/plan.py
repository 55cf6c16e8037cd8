"""The plan of a join of streaming DataFrames, made on the driver: checks, and the two stages of a micro-batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from splitjoin.base.errors import InputError, SchemaError, WindowError
from splitjoin.engines.registry import device as find_device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.types import TIME_UNITS
from splitjoin.rows.output import OPERATION, OutputColumn

from ..placement import device_name
from ..results import MadeRows
from ..settings import JoinSettings, StreamOptions
from ..text import WHICH, extent
from ..ties import tie_breakers
from ..versions import by_number
from ..views import needed_columns, numbered
from ..workers import cores, in_a_task, is_remote, shipped
from .checkpoint import tell_checkpoints
from .frontier import Frontier
from .group import GroupJoin
from .micro_batch import FOLDER, PlannedBatch
from .slots import SLOTS, Slots
from .spread import NOW, PACKED, Spread
from .state_files import check_root
from .task import COUNTS, METRICS, GroupTask
from .watermark import WatermarkRule

if TYPE_CHECKING:
    from ..metrics import JoinMetrics

#: Spark's name for the delay of a watermark, in the metadata of its column.
WATERMARK_DELAY = "spark.watermarkDelayMs"
#: Spark's setting without which rows are late by the watermark by which state is evicted.
_ALLOW_MULTIPLE = "spark.sql.streaming.statefulOperator.allowMultiple"
#: The setting that leaves conditions, whose literals may be secret, out of the names in Spark's plans: true or false.
SHOW_CONDITION = "spark.splitjoin.showCondition"


@dataclass(frozen=True)
class StreamingJoin:
    """A join of streaming DataFrames, checked.

    Attributes:
        join: What its tasks get.
        frames: Both DataFrames.
        result: Spark's schema of the result.
        root: The folder of the state files; None: below the query's checkpoint.
        name: The name of the join.
        retained: The number of micro-batches whose state is kept.
        refused: Why its device is not the one that was asked for, or empty.
        metrics: Counts for the driver's `JoinMetrics`, or None.
        late_to: Where late rows are written, or None.
        earlier: Of inputs that are rows of earlier joins of the query, where their watermark is.
    """

    join: GroupJoin
    frames: Mapping[Side, DataFrame]
    result: StructType
    root: str | None
    name: str
    retained: int
    refused: str
    metrics: JoinMetrics | None
    late_to: str | None
    earlier: Mapping[Side, Frontier] = field(default_factory=dict)

    @classmethod
    def make(cls, query: Query, frames: Mapping[Side, DataFrame], result: StructType, gathered: Sequence[OutputColumn],
             projection: MadeRows | None, settings: JoinSettings, earlier: Mapping[Side, Frontier]) -> StreamingJoin:
        """The join by ``query``, whose result rows have the schema ``result``.

        ``gathered`` and ``projection``: the columns that are gathered for pairs, and what becomes of them.
        ``earlier``: of inputs that are rows of earlier joins. Raises a `SplitJoinError`.
        """
        spark, options = frames["r"].sparkSession, settings.streaming
        # Aggregates hold numbers of partners, which all groups must number alike.
        always = bool(query.aggregates)
        ties: dict[Side, Sequence[str]] = {
            side: tie_breakers(query, side, frames[side].schema, settings.ties, always) for side in SIDES}
        device, device_options, refused = settings.chosen_device(query, frames["r"])
        query = query.narrowed
        rule = _rule(query, frames, options, earlier)
        name = _name(options.name)
        _check_name_is_free(frames, name)
        if options.null_time not in (None, "error", "late"):
            raise InputError(f"null_time must be 'error' or 'late', not {options.null_time!r}")
        slots = Slots.make(query)
        groups = _groups(options.groups, cores(spark), query, slots)
        if options.late_to is not None:
            _check_root(spark, options.late_to, "late_to")
        if options.early:
            result = _early(query, result)
        schemas = {side: _schema(query, side, gathered, ties[side], options.late_to is not None) for side in SIDES}
        found = find_device(device, **device_options)
        join = GroupJoin(query, schemas, gathered, projection, rule, ties, groups, device, device_options, slots,
                         found.settles, options.null_time == "late", bool(options.early))
        retained = int(spark.conf.get("spark.sql.streaming.minBatchesToRetain") or 100)
        return cls(join, frames, result, state_folder(spark, options.state), name, retained, refused,
                   settings.metrics, options.late_to, earlier)

    @property
    def frontier(self) -> Frontier:
        """Where a later join finds the watermark of this one."""
        return Frontier(self.root, self.name, self.join.groups)

    def plan(self) -> DataFrame:
        """The streaming DataFrame of the results."""
        title = _title(self.join, _shows_condition(self.frames["r"].sparkSession))
        packed, first = [], Spread(self.join, "r", self.root, self.name)
        batch = PlannedBatch(self.frames["r"].sparkSession, first.hot if first.reads_hot else None)
        for side in SIDES:
            spread = replace(first, side=side)
            rows = numbered(self.frames[side], self.join.schemas[side].names)
            if spread.reads_hot:
                rows = batch.beside(rows, field="hot")
            spread_rows = rows.mapInArrow(_named(shipped(spread), f"splitjoin_spread_{side}"), PACKED)
            # In a streaming query, the time of the micro-batch: the same if it runs again after a restart.
            packed.append(spread_rows.withColumn(NOW, F.unix_millis(F.current_timestamp())))
        arrow = self.join.result.schema
        # The result's own names come last, since any may be equal to `METRICS`.
        numbers = [f"c{n}" for n in range(len(arrow))]
        arrow = pa.schema([f.with_name(number) for f, number in zip(arrow, numbers, strict=True)])
        task = GroupTask(self.join, arrow, self.root, self.name, self.retained, self.late_to, self.metrics,
                         self.earlier)
        counted = StructType([*(StructField(c, f.dataType, True, f.metadata) for c, f in zip(numbers, self.result,
                                                                                            strict=True)),
                              StructField(METRICS, StructType([StructField(c, LongType()) for c in COUNTS]))])
        rows = batch.beside(packed[0].union(packed[1]))
        rows = by_number(rows, self.join.groups, "group").mapInArrow(_named(shipped(task), title), counted)
        sums = [F.coalesce(F.sum(f"{METRICS}.{c}"), F.lit(0)).alias(c) for c in COUNTS]
        return rows.observe(self.name, *sums).where(F.col(METRICS).isNull()).drop(METRICS).toDF(
            *self.result.names)


def _early(query: Query, result: StructType) -> StructType:
    """The schema of rows that come early: with an operation. Raises a `SplitJoinError` where none can."""
    by_rows = any(query.window(side).rows is not None for side in SIDES)
    if query.kind.how not in ("left", "right", "full", "anti") or query.aggregates or by_rows or (
            query.order.kind != "none"):
        what = "with aggregates" if query.aggregates else f"of kind '{query.kind}'"
        raise InputError(f"early=True needs how='left', 'right', 'full' or 'anti' without aggregates, order 'none', "
                         f"and RANGE windows without ROWS, as other rows wait until the watermark has put their tuples "
                         f"in order; but the join is {what} in order '{query.order}'; leave early out, change what "
                         f"differs, or feed a session of splitjoin.open, which takes aggregates and as-of joins too")
    if any(name.lower() == OPERATION.name for name in result.names):
        raise SchemaError(f"early=True adds the column {OPERATION.name!r}, but the result has one of this name; rename "
                          f"an input column, or leave it out with select")
    return StructType([*result, StructField(OPERATION.name, StringType(), False)])


def _schema(query: Query, side: Side, gathered: Sequence[OutputColumn], ties: Sequence[str],
            everything: bool) -> pa.Schema:
    """The columns of stream ``side`` that the join needs, or all of them."""
    schema = query.schema(side).arrow
    assert schema is not None
    needed = needed_columns(query, side, gathered, ties)
    return pa.schema([f for f in schema if everything or f.name in needed])


def _rule(query: Query, frames: Mapping[Side, DataFrame], options: StreamOptions,
          earlier: Mapping[Side, Frontier]) -> WatermarkRule:
    """The rule of the watermark, by the options and by Spark's settings. Rows of ``earlier`` joins bring theirs."""
    from splitjoin.sessions.gate.lateness import Watermark  # not for batches, as all of sessions comes with it
    from splitjoin.sessions.gate.times import parse_idle, parse_lateness

    late, idle, watermark = options.late, options.idle, options.watermark
    time = query.time
    assert time is not None
    delays: dict[Side, int | None]
    if late is None:
        delays = {side: 0 if side in earlier else _watermark(query, side, frames[side]) for side in SIDES}
    else:
        given = _of_streams(late, "late", "one lateness", earlier, 0)
        delays = {side: None if (own := given[side]) is None else 0 if side in earlier and own == 0 else
                  parse_lateness(own, time) for side in SIDES}
        if all(delay is None for delay in delays.values()):
            raise WindowError(f"late={late!r} leaves the join without a watermark, so that it would have to keep all "
                              f"rows; give the lateness of one stream at least")
    for side in earlier:
        if delays[side]:
            raise WindowError(f"the {WHICH[side]} DataFrame is joined rows, none of which lies below the watermark of "
                              f"their join, so late must be 0 for them, or None to leave them out of the watermark, "
                              f"not {given[side]!r}; the join that gives them has a late=… of its own")
    silences = dict.fromkeys(SIDES) if idle is None else _of_streams(idle, "idle", "one time", earlier, None)
    for side in earlier:
        if silences[side] is not None:
            raise WindowError(f"the {WHICH[side]} DataFrame is joined rows, whose watermark goes on without rows, so "
                              f"idle must be None for them, not {silences[side]!r}; the join that gives them has an "
                              f"idle=… of its own")
    policy = str(frames["r"].sparkSession.conf.get("spark.sql.streaming.multipleWatermarkPolicy", "min")).lower()
    if policy not in ("min", "max"):
        raise InputError(f"spark.sql.streaming.multipleWatermarkPolicy must be 'min' or 'max', not {policy!r}")
    if watermark is not None and watermark not in get_args(Watermark):
        raise InputError(f"watermark must be 'source', 'min', 'max' or 'spark', not {watermark!r}")
    if watermark == "source" and None in delays.values():
        raise WindowError(f"late={late!r} needs watermark='min', 'max' or 'spark', as by 'source' each stream has a "
                          f"lateness of its own; give both")
    policy = policy if watermark in (None, "spark") else watermark
    idles = {side: _milliseconds(parse_idle(silences[side])) for side in SIDES}
    if watermark != "spark":
        return WatermarkRule(delays, idles, policy)  # type: ignore[arg-type]  # one of the names
    # Spark counts in milliseconds; other columns than TIMESTAMP have no watermark of Spark's.
    ticks = None if time.tick is None else max(1, TIME_UNITS["ms"] // TIME_UNITS[time.tick])
    whole = {side: delay if delay is None or ticks is None else delay - delay % ticks for side, delay in delays.items()}
    lags = str(frames["r"].sparkSession.conf.get(_ALLOW_MULTIPLE, "true")).lower() != "false"
    return WatermarkRule(whole, idles, policy, True, lags, ticks)  # type: ignore[arg-type]  # one of the names


def _of_streams(value: Any, argument: str, one: str, earlier: Mapping[Side, Frontier], of_joined: Any
                ) -> dict[Side, Any]:
    """The ``argument`` of each stream; where ``value`` is one for both, rows of ``earlier`` joins have ``of_joined``.

    Raises `WindowError`, also for one value where both inputs are joined rows, which have their own.
    """
    from splitjoin.sessions.gate.times import by_side

    given = by_side(value, argument, one)
    if isinstance(value, str) or not isinstance(value, (Mapping, Sequence)):
        if len(earlier) == len(SIDES):
            raise WindowError(f"both DataFrames are joined rows, whose joins have their own {argument}=…, so "
                              f"{argument}={value!r} has no stream to hold for; leave it out")
        given |= dict.fromkeys(earlier, of_joined)
    return given


def _milliseconds(seconds: float | None) -> int | None:
    """A time in milliseconds, rounded up; None for None."""
    return None if seconds is None else math.ceil(seconds * 1000)


def _watermark(query: Query, side: Side, frame: DataFrame) -> int:
    time = query.time
    assert time is not None
    which = WHICH[side]
    marked = {f.name: int(f.metadata[WATERMARK_DELAY]) for f in frame.schema if WATERMARK_DELAY in f.metadata}
    name = time.name(side)
    if name in marked:
        if time.tick is None:
            raise WindowError(f"the watermark of {which}.{name} is in milliseconds, but the time column is a "
                              f"{time.type}; give late=… instead")
        return marked[name] * 10**6 // TIME_UNITS[time.tick]
    if marked:
        raise SchemaError(f"the {which} DataFrame has its watermark on {next(iter(marked))!r}, but the event time of "
                          f"the join is {name!r}; call withWatermark for that column, or give late=…")
    # withWatermark takes columns of type TIMESTAMP only.
    own = frame.schema[name].dataType
    late, none = ("late=10", "late=0") if time.tick is None else ("late='10 seconds'", "late='0 seconds'")
    write = f"write {which}.withWatermark({name!r}, '10 seconds'), or " if isinstance(own, TimestampType) else ""
    raise WindowError(f"a streaming join must know how late rows may come, and the {which} DataFrame has no "
                      f"watermark; {write}give late=…, how far a row's {name!r} may lie behind the greatest so far, "
                      f"such as {late} ({none} if rows come in order)")


def _groups(groups: int | None, cores: int, query: Query, slots: Slots) -> int:
    # Rows for tuples of S, and those that a count of rows decides, need all pairs and all tuples in one place.
    by_rows = any(query.window(side).rows is not None for side in SIDES)
    alone = not query.is_pairs and not slots.hashed and (by_rows or query.kind.gives_unmatched("s"))
    if groups is None:
        return 1 if query.order.kind == "total" or alone else max(1, min(cores, SLOTS))
    if isinstance(groups, bool) or not isinstance(groups, int) or not 1 <= groups <= SLOTS:
        raise InputError(f"groups must be a number from 1 to {SLOTS}, not {groups!r}")
    if groups > 1 and query.order.kind == "total":
        raise InputError(f"order 'total' is one sequence, which one group makes, so groups must be 1, not {groups}; "
                         f"with order 'none' there may be more")
    if groups > 1 and alone:
        what = "with aggregates" if query.aggregates else f"of kind {query.kind.how!r}"
        raise InputError(f"a join {what} needs one group here, not {groups}: more are possible with RANGE windows, if "
                         f"the condition has an equality, or no row is for a tuple of right alone; leave groups out")
    return groups


def _name(name: str | None) -> str:
    if name is None:
        return "splitjoin"
    if not isinstance(name, str) or not name or not all(c.isalnum() or c in "_-" for c in name):
        raise InputError(f"name must be letters, digits, '_' and '-', since state files are named by it, not {name!r}")
    return name


def _check_name_is_free(frames: Mapping[Side, DataFrame], name: str) -> None:
    """Raise `InputError` if a join of the same name is among the inputs; Spark would refuse the query with its plan."""
    for side, frame in frames.items():
        # The client of Spark Connect has no plan.
        plan = "" if is_remote(frame.sparkSession) else frame._jdf.queryExecution().analyzed().toString()
        if f"CollectMetrics {name}, [" in plan:
            raise InputError(f"the {WHICH[side]} DataFrame has a join with the name {name!r} in it already, but the "
                             f"joins of one query need different names, as their states and metrics are kept by name; "
                             f"give name='…' to this one or to that one")


def state_folder(spark: SparkSession, state: str | None) -> str | None:
    """The folder of the state files as given, or beside the checkpoints of Spark Connect; None: in the checkpoint."""
    if state is not None:
        _check_root(spark, state, "state")
        return state
    if not is_remote(spark):
        tell_checkpoints(spark)
        return None
    checkpoints = spark.conf.get("spark.sql.streaming.checkpointLocation", None)
    if not checkpoints:
        raise InputError("through Spark Connect a streaming join keeps its state in files that all executors reach: "
                         "give state='hdfs://…', 's3://…' or another shared folder, or set "
                         "spark.sql.streaming.checkpointLocation")
    root = f"{checkpoints.rstrip('/')}/{FOLDER}"
    _check_root(spark, root, "spark.sql.streaming.checkpointLocation")
    return root


def _check_root(spark: SparkSession, root: str, argument: str) -> None:
    """Check a folder for files where they are written: for Spark Connect not on this machine but on an executor."""
    if is_remote(spark):
        in_a_task(spark, partial(check_root, root, argument))
    else:
        check_root(root, argument)


def _shows_condition(spark: SparkSession) -> bool:
    """True unless the user wants no conditions in Spark's plans and pages, where others may read them."""
    said = spark.conf.get(SHOW_CONDITION, None)
    if said not in (None, "true", "false"):
        raise InputError(f"{SHOW_CONDITION} must be true or false, not {said!r}")
    return said != "false"


def _title(join: GroupJoin, shows_condition: bool) -> str:
    """A name for the plan's node and the description in Spark's pages."""
    windows = " and ".join(f"{side}: {extent(join.query, side)}" for side in SIDES)
    kind = "" if join.query.kind.is_inner else f"{join.query.kind}; "
    folded = "".join(f"{aggregate.text}; " for aggregate in join.query.aggregates if shows_condition)
    condition = join.query.predicate if shows_condition else "condition not shown"
    return (f"splitjoin[{condition}; {kind}{folded}{windows}; groups={join.groups}; "
            f"device={device_name(join.device)}]")


def _named(function: Any, name: str) -> Any:
    """``function`` under a name that Spark shows."""
    def named(batches: Any) -> Any:
        return function(batches)

    named.__name__ = named.__qualname__ = name
    return named

