"""`AggregateOperator`: collects the partners of each base tuple until it is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import PAIR, Items
from splitjoin.lang.query import Query

from ..kinds import KindOperator

__all__ = ["AggregateOperator", "Decided"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Decided:
    """Base tuples that are decided, and their partners.

    ``items``: a row for each base tuple, with −1 for S, and stars among them. ``bases``: the base tuples' row ids (n,),
    ``lengths``: their numbers of partners (n,), ``partners``: the row ids of all partners, base by base, by arrival.
    """

    items: Items
    bases: Ints
    lengths: Ints
    partners: Ints

    def part(self, start: int, end: int) -> Decided:
        """The base tuples number ``start`` to before ``end``, without stars."""
        before = int(self.lengths[:start].sum())
        lengths = self.lengths[start:end]
        rows = self.items[self.items["kind"] == PAIR] if len(self.items) != len(self.bases) else self.items
        return Decided(rows[start:end], self.bases[start:end], lengths,
                       self.partners[before:before + int(lengths.sum())])


class AggregateOperator:
    """Decides the base tuples of ``query``, whose rows are aggregates, from arrivals and the items of the inner join.

    It has the methods of `KindOperator`, but gives `Decided` in place of items. Its state are the undecided base tuples
    and the pairs that they are in.
    """

    #: The device must find pairs.
    needs_pairs = True

    def __init__(self, query: Query):
        self._query = query
        self._bases = KindOperator(query, bases=True)
        self._r, self._s = np.empty(0, np.int64), np.empty(0, np.int64)  # the pairs of undecided base tuples

    @property
    def needed(self) -> tuple[int, int]:
        """The ids of the first rows (R's, S's) that later rows may have."""
        return self._bases.needed

    @property
    def done(self) -> tuple[int, int]:
        """As `KindOperator.done`."""
        return self._bases.done

    def arrive(self, arrivals: Arrivals) -> None:
        """Note the next slice of arrival order."""
        self._bases.arrive(arrivals)

    def take(self, items: Items, settled: tuple[int, int]) -> Decided:
        """As `KindOperator.take`."""
        self._note(items)
        return self._decided(self._bases.take(items, settled))

    def advance(self, now: int) -> Decided:
        """As `KindOperator.advance`."""
        return self._decided(self._bases.advance(now))

    def finish(self, items: Items) -> Decided:
        """As `KindOperator.finish`."""
        self._note(items)
        return self._decided(self._bases.finish(items))

    def before_decision(self, base: int) -> tuple[int, int]:
        """As `KindOperator.before_decision`."""
        return self._bases.before_decision(base)

    def decided_by(self, now: int) -> int:
        """As `KindOperator.decided_by`."""
        return self._bases.decided_by(now)

    def stars(self, settled: tuple[int, int]) -> Items:
        """As `KindOperator.stars`."""
        return self._bases.stars(settled)

    def add_pairs(self, pairs: Items) -> None:
        """Note ``pairs`` of undecided base tuples, which the device did not give, before those that it will."""
        self._note(pairs)

    def forget_pairs(self) -> None:
        """Forget all pairs that were noted."""
        self._r = self._s = np.empty(0, np.int64)

    def state(self) -> dict[str, Ints]:
        """The state by name, from which `restore` continues."""
        return {"pairs_r": self._r, "pairs_s": self._s, **self._bases.state()}

    def restore(self, state: Mapping[str, Ints]) -> None:
        """Take over the ``state`` of another operator of the same query; this one must be fresh."""
        self._r, self._s = state.get("pairs_r", self._r), state.get("pairs_s", self._s)
        self._bases.restore({name: values for name, values in state.items() if not name.startswith("pairs_")})

    def _note(self, items: Items) -> None:
        pairs = items[items["kind"] == PAIR]
        if len(pairs):
            self._r = np.concatenate([self._r, pairs["r"]])
            self._s = np.concatenate([self._s, pairs["s"]])

    def _decided(self, items: Items) -> Decided:
        rows = items["kind"] == PAIR
        bases = items["r"][rows]
        if not len(bases):
            return Decided(items, bases, np.empty(0, np.int64), np.empty(0, np.int64))
        mine = self._r <= bases[-1]  # base tuples are decided in their order
        r, partners = self._r[mine], self._s[mine]
        self._r, self._s = self._r[~mine], self._s[~mine]
        lengths = np.bincount(r - bases[0], minlength=len(bases))
        partners = partners[np.argsort(r, kind="stable")]
        if self._query.kind.is_inner:  # base tuples without partners are no rows
            lone = np.flatnonzero(rows)[lengths == 0]
            items, bases, lengths = np.delete(items, lone), bases[lengths > 0], lengths[lengths > 0]
        return Decided(items, bases, lengths, partners)
