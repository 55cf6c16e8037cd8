"""The commands about boards: ``boards`` and ``build``."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import ModuleType

from ..circuit.lowering import configure, plan_for, settings
from ..circuit.parameters import CircuitParameters
from ..errors import ToolError
from ..link.sidecar import Sidecar
from .circuits import circuit_query

__all__ = ["build_bitstream", "build_options", "list_boards"]


def build_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``build`` that are about the board."""
    group = parser.add_argument_group("board")
    group.add_argument("--board", metavar="NAME", required=True, help="the board; `splitjoin boards` lists them")
    group.add_argument("--baud", type=int, metavar="B", default=115200, help="serial rate in Hz (%(default)s)")
    group.add_argument("--seed", type=int, metavar="N", default=1, help="of the placer (%(default)s)")
    group.add_argument("--time-limit", type=float, metavar="S", default=3600.0,
                       help="seconds that each tool may take (%(default)s)")


def build_bitstream(args: argparse.Namespace) -> None:
    """Build a query's circuit for a board, and print the report of the build."""
    query, options = circuit_query(args)
    parameters = CircuitParameters(**options)
    plan = plan_for(query, parameters)
    config = configure(query, plan, parameters)
    settings(query, config, verified=plan.residual is not None)  # raises for queries that circuits cannot run
    flow = _flow()
    board, folder = flow.find(args.board), Path(args.output)
    report = flow.build_join(board, config, folder, baud=args.baud, seed=args.seed, seconds=args.time_limit)
    Sidecar.of(parameters, config, board=board.name, clock_hz=board.clock_hz, baud=args.baud).write(
        folder / "design.json")
    print(report)
    print(f"the bitstream is in {folder}; run joins on it with --device uart:PORT --design {folder / 'design.json'}")


def list_boards(args: argparse.Namespace) -> None:
    """Print the boards that bitstreams can be built for: name, family, clock, and title."""
    for board in _flow().CATALOG.values():
        print(f"{board.name:18} {board.family:6} {board.clock_hz / 1e6:g} MHz  UART  {board.title}")


def _flow() -> ModuleType:
    """The part of `splitjoin.boards` that the commands need. Raises `ToolError` if its packages are missing."""
    try:
        from splitjoin.boards import join
    except ModuleNotFoundError as error:
        raise ToolError(f"bitstreams need the Python package {error.name!r}, which is not installed; pip install "
                        f"'splitjoin[boards]'") from error
    return join
