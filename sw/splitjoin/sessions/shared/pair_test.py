"""`PairTest`: which pairs of a common join are those of one of its queries, also while its windows change."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from splitjoin.lang.eval.vector import evaluate_columns
from splitjoin.lang.ir import And, Col, Expr, columns as columns_of
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.plan.implication import implies

from .scan import FoundPairs

__all__ = ["PairTest", "WindowSince"]

Mask = npt.NDArray[np.bool_]
RowIds = tuple[int, int]
#: The age in ticks that no tuple exceeds.
_ANY_AGE = 2**64 - 1


@dataclass(frozen=True)
class WindowSince:
    """The windows of R and S from the probes with row ids ``place`` (R's, S's) on: tuples with a row id from ``first``
    on, and of an age of ``lengths`` ticks at most. Row ids are the scan's.
    """

    place: RowIds
    first: RowIds
    lengths: RowIds

    @classmethod
    def of(cls, query: Query, place: RowIds = (0, 0), first: RowIds = (0, 0)) -> WindowSince:
        """The windows of ``query``. Its ROWS are the common join's, which has tested them."""
        r, s = _lengths(query)
        return cls(place, first, (r, s))


class PairTest:
    """Tells which pairs of a common join are those of ``query``: by the conjuncts that do not follow from the common
    condition, and by the ages of tuples where its windows are shorter than those of ``common`` are or were.

    Attributes:
        conjuncts: The conjuncts.
        columns: The columns that they read, by stream.
        windows: The windows of the query, each from other probes on.
    """

    def __init__(self, query: Query, common: Query):
        predicate = query.predicate
        conjuncts = predicate.args if isinstance(predicate, And) else (predicate,)
        self.conjuncts: tuple[Expr, ...] = tuple(c for c in conjuncts if not implies(common.predicate, c))
        self._query = query
        self.columns: tuple[Col, ...] = tuple(dict.fromkeys(c for e in self.conjuncts for c in columns_of(e)))
        self.windows = [WindowSince.of(query)]
        self._longest = _lengths(common)

    def widen(self, common: Query) -> None:
        """Note that the join has the windows of ``common`` now; what was found is of those before."""
        r, s = (max(pair) for pair in zip(self._longest, _lengths(common), strict=True))
        self._longest = r, s

    def change(self, since: WindowSince) -> None:
        """Take other windows, none of which is of earlier probes."""
        r, s = (max(pair) for pair in zip(self.windows[-1].first, since.first, strict=True))
        self.windows.append(WindowSince(since.place, (r, s), since.lengths))

    def forget(self, settled: RowIds) -> None:
        """Drop windows that concern only probes before row ids ``settled``."""
        while len(self.windows) > 1 and all(a <= b for a, b in zip(self.windows[1].place, settled, strict=True)):
            del self.windows[0]

    def holds(self, found: FoundPairs) -> Mask:
        """True (n,) for the pairs of the query."""
        keep = self._in_windows(found)
        for conjunct in self.conjuncts:
            value = evaluate_columns(conjunct, {c: found.vector(c) for c in columns_of(conjunct)}, len(found))
            keep &= value.valid & value.values
        return keep

    def _in_windows(self, found: FoundPairs) -> Mask:
        pairs = found.pairs
        keep = np.ones(len(pairs), np.bool_)
        for stored, name in enumerate(SIDES):
            probe = SIDES[1 - stored]
            for since, after in zip(self.windows, [*self.windows[1:], None], strict=True):
                first, length = since.first[stored], since.lengths[stored]
                if not first and length >= self._longest[stored]:
                    continue
                seen = pairs[name] >= first
                if length < self._longest[stored]:
                    seen &= found.ages(self._query) <= np.uint64(length)
                seen |= pairs["side"] == stored
                if since is not self.windows[0]:
                    seen |= pairs[probe] < since.place[1 - stored]
                if after is not None:
                    seen |= pairs[probe] >= after.place[1 - stored]
                keep &= seen
        return keep

    def state(self) -> npt.NDArray[np.int64]:
        """The windows, (n, 6), from which `restore` continues."""
        rows = [[*since.place, *since.first, *since.lengths] for since in self.windows]
        return np.array(rows, np.uint64).view(np.int64)

    def restore(self, state: npt.NDArray[np.int64]) -> None:
        """Take over the windows of another test. Raises `ValueError` for what is none."""
        rows = state.view(np.uint64).reshape(-1, 6).tolist()
        self.windows = [WindowSince((row[0], row[1]), (row[2], row[3]), (row[4], row[5])) for row in rows]
        if not rows or (state.reshape(-1, 6)[:, :4] < 0).any() or any(
                a[n] > b[n] for a, b in pairwise(rows) for n in range(4)):
            raise ValueError("no windows are so")


def _lengths(query: Query) -> RowIds:
    """The RANGE of R and of S in ticks; `_ANY_AGE` without one."""
    r, s = (_ANY_AGE if (length := query.window(side).length) is None else min(length, _ANY_AGE) for side in SIDES)
    return r, s
