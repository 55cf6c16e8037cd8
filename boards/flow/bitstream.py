"""From a board and a circuit to a bitstream: Amaranth's scripts and constraints, run with the tools from PyPI."""

from __future__ import annotations

import json
import re
import shlex
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from amaranth.lib import wiring
from splitjoin.errors import CapacityError, InputError, ToolError

from ..catalog.board import Board
from ..top import BoardTop
from .tools import ECPPACK, ICEPACK, NEXTPNR, NEXTPNR_ICE40, YOSYS, cached

__all__ = ["BuildReport", "build", "utilization"]

#: Name of the top module, and of the files.
_NAME = "top"
#: Tools by the variables that Amaranth's build scripts name them with.
_TOOLS = {"$YOSYS": YOSYS, "$NEXTPNR_ICE40": NEXTPNR_ICE40, "$ICEPACK": ICEPACK, "$NEXTPNR_ECP5": NEXTPNR,
          "$ECPPACK": ECPPACK}
#: nextpnr's line for a resource in use: its type, and how many of how many.
_USED = re.compile(r"^Info:\s+([\w/]+):\s+(\d+)/\s*(\d+)\s+\d+%", re.MULTILINE)


@dataclass(frozen=True)
class BuildReport:
    """Figures of a board's bitstream.

    ``used``: resource as nextpnr names it → (used, available), only those in use. ``mhz``: clock net → (reached,
    demanded), in MHz; nextpnr fails if the demanded clock is not reached. ``seconds``: wall clock of all tools, at the
    time when they ran (a cached bitstream keeps its figures).
    """

    board: str
    used: dict[str, tuple[int, int]]
    mhz: dict[str, tuple[float, float]]
    seconds: float

    def __str__(self) -> str:
        """The report as text, a line for each figure."""
        lines = [f"board {self.board}"]
        lines += [f"  {kind}: {used} of {available} ({used / available:.0%})"
                  for kind, (used, available) in self.used.items()]
        lines += [f"  clock {name}: {reached:.1f} MHz reached, {demanded:.1f} MHz demanded"
                  for name, (reached, demanded) in self.mhz.items()]
        return "\n".join([*lines, f"  built in {self.seconds:.1f} s"])


def build(board: Board, linked: wiring.Component, folder: Path, *, seed: int = 1,
          seconds: float = 3600) -> BuildReport:
    """Write the bitstream of ``linked`` on ``board`` to ``folder``, which is made if it does not exist.

    ``linked``: as of `BoardTop`. ``seed``: of the placer. ``seconds``: time limit of each tool, wall clock. The folder
    gets ``top.bin`` or ``top.bit``, the mapped netlist ``top.json``, and the report as ``report.json`` and
    ``report.txt``. Equal circuits on equal boards are built once (`cached`).

    Raises `CapacityError` if the circuit is too large for the FPGA, `ToolError` if a tool is missing, fails or takes
    too long, `InputError` if the folder cannot be written.
    """
    plan = board.platform().prepare(BoardTop(board, linked), _NAME, **dict(board.options),
                                    nextpnr_opts=f"--seed {seed} --report timing.json")
    commands = [shlex.split(line) for line in plan.files[f"{plan.script}.sh"].splitlines()
                if line.startswith('"$')]
    names = [f"{_NAME}.{board.bitstream}", f"{_NAME}.json", "report.json"]

    def make(work: Path) -> None:
        start = time.monotonic()
        for name, content in plan.files.items():
            (work / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        for variable, *arguments in commands:
            try:
                _TOOLS[variable].run(arguments, work, seconds)
            except ToolError:
                _refuse_too_large(board, work)
                raise
        timing = json.loads((work / "timing.json").read_text())
        report = BuildReport(
            board.name, {kind: (of["used"], of["available"]) for kind, of in timing["utilization"].items()
                         if of["used"]},
            {name: (of["achieved"], of["constraint"]) for name, of in timing["fmax"].items()},
            time.monotonic() - start)
        (work / "report.json").write_text(json.dumps(asdict(report), indent=2) + "\n")
        for path in work.iterdir():
            if path.name not in names:
                path.unlink()

    tools = [_TOOLS[variable].version for variable, *_ in commands]
    made = cached(f"board-{board.name}", (plan.digest().hex(), *tools), make)
    found = json.loads((made / "report.json").read_text())
    report = BuildReport(found["board"], {kind: (n, of) for kind, (n, of) in found["used"].items()},
                         {name: (n, of) for name, (n, of) in found["mhz"].items()}, found["seconds"])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).write_bytes((made / name).read_bytes())
        (folder / "report.txt").write_text(f"{report}\n")
    except OSError as error:
        raise InputError(f"{folder} must be a folder that can be written, but is not: {error.strerror or error}; name "
                         f"another one") from None
    return report


def utilization(log: str) -> dict[str, tuple[int, int]]:
    """Resource → (used, available) in nextpnr's ``log``; empty if it has no such lines."""
    return {kind: (int(used), int(available)) for kind, used, available in _USED.findall(log)}


def _refuse_too_large(board: Board, work: Path) -> None:
    """Raise `CapacityError` if nextpnr's log in ``work`` says that the circuit has more cells than the FPGA."""
    logs = [work / "log.txt", work / f"{_NAME}.tim"]
    text = "\n".join(path.read_text() for path in logs if path.exists())
    over = [f"{used} {kind}, {used - available} more than the {available} there are"
            for kind, (used, available) in utilization(text).items() if used > available]
    if over:
        raise CapacityError(f"the circuit must fit the FPGA of board {board.name}, but needs {'; '.join(over)}; use "
                            f"fewer cores or lanes, a smaller capacity, or a larger board")
