"""The rows of a query with aggregates from arrivals alone, without pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, Items
from splitjoin.lang.query import Query

from ..aggregates.fold import Gather
from .choice import IntervalChoice
from .folder import IntervalFolder
from .state import FoldedBases
from .values import aggregate_values

__all__ = ["FoldedRowsOf", "fold_slices", "folded_rows_of"]

Ints = npt.NDArray[np.int64]

#: Arrivals that are noted at once.
_SLICE = 1 << 16


@dataclass(frozen=True)
class FoldedRowsOf:
    """Rows of base tuples: ``items`` as of `splitjoin.rows.aggregates.Decided`, the values of the aggregates, and
    counters as of the device ``cpu``. ``arrivals``: the number of arrivals that were noted for them.
    """

    items: Items
    values: list[pa.ChunkedArray]
    counters: dict[str, int]
    arrivals: int = 0


def fold_slices(query: Query, choice: IntervalChoice, arrivals: Arrivals, gather: Gather) -> Iterator[FoldedRowsOf]:
    """The rows of ``query`` from all arrivals, a slice of arrival order after the other."""
    folder = choice.folder()
    try:
        done, rest = 0, cast(Arrivals | None, arrivals)
        while rest is not None:  # so that engines hold windows and not whole streams
            head, rest = rest.split(_SLICE)
            folder.arrive(head)
            now = int(head.ts[-1]) if head.ts is not None and len(head) else None
            count = folder.waiting if rest is None else folder.decided(now)
            found = folder.fold(count)
            folder.forget(folder.earliest)
            yield folded_rows_of(query, choice, folder, found, np.arange(done, done + count), gather, len(head))
            done += count
    finally:
        folder.close()


def folded_rows_of(query: Query, choice: IntervalChoice, folder: IntervalFolder, found: FoldedBases, bases: Ints,
                   gather: Gather, arrivals: int = 0) -> FoldedRowsOf:
    """The rows of the base tuples with row ids ``bases``, for which ``folder`` has ``found`` values."""
    if query.kind.is_inner and not (kept := found.counts > 0).all():  # without partners there is no row
        bases, found = bases[kept], found.chosen(kept)
    items = np.empty(len(bases), ITEM)
    items["kind"], items["side"], items["r"], items["s"] = PAIR, 0, bases, -1
    return FoldedRowsOf(items, aggregate_values(choice.form, found, bases, gather), folder.counters(), arrivals)
