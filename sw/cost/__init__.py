"""What a circuit costs and how fast it joins, from its configuration alone: no HDL, no synthesis tool."""

from .cells import FAMILIES, Cells
from .circuit import Circuit, Part, circuit
from .datapath import Datapath, datapath

__all__ = ["FAMILIES", "Cells", "Circuit", "Datapath", "Part", "circuit", "datapath"]
