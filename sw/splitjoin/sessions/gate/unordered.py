"""`UnorderedGate`: lets tuples through as soon as they may be in a pair, for queries whose results have no order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa

from splitjoin.engines.arrival import Arrivals
from splitjoin.lang.schema import SIDES, Side, other_side

from .gate import ScaleGate
from .source import GateState

__all__ = ["UnorderedGate"]

#: The time that a stream has passed which is finished: no event time to speak of is greater.
_END = 2**63 - 1


class UnorderedGate(ScaleGate):
    """A `ScaleGate` that does not sort: a tuple is ready once the other stream has delivered one within its window.

    The pairs of RANGE windows depend on their two tuples alone. So a tuple that comes late, but not too late, needs no
    place among earlier ones. One that is further ahead than the other stream's windows reach waits, as nothing can be
    with it in a pair yet; so the tuples of a query are never further apart than its windows and what its sources are
    out of order. The tuples of one `ready` are sorted.

    Args:
        r, s, options: As of `ScaleGate`.
        lengths: The lengths in ticks of both streams' windows, which are RANGE windows; None if all tuples are ready as
            they come, however far ahead.
    """

    in_order: ClassVar[bool] = False

    def __init__(self, r: pa.Schema, s: pa.Schema, *, lengths: Mapping[Side, int] | None, **options: Any):
        super().__init__(r, s, **options)
        self._lengths = lengths
        #: For each stream the event time below which it delivers no more tuples; None if unknown.
        self._passed: dict[Side, int | None] = dict.fromkeys(SIDES)

    @property
    def passed(self) -> dict[Side, int | None]:
        with self._lock:
            found: dict[Side, int | None] = {}
            for side, passed in self._passed.items():
                waiting = [int(run.ts[0]) for queue in self._queues[side] for run in queue.runs]
                found[side] = None if passed is None else min([passed, *waiting])
            return found

    def _ready(self) -> Arrivals:
        """The tuples that became ready since the last call, by event time; none need be later than earlier calls'."""
        with self._lock:
            self._advance()
            taken = []
            for side in SIDES:
                other = other_side(side)
                reached = [t for queue in self._queues[other] for t in (queue.highest, queue.promise) if t is not None]
                reached += [t for t in (self._passed[other],) if t is not None]
                if self._finished[other] or self._lengths is None:
                    taken += [(SIDES.index(side), run) for queue in self._queues[side] for run in queue.take(None)]
                elif reached:
                    cut = max(reached) + self._lengths[other]
                    taken += [(SIDES.index(side), run) for queue in self._queues[side] for run in queue.take(cut)]
            return self._merge(taken)

    def state(self) -> GateState:
        """The state from which `restore` continues."""
        with self._lock:
            return replace(super().state(), passed=dict(self._passed))

    def restore(self, state: GateState) -> None:
        """Continue from ``state``, as `ScaleGate.restore`."""
        with self._lock:
            super().restore(state)
            self._passed = dict(state.passed)

    def _advance(self) -> None:
        """Note how far each stream has got: as far as its own sources that are not idle, or else as the other ones."""
        super()._advance()
        reached = self.rule.reached(self._queues, self._missing())
        marks = {side: [self.rule.mark(side, queue, reached) for queue in self._queues[side]
                        if not queue.closed and not queue.idle] for side in SIDES}
        for side in SIDES:
            mine = [reached] if side in self._missing() else marks[side] or marks[other_side(side)]
            known = [mark for mark in mine if mark is not None]
            if self._finished[side]:
                self._passed[side] = _END
            elif known and len(known) == len(mine):
                passed = self._passed[side]
                self._passed[side] = min(known) if passed is None else max(passed, min(known))

    def _floor(self, side: Side, index: int) -> int | None:
        """The least event time that a source of stream ``side`` may still deliver."""
        return self._passed[side]
