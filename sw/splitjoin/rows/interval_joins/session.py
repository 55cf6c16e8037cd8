"""Interval-join engines: over all arrivals, without pairs, and in sessions, beside a device that gives stars only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.base.progress import progress_bar
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
from .state import FoldedBases
from .values import aggregate_values


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
        found = self._folder.fold(int(np.count_nonzero(decided["kind"] == PAIR)))
        return rows_of(self._query, self._choice, decided, found, self._gather) if len(decided) else RowBatch(decided)


class StarDevice(Device):
    """A device that finds no pairs, as the operator needs none: it gives stars, if ``stars``, and counts tuples."""

    name: ClassVar[str] = "cpu"
    immediate: ClassVar[bool] = True
    settles: ClassVar[bool] = True

    def __init__(self, stars: bool):
        self._stars = stars

    def open(self, query: Query) -> Session:
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


def fold_slices(query: Query, choice: IntervalChoice, arrivals: Arrivals, gather: Gather, first: int, end: int,
                facts: dict[str, Any]) -> Iterator[RowBatch]:
    """The rows of base tuples ``first`` to before ``end`` from all arrivals, a slice of arrival order after the other.
    ``facts`` gets the counters, as of the device ``cpu``.
    """
    folder = choice.folder()
    try:
        done, rest = 0, cast(Arrivals | None, arrivals)
        with progress_bar(len(arrivals), "join", "rows") as bar:
            while rest is not None:  # so that engines hold windows and not whole streams
                head, rest = rest.split(choice.asked.batch)
                folder.arrive(head)
                now = int(head.ts[-1]) if head.ts is not None and len(head) else None
                last = min(done + (folder.waiting if rest is None else folder.decided(now)), end)
                if (before := min(first, last) - done) > 0:
                    folder.pass_over(before)
                    done += before
                found = folder.fold(last - done)
                folder.forget(folder.earliest)
                facts["counters"] = folder.counters()
                bar.update(len(head))
                items = np.empty(last - done, ITEM)
                items["kind"], items["side"], items["r"], items["s"] = PAIR, 0, np.arange(done, last), -1
                yield rows_of(query, choice, items, found, gather)
                done = last
    finally:
        folder.close()


def rows_of(query: Query, choice: IntervalChoice, items: Items, found: FoldedBases, gather: Gather) -> RowBatch:
    """The rows of the base tuples in ``items``, which have these values, and the stars among them."""
    rows = items["kind"] == PAIR
    bases = items["r"][rows]
    if query.kind.is_inner and not (kept := found.counts > 0).all():  # without partners there is no row
        items, bases, found = np.delete(items, np.flatnonzero(rows)[~kept]), bases[kept], found.chosen(kept)
    return RowBatch(items, aggregate_values(choice.form, found, bases, gather))
