"""`UnorderedGate`: lets tuples through as soon as they may be in a pair, for queries whose results have no order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from splitjoin.engines.arrival import Arrivals
from splitjoin.lang.schema import SIDES, Side, other_side

from .gate import ScaleGate
from .lateness import later
from .source import GateState

__all__ = ["UnorderedGate"]

#: The time that a stream has passed which is finished: no event time to speak of is greater.
_END = 2**63 - 1
#: Less than any event time.
_NOTHING = -(2**63) - 1


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
        sorts_s: True if the tuples of S become ready in the order of S alone: once no tuple of S that precedes one can
            still come.
    """

    in_order = False

    def __init__(self, r: pa.Schema, s: pa.Schema, *, lengths: Mapping[Side, int] | None, sorts_s: bool = False,
                 **options: Any):
        super().__init__(r, s, **options)
        self._lengths = lengths
        self._sorts: dict[Side, bool] = {"r": False, "s": sorts_s}
        #: For each stream the event time below which it delivers no more tuples, and the first source that may deliver
        #: one of that time; None if unknown.
        self._passed: dict[Side, tuple[int, int] | None] = dict.fromkeys(SIDES)

    @property
    def passed(self) -> dict[Side, int | None]:
        with self._lock:
            found: dict[Side, int | None] = {}
            for side, passed in self._passed.items():
                waiting = [int(run.ts[0]) for queue in self._queues[side] for run in queue.runs]
                found[side] = None if passed is None else min([passed[0], *waiting])
            return found

    def _ready(self) -> Arrivals:
        """By event time; none need be later than those of earlier calls."""
        with self._lock:
            self._advance()
            taken = []
            for side in SIDES:
                near = self._near(side)
                for index, queue in enumerate(self._queues[side]):
                    cuts = [cut for cut in (near, self._in_order(side, index)) if cut is not None]
                    taken += [(SIDES.index(side), run) for run in queue.take(min(cuts, default=None))]
            return self._merge(taken)

    def state(self) -> GateState:
        with self._lock:
            return replace(super().state(), passed=dict(self._passed))

    def restore(self, state: GateState) -> None:
        with self._lock:
            super().restore(state)
            self._passed = dict(state.passed)

    def _advance(self) -> None:
        """Note how far each stream has got: as far as its own sources that are not idle, or else as the other ones."""
        super()._advance()
        reached = self.rule.reached(self._queues, self._missing())
        marks = {side: [(later(self.rule.mark(side, queue, reached), self._floor(side, index)), index)
                        for index, queue in enumerate(self._queues[side]) if not queue.closed and not queue.idle]
                 for side in SIDES}
        for side in SIDES:
            mine = [(reached, 0)] if side in self._missing() else marks[side] or [
                (mark, 0) for mark, _ in marks[other_side(side)]]
            known = [(mark, index) for mark, index in mine if mark is not None]
            if self._finished[side]:
                self._passed[side] = _END, 0
            elif known and len(known) == len(mine):
                passed = self._passed[side]
                self._passed[side] = min(known) if passed is None else max(passed, min(known))

    def _floor(self, side: Side, index: int) -> int | None:
        """The least event time that a source of stream ``side`` may still deliver."""
        passed = self._passed[side]
        return None if passed is None else passed[0] + (index < passed[1])

    def _near(self, side: Side) -> int | None:
        """The event time up to which tuples of stream ``side`` may be in a pair; None without end."""
        other = other_side(side)
        if self._finished[other] or self._lengths is None:
            return None
        reached = [t for queue in self._queues[other] for t in (queue.highest, queue.promise) if t is not None]
        if (passed := self._passed[other]) is not None:
            reached.append(passed[0])
        return max(reached) + self._lengths[other] if reached else _NOTHING

    def _in_order(self, side: Side, index: int) -> int | None:
        """The event time up to which tuples of a source are in the order of stream ``side``; None without end."""
        if not self._sorts[side] or self._finished[side]:
            return None
        passed = self._passed[side]
        return _NOTHING if passed is None else passed[0] - (index > passed[1])
