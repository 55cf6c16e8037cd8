"""`EarlyAggregateOperator`: rows of aggregates that come early, and are replaced when a partner comes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from splitjoin.engines.device import ITEM, PAIR, Items, chosen_items, joined_items
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side

from ..kinds import UnorderedKindOperator, lone_rows, operations
from ..operator import RowBatch
from .decided_bases import DecidedBases, Ints
from .fold import FoldedRows, Gather

__all__ = ["EarlyAggregateOperator"]

_NONE = np.empty(0, np.int64)


class EarlyAggregateOperator(UnorderedKindOperator):
    """Folds the partners of base tuples, tuples of R in any order, from tuples of S in theirs, and all pairs.

    A base tuple's row is given as soon as its own pairs are known, with the partners so far. It is taken back and given
    anew when others come. In `RowBatch.values` the operation follows the aggregates. The state are also the pairs of
    the base tuples that S may still meet.
    """

    def __init__(self, query: Query, gather: Gather):
        super().__init__(query, early=True)
        self._folded_rows = FoldedRows(query, gather)
        self._r = self._s = _NONE  # the pairs of waiting base tuples
        self._back: list[DecidedBases] = []
        self._new: list[DecidedBases] = []

    @property
    def needed(self) -> tuple[int, int]:
        r, s = super().needed
        return r, int(np.min(self._s, initial=s))

    def state(self) -> dict[str, Ints]:
        return {"pairs_r": self._r, "pairs_s": self._s, **super().state()}

    def restore(self, state: Mapping[str, Ints]) -> None:
        self._r, self._s = state["pairs_r"], state["pairs_s"]
        super().restore(state)

    def _more(self, side: Side) -> dict[str, int]:
        return {"folded": 0}  # the number of partners in the row that was given

    def _keeps(self, side: Side) -> bool:
        return side == "r"

    def _matched(self, items: Items) -> Items:
        pairs = chosen_items(items, items["kind"] == PAIR)
        if len(pairs):
            self._r, self._s = (np.concatenate(both) for both in ((self._r, pairs["r"]), (self._s, pairs["s"])))
            order = np.lexsort((self._s, self._r))  # the tuples of S are numbered in their order
            self._r, self._s = self._r[order], self._s[order]
        return np.empty(0, ITEM)

    def _last_rows(self, side: Side, at: Ints) -> Items:
        self._note_changes(at)
        kept = ~np.isin(self._r, self._waiting["r"]["id"][at])
        self._r, self._s = self._r[kept], self._s[kept]
        return np.empty(0, ITEM)

    def _rows(self, decided: Items) -> RowBatch:
        self._note_changes(np.flatnonzero(self._waiting["r"]["id"] < self._settled[0]))
        back, new = (sum(len(part.bases) for part in parts) for parts in (self._back, self._new))
        parts = [DecidedBases(np.empty(0, ITEM), _NONE, _NONE, _NONE), *self._back, *self._new]
        self._back, self._new = [], []
        both = DecidedBases(joined_items([part.items for part in parts]), *(
            np.concatenate([getattr(part, name) for part in parts]) for name in ("bases", "lengths", "partners")))
        return RowBatch(both.items, [*self._folded_rows.arrays(both), operations(back, new)])

    def _note_changes(self, at: Ints) -> None:
        """Note what is taken back and given of those of the waiting base tuples ``at`` that have more partners now."""
        r = self._waiting["r"]
        starts, ends = (np.searchsorted(self._r, r["id"][at], side=side) for side in ("left", "right"))
        count = ends - starts
        changed = (r["given"][at] == 0) | (r["folded"][at] != count)
        changed &= self._kind.gives_unmatched("r") | (count > 0)
        at, starts, count = at[changed], starts[changed], count[changed]
        old = r["given"][at] == 1
        if old.any():
            self._back.append(self._decided_part(r["id"][at[old]], starts[old], r["folded"][at[old]]))
        if len(at):
            self._new.append(self._decided_part(r["id"][at], starts, count))
        r["given"][at], r["folded"][at] = 1, count

    def _decided_part(self, bases: Ints, starts: Ints, lengths: Ints) -> DecidedBases:
        """The base tuples with the first ``lengths`` of their partners, which are noted from ``starts`` on."""
        ends = np.cumsum(lengths)
        at = np.arange(ends[-1]) - np.repeat(ends - lengths - starts, lengths)
        return DecidedBases(lone_rows("r", bases), bases, lengths, self._s[at])
