"""The cost of a circuit from its configuration alone: no HDL, no synthesis tool."""

from .circuit import CircuitCost, PartCost, circuit_cost
from .datapath import DatapathCost, datapath_cost
from .resources import FAMILIES, Resources

__all__ = ["FAMILIES", "CircuitCost", "DatapathCost", "PartCost", "Resources", "circuit_cost", "datapath_cost"]
