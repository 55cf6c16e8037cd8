"""`NearestOperator`: the k nearest partners of each tuple of R over streams."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Ints, Mask
from splitjoin.engines.device import PAIR, Items
from splitjoin.lang.query import Query

from ..operator import RowBatch
from .decided_bases import DecidedBases
from .operator import PartnersOperator


class NearestOperator(PartnersOperator):
    """Decides the tuples of R of an as-of join that chooses among several partners by their distance, each when nothing
    can meet it any more, and gives its rows, the nearest partner first.

    Of each undecided tuple it keeps the ``k`` nearest partners so far.
    """

    def __init__(self, query: Query):
        super().__init__(query, drops_lone=query.kind.how == "asof")
        self._apart = np.empty(0, np.uint64)  # how far the partners of the pairs are
        self._turn = np.empty(0, np.int64)  # which of equally near ones comes first: the least

    def state(self) -> dict[str, Ints]:
        return {"pairs_apart": self._apart.view(np.int64), "pairs_turn": self._turn, **super().state()}

    def restore(self, state: Mapping[str, Ints]) -> None:
        self._apart, self._turn = state["pairs_apart"].view(np.uint64), state["pairs_turn"]
        super().restore(state)

    def _note(self, items: Items, at: Ints) -> tuple[Mask, None]:
        """Note the pairs that an as-of join may choose, and keep the nearest ones of each tuple of R."""
        pair, kind = items["kind"] == PAIR, self._kind
        r, s = self._undecided["r"], self._undecided["s"]
        pair_r, pair_s = items["r"][pair], items["s"][pair]
        left = (pair_r >= r.first) & (pair_s >= s.first)  # the rest was decided
        of_r, of_s = pair_r[left], pair_s[left]
        time_r, time_s = r["time"][of_r - r.first], s["time"][of_s - s.first]
        before = time_s <= time_r
        allowed = np.ones(len(of_r), np.bool_) if kind.allow_exact else time_s != time_r
        if kind.direction == "backward":
            allowed &= before
        elif kind.direction == "forward":
            allowed &= time_s >= time_r
            before = np.zeros(len(of_r), np.bool_)  # the first of equally near ones comes first
        # As unsigned numbers, since the difference of two times may not fit 64 bits with a sign.
        apart = time_r.view(np.uint64) - time_s.view(np.uint64)
        apart = np.where(time_s <= time_r, apart, -apart)
        turn = -1 - of_s if kind.ties == "last" else np.where(before, -1 - of_s, of_s)
        new = zip((of_r, of_s, apart, turn), (self._r, self._s, self._apart, self._turn), strict=True)
        self._keep_nearest(*(np.concatenate([known, some[allowed]]) for some, known in new))
        return ~pair, None

    def _keep_nearest(self, r: Ints, s: Ints, apart: npt.NDArray[np.uint64], turn: Ints) -> None:
        """Keep the nearest ``k`` of the pairs of each tuple of R, by R's row ids, the nearest first."""
        order = np.lexsort((turn, apart, r))
        first = np.searchsorted(r[order], r[order], side="left")
        order = order[np.arange(len(order)) - first < self._kind.k]
        self._r, self._s, self._apart, self._turn = r[order], s[order], apart[order], turn[order]

    def _with_partners(self, items: Items) -> DecidedBases:
        found = super()._with_partners(items)
        gone = len(self._apart) - len(self._r)  # pairs are by R's row ids, and so are decisions
        self._apart, self._turn = self._apart[gone:], self._turn[gone:]
        return found

    def _rows(self, decided: Items) -> RowBatch:
        found = self._with_partners(decided)
        counts = np.ones(len(found.items), np.int64)
        rows = found.items["kind"] == PAIR
        counts[rows] = np.maximum(found.lengths, 1)  # a tuple without partners is a row
        items = np.repeat(found.items, counts)
        has = np.repeat(found.lengths > 0, np.maximum(found.lengths, 1))
        at = np.flatnonzero(items["kind"] == PAIR)[has]
        items["s"][at] = found.partners
        return RowBatch(items)
