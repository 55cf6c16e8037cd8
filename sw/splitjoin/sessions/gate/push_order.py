"""`PushOrder`: the gate of a query without a time column, whose tuples arrive in the order of the pushes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError
from splitjoin.engines.arrival import Arrivals, R, S
from splitjoin.lang.layouts import take_rows
from splitjoin.lang.schema import Side
from splitjoin.tables.inputs import as_batch

from .source import GateState, Shed
from .source_gate import SourceGate

__all__ = ["PushOrder"]


class PushOrder(SourceGate):
    """A gate without times: the order of the calls is arrival order, and all tuples are ready at once."""

    rule = "(none)"

    def __init__(self, r: pa.Schema, s: pa.Schema, *, columns: Mapping[Side, Sequence[str]] | None = None,
                 keep_late: int = 1 << 16):
        super().__init__(r, s, columns=columns, keep_late=keep_late)
        self._pushed: list[tuple[Side, pa.Table]] = []

    def deliver(self, side: Side, index: int, data: Any, shed: Shed | None = None) -> None:
        table = as_batch(data, side, self._schemas[side])
        with self._lock:
            self._open_queue(side, index)
            if shed is not None and len(table):
                waiting = sum(len(t) for of, t in self._pushed if of == side)
                table = take_rows(table, self._not_shed(side, table, shed, waiting))
            self._pushed.append((side, table.select(self._columns[side])))

    def promise(self, side: Side, index: int, time: Any) -> None:
        """Raise `InputError`: there is no time to promise."""
        raise InputError("a heartbeat needs a query with a time column; without one, tuples arrive as they are pushed")

    def restore(self, state: GateState) -> None:
        with self._lock:
            super().restore(state)
            self._pushed = []

    def _ready(self) -> Arrivals:
        with self._lock:
            pushed, self._pushed = self._pushed, []
        tables = {side: pa.concat_tables([t for of, t in pushed if of == side] or [self._kept[side]])
                  for side in self._schemas}
        stream = np.repeat(np.array([R if side == "r" else S for side, _ in pushed], np.uint8),
                           [len(t) for _, t in pushed])
        return Arrivals(stream, None, tables["r"], tables["s"])
