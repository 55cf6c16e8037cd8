"""The interface of a core kind's cost."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ...wire import Configuration
from ..resources import Family, Resources
from ..widths import Widths

__all__ = ["CoreCost"]


class CoreCost(ABC):
    """The cost of a kind of core: that of the parts of a region that depend on the kind."""

    @abstractmethod
    def parts(self, config: Configuration, side: str, family: Family, w: Widths) -> dict[str, Resources]:
        """Part → its cost, for the region that stores stream ``side``, without datapath and storage."""

    @abstractmethod
    def comparing(self, config: Configuration, lut: int, lut_name: str) -> str:
        """The comparison rate in words; ``lut``: LUTs of the whole circuit; ``lut_name``: their name."""
