"""Aggregates over whole tables by ranges of sorted keys: counts, exact sums and extremes in O(n log n), without pairs.

Where a condition without a window is one inequality or band, with or without equalities, the partners of a tuple of R
are one range of S sorted by its keys. A count is the length of the range, a sum a difference of two prefix sums, and an
extreme the extreme of two overlapping runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.cpu.condition import Condition
from splitjoin.engines.cpu.device import CpuDevice
from splitjoin.engines.cpu.key_ranges import ranges_by_row
from splitjoin.engines.cpu.runs_of_keys import least
from splitjoin.engines.cpu.spans import Spans
from splitjoin.engines.device import ITEM, PAIR, Device, Items
from splitjoin.lang.aggregate_functions import Term
from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.ir import sides
from splitjoin.lang.query import Query

from .fold import aggregate_types, finished
from .terms import joined_halves

__all__ = ["SortedFolds", "sorted_folds", "suits_ranges"]

Ints = npt.NDArray[np.int64]

#: Nanoseconds of a tuple.
_TUPLE = 50.0


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
    work = device.table_work(len(incoming))
    work.share(len(incoming) * _TUPLE)
    visible = Spans(query, incoming, work)
    if not visible.hold_all:
        return None
    # Floats and numbers beyond 64 bits are left to pairs: a sum of floats is rounded once, at its end.
    terms = [term for a in query.aggregates for term in a.terms]
    columns = {term.of: evaluate(term.of, incoming.s) for term in terms if term.of is not None}
    condition = Condition(query, incoming, work)
    whole = {term.of for term in terms if term.of is not None and term.kind != "count"}
    bounds = condition.bounds("s")
    if not condition.decided or len(bounds) > 1 or any(columns[e].values.dtype != np.int64 for e in whole):
        return None
    groups = condition.groups()
    every = np.zeros(len(incoming.s), np.uint64), *2 * [np.zeros(len(incoming.r), np.uint64)]
    keys, low, high = (bounds[0].keys, bounds[0].low, bounds[0].high) if bounds else every
    ranges = ranges_by_row(groups, "s", keys, low, high, work)
    order, start, end = ranges.order, ranges.start, ranges.end
    # Base tuples are decided in their order; those without partners are no rows of an inner join.
    bases = np.flatnonzero(end > start) if query.kind.is_inner else np.arange(len(start))
    items = np.zeros(len(bases), ITEM)
    items["kind"], items["r"], items["s"] = PAIR, bases, -1
    values = [pa.chunked_array([finished(a, [
        _folded(term, None if term.of is None else columns[term.of], order, start[bases], end[bases])
        for term in a.terms], bases)], aggregate_types(a)) for a in query.aggregates]
    counters = {"tuples_r": len(incoming.r), "tuples_s": len(incoming.s), "comparisons": visible.pairs,
                "candidates": len(bases)}
    return SortedFolds(items, values, counters)


def suits_ranges(query: Query) -> bool:
    """True if ranges may tell the aggregates of ``query``: they read S alone, and no order of partners."""
    return all(a.terms and all(map(_suits, a.terms)) for a in query.aggregates)


def _suits(term: Term) -> bool:
    return term.kind in ("rows", "count", "sum", "least", "greatest") and term.value in (None, term.of) and (
        term.of is None or "r" not in sides(term.of))


def _folded(term: Term, of: Vector | None, order: Ints, start: Ints, end: Ints) -> Vector:
    """``term`` over the positions of ``order`` from each ``start`` to before each ``end``; ``of``: its values for S."""
    every = np.ones(len(start), np.bool_)
    if of is None:
        return Vector(end - start, every)
    values, valid = of.values[order], of.valid[order]
    before = np.concatenate([[0], np.cumsum(valid)])  # NULL is passed over
    values, start, end = values[valid], before[start], before[end]
    counts = end - start
    match term.kind:
        case "count":
            return Vector(counts, every)
        case "sum":
            return Vector(_differences(values, start, end), counts > 0, of.denominator)
        case "least":
            return Vector(least(values, start, end), counts > 0, of.denominator)
    return Vector(~least(~values, start, end), counts > 0, of.denominator)


def _differences(values: Ints, start: Ints, end: Ints) -> npt.NDArray[Any]:
    """The sum of ``values`` from each ``start`` to before each ``end``: int64 if all fit, else Python integers."""
    low, high = (np.concatenate([[0], np.cumsum(half)]) for half in (values & 0xFFFF_FFFF, values >> 32))
    return joined_halves(low[end] - low[start], high[end] - high[start])
