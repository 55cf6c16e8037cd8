"""Cost of cores of kind ``bucket``."""

from __future__ import annotations

from ...wire import Configuration
from ..elements import adder, mux
from ..resources import Family, Resources
from .index import IndexCost

__all__ = ["BucketCost"]


class BucketCost(IndexCost):
    """The cost of cores that look up cells of neighbouring keys."""

    def address(self, config: Configuration, side: str, family: Family) -> int:
        return 0  # cells are the number

    def reach(self, config: Configuration, side: str, family: Family) -> Resources:
        widths = config.kind.index_widths(config, side)
        logic = adder(family, *widths) + mux(family, 2, sum(widths)) + 4 * len(widths)
        return Resources(lut=logic, ff=sum(widths) + 2 * len(widths))
