"""The command ``emulate``: runs a board's whole circuit, with its link, behind a pseudo-terminal."""

from __future__ import annotations

import argparse
from typing import Any

from splitjoin.base import threads
from splitjoin.base.errors import DeviceError, InputError, needing
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit

from .circuits import circuit_query, warn_that_pairs_leave
from .options import hertz


def emulate_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the board and of faults."""
    group = parser.add_argument_group("board")
    group.add_argument("--board", metavar="NAME", help="the board whose whole top is emulated, with its pads; "
                                                       "`splitjoin boards` lists them (only circuit and UART)")
    group.add_argument("--baud", type=hertz, metavar="B", help="serial rate in Hz, by which the board's circuit "
                                                               "divides its clock (the highest, which is emulated "
                                                               "fastest)")
    group.add_argument("--ft232h", metavar="PINS", help="an FT232H at these pins of the board carries the link, as of "
                                                        "`splitjoin build --ft232h`")
    group.add_argument("--pack", action="store_true", help="pack items on the link, as `splitjoin build --pack`")
    group = parser.add_argument_group("faults")
    for name, what in (("drop", "are lost"), ("flip", "have a bit flipped"), ("double", "are doubled"),
                       ("delay", "come 10 ms late")):
        group.add_argument(f"--{name}", type=float, metavar="SHARE", default=0.0,
                           help=f"share of bytes that {what} (%(default)s)")
    for name, what in (("unplug", "the plug is pulled, for 0.2 s"), ("reset", "the board loses its state")):
        group.add_argument(f"--{name}", type=int, metavar="BYTES", default=0,
                           help=f"mean number of bytes after which {what}; 0 is never (%(default)s)")
    group.add_argument("--fault-seed", type=int, metavar="N", default=0, help="seed of the faults (%(default)s)")


def run_emulator(args: argparse.Namespace) -> None:
    """Print the terminal's path, and answer on it until Ctrl-C."""
    query, options = circuit_query(args)
    with needing("the emulator needs", "sim"):
        from splitjoin_sim.emulated import linked_top
        from splitjoin_sim.emulator import Emulator, Faults
    parameters = CircuitParameters(**options)
    made = chosen_circuit(query, parameters)
    warn_that_pairs_leave(made)
    circuit: Any = made.config
    if args.board is not None:
        with needing("boards need", "emulator"):
            from splitjoin_boards.catalog import find
            from splitjoin_boards.ft232h import with_ft232h
            from splitjoin_boards.pads import board_top
        board = find(args.board)
        if args.ft232h is not None:
            if args.baud is not None:
                raise InputError("--baud is the rate of a UART, which --ft232h replaces; leave one of them out")
            board = with_ft232h(board, args.ft232h)
        circuit = board_top(board, circuit, args.baud, pack=args.pack)
    elif args.baud is not None or args.ft232h is not None:
        raise DeviceError("--baud and --ft232h are of a board's link; choose a --board, or leave them out")
    else:
        circuit = linked_top(circuit, pack=args.pack)
    faults = Faults(drop=args.drop, flip=args.flip, double=args.double, delay=args.delay, unplug=args.unplug,
                    reset=args.reset, seed=args.fault_seed)
    with Emulator(circuit, faults) as emulated:
        print(emulated.path, flush=True)
        threads.event().wait()
