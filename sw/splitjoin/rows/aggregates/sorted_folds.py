"""Aggregates over whole tables by ranges of sorted keys: counts, exact sums and extremes in O(n log n), without pairs.

Where a condition without a window is one inequality or band, with or without equalities, the partners of a tuple of R
are one range of S sorted by its keys. A count is the length of the range, a sum a difference of two prefix sums, and an
extreme the extreme of two overlapping runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.cpu.device import CpuDevice
from splitjoin.engines.cpu.partners import Condition, visible_spans
from splitjoin.engines.cpu.runs_of_keys import least, sorted_runs
from splitjoin.engines.device import ITEM, PAIR, Device, Items
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.ir import sides
from splitjoin.lang.query import Query

from ..result_values import to_arrow
from .fold import aggregate_types, exact_differences, finished_sums

__all__ = ["SortedFolds", "sorted_folds", "suits_ranges"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SortedFolds:
    """The rows of a query, as items in total order without stars, the values of its aggregates, and counters."""

    items: Items
    values: list[pa.ChunkedArray]
    counters: dict[str, int]
    plan: str = "rows without pairs, by ranges of sorted keys"


def sorted_folds(query: Query, incoming: Arrivals, device: Device) -> SortedFolds | None:
    """The rows of ``query`` on the CPU; None where its condition, window or an aggregate needs pairs."""
    if not isinstance(device, CpuDevice) or device.engine != "auto" or not suits_ranges(query):
        return None
    visible = visible_spans(query, incoming)
    if not visible.hold_all(len(incoming.s)):
        return None
    # Floats and numbers beyond 64 bits are left to pairs: a sum of floats is rounded once, at its end.
    args = [[evaluate(e, incoming.s) for e in a.args] for a in query.aggregates]
    condition = Condition(query, incoming)
    if not condition.decided or len(condition.bounds) > 1 or any(
            v.values.dtype != np.int64 for a, vs in zip(query.aggregates, args, strict=True) for v in vs
            if a.function != "count"):
        return None
    every = np.zeros(len(incoming.s), np.uint64)
    none = np.zeros(len(incoming.r), np.uint64)
    order, start, end = sorted_runs(condition.groups(), *(condition.bounds or [(every, none, none)])[0])
    # Base tuples are decided in their order; those without partners are no rows of an inner join.
    bases = np.flatnonzero(end > start) if query.kind.is_inner else np.arange(len(start))
    items = np.zeros(len(bases), ITEM)
    items["kind"], items["r"], items["s"] = PAIR, bases, -1
    values = [pa.chunked_array([_folded(a, vs, order, start[bases], end[bases], bases)], aggregate_types(a))
              for a, vs in zip(query.aggregates, args, strict=True)]
    counters = {"tuples_r": len(incoming.r), "tuples_s": len(incoming.s), "comparisons": visible.pairs,
                "candidates": len(bases)}
    return SortedFolds(items, values, counters)


def suits_ranges(query: Query) -> bool:
    """True if ranges may tell the aggregates of ``query``: they read S alone, and no order of partners."""
    return all(a.function in ("count", "sum", "avg", "min", "max") and not any("r" in sides(e) for e in a.args)
               for a in query.aggregates)


def _folded(aggregate: Aggregate, args: Sequence[Vector], order: Ints, start: Ints, end: Ints,
            bases: Ints) -> pa.Array | pa.ChunkedArray:
    """The values of ``aggregate`` over the positions of ``order`` from each ``start`` to before each ``end``."""
    if not args:
        return pa.array(end - start)
    values, valid = args[0].values[order], args[0].valid[order]
    before = np.concatenate([[0], np.cumsum(valid)])  # NULL is passed over
    values, start, end = values[valid], before[start], before[end]
    counts = end - start
    if aggregate.function == "count":
        return pa.array(counts)
    if aggregate.function in ("sum", "avg"):
        return finished_sums(aggregate, exact_differences(values, start, end), args[0].denominator, counts, bases)
    found = least(values, start, end) if aggregate.function == "min" else ~least(~values, start, end)
    return to_arrow(Vector(found, counts > 0, args[0].denominator), aggregate_types(aggregate), aggregate.text)
