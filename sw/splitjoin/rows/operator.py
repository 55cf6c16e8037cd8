"""`RowOperator`: decides the rows of a query, batch by batch, from arrivals and from what a device gives of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import UnsupportedError
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, Device, Items, chosen_items, joined_items
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side

from .changes import Changes
from .device_times import DeviceTimes
from .numbered import NumberedSession, RowIds

_NO_ITEMS: Items = np.empty(0, ITEM)


@dataclass(frozen=True)
class RowBatch:
    """Rows that are decided.

    ``items``: an item of kind `PAIR` for each row, with −1 for NULL, and stars among them. ``values``: those of each
    aggregate, a value a row.
    """

    items: Items
    values: Sequence[pa.ChunkedArray] = ()

    def rows(self) -> RowBatch:
        """The same rows without stars."""
        chosen = self.items["kind"] == PAIR
        return self if chosen.all() else RowBatch(chosen_items(self.items, chosen), self.values)

    @classmethod
    def joined(cls, batches: Sequence[RowBatch]) -> RowBatch:
        """The rows of all ``batches`` (one at least), one batch after the other."""
        if len(batches) == 1:
            return batches[0]
        values = zip(*(batch.values for batch in batches if len(batch.items)), strict=True)
        return cls(joined_items([batch.items for batch in batches]),
                   [pa.chunked_array([chunk for v in column for chunk in v.chunks], column[0].type)
                    for column in values] or batches[0].values)


class RowOperator(ABC):
    """Decides the rows of a query.

    `arrive` takes arrivals as they are given to the device, `take` the device's items, in total order, of all pairs or
    of those that decide (`Device.open_deciding`). Rows that wait for a decision stand before the results of the arrival
    that brings it (semantics, section 7). Stars stay where they are.
    """

    #: True if it gets pairs from the device.
    _gets_pairs: ClassVar[bool] = True

    def __init__(self, query: Query):
        self._query = query

    def open(self, device: Device, first: RowIds = (0, 0), settled: RowIds = (0, 0),
             times: DeviceTimes | None = None, changes: Changes | None = None, *, stars: bool = True
             ) -> NumberedSession:
        """Start a session of ``device`` for what this operator takes, as of `NumberedSession`."""
        return NumberedSession(self._query, device.of_pairs, first, settled, times=times, changes=changes, stars=stars)

    def check_pairs(self, device: Device, what: str) -> None:
        """Raise `UnsupportedError`, which says ``what`` needs them, unless ``device`` gives the operator all pairs."""
        if not self._gets_pairs or not device.gives_all_pairs(self._query):
            raise UnsupportedError(f"{what} needs all pairs, but the device {device.name!r} gives aggregates, or only "
                                   f"the pairs that decide; use a circuit with fold='never', or for aggregates an "
                                   f"engine that makes pairs, such as device='cpu', engine='index'")

    def close(self) -> None:  # noqa: B027  # most have nothing to release
        """Release what the operator holds; it cannot be used afterwards."""

    @property
    @abstractmethod
    def needed(self) -> tuple[int, int] | None:
        """The ids of the first rows (R's, S's) that later rows may have; None if they have the tuples of windows."""

    @property
    @abstractmethod
    def done(self) -> tuple[int, int]:
        """The numbers of tuples of R and of S whose pairs, as probes, are known."""

    @abstractmethod
    def arrive(self, arrivals: Arrivals) -> None:
        """Note the next slice of arrival order."""

    def follow(self, session: NumberedSession, end: int | None = None) -> None:  # noqa: B027  # most only take items
        """Note what ``session`` has beside items, before these are taken: states of base tuples before ``end``."""

    def expire(self, session: NumberedSession, passed: Mapping[Side, int | None]) -> bool:
        """Tell ``session``, where that decides rows, that no tuple of a stream below its event time in ``passed`` will
        be pushed. True if it must settle before `advance_streams`.
        """
        return False

    @abstractmethod
    def take(self, items: Items, settled: tuple[int, int]) -> RowBatch:
        """The rows that are decided now, with ``items``: those of the probes up to row ids ``settled`` that were not
        given yet.
        """

    @abstractmethod
    def advance(self, now: int) -> RowBatch:
        """The rows that are decided as no tuple below event time ``now`` will arrive any more."""

    def advance_streams(self, passed: Mapping[Side, int | None]) -> RowBatch:
        """The rows that are decided as no tuple of a stream below its event time in ``passed`` will arrive any more."""
        times = [time for time in passed.values() if time is not None]
        return self.advance(min(times)) if len(times) == len(passed) else RowBatch(_NO_ITEMS)

    def close_before(self, first: RowIds) -> RowBatch:
        """The rows that are decided as windows have changed so that no later tuple meets one before row ids ``first``
        (R's, S's). All results of the tuples that arrived must have been taken.
        """
        return RowBatch(_NO_ITEMS)

    @abstractmethod
    def finish(self, items: Items) -> RowBatch:
        """All remaining rows, with ``items``, the last ones, at the end of input."""

    @abstractmethod
    def state(self) -> dict[str, Ints]:
        """The state by name, from which `restore` continues."""

    @abstractmethod
    def restore(self, state: Mapping[str, Ints]) -> None:
        """Take over the ``state`` of another operator of the same query; this one must be fresh."""

    def base_state(self) -> dict[str, Ints]:
        """The state for whoever keeps the rows: without pairs, where `replay` or `renew` finds them again."""
        return self.state()

    def replay(self, first: tuple[int, int], retained: Arrivals) -> None:  # noqa: B027  # most keep what they need
        """Note the ``retained`` rows again, of which the first ones have row ids ``first``; follows `restore`."""

    def renew(self, items: Items, session: NumberedSession) -> None:  # noqa: B027  # most keep what they need
        """Note what a fresh ``session`` found for the retained rows, ``items`` and states, in place of all that was
        noted for undecided base tuples; follows `restore` from a `base_state`, or a session that is full.
        """

    def counters(self, session: NumberedSession) -> dict[str, int]:
        """The device's counters since ``session`` began."""
        return session.counters()

    def plan(self, session: NumberedSession) -> str:
        """The way in which rows are found at present, in words."""
        return session.plan()


class PairOperator(RowOperator):
    """Gives the pairs as they come from the device."""

    done = (0, 0)
    needed = None

    def arrive(self, arrivals: Arrivals) -> None:
        pass

    def take(self, items: Items, settled: tuple[int, int]) -> RowBatch:
        return RowBatch(items)

    def advance(self, now: int) -> RowBatch:
        return RowBatch(_NO_ITEMS)

    def finish(self, items: Items) -> RowBatch:
        return RowBatch(items)

    def state(self) -> dict[str, Ints]:
        return {}

    def restore(self, state: Mapping[str, Ints]) -> None:
        pass

    def between(self, arrivals: Arrivals, items: Items, warm: int, start: int | None, end: int | None) -> RowBatch:
        """As `splitjoin.rows.kinds.KindOperator.between`."""
        of_r, of_s = (np.count_nonzero(arrivals.stream[:warm] == side) for side in (0, 1))
        # Warm tuples precede the others, so a pair belongs to other times exactly when both of its tuples are warm.
        return RowBatch(chosen_items(items, (items["r"] >= of_r) | (items["s"] >= of_s)) if warm else items)
