"""`BatchJob`: a join of batch DataFrames as one Spark job: packed rows, a shuffle, and tasks that join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, functions as F  # noqa: N812  # the name all Spark code uses
from pyspark.sql.types import StructType

from splitjoin.base.errors import InputError, OrderError, UnsupportedError
from splitjoin.engines.device import Device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.windows import Extent
from splitjoin.rows.output import OutputColumn

from .metrics import JoinMetrics
from .packing import PACKED, TASK, Pack
from .results import ResultRows
from .routes import PART, PartRoute, Route, number_of_tasks, numbers_of_parts
from .settings import JoinSettings
from .streaming.slots import Slots
from .task import Task
from .ties import tie_breakers
from .time_cuts import given_starts, time_route
from .versions import by_number
from .views import has_few_rows, needed_columns, number_of_rows, numbered
from .workers import cores, places_by_number, shipped

if TYPE_CHECKING:
    from splitjoin.joins.sql import Projection


@dataclass(frozen=True)
class BatchJob:
    """A join of batch DataFrames, checked by the driver.

    Attributes:
        query: The query that devices run; without windows where tasks hold all rows that they get.
        frames: Both DataFrames.
        ties: The columns that order rows of each stream with equal times, if that matters.
        result: Spark's schema of the result.
        made: What makes the result rows.
        route: Which rows a task gets.
        device: The device that runs in tasks.
        options: Its options there.
        refused: The error by which the device that was asked for refused the query; empty if it did not.
        metrics: Collects the devices' counters; None for nothing.
    """

    query: Query
    frames: Mapping[Side, DataFrame]
    ties: Mapping[Side, Sequence[str]]
    result: StructType
    made: ResultRows
    route: Route
    device: str | Device
    options: Mapping[str, Any]
    refused: str
    metrics: JoinMetrics | None

    @classmethod
    def of(cls, query: Query, frames: Mapping[Side, DataFrame], result: StructType, gathered: Sequence[OutputColumn],
           projection: Projection | None, settings: JoinSettings) -> BatchJob:
        """The join by ``query``, whose result rows have the schema ``result``: of the columns ``gathered`` for a pair,
        or of the SELECT list ``projection`` of a statement over them.

        Runs small jobs, for quantiles of the times or the numbers of rows, unless ``partitions`` is 1 or lists times.
        Raises a `SplitJoinError`.
        """
        left, timed = frames["r"], query.time is not None
        windowless = not timed or query.is_unbounded
        starts = _check_windowless(query, settings) if windowless else _check_windows(query, settings)
        ties: dict[Side, Sequence[str]] = {side: tie_breakers(query, side, frames[side].schema, settings.ties)
                                           if timed else () for side in SIDES}
        device, options, refused = settings.chosen_device(_within(query, 1) if windowless else query, left)
        # From here on Spark jobs run.
        route: Route
        if not windowless:
            route = time_route(query, frames, starts)
        else:
            query = _within(query, None)
            hashed, parts, number = Slots.make(query).hashed, (1, 1), starts if isinstance(starts, int) else None
            if number != 1 and not (number is None and has_few_rows(frames)):
                rows, at_once = {side: number_of_rows(frames[side]) for side in SIDES}, cores(left.sparkSession)
                parts = ((number or number_of_tasks(sum(rows.values()), at_once), 1) if hashed else
                         numbers_of_parts(query, rows, number, at_once))
            route = PartRoute(parts, hashed, full=query.kind.how == "full" and not hashed and parts != (1, 1))
        return cls(query, frames, ties, result, ResultRows(query, gathered, projection), route, device, options,
                   refused, settings.metrics)

    def plan(self) -> DataFrame:
        """The result rows, and with them the work of Spark and of the tasks."""
        task = Task(self.query, self.device, self.options, self.made, {side: self._columns(side) for side in SIDES},
                    self.ties, self.route, self.metrics)
        return self._packed().mapInArrow(shipped(task), self.result)

    def sizes(self) -> DataFrame:
        """The numbers of ``home`` and ``warm`` rows of each task that has any."""
        return self._packed().groupBy(TASK).agg(F.sum("home").alias("home"), F.sum("warm").alias("warm"))

    def _packed(self) -> DataFrame:
        """The rows of both streams as `PACKED` ones, in the Spark partitions of their tasks."""
        packed = []
        for side in SIDES:
            names, frame = self._columns(side), self.frames[side]
            rows, part = numbered(frame, names), self.route.part(frame, side, names)
            rows = rows if part is None else rows.withColumn(PART, part)
            packed.append(rows.mapInArrow(shipped(Pack(self.query, side, names, self.route)), PACKED))
        rows, tasks = packed[0].union(packed[1]), self.route.tasks
        if places_by_number(rows.sparkSession):
            return by_number(rows, tasks, TASK)
        # Each task of Spark joins whichever of ours it gets, one after the other; an order needs all of them in one.
        return rows.repartition(tasks if self.query.order.kind == "none" else 1, TASK)

    def _columns(self, side: Side) -> list[str]:
        return needed_columns(self.query, side, self.made.gathered, self.ties[side])


def _check_windows(query: Query, settings: JoinSettings) -> Sequence[int] | int | None:
    """The starts or the number of partitions. Raises a `SplitJoinError` unless these can decide the query's rows."""
    if not query.is_pairs and any(query.window(side).rows is not None for side in SIDES):
        what = "with aggregates" if query.aggregates else f"of kind {query.kind.how!r}"
        raise UnsupportedError(f"a join {what} of batch DataFrames needs RANGE windows without ROWS, as a partition "
                               f"cannot see when a ROWS window decides; give window='RANGE …', or join streaming "
                               f"DataFrames")
    return given_starts(query, settings.partitions)


def _check_windowless(query: Query, settings: JoinSettings) -> int | None:
    """The number of tasks. Raises a `SplitJoinError` for what needs event time, and for an order, as tasks are not
    those of times.
    """
    timed, number = query.time is not None, settings.partitions
    if settings.ties and not timed:
        raise InputError("ties order rows with equal times, but the join has no time=…; leave ties out")
    if query.order.kind != "none":
        why = ("and without a window the tasks have keys or parts of left, not times; give window=…, or" if timed
               else "and rows of DataFrames have none without time=…;")
        raise OrderError(f"order {str(query.order)!r} is by arrival, {why} use order 'none', and orderBy on the result")
    ordered = [aggregate.text for aggregate in query.aggregates if aggregate.ordered]
    if not timed and (query.kind.is_asof or ordered):
        raise UnsupportedError(f"{ordered[0] if ordered else query.kind.how} chooses by the time of rows, but the "
                               f"join has no time=…; name the time columns of both DataFrames")
    if number is None or (isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= 100_000):
        return number
    raise InputError(f"without {'a window' if timed else 'time=…'}, partitions must be a number from 1 to 100000, not "
                     f"{number!r}")


def _within(query: Query, rows: int | None) -> Query:
    return replace(query, window_r=Extent(rows, None), window_s=Extent(rows, None))
