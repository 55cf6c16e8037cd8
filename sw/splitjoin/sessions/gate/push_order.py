"""`PushOrder`: the gate of a query without a time column, whose tuples arrive in the order of the pushes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from splitjoin.base import threads
from splitjoin.base.errors import InputError
from splitjoin.engines.arrival import Arrivals, R, S
from splitjoin.lang.layouts import take_rows
from splitjoin.lang.schema import SIDES, Side
from splitjoin.tables.inputs import as_batch

from .late import LateRows
from .readers import ReadySequence
from .source import GateState, Shed, Source, SourceState, check_unfinished

__all__ = ["PushOrder"]


class PushOrder:
    """A gate with the interface of `ScaleGate`: the order of the calls is arrival order, and all tuples are ready at
    once.
    """

    def __init__(self, r: pa.Schema, s: pa.Schema, *, columns: Mapping[Side, Sequence[str]] | None = None,
                 keep_shed: int = 1 << 16):
        self._schemas: dict[Side, pa.Schema] = {"r": r, "s": s}
        self._columns: Mapping[Side, Sequence[str]] = columns or {"r": r.names, "s": s.names}
        self._kept = {side: schema.empty_table().select(self._columns[side]) for side, schema in self._schemas.items()}
        self._closed: dict[Side, list[bool]] = {"r": [], "s": []}
        self._finished: dict[Side, bool] = {"r": False, "s": False}
        self._shed: dict[Side, LateRows] = {side: LateRows(schema, keep_shed) for side, schema in self._schemas.items()}
        self._pushed: list[tuple[Side, pa.Table]] = []
        self._lock = threads.lock()  # pushes and readers of the sequence may be in different threads

    #: The attributes of a gate in which no tuple ever waits.
    waiting: int = 0
    frontier: int | None = None
    longest_delay: int = 0
    rule: str = "(none)"
    in_order: ClassVar[bool] = True

    @property
    def passed(self) -> dict[Side, int | None]:
        """No times: there is no time column."""
        return dict.fromkeys(SIDES)

    @property
    def done(self) -> bool:
        """True if both streams are finished."""
        return all(self._finished.values())

    def add(self, side: Side) -> Source:
        """Add a source to stream ``side``."""
        check_unfinished(side, self._finished[side])
        self._closed[side].append(False)
        return Source(self, side, len(self._closed[side]) - 1)

    def deliver(self, side: Side, index: int, data: Any, shed: Shed | None = None) -> None:
        """Append tuples to arrival order, but for those that ``shed`` drops (`ScaleGate.deliver`)."""
        table = as_batch(data, side, self._schemas[side])
        closed = self.is_closed(side, index)
        check_unfinished(side, self._finished[side])
        if closed:
            raise InputError(f"source {side}[{index}] is closed and takes no more; add a new one")
        with self._lock:
            if shed is not None and len(table):
                dropped = shed(len(table), sum(len(t) for of, t in self._pushed if of == side))
                self._shed[side].add(take_rows(table, np.flatnonzero(dropped)))
                table = take_rows(table, np.flatnonzero(~dropped))
            self._pushed.append((side, table.select(self._columns[side])))

    def promise(self, side: Side, index: int, time: Any) -> None:
        """Raise `InputError`: there is no time to promise."""
        raise InputError("a heartbeat needs a query with a time column; without one, tuples arrive as they are pushed")

    def silence(self, side: Side, index: int) -> None:
        """Do nothing: no source waits for another one."""
        self.is_closed(side, index)

    def next_idle(self) -> float | None:
        """None: no source waits for another one."""
        return None

    def remove(self, side: Side, index: int) -> None:
        """Close a source."""
        self.is_closed(side, index)
        self._closed[side][index] = True

    def finish(self, side: Side) -> None:
        """Close all sources of stream ``side``, and refuse new ones."""
        self._finished[side] = True
        self._closed[side] = [True] * len(self._closed[side])

    def behind(self) -> list[str]:
        """The empty list: no source waits for another one."""
        return []

    def held_up(self, side: Side, index: int | None) -> bool:
        """False: no source waits for another one."""
        return False

    def ready(self) -> Arrivals:
        """All tuples that were pushed since the last call."""
        with self._lock:
            pushed, self._pushed = self._pushed, []
        tables = {side: pa.concat_tables([t for of, t in pushed if of == side] or [self._kept[side]])
                  for side in self._schemas}
        stream = np.repeat(np.array([R if side == "r" else S for side, _ in pushed], np.uint8),
                           [len(t) for _, t in pushed])
        return Arrivals(stream, None, tables["r"], tables["s"])

    def sequence(self) -> ReadySequence:
        """The sequence of the ready tuples, which nothing else may take."""
        return ReadySequence(self._take_ready, self.next_idle)

    def _take_ready(self) -> tuple[Arrivals, None, bool]:
        done = self.done  # before taking what came until then
        return self.ready(), None, done

    def late(self, side: Side) -> pa.Table:
        """No tuples: nothing is ever late."""
        return self._schemas[side].empty_table()

    def shed(self, side: Side) -> pa.Table:
        """The tuples of stream ``side`` that were dropped under load since the last call."""
        return self._shed[side].take()

    def shed_count(self, side: Side) -> int:
        """The number of tuples of stream ``side`` that were dropped under load."""
        return self._shed[side].count

    def counters(self) -> dict[str, int]:
        """The counters of a gate in which no tuple waits or is late."""
        out = {"waiting": 0}
        for side, shed in self._shed.items():
            out |= {f"late_{side}": 0, f"shed_{side}": shed.count, f"forgotten_{side}": shed.forgotten}
        return out

    def state(self) -> GateState:
        """The state: the closed sources. Ready tuples must have been taken."""
        assert not self._pushed
        return GateState(None, dict(self._finished), {
            side: [SourceState(None, None, c, False, False, 0.0, self._kept[side]) for c in closed]
            for side, closed in self._closed.items()}, {side: (0, 0, self.late(side)) for side in self._schemas},
            shed={side: (shed.count, shed.forgotten, shed.peek()) for side, shed in self._shed.items()})

    def restore(self, state: GateState) -> None:
        """Continue from ``state``."""
        self._pushed = []
        self._finished = dict(state.finished)
        for side, shed in state.shed.items():
            self._shed[side].restore(*shed)
        self._closed = {side: [source.closed for source in sources] for side, sources in state.sources.items()}

    def count(self, side: Side) -> int:
        """The number of sources that stream ``side`` has had."""
        return len(self._closed[side])

    def is_closed(self, side: Side, index: int) -> bool:
        """True if a source is closed. Raises `InputError` if no source has this index."""
        if not 0 <= index < len(self._closed[side]):
            raise InputError(f"stream {side} has no source {index}; it has {len(self._closed[side])}")
        return self._closed[side][index]
