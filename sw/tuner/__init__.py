"""Which circuit to build for a query on a board: the search by the cost and the speed models."""

from .boards import BOARDS, DEVICES, Device, board
from .proposal import Proposal
from .search import Design, Wishes
from .tune import tune

__all__ = ["BOARDS", "DEVICES", "Design", "Device", "Proposal", "Wishes", "board", "tune"]
