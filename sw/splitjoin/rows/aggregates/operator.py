"""`AggregateOperator`: collects the partners of each base tuple until it is decided, and folds them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.engines.device import PAIR, Items, chosen_items
from splitjoin.lang.query import Query

from ..kinds import KindOperator
from ..operator import RowBatch
from .decided_bases import DecidedBases
from .fold import FoldedRows, Gather
from .identical import merged_bases

#: For each tuple of R the first one that is identical; None where each is a base of its own.
Groups = Ints | None


class PartnersOperator(KindOperator):
    """Decides the base tuples of ``query``, and collects the partners of each until then.

    Its state are the undecided base tuples and the pairs that they are in. ``drops_lone``: True if base tuples without
    partners are no rows, as in an inner join.
    """

    def __init__(self, query: Query, *, drops_lone: bool):
        super().__init__(query, bases=True)
        self._drops_lone = drops_lone
        self._r = self._s = np.empty(0, np.int64)  # the pairs of undecided base tuples

    def state(self) -> dict[str, Ints]:
        return {"pairs_r": self._r, "pairs_s": self._s, **super().state()}

    def restore(self, state: Mapping[str, Ints]) -> None:
        self._r, self._s = state.get("pairs_r", self._r), state.get("pairs_s", self._s)
        super().restore({name: values for name, values in state.items() if not name.startswith("pairs_")})

    def _pass_over(self, decided: Items) -> None:
        self._with_partners(decided)

    def _with_partners(self, items: Items) -> DecidedBases:
        """The base tuples in ``items``, which are decided, with their partners, whose pairs are forgotten."""
        rows = items["kind"] == PAIR
        bases = items["r"][rows]
        if not len(bases):
            return DecidedBases(items, bases, np.empty(0, np.int64), np.empty(0, np.int64))
        mine = self._r <= bases[-1]  # base tuples are decided in their order
        r, partners = self._r[mine], self._s[mine]
        self._r, self._s = self._r[~mine], self._s[~mine]
        lengths = np.bincount(r - bases[0], minlength=len(bases))
        partners = partners[np.argsort(r, kind="stable")]
        if self._drops_lone:  # base tuples without partners are no rows
            lone = np.flatnonzero(rows)[lengths == 0]
            items, bases, lengths = np.delete(items, lone), bases[lengths > 0], lengths[lengths > 0]
        return DecidedBases(items, bases, lengths, partners)


class AggregateOperator(PartnersOperator):
    """Decides the base tuples of ``query``, whose rows are aggregates, and folds their partners.

    ``gather`` gets columns of the partners. ``groups``: as of `identical_rows`; then it must get all items at once.
    """

    def __init__(self, query: Query, gather: Gather, groups: Groups = None):
        super().__init__(query, drops_lone=query.kind.is_inner)
        self._groups = groups
        self._folded_rows = FoldedRows(query, gather)

    def _taken(self, items: Items, settled: tuple[int, int]) -> Items:
        self._add_pairs(items)
        return super()._taken(items, settled)

    def _finished(self, items: Items) -> Items:
        self._add_pairs(items)
        return super()._finished(items)

    def _rows(self, decided: Items) -> RowBatch:
        return self._folded(self._with_partners(decided))

    def _folded(self, decided: DecidedBases) -> RowBatch:
        """The rows of ``decided``."""
        if self._groups is not None:
            decided = merged_bases(decided, self._groups, lacking=not self._drops_lone)
        return RowBatch(decided.items, self._folded_rows.arrays(decided))

    def _add_pairs(self, items: Items) -> None:
        """Note the pairs among ``items``, of undecided base tuples."""
        pairs = chosen_items(items, items["kind"] == PAIR)
        if len(pairs):
            self._r = np.concatenate([self._r, pairs["r"]])
            self._s = np.concatenate([self._s, pairs["s"]])

    def _forget_pairs(self) -> None:
        """Forget all pairs that were noted."""
        self._r = self._s = np.empty(0, np.int64)
