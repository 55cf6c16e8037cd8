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
from .choice import IntervalChoice
from .operator import FoldedRowsOf
from .values import aggregate_values

__all__ = ["IntervalOperator", "StarDevice"]

Ints = npt.NDArray[np.int64]


class IntervalOperator:
    """Decides the base tuples of ``query`` and folds their partners, from arrivals and the stars of a `StarDevice`.

    It stands in for `splitjoin.rows.aggregates.AggregateOperator`, whose state it reads and writes, so that a session
    may move from one to the other; after `restore`, `replay` must follow. ``gather`` gets columns of retained rows.
    """

    needs_pairs = False

    def __init__(self, query: Query, choice: IntervalChoice, gather: Gather):
        self._query, self._choice, self._gather = query, choice, gather
        self._bases = KindOperator(query, bases=True)
        self._folder = choice.folder()

    @property
    def needed(self) -> tuple[int, int]:
        """The ids of the first rows (R's, S's) that later rows may have."""
        r, s = self._bases.needed
        self._folder.forget(s)
        return r, s

    @property
    def done(self) -> tuple[int, int]:
        """As `KindOperator.done`."""
        return self._bases.done

    def arrive(self, arrivals: Arrivals) -> None:
        """Note the next slice of arrival order."""
        self._bases.arrive(arrivals)
        self._folder.arrive(arrivals)

    def take(self, items: Items, settled: tuple[int, int]) -> FoldedRowsOf:
        """As `KindOperator.take`."""
        return self._folded(self._bases.take(items, settled))

    def advance(self, now: int) -> FoldedRowsOf:
        """As `KindOperator.advance`."""
        return self._folded(self._bases.advance(now))

    def finish(self, items: Items) -> FoldedRowsOf:
        """As `KindOperator.finish`."""
        return self._folded(self._bases.finish(items))

    def state(self) -> dict[str, Ints]:
        """The state of an `AggregateOperator`, with the pairs of undecided base tuples."""
        r, s = self._folder.pairs()
        return {"pairs_r": r, "pairs_s": s, **self._bases.state()}

    def base_state(self) -> dict[str, Ints]:
        """The state without pairs, for whoever keeps the rows: `restore` and `replay` continue from both."""
        return self._bases.state()

    def restore(self, state: Mapping[str, Ints]) -> None:
        """Take over the ``state`` of another operator of the same query; this one must be fresh."""
        self._bases.restore({name: values for name, values in state.items() if not name.startswith("pairs_")})

    def replay(self, first: tuple[int, int], retained: Arrivals) -> None:
        """Fold anew from the ``retained`` rows, of which the first ones have row ids ``first``."""
        self._folder.skip(*first)
        self._folder.arrive(retained)
        self._folder.pass_over(self._bases.needed[0] - first[0])

    def counters(self) -> dict[str, int]:
        """The counters of the folder."""
        return self._folder.counters()

    def close(self) -> None:
        """Stop the threads."""
        self._folder.close()

    def _folded(self, items: Items) -> FoldedRowsOf:
        rows = items["kind"] == PAIR
        bases = items["r"][rows]
        found = self._folder.fold(len(bases))
        if self._query.kind.is_inner and not (kept := found.counts > 0).all():
            items = np.delete(items, np.flatnonzero(rows)[~kept])
            found, bases = found.chosen(kept), bases[kept]
        values = aggregate_values(self._choice.form, found, bases, self._gather) if len(items) else []
        return FoldedRowsOf(items, values, self._folder.counters())


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
