"""From a board and a circuit to a bitstream: Amaranth's scripts and constraints, run with the tools from PyPI."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from splitjoin.base.errors import CapacityError, InputError, ToolError

from ..catalog import Board
from ..top import BoardTop
from .page import page, placement
from .report import BuildReport, Prediction, timing
from .tools import (
    ECPPACK,
    GMPACK,
    GOWIN_PACK,
    ICEPACK,
    NEXTPNR,
    NEXTPNR_GATEMATE,
    NEXTPNR_GOWIN,
    NEXTPNR_ICE40,
    YOSYS,
    Tool,
    cached,
)

#: Name of the top module, and of the files.
TOP = "top"
#: Changes when what is cached of a build does.
_FORMAT = "build 3"
#: Family → the tools that its bitstreams need.
TOOLS: dict[str, tuple[Tool, ...]] = {
    "ecp5": (YOSYS, NEXTPNR, ECPPACK), "ice40": (YOSYS, NEXTPNR_ICE40, ICEPACK),
    "gowin": (YOSYS, NEXTPNR_GOWIN, GOWIN_PACK), "gw5a": (YOSYS, NEXTPNR_GOWIN, GOWIN_PACK),
    "gatemate": (YOSYS, NEXTPNR_GATEMATE, GMPACK),
}
#: Tools by the variables that Amaranth's build scripts name them with.
_BY_VARIABLE = {"$YOSYS": YOSYS, "$NEXTPNR_ICE40": NEXTPNR_ICE40, "$ICEPACK": ICEPACK, "$NEXTPNR_ECP5": NEXTPNR,
                "$ECPPACK": ECPPACK, "$NEXTPNR_GOWIN": NEXTPNR_GOWIN, "$GOWIN_PACK": GOWIN_PACK,
                "$NEXTPNR_HIMBAECHEL_GATEMATE": NEXTPNR_GATEMATE, "$GMPACK": GMPACK}
#: What each tool does, for the progress.
_STAGES = {YOSYS: "synthesis", **dict.fromkeys((NEXTPNR, NEXTPNR_ICE40, NEXTPNR_GOWIN, NEXTPNR_GATEMATE),
                                               "placing and routing")}
#: nextpnr's line for a resource in use: its type, and how many of how many.
_USED = re.compile(r"^Info:\s+([\w/]+):\s+(\d+)/\s*(\d+)\s+\d+%", re.MULTILINE)


def build(board: Board, linked: wiring.Component, folder: Path, *, seed: int = 1, seconds: float = 3600,
          prediction: Prediction | None = None, progress: Callable[[str], None] = lambda text: None) -> BuildReport:
    """Write the bitstream of ``linked`` on ``board`` to ``folder``, which is made if it does not exist.

    ``linked``: as of `BoardTop`. ``seed``: of the placer. ``seconds``: time limit of each tool, wall clock.
    ``prediction``: what the report says of the rate. ``progress``: gets each step. The folder gets the bitstream
    ``top.bin``, ``top.bit`` or ``top.fs``, the mapped netlist ``top.json``, for ECP5 the routed design as
    ``top.config``, and the report as ``report.txt``, ``report.json`` and ``report.html``. Equal circuits on equal
    boards are built once (`cached`).

    Raises `CapacityError` if the circuit is too large for the FPGA, `ToolError` if a tool is missing, fails or takes
    too long, `InputError` if the folder cannot be written.
    """
    options = f"--seed {seed} --report timing.json"
    gowin = NEXTPNR_GOWIN in TOOLS[board.family]
    if gowin or board.family == "gatemate":  # there is no constraint of clocks in their scripts
        options += f" --freq {board.clock_hz / 1e6:g}"
    if not gowin:
        options += " --write routed.json"
    plan = _plan(board, linked, nextpnr_opts=options)
    commands = [shlex.split(line) for line in plan.files[f"{plan.script}.sh"].splitlines()
                if line.startswith('"$')]
    products = [f"{TOP}.{board.bitstream}", f"{TOP}.json", *([f"{TOP}.config"] if board.family == "ecp5" else [])]
    names = [*products, "report.json", "cells.json"]

    def make(work: Path) -> None:
        took = {}
        _write(plan, work)
        for variable, *arguments in commands:
            tool, start = _BY_VARIABLE[variable], time.monotonic()
            progress(f"{_STAGES.get(tool, 'packing')} ({tool.name})")
            try:
                tool.run(arguments, work, seconds)
            except ToolError:
                _refuse_too_large(board, work)
                raise
            took[tool.name] = time.monotonic() - start
        if gowin:
            (work / f"{TOP}.syn.json").rename(work / f"{TOP}.json")
            (work / f"{TOP}.pnr.json").rename(work / "routed.json")
        report = BuildReport(board.name, *timing(json.loads((work / "timing.json").read_text())), took)
        (work / "report.json").write_text(report.json())
        (work / "cells.json").write_text(json.dumps(placement(work / "routed.json", TOP)))
        for path in work.iterdir():
            if path.name not in names:
                path.unlink()

    tools = [_BY_VARIABLE[variable].version for variable, *_ in commands]
    made = cached(f"board-{board.name}", (_FORMAT, plan.digest().hex(), *tools), make)
    report = replace(BuildReport.parse((made / "report.json").read_text()), prediction=prediction)
    cells = {name: (x, y) for name, (x, y) in json.loads((made / "cells.json").read_text()).items()}
    with _writable(folder):
        for name in products:
            (folder / name).write_bytes((made / name).read_bytes())
        (folder / "report.json").write_text(report.json())
        (folder / "report.txt").write_text(f"{report}\n")
        (folder / "report.html").write_text(page(report, cells), encoding="utf-8")
    return report


def mapped_netlist(board: Board, linked: wiring.Component) -> Path:
    """The netlist of ``linked`` on ``board``, pads included, that `build` places: Yosys's JSON. Raises `ToolError`."""
    plan = _plan(board, linked)
    names = (f"{TOP}.json", f"{TOP}.syn.json")

    def make(work: Path) -> None:
        _write(plan, work)
        YOSYS.run(["-q", f"{TOP}.ys"], work)
        next(work / name for name in names if (work / name).exists()).rename(work / "netlist.json")
        for path in work.iterdir():
            if path.name != "netlist.json":
                path.unlink()

    return cached(f"netlist-{board.name}", (plan.digest().hex(), YOSYS.version), make) / "netlist.json"


