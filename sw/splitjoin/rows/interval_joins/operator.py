"""The rows of a query with aggregates from arrivals alone, without pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from splitjoin.base.progress import progress_bar
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR
from splitjoin.lang.query import Query

from ..aggregates.fold import Gather
from ..operator import RowBatch
from .choice import IntervalChoice
from .state import FoldedBases
from .values import aggregate_values

Ints = npt.NDArray[np.int64]


def fold_slices(query: Query, choice: IntervalChoice, arrivals: Arrivals, gather: Gather, first: int, end: int,
                facts: dict[str, Any]) -> Iterator[RowBatch]:
    """The rows of base tuples ``first`` to before ``end`` from all arrivals, a slice of arrival order after the other.
    ``facts`` gets the counters, as of the device ``cpu``.
    """
    folder = choice.folder()
    try:
        done, rest = 0, cast(Arrivals | None, arrivals)
        with progress_bar(len(arrivals), "join", "rows") as bar:
            while rest is not None:  # so that engines hold windows and not whole streams
                head, rest = rest.split(choice.asked.batch)
                folder.arrive(head)
                now = int(head.ts[-1]) if head.ts is not None and len(head) else None
                last = min(done + (folder.waiting if rest is None else folder.decided(now)), end)
                if (before := min(first, last) - done) > 0:
                    folder.pass_over(before)
                    done += before
                found = folder.fold(last - done)
                folder.forget(folder.earliest)
                facts["counters"] = folder.counters()
                bar.update(len(head))
                yield _rows(query, choice, found, np.arange(done, last), gather)
                done = last
    finally:
        folder.close()


def _rows(query: Query, choice: IntervalChoice, found: FoldedBases, bases: Ints, gather: Gather) -> RowBatch:
    """The rows of the base tuples with row ids ``bases``, which have these values."""
    if query.kind.is_inner and not (kept := found.counts > 0).all():  # without partners there is no row
        bases, found = bases[kept], found.chosen(kept)
    items = np.empty(len(bases), ITEM)
    items["kind"], items["side"], items["r"], items["s"] = PAIR, 0, bases, -1
    return RowBatch(items, aggregate_values(choice.form, found, bases, gather))
