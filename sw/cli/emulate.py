"""The command ``emulate``: runs a board's whole circuit, with its UART, behind a pseudo-terminal."""

from __future__ import annotations

import argparse
import threading

from ..circuit.lowering import configure, plan_for
from ..circuit.parameters import CircuitParameters
from ..errors import ToolError
from .circuits import circuit_query

__all__ = ["emulate_options", "run_emulator"]


def emulate_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of faults."""
    group = parser.add_argument_group("faults on the line, as shares of bytes")
    for name, what in (("drop", "are lost"), ("flip", "have a bit flipped"), ("double", "are doubled")):
        group.add_argument(f"--{name}", type=float, metavar="SHARE", default=0.0,
                           help=f"bytes that {what} (%(default)s)")
    group.add_argument("--fault-seed", type=int, metavar="N", default=0, help="seed of the faults (%(default)s)")


def run_emulator(args: argparse.Namespace) -> None:
    """Print the terminal's path, and answer on it until Ctrl-C."""
    query, options = circuit_query(args)
    try:
        from splitjoin.sim.emulator import Emulator, Faults
    except ModuleNotFoundError as error:
        raise ToolError(f"the emulator needs the Python package {error.name!r}, which is not installed; pip install "
                        f"'splitjoin[sim]'") from error
    parameters = CircuitParameters(**options)
    config = configure(query, plan_for(query, parameters), parameters)
    faults = Faults(drop=args.drop, flip=args.flip, double=args.double, seed=args.fault_seed)
    with Emulator(config, faults) as board:
        print(board.path, flush=True)
        threading.Event().wait()
