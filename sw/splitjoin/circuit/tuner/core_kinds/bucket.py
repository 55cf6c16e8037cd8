"""Speed of cores of kind ``bucket``."""

from __future__ import annotations

from ...core_kinds.bucket import WIDEST
from ...wire import Configuration
from ..workload import Workload
from .index import IndexSpeed

__all__ = ["BucketSpeed"]


class BucketSpeed(IndexSpeed):
    """The speed of cores that look up cells of neighbouring keys."""

    def expected(self, config: Configuration, tuples: float, load: Workload) -> float:
        share = 1.0
        each = load.selectivity ** (1 / len(config.index))
        for test, bits in zip(config.index, config.kind.index_widths(config, "s"), strict=True):
            # A cell is as wide as an interval, or up to four times as wide. A probe reaches the cell of its low end,
            # and the narrower cells are, the more often a second one.
            intervals, buckets = min(1 / each, 2.0**64) if each else 2.0**64, 2**bits
            width = min(max(intervals / buckets, 1.0), WIDEST)
            share *= (1.0 if test in load.points else 1 + 1 / width) * max(width / intervals, 1 / buckets)
        return tuples * min(share, 1.0)
