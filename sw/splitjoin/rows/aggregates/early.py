"""`EarlyAggregateOperator`: rows of aggregates that come early, and are replaced when a partner comes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from splitjoin.base.arrays import Ints, Mask
from splitjoin.engines.device import PAIR, Items, chosen_items, joined_items
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side

from ..kinds import UnorderedKindOperator, operations, rows_of
from ..operator import RowBatch
from .decided_bases import DecidedBases
from .fold import FoldedRows, Gather

_NONE = np.empty(0, np.int64)


class EarlyAggregateOperator(UnorderedKindOperator):
    """Folds the partners of base tuples, tuples of R in any order, from tuples of S in theirs, and all pairs.

    A base tuple's row has the partners so far. In `RowBatch.values` the operation follows the aggregates. The state are
    also the pairs of the base tuples that S may still meet.
    """

    _version = "folded"

    def __init__(self, query: Query, gather: Gather):
        super().__init__(query, early=True)
        self._folded_rows = FoldedRows(query, gather)
        self._r = self._s = _NONE  # the pairs of waiting base tuples

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
        return items[:0]

    def _present(self, side: Side, at: Ints) -> tuple[Mask, Ints]:
        ids = self._waiting[side]["id"][at]
        count = np.searchsorted(self._r, ids, side="right") - np.searchsorted(self._r, ids)
        return (count > 0) | self._kind.gives_unmatched("r"), count

    def _shown(self, side: Side, at: Ints, version: Ints) -> DecidedBases:
        """The base tuples ``at`` with so many of their partners, the first ones."""
        ids, ends = self._waiting[side]["id"][at], np.cumsum(version)
        mine = np.arange(ends[-1]) + np.repeat(np.searchsorted(self._r, ids) - (ends - version), version)
        return DecidedBases(rows_of(side, ids), ids, version, self._s[mine])

    def _decide(self, side: Side, gone: Mask) -> None:
        if gone.any():
            kept = ~np.isin(self._r, self._waiting[side]["id"][gone])
            super()._decide(side, gone)
            self._r, self._s = self._r[kept], self._s[kept]

    def _batch(self, pairs: Items, back: list[DecidedBases], new: list[DecidedBases]) -> RowBatch:
        parts = [DecidedBases(pairs, _NONE, _NONE, _NONE), *back, *new]
        both = DecidedBases(joined_items([part.items for part in parts]), *(
            np.concatenate([getattr(part, name) for part in parts]) for name in ("bases", "lengths", "partners")))
        return RowBatch(both.items, [*self._folded_rows.arrays(both),
                                     operations(sum(len(part.bases) for part in back), len(both.items))])
