"""The choice of a circuit for a query on a board: a search by the cost and the speed models."""

from .boards import BOARDS, FPGAS, Fpga, board
from .proposal import Proposal
from .search import DesignPoint, Requirements
from .tune import tune

__all__ = ["BOARDS", "FPGAS", "DesignPoint", "Fpga", "Proposal", "Requirements", "board", "tune"]