def write_project(board: Board, linked: wiring.Component, folder: Path) -> list[str]:
    """Write a project for the vendor's tool to ``folder``: the names of its files. ``build_top.sh`` runs it.

    Raises `InputError` if the folder cannot be written.
    """
    plan = _plan(board, linked)
    with _writable(folder):
        _write(plan, folder)
    return sorted(plan.files)


def _plan(board: Board, linked: wiring.Component, **options: str) -> Any:
    """Amaranth's scripts and files for the top of ``board``."""
    return board.platform().prepare(BoardTop(board, linked), TOP, **dict(board.options), **options)


def _write(plan: Any, folder: Path) -> None:
    for name, content in plan.files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Make ``folder``, and report as `InputError` what goes wrong while files are written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise InputError(f"{folder} must be a folder that can be written, but is not: {error.strerror or error}; name "
                         f"another one") from None


def utilization(log: str) -> dict[str, tuple[int, int]]:
    """Resource → (used, available) in nextpnr's ``log``; empty if it has no such lines."""
    return {kind: (int(used), int(available)) for kind, used, available in _USED.findall(log)}


def _refuse_too_large(board: Board, work: Path) -> None:
    """Raise `CapacityError` if nextpnr's log in ``work`` says that the circuit has more cells than the FPGA."""
    logs = [work / "log.txt", work / f"{TOP}.tim"]
    text = "\n".join(path.read_text() for path in logs if path.exists())
    over = [f"{used} {kind}, {used - available} more than the {available} there are"
            for kind, (used, available) in utilization(text).items() if used > available]
    if over:
        raise CapacityError(f"the circuit must fit the FPGA of board {board.name}, but needs {'; '.join(over)}; use "
                            f"fewer cores or lanes, a smaller capacity, or a larger board")
