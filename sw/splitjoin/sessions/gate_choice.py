"""`GateOptions`: with what the gate of a session's streams is opened, and which gate that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from splitjoin.base import threads
from splitjoin.base.errors import InputError
from splitjoin.lang.schema import SIDES
from splitjoin.rows.device_times import is_unordered

from .gate import PushOrder, ScaleGate, SourceGate, UnorderedGate
from .schemas import SessionSchemas

__all__ = ["GateOptions"]


@dataclass(frozen=True)
class GateOptions:
    """When tuples are late, and for whom nobody waits; the attributes are arguments of `ScaleGate`."""

    lateness: Any = None
    watermark: str | None = None
    idle: Any = None
    clock: Callable[[], float] = threads.monotonic
    keep_late: int = 1 << 16

    def opened(self, schemas: SessionSchemas) -> SourceGate:
        """The gate of a session's streams. Raises `InputError` for options that need a time column."""
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
        return PushOrder(r, s, columns=schemas.kept, keep_late=self.keep_late)
