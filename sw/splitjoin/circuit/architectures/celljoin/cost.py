"""Cost of CellJoin: segments that hand keys on, the windows, and SplitJoin's gathering."""

from __future__ import annotations

from ...cost.circuit import PartCost
from ...cost.resources import Family
from ...wire import Configuration
from ..moving import ends_cost, gathering, segments

__all__ = ["parts"]


def parts(config: Configuration, family: Family) -> dict[str, PartCost]:
    """Part → its cost."""
    return {**segments(config, family, probes=False), "ends": PartCost(1, ends_cost(config, family)),
            **gathering(config, family)}
