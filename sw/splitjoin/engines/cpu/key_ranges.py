"""Ranges of a stream sorted by its equal keys and one key, for each tuple of the other, by partitions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import Side, other_side
from splitjoin.plan.keys import Codes

from .key_order import Ranges
from .partitions import PartitionedRanges
from .runs_of_keys import Groups
from .sorting import counts_below, dense_ranks
from .table_work import Work

__all__ = ["partitioned_ranges", "ranges_by_row"]

Rows = npt.NDArray[np.int64]


def ranges_by_row(groups: Groups, stored: Side, keys: Codes, low: Codes, high: Codes, work: Work) -> Ranges:
    """For each tuple of the other stream the range of its group whose ``keys`` are from ``low`` to ``high``."""
    found = partitioned_ranges(groups, stored, keys, low, high, work)
    return Ranges(found.order, *found.by_row(len(low)))


def partitioned_ranges(groups: Groups, stored: Side, keys: Codes, low: Codes, high: Codes,
                       work: Work) -> PartitionedRanges:
    """The same by partitions."""
    if not PartitionedRanges.fits(groups.count, keys):
        ranks, different = dense_ranks(keys)
        distinct = np.empty(different, np.uint64)
        distinct[ranks] = keys
        keys, behind = ranks.view(np.uint64), counts_below(distinct, high, equal=True)
        some = behind > 0  # not below the least key
        low = np.where(some, counts_below(distinct, low), 1).view(np.uint64)
        high = np.where(some, behind - 1, 0).view(np.uint64)
    numbers = groups.numbers(other_side(stored)), groups.numbers(stored)
    return PartitionedRanges(work, numbers, groups.count, keys, low, high)
