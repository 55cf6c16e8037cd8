"""Interval-join engines in sessions: the operator beside a device that gives stars only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, Device, Items, Session, stars
from splitjoin.lang.query import Query

from ..aggregates import Gather
from ..changes import Changes
from ..device_times import DeviceTimes
from ..kinds import KindOperator
from ..numbered import NumberedSession, RowIds
from ..operator import RowBatch
from .choice import IntervalChoice
from .values import aggregate_values

Ints = npt.NDArray[np.int64]


class IntervalOperator(KindOperator):
    """Folds the partners of base tuples from arrivals and the stars of a `StarDevice`.

    Its state is that of an `AggregateOperator`, so that a session may move from one to the other. ``gather`` gets
    columns of retained rows. ``stars``: True if rows have stars beside them.
    """

    _gets_pairs = False

    def __init__(self, query: Query, choice: IntervalChoice, gather: Gather, stars: bool):
        super().__init__(query, bases=True)
        self._choice, self._gather, self._stars = choice, gather, stars
        self._folder = choice.folder()

    def open(self, device: Device, first: RowIds = (0, 0), settled: RowIds = (0, 0),
             times: DeviceTimes | None = None, changes: Changes | None = None, *, stars: bool = True
             ) -> NumberedSession:
        return super().open(StarDevice(self._stars), first, settled, times, changes)

    @property
    def needed(self) -> tuple[int, int]:
        r, s = super().needed
        self._folder.forget(s)
        return r, s

    def arrive(self, arrivals: Arrivals) -> None:
        super().arrive(arrivals)
        self._folder.arrive(arrivals)

    def state(self) -> dict[str, Ints]:
        r, s = self._folder.pairs()
        return {"pairs_r": r, "pairs_s": s, **super().state()}

    def base_state(self) -> dict[str, Ints]:
        return super().state()

    def restore(self, state: Mapping[str, Ints]) -> None:
        super().restore({name: values for name, values in state.items() if not name.startswith("pairs_")})

    def replay(self, first: tuple[int, int], retained: Arrivals) -> None:
        self._folder.skip(*first)
        self._folder.arrive(retained)
        self._folder.pass_over(super().needed[0] - first[0])

    def counters(self, session: NumberedSession) -> dict[str, int]:
        return self._folder.counters()

    def plan(self, session: NumberedSession) -> str:
        return str(self._choice)

    def close(self) -> None:
        self._folder.close()

    def _rows(self, decided: Items) -> RowBatch:
        items = decided
        rows = items["kind"] == PAIR
        bases = items["r"][rows]
        found = self._folder.fold(len(bases))
        if self._query.kind.is_inner and not (kept := found.counts > 0).all():
            items = np.delete(items, np.flatnonzero(rows)[~kept])
            found, bases = found.chosen(kept), bases[kept]
        return RowBatch(items, aggregate_values(self._choice.form, found, bases, self._gather) if len(items) else [])


class StarDevice(Device):
    """A device that finds no pairs, as the operator needs none: it gives stars, if ``stars``, and counts tuples."""

    name: ClassVar[str] = "cpu"
    immediate: ClassVar[bool] = True
    settles: ClassVar[bool] = True

    def __init__(self, stars: bool):
        self._stars = stars

    def open(self, query: Query) -> Session:
        """Start a session."""
        return _StarSession(self._stars)


class _StarSession(Session):
    def __init__(self, stars: bool):
        self._stars = stars
        self._tuples = [0, 0]
        self._items: list[Items] = []

    def push(self, arrivals: Arrivals) -> None:
        if self._stars:
            self._items.append(stars(arrivals.stream, (self._tuples[0], self._tuples[1])))
        self._tuples = [self._tuples[0] + len(arrivals.r), self._tuples[1] + len(arrivals.s)]

    def poll(self) -> Items:
        items, self._items = np.concatenate([np.empty(0, ITEM), *self._items]), []
        return items

    def settle(self) -> Items:
        return self.poll()

    def flush(self) -> Items:
        return self.poll()
