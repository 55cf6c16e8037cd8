"""What the command line asks of boards: the catalog, and the bitstream of a join."""

from __future__ import annotations

from pathlib import Path

from splitjoin.circuit.wire import Configuration
from splitjoin.errors import UnsupportedError
from splitjoin.hw.link.linked import LinkedJoin

from .catalog import CATALOG, Board, find
from .flow.bitstream import BuildReport, build

__all__ = ["CATALOG", "build_join", "find"]


def build_join(board: Board, config: Configuration, folder: Path, *, baud: int, seed: int,
               seconds: float) -> BuildReport:
    """Write the bitstream of the join of ``config`` behind ``board``'s UART to ``folder``, as `build` does.

    ``baud``: serial rate in Hz. Raises `UnsupportedError` if the board's clock cannot make it, and what `build` raises.
    """
    clock = board.clock_hz
    if not (baud > 0 and 4 <= clock / baud <= 1024):
        raise UnsupportedError(f"--baud must be {-(-clock // 1024)} to {clock // 4} Hz on board {board.name}, whose "
                               f"clock has {clock} Hz, not {baud}; choose another rate")
    return build(board, LinkedJoin(config, clock_hz=clock, baud=baud), folder, seed=seed, seconds=seconds)
