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
from ..kinds import KindOperator
from ..operator import DecidedRows, RowBatch
from .choice import IntervalChoice
from .values import aggregate_values

__all__ = ["IntervalOperator", "StarDevice"]

Ints = npt.NDArray[np.int64]


class IntervalOperator(DecidedRows[Items]):
    """Folds the partners of base tuples from arrivals and the stars of a `StarDevice`.

    It stands in for an operator that folds pairs, whose state it reads and writes, so that a session may move from one
    to the other; after `restore`, `replay` must follow. ``gather`` gets columns of retained rows.
    """

    needs_pairs = False

    def __init__(self, query: Query, choice: IntervalChoice, gather: Gather):
        super().__init__(KindOperator(query, bases=True))
        self._query, self._choice, self._gather = query, choice, gather
        self._folder = choice.folder()

    @property
    def needed(self) -> tuple[int, int]:
        r, s = super().needed
        self._folder.forget(s)
        return r, s

    def arrive(self, arrivals: Arrivals) -> None:
        super().arrive(arrivals)
        self._folder.arrive(arrivals)

    def state(self) -> dict[str, Ints]:
        """The state of an `AggregateOperator`, with the pairs of undecided base tuples."""
        r, s = self._folder.pairs()
        return {"pairs_r": r, "pairs_s": s, **super().state()}

    def base_state(self) -> dict[str, Ints]:
        """The state without pairs, for whoever keeps the rows: `restore` and `replay` continue from both."""
        return super().state()

    def restore(self, state: Mapping[str, Ints]) -> None:
        super().restore({name: values for name, values in state.items() if not name.startswith("pairs_")})

    def replay(self, first: tuple[int, int], retained: Arrivals) -> None:
        """Fold anew from the ``retained`` rows, of which the first ones have row ids ``first``."""
        self._folder.skip(*first)
        self._folder.arrive(retained)
        self._folder.pass_over(super().needed[0] - first[0])

    def counters(self) -> dict[str, int]:
        """The counters of the folder."""
        return self._folder.counters()

    def close(self) -> None:
        """Stop the threads."""
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
