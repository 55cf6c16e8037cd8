"""Cost of cores of kind ``hash``."""

from __future__ import annotations

from ...wire import Configuration
from ..elements import adder, equal, gate
from ..resources import Family, Resources
from .index import IndexCost

__all__ = ["HashCost"]


class HashCost(IndexCost):
    """The cost of cores that look up equal keys."""

    def address(self, config: Configuration, side: str, family: Family) -> int:
        bits, keys = config.buckets.bit_length() - 1, sum(config.kind.index_widths(config, side))
        return bits * gate(family, keys // 2)  # each bit is the XOR of half of the keys' bits

    def reach(self, config: Configuration, side: str, family: Family) -> Resources:
        widths = config.kind.index_widths(config, side)
        logic = adder(family, *widths) + equal(family, *widths) + self.address(config, side, family)
        return Resources(lut=logic, ff=2 * sum(widths))
