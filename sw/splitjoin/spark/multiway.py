"""`SeveralFrames`: a SELECT over three DataFrames and more, as joins of two (semantics, section 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, functions as F  # noqa: N812  # the name all Spark code uses

from splitjoin.base.errors import InputError, OrderError, SchemaError, UnsupportedError, WindowError
from splitjoin.joins.sql import Select
from splitjoin.joins.sql.multiway import MultiwayStep, Windows, steps
from splitjoin.joins.sql.statement import Statement
from splitjoin.lang.local_times import session_zone
from splitjoin.lang.order import Order
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.windows import WindowSpec
from splitjoin.rows.output import TIME

from .batch import BatchJob
from .join import check_names, checked_order, checked_schemas
from .joined_rows import TupleTime, marked
from .routes import TimeRoute
from .select_columns import result_of, sources_of
from .settings import JoinSettings, StreamOptions
from .streaming.frontier import Frontier
from .streaming.plan import StreamingJoin
from .views import quoted
from .windows import ANY_WINDOW
from .workers import local_zone


@dataclass(frozen=True)
class SeveralFrames:
    """A statement over DataFrames, all batch or all streaming, and how its joins run.

    Attributes:
        statement: The statement.
        frames: The DataFrames, in its order.
        window, time: As of `stream_sql`, for all tables, or by their names.
        settings: For each join. Lateness and silence of streams may be given by the names of the tables.
    """

    statement: Statement
    frames: Sequence[DataFrame]
    window: WindowSpec | None
    time: TimeSpec | None
    settings: JoinSettings

    def plan(self, order: str | Order) -> DataFrame:
        """The DataFrame of the SELECT list. Raises a `SplitJoinError` that names what does not fit."""
        if checked_order(order).kind != "none":
            raise OrderError(f"a join of three DataFrames and more takes order 'none', not {str(order)!r}; sort its "
                             f"rows by orderBy")
        streaming = self._check()
        schemas = [checked_schemas(frame, self.frames[0], self.window, self.time)[0] for frame in self.frames]
        if self.window is None and self.time is not None:
            raise WindowError("a join of three DataFrames and more by event time needs window=…, such as window="
                              "'RANGE 15 MINUTES', or a mapping by the names of the tables")
        windows = None if self.window is None else Windows.make(self.statement.tables, schemas, self.window, self.time)
        first = self.statement.tables[0].label
        left = self.frames[0].toDF(*(f"{first}.{name}" for name in self.frames[0].columns))
        frontier: Frontier | None = None
        settings = self.settings
        for n, step in enumerate(steps(self.statement, schemas, windows), 1):
            two: dict[Side, DataFrame] = {"r": left, "s": self.frames[n]}
            select = _select(step, two, windows)
            result = result_of(select, two)
            if step.carried is None:
                check_names(left, result.names, "give one of them another name by AS")
                streams: dict[Side, Sequence[TupleTime]] = dict.fromkeys(SIDES, ())
                if windows is not None:
                    times = [TupleTime(f"{t.label}.{name}", length) for t, name, length in zip(
                        step.left, windows.times, windows.lengths, strict=False)]
                    streams = {"r": times, "s": (TupleTime(windows.times[n], windows.lengths[n]),)}
            gathered, projection = select.projection.gathered, select.projection
            if step.carried is None and not streaming:
                result = marked(result, select.query, streams, sources_of(select))
            if streaming:
                made = StreamingJoin.make(select.query, two, result, gathered, projection,
                                          replace(settings, streaming=self._options(n, step)),
                                          {} if frontier is None else {"r": frontier})
                frontier = made.frontier
                if step.carried is None:
                    made = replace(made, result=marked(made.result, select.query, streams, sources_of(select),
                                                       frontier))
                left = made.plan()
            else:
                batch = BatchJob.of(select.query, two, result, gathered, projection, settings)
                if isinstance(batch.route, TimeRoute):  # quantiles of joined rows would need a job that joins
                    settings = replace(settings, partitions=batch.route)
                left = batch.plan()
            if step.carried is not None and windows is not None:
                left = left.withColumn(TIME, F.greatest(*(
                    F.col(quoted(f"{t.label}.{name}")) for t, name in zip((*step.left, step.right), windows.times,
                                                                          strict=False))))
        return left

    def _check(self) -> bool:
        """True if all are streaming DataFrames, False if all are batch ones. Raises a `SplitJoinError`."""
        for table, frame in zip(self.statement.tables, self.frames, strict=True):
            if not isinstance(frame, DataFrame):
                raise InputError(f"{table.label} must be a Spark DataFrame, not {type(frame).__name__}; splitjoin.sql "
                                 f"takes Arrow tables")
            if frame.isStreaming != self.frames[0].isStreaming:
                kinds = {True: "a streaming DataFrame", False: "a batch one"}
                raise UnsupportedError(f"{self.statement.tables[0].label} is {kinds[self.frames[0].isStreaming]} and "
                                       f"{table.label} is {kinds[frame.isStreaming]}, but a statement needs all of one "
                                       f"kind; read all with spark.readStream, or none")
        return self.settings.check_kinds(self.frames[0], self.frames[1])

    def _options(self, n: int, step: MultiwayStep) -> StreamOptions:
        given = self.settings.streaming
        name = given.name or "splitjoin"
        late, idle = given.late, given.idle
        if isinstance(late, Mapping):
            of = self._by_table(late, "late")
            late = (of[0], of[1]) if n == 1 else (0, of[n])
        if isinstance(idle, Mapping):
            of = self._by_table(idle, "idle")
            idle = (of[0], of[1]) if n == 1 else (None, of[n])
        late_to = given.late_to if given.late_to is None else f"{given.late_to.rstrip('/')}/{n}"
        return replace(given, late=late, idle=idle, late_to=late_to, name=f"{name}_{n}",
                       early=given.early if step.carried is None else None)

    def _by_table(self, spec: Mapping[str, Any], what: str) -> list[Any]:
        labels = [t.label for t in self.statement.tables]
        if set(spec) != set(labels):
            raise SchemaError(f"a mapping of {what} must have the keys {', '.join(map(repr, labels))}, the tables of "
                              f"the statement, not {sorted(map(str, spec))}")
        return [spec[label] for label in labels]


def _select(step: MultiwayStep, frames: Mapping[Side, DataFrame], windows: Windows | None) -> Select:
    """The SELECT of a step over DataFrames."""
    how: dict[str, Any] = {"window": ANY_WINDOW, "time": None}
    if windows is not None and step.window is not None:
        names = [t.label for t in step.statement.tables]
        how = {"window": dict(zip(names, step.window, strict=True)), "time": windows.of_step(step)}
    r, s = checked_schemas(frames["r"], frames["s"], None if windows is None else how["window"], how["time"])
    with session_zone(local_zone(frames["r"].sparkSession)):
        return Select.make(step.statement, r, s, order="none", **how)
