"""`DecidedBases`: base tuples and their partners."""

from __future__ import annotations

from dataclasses import dataclass

from splitjoin.base.arrays import Ints
from splitjoin.engines.device import PAIR, Items


@dataclass(frozen=True)
class DecidedBases:
    """Base tuples that are decided, and their partners.

    ``items``: a row for each base tuple, with −1 for S, and stars among them. ``bases``: the base tuples' row ids (n,),
    ``lengths``: their numbers of partners (n,), ``partners``: the row ids of all partners, base by base, by arrival.
    """

    items: Items
    bases: Ints
    lengths: Ints
    partners: Ints

    def part(self, start: int, end: int) -> DecidedBases:
        """The base tuples number ``start`` to before ``end``, without stars."""
        before = int(self.lengths[:start].sum())
        lengths = self.lengths[start:end]
        rows = self.items[self.items["kind"] == PAIR] if len(self.items) != len(self.bases) else self.items
        return DecidedBases(rows[start:end], self.bases[start:end], lengths,
                            self.partners[before:before + int(lengths.sum())])
