"""Hand-over: the threads of a team take an entry from a board in memory, without the interpreter's lock.

An *entry* is a function of a thread's number and of the address of a *block*, int64 numbers in memory that say where
its arrays lie. The loops that threads run are those of ``loops/threads.hpp``, which tells the protocol.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .store import aligned

__all__ = ["make_board"]

#: Words of a board, of those that tests look at: the threads inside; helpers that look, or were called to; how often
#: all were dismissed; helpers that shall leave.
INSIDE, CALLED, DISMISSED, LEAVING = 8, 24, 32, 64
_WORDS = 72


def make_board() -> npt.NDArray[np.int64]:
    """A board without a job."""
    board = aligned(_WORDS, np.int64)
    board[:] = 0
    return board
