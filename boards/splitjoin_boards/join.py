"""Functions behind the board commands of the command line: the catalog, and the bitstream of a join."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from amaranth.build import Subsignal

from splitjoin.base.errors import UnsupportedError
from splitjoin.circuit.tuner.speed import cycles_a_tuple
from splitjoin.circuit.tuner.workload import Workload
from splitjoin.circuit.wire import Configuration
from splitjoin.link.rate import link_cost
from splitjoin_hw.link.linked import LinkedJoin
from splitjoin_hw.memory.sdram import board_controller

from .catalog import CATALOG, Board, find
from .flow.bitstream import TOOLS, build, write_project
from .flow.report import BuildReport, Prediction
from .ft232h import with_ft232h
from .pll import clocked
from .program import program

__all__ = ["CATALOG", "build_join", "clocked", "default_baud", "find", "pins", "program", "tools_text",
           "with_ft232h"]

#: The rate where the bridge's is not known, and the highest one that is chosen by default.
_COMMON_BAUD, _DEFAULT_BAUD = 115_200, 3_000_000
#: Cycles of a byte of a reply, which an endpoint behind an FT232H makes; it takes those of requests faster.
_BYTE_CYCLES = 3


def default_baud(board: Board) -> int:
    """The rate in Hz that a circuit for ``board`` has unless another is chosen."""
    return _COMMON_BAUD if board.bridge.baud is None else min(_DEFAULT_BAUD, board.highest_baud)


def build_join(board: Board, config: Configuration, folder: Path, *, load: Workload, items: float, baud: int | None,
               seed: int, seconds: float, progress: Callable[[str], None],
               pack: bool = False) -> BuildReport | list[str]:
    """Write the bitstream of the join of ``config`` behind ``board``'s link to ``folder``, as `build` does; for a board
    of Xilinx a project for Vivado instead, and the names of its files are returned.

    ``load``, ``items``: the workload, and the results and stars a tuple, for which the rate is predicted. ``baud``:
    serial rate in Hz, None with an FT232H. ``pack``: items are packed on the link. Raises `UnsupportedError`
    if the board's clock cannot make the rate, and what `build` raises.
    """
    clock = board.clock_hz
    if baud is not None and not (baud > 0 and 4 <= clock / baud <= 1024):
        raise UnsupportedError(f"--baud must be {-(-clock // 1024)} to {clock // 4} Hz on board {board.name}, whose "
                               f"clock has {clock} Hz, not {baud}; choose another rate")
    controller = board_controller(config, board.sdram, clock)
    linked = LinkedJoin(config, clock_hz=clock, baud=baud, pack=pack, sdram=controller)
    if board.family not in TOOLS:
        return write_project(board, linked, folder)
    carried = link_cost(config, items, pack=pack).rate(10 * clock // _BYTE_CYCLES if baud is None else baud)
    prediction = Prediction(clock / cycles_a_tuple(config, load), carried, items)
    return build(board, linked, folder, seed=seed, seconds=seconds, prediction=prediction, progress=progress)


def pins(board: Board) -> dict[str, str]:
    """Pins of the FPGA by what is at them: ``clk``, and ``rx`` and ``tx`` of a UART, or all of an FT232H."""
    platform = board.platform()
    link = platform.lookup(*board.link)
    found = {io.name: io.ios[0] for io in link.ios
             if isinstance(io, Subsignal) and (board.link[0] == "ft232h" or io.name in ("rx", "tx"))}
    found["clk"] = platform.lookup(platform.default_clk).ios[0]
    return {name: " ".join(getattr(of, "p", of).map_names(platform._conn_pins, link)) for name, of in found.items()}


def tools_text(board: Board) -> str:
    """The tools that make ``board``'s bitstream, and whether they are installed."""
    if board.family not in TOOLS:
        return "Vivado, by the project that is written; not run here"
    tools = TOOLS[board.family]
    missing = [tool.name for tool in tools if not tool.installed]
    said = f"missing: {', '.join(missing)}" if missing else "installed"
    return f"{', '.join(tool.name for tool in tools)} ({said})"
