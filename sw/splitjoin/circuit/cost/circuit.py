"""Cost of a whole circuit, part by part, as its architecture gives it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..geometry import comparisons
from ..wire import Configuration
from .datapath import DatapathCost, datapath_cost
from .resources import Family, Resources, check_family

__all__ = ["CircuitCost", "PartCost", "circuit_cost"]


@dataclass(frozen=True)
class PartCost:
    """The cost of ``count`` equal parts, each of cost ``each``."""

    count: int
    each: Resources

    @property
    def total(self) -> Resources:
        """The cost of all parts together."""
        return self.each * self.count


@dataclass(frozen=True)
class CircuitCost:
    """The cost of a circuit, part by part, and the rate of its comparators.

    Attributes:
        config, family: The circuit's configuration, and the FPGA family.
        datapaths: The costs of the datapaths in the regions that store R and S.
        parts: Name → number of parts, and the cost of each. A region's parts are ``datapath``, ``storage``, and those
            of its core kind (`splitjoin.circuit.cost.core_kinds`).
    """

    config: Configuration
    family: Family
    datapaths: dict[str, DatapathCost]
    parts: dict[str, PartCost]

    @cached_property
    def total(self) -> Resources:
        """The cost of the whole circuit."""
        return sum((part.total for part in self.parts.values()), Resources())

    @property
    def comparisons(self) -> int:
        """Peak comparisons per cycle. A circuit with an index reaches the peak only for probes that meet too many
        buckets and read whole sub-windows; otherwise it compares one candidate in four cycles.
        """
        return comparisons(self.config)

    @property
    def stages(self) -> int:
        """Latency in cycles of the datapath, from a stored key to the outcome."""
        return self.datapaths["r"].stages


def circuit_cost(config: Configuration, family: str = "ecp5") -> CircuitCost:
    """The cost of the circuit for ``config``. Raises `UnsupportedError` for an unknown family."""
    known = check_family(family)
    datapaths = {side: datapath_cost(config, side, known) for side in "rs"}
    return CircuitCost(config, known, datapaths, config.structure.model("cost").parts(config, known))
