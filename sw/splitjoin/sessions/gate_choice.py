"""`make_gate`: the gate of a session's streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from splitjoin.base.errors import InputError
from splitjoin.lang.schema import SIDES
from splitjoin.rows.device_times import is_unordered

from .gate import PushOrder, ScaleGate, UnorderedGate
from .schemas import SessionSchemas

__all__ = ["PushGate", "make_gate"]

#: The gates of sessions that are pushed to.
PushGate = ScaleGate | PushOrder


def make_gate(schemas: SessionSchemas, *, lateness: Any, watermark: str | None, idle: Any,
              clock: Callable[[], float], keep_late: int) -> PushGate:
    """The gate of a session's streams. Raises `InputError` for arguments that need a time column."""
    r, s = schemas.streams["r"], schemas.streams["s"]
    query = schemas.query
    if query.time is not None:
        options = {"time": query.time, "lateness": lateness, "watermark": watermark, "idle": idle, "clock": clock,
                   "keep_late": keep_late, "columns": schemas.kept}
        if is_unordered(query, early=schemas.early):
            lengths = {side: query.narrowed.window(side).length or 0 for side in SIDES}
            return UnorderedGate(r, s, lengths=None if schemas.early else lengths,
                                 sorts_s=query.kind.is_asof or bool(query.aggregates), **options)
        return ScaleGate(r, s, **options)
    for name, value in (("a lateness", lateness), ("a watermark", watermark), ("idle", idle)):
        if value is not None:
            raise InputError(f"{name} needs a query with a time column; without one, tuples arrive as they are pushed")
    return PushOrder(r, s, columns=schemas.kept, keep_shed=keep_late)
