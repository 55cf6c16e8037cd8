"""`JoinSettings`: the arguments of a join in Spark that say how it runs, rather than which rows it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from splitjoin.base.errors import InputError, UnsupportedError
from splitjoin.engines.device import Device
from splitjoin.lang.query import Query

from .metrics import JoinMetrics
from .placement import choose_device
from .resources import check_resources
from .ties import Ties
from .workers import check_workers, places_by_number, task_cpus

if TYPE_CHECKING:
    from splitjoin.sessions.gate.lateness import Watermark
    from splitjoin.sessions.gate.times import Idle, Lateness

    from .routes import TimeRoute
    from .time_cuts import Partitions


@dataclass(frozen=True)
class StreamOptions:
    """The arguments of ``stream_join`` that streaming DataFrames have beside those of batch ones."""

    late: Lateness | None = None
    late_to: str | None = None
    null_time: str | None = None
    idle: Idle | None = None
    watermark: Watermark | None = None
    early: bool | None = None
    groups: int | None = None
    state: str | None = None
    name: str | None = None

    def given(self) -> list[str]:
        """The names of the arguments that were given."""
        return [f.name for f in fields(self) if getattr(self, f.name) is not None]


@dataclass(frozen=True)
class JoinSettings:
    """The arguments of `stream_join` of these names; ``streaming``: those that streaming DataFrames alone have.

    ``partitions``: also the partitions of another join of the same times.

    Raises `InputError` for metrics that are none.
    """

    ties: Ties = ()
    device: str | Device = "cpu"
    device_options: Mapping[str, Any] = field(default_factory=dict)
    partitions: Partitions | TimeRoute | None = None
    metrics: JoinMetrics | None = None
    fail_on_fallback: bool = True
    streaming: StreamOptions = field(default_factory=StreamOptions)

    def __post_init__(self) -> None:
        if self.metrics is not None and not isinstance(self.metrics, JoinMetrics):
            raise InputError(f"metrics must be a JoinMetrics(spark), which is read after an action, not "
                             f"{self.metrics!r}")

    def check_kinds(self, left: Any, right: Any) -> bool:
        """True if both are streaming DataFrames, False if both are batch ones.

        Raises a `SplitJoinError` for one of each kind, for anything but a DataFrame, and for an argument that only the
        other kind has.
        """
        for name, data in (("left", left), ("right", right)):
            if not isinstance(data, DataFrame):
                raise InputError(f"{name} must be a Spark DataFrame, not {type(data).__name__}; splitjoin.join takes "
                                 f"Arrow tables")
        check_resources(left.sparkSession)
        if left.isStreaming != right.isStreaming:
            streams, batch = ("left", "right") if left.isStreaming else ("right", "left")
            raise UnsupportedError(f"{streams} is a streaming DataFrame and {batch} is a batch one, but stream_join "
                                   f"needs two of one kind; read {batch} with spark.readStream too, or, to look rows "
                                   f"up in it, join both in plain SQL, with splitjoin.SplitJoinExtensions")
        if left.isStreaming and self.partitions is not None:
            raise InputError("partitions cuts batch DataFrames by time; for streaming DataFrames give groups=… instead")
        if left.isStreaming and not places_by_number(left.sparkSession):
            raise UnsupportedError("a join of streaming DataFrames needs an engine that puts rows into partitions by "
                                   "number, as Spark does, but the server of this Spark Connect session does not; "
                                   "join batch DataFrames there, or connect to Spark")
        if not left.isStreaming and (given := self.streaming.given()):
            raise InputError(f"{', '.join(given)}: for streaming DataFrames only, but left and right are batch ones; "
                             f"leave it out")
        return bool(left.isStreaming)

    def chosen_device(self, query: Query, frame: DataFrame) -> tuple[str | Device, dict[str, Any], str]:
        """The `choose_device` for ``query`` in the session of ``frame``, whose workers a Spark job may check."""
        spark = frame.sparkSession
        chosen = choose_device(query, self.device, self.device_options, self.fail_on_fallback, task_cpus(spark))
        check_workers(spark)
        return chosen
