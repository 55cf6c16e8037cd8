"""`Limit`: the bounds of a session; and with what else its gate and its pipeline are opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from splitjoin.base import threads
from splitjoin.base.errors import InputError, plural
from splitjoin.lang.schema import SIDES
from splitjoin.rows.device_times import is_unordered

from .faults import CoreFaults
from .gate import ScaleGate, SourceGate, UnorderedGate
from .precision import PrecisionControl
from .results import ResultQueue
from .schemas import SessionSchemas
from .shedding import Shedding


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Bounds at which `push` blocks or raises; None is no bound.

    Attributes:
        rows: Number of result rows that were not polled.
        nbytes: Their bytes.
        waiting: Number of input rows that are not ready because another source is behind. The bound never holds up a
            source that others wait for.
        late: Number of late rows of a stream, and of dropped ones, that are kept until they are taken; beyond it the
            oldest are forgotten.

    A push is held up only after a bound is reached, so one push may exceed it: the result rows by those of one slice of
    arrival order, the waiting rows by the batch itself.
    """

    rows: int | None = 1 << 20
    nbytes: int | None = 1 << 30
    waiting: int | None = 1 << 22
    late: int = 1 << 16

    def __post_init__(self) -> None:
        for name, value in (("rows", self.rows), ("nbytes", self.nbytes), ("waiting", self.waiting)):
            if value is not None and (type(value) is not int or value < 1):
                raise InputError(f"the limit of {name} must be a whole number from 1, or None, not {value!r}")
        if type(self.late) is not int or self.late < 0:
            raise InputError(f"the limit of late must be a whole number from 0, not {self.late!r}")

    @classmethod
    def of(cls, limit: Limit | int | None) -> Limit:
        """The limit that a user means: a whole number is one of rows, None stands for the defaults."""
        return limit if isinstance(limit, Limit) else cls() if limit is None else cls(rows=limit)

    def full(self, results: ResultQueue) -> bool:
        """True if the ``results`` that were not polled reach a bound."""
        return (self.rows is not None and results.rows >= self.rows) or (
            self.nbytes is not None and results.nbytes >= self.nbytes)

    def unread(self, results: ResultQueue) -> str:
        """Why a push must wait while so many ``results`` are not polled."""
        most = [f"{n} {plural(n, unit)}" for n, unit in ((self.rows, "row"), (self.nbytes, "byte")) if n is not None]
        rows = results.rows
        return (f"{rows} result {plural(rows, 'row')} ({results.nbytes} bytes) {'was' if rows == 1 else 'were'} not "
                f"polled, and the limit is {' or '.join(most)}; poll first")

    def held(self, waiting: int) -> bool:
        """True if ``waiting`` input rows that are not ready reach the bound."""
        return self.waiting is not None and waiting >= self.waiting

    def waits(self, waiting: int, behind: Iterable[str]) -> str:
        """Why a push must wait while so many input rows wait for the sources ``behind``."""
        return (f"{waiting} {'tuple waits' if waiting == 1 else 'tuples wait'} for {', '.join(behind)}, and the limit "
                f"is {self.waiting}; push or heartbeat there, or close it")


@dataclass(frozen=True)
class PipelineOptions:
    """How a query runs, beside its device.

    Attributes:
        limit: The bounds on its results.
        punctuation: True if somebody looks at items.
        faults: What follows when the device leaves out a core.
        shedding: By which rule tuples are dropped under load; None if none are.
        control: Chooses the precision behind each push; None if it stays.
    """

    limit: Limit = field(default_factory=Limit)
    punctuation: bool = False
    faults: CoreFaults = field(default_factory=CoreFaults)
    shedding: Shedding | None = None
    control: PrecisionControl | None = None


@dataclass(frozen=True)
class GateOptions:
    """When tuples are late, and for whom nobody waits; the attributes are arguments of `ScaleGate`."""

    lateness: Any = None
    watermark: str | None = None
    idle: Any = None
    clock: Callable[[], float] = threads.monotonic
    keep_late: int = 1 << 16

    def opened(self, schemas: SessionSchemas) -> SourceGate:
        """The gate of a session's streams. Raises `InputError` for options that need a time column, and for a clock
        that is no function.
        """
        if not callable(self.clock):
            raise InputError(f"clock must be a function that returns seconds, not {self.clock!r}")
        r, s, query = schemas.streams["r"], schemas.streams["s"], schemas.query
        if query.time is not None:
            options = {**vars(self), "time": query.time, "columns": schemas.kept}
            if is_unordered(query, early=schemas.early):
                lengths = {side: query.narrowed.window(side).length or 0 for side in SIDES}
                return UnorderedGate(r, s, lengths=None if schemas.early else lengths,
                                     sorts_s=query.kind.is_asof or bool(query.aggregates), **options)
            return ScaleGate(r, s, **options)
        for name, value in ("a lateness", self.lateness), ("a watermark", self.watermark), ("idle", self.idle):
            if value is not None:
                raise InputError(f"{name} needs a query with a time column; without one, tuples arrive as they are "
                                 f"pushed")
        return SourceGate(r, s, columns=schemas.kept, keep_late=self.keep_late)
