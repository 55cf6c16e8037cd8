"""Cost of handshake join: tuples go with keys and bounds, so segments and links are wider than SplitJoin's regions."""

from __future__ import annotations

from ...cost.circuit import PartCost
from ...cost.region_widths import RegionWidths
from ...cost.resources import Family
from ...wire import Configuration
from ..moving import chain_links, ends_cost, gathering, segments

__all__ = ["parts"]


def parts(config: Configuration, family: Family) -> dict[str, PartCost]:
    """Part → its cost."""
    number = RegionWidths.of(config).position
    return {**segments(config, family), **chain_links(config, family, number + 2),
            "ends": PartCost(1, ends_cost(config, family)), **gathering(config, family)}
