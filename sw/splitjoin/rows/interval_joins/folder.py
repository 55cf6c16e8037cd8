"""`IntervalFolder`: an engine with what all engines need: codes, stored rows, and intervals of base tuples."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.base.sliding import SlidingArray
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.compiled.helpers import Team
from splitjoin.lang.schema import SIDES

from .bounds import IntervalBounds
from .encoding import IntervalEncoder
from .form import IntervalForm
from .rows import StoredRows
from .sliding import Bases
from .state import FoldedBases, partners_of

#: Fewest tuples for which threads are woken.
_MIN_PARALLEL = 1 << 13


class Engine(Protocol):
    """Finds and folds the partners of base tuples."""

    name: str
    work: Ints

    @property
    def needed(self) -> int:
        """The first row id of S that is still needed."""

    def fold(self, rows: StoredRows, bases: Bases, slots: int, team: Team) -> FoldedBases:
        """Fold the partners of ``bases``, which follow those of earlier calls, among ``rows``; ``team`` shares the
        work, and ``slots`` is the number of codes of keys.
        """

    def counters(self) -> dict[str, int]:
        """Figures of the engine so far, by name."""


class IntervalFolder:
    """Folds the partners of base tuples with ``engine``, on up to ``threads`` threads."""

    def __init__(self, form: IntervalForm, engine: Engine, threads: int):
        self.engine = engine
        self._encoder, self._bounds = IntervalEncoder(form), IntervalBounds(form.query)
        self._rows = StoredRows(len(form.feeds))
        self._keys, self._times = SlidingArray(), SlidingArray()  # of base tuples that were not folded
        self._first = 0
        self._threads, self._team = threads, Team(threads)
        self._new = 0
        self._tuples, self._pairs, self._matches = [0, 0], 0, 0

    def skip(self, r: int, s: int) -> None:
        """Begin with row ids ``r`` and ``s``, before anything arrives."""
        self._bounds.skip(r, s)
        self._rows.skip(s)
        self._first = r

    def arrive(self, arrivals: Arrivals) -> None:
        """Note the next slice of arrival order."""
        times = arrivals.ts
        for number, side in enumerate(SIDES):
            encoded = self._encoder.encode(side, arrivals.table(side))
            mine = None if times is None else times[arrivals.stream == number]
            if side == "s":
                self._rows.append(mine, encoded)
            else:
                self._keys.append(encoded.keys)
                self._times.append(np.zeros(len(encoded.keys), np.int64) if mine is None else mine)
        self._bounds.append(arrivals.stream, times)
        self._new += len(arrivals)
        self._tuples = [self._tuples[0] + len(arrivals.r), self._tuples[1] + len(arrivals.s)]

    @property
    def waiting(self) -> int:
        """The number of base tuples that were not folded."""
        return len(self._keys)

    def decided(self, now: int | None) -> int:
        """The number of base tuples that are decided if no tuple below event time ``now`` arrives any more."""
        return self._bounds.decided(now)

    def fold(self, count: int) -> FoldedBases:
        """Fold for the next ``count`` base tuples, which are decided."""
        low, high = self._bounds.of(self._first, count)
        bases = Bases(self._keys.values[:count], self._times.values[:count], low, high)
        self._team.size = self._threads if self._new + count >= _MIN_PARALLEL else 1
        found = self.engine.fold(self._rows, bases, self._encoder.codes, self._team)
        for n in found.uncertain.tolist():
            found.partners[n] = partners_of(self._rows, int(bases.keys[n]), int(low[n]), int(high[n]))
        self._keys.drop(count)
        self._times.drop(count)
        self._first += count
        self._new = 0
        self._pairs += int((high - low).sum())
        self._matches += int(found.counts.sum())
        return found

    def pass_over(self, count: int) -> None:
        """Leave the next ``count`` base tuples out, which were folded elsewhere."""
        self._bounds.of(self._first, count)
        self._keys.drop(count)
        self._times.drop(count)
        self._first += count

    def pairs(self) -> tuple[Ints, Ints]:
        """The pairs of row ids, R's and S's, of base tuples that were not folded, so far."""
        low, high = self._bounds.of(self._first, len(self._keys), keep=True)
        low = np.maximum(low, self._rows.first)
        rows = np.arange(self._rows.first, self._rows.end)
        keys = np.concatenate([self._rows.keys[rows & self._rows.mask], self._keys.values])
        # Numbers of the keys that are here, as there may be any number of codes.
        number = np.unique(keys, return_inverse=True)[1] * (len(rows) + 1)
        places, base = number[:len(rows)] + rows - self._rows.first, number[len(rows):] - self._rows.first
        order = np.argsort(places)
        places, rows = places[order], rows[order]
        starts = np.searchsorted(places, base + low)
        lengths = np.maximum(np.searchsorted(places, base + high) - starts, 0)
        lengths[self._keys.values < 0] = 0
        at = np.arange(int(lengths.sum())) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return np.repeat(self._first + np.arange(len(lengths)), lengths), rows[at]

    def counters(self) -> dict[str, int]:
        """Counters as of the device ``cpu``."""
        return {"tuples_r": self._tuples[0], "tuples_s": self._tuples[1], "comparisons": self._pairs,
                "matches": self._matches} | self.engine.counters()

    @property
    def earliest(self) -> int:
        """A row id of S before which no later base tuple has a partner."""
        return self._bounds.earliest

    def forget(self, first: int) -> None:
        """Forget S tuples before row id ``first``, which no undecided or later base tuple meets."""
        self._rows.drop(min(first, self.engine.needed))

    def close(self) -> None:
        """Stop the threads."""
        self._team.close()
