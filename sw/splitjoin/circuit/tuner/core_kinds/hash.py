"""Speed of cores of kind ``hash``."""

from __future__ import annotations

from ...wire import Configuration
from ..workload import Workload
from .index import IndexSpeed

__all__ = ["HashSpeed"]


class HashSpeed(IndexSpeed):
    """The speed of cores that look up equal keys."""

    def expected(self, config: Configuration, tuples: float, load: Workload) -> float:
        # Candidates with the probe's key, and those that share its bucket by chance.
        return tuples * (load.selectivity + (1 - load.selectivity) / config.buckets)
