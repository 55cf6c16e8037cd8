"""The commands about boards: ``boards``, ``build`` and ``program``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from types import ModuleType

from splitjoin.base.errors import CapacityError, InputError, SplitJoinError, needing, plural
from splitjoin.base.memory import size_text
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit
from splitjoin.circuit.tuner import BOARDS, tune
from splitjoin.circuit.tuner.speed import items_a_tuple
from splitjoin.circuit.tuner.workload import Workload
from splitjoin.circuit.wire import Configuration
from splitjoin.lang.query import Query
from splitjoin.link.sidecar import Sidecar

from .circuits import circuit_query, warn_that_pairs_leave
from .design import described_query
from .options import hertz

#: Name of the sidecar in the folder that ``build`` writes.
_SIDECAR = "design.json"
#: Logic cells of an iCE40 that the smallest circuit with a join core and a link takes (docs/boards.md).
_LEAST = 9_985
#: What the device ``uart`` opens, by the link of a design, and the rate in a design whose link has none.
_PORTS = {"uart": "PORT", "ft232h": "ftdi://ftdi:232h/1"}
_TERMINAL_BAUD = 3_000_000
#: What to do on boards with fewer.
_SMALL = "an iCE40 and a Tang Nano 9K hold a small circuit: --small --row-bits 16"


def build_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``build`` that are not about the circuit."""
    group = parser.add_argument_group("board")
    group.add_argument("--board", metavar="NAME", required=True, help="the board; `splitjoin boards` lists them")
    group.add_argument("--baud", type=hertz, metavar="B", help="serial rate in Hz (the highest of the board's bridge, "
                                                               "3,000,000 at most; 115,200 where it is unknown)")
    group.add_argument("--ft232h", metavar="PINS", help="an FT232H at these 15 pins carries the link, not the UART: "
                                                        "of D0 to D7, RXF#, TXE#, RD#, WR#, OE#, SIWU# and CLKOUT, as "
                                                        "gpio_0:5+ or B11, with commas between them; on ECP5")
    group.add_argument("--pll", type=hertz, metavar="HZ", help="frequency of the circuit, which the FPGA's PLL makes; "
                                                               "on ECP5, iCE40 and Gowin (the board's own clock)")
    group.add_argument("--pack", action="store_true", help="pack items on the link as differences: a third of "
                                                           "the bytes of results, for 200 to 280 LUTs")
    group.add_argument("--matches", type=float, metavar="M", default=1.0,
                       help="results of a tuple, on average, for which the report predicts the rate (%(default)s)")
    group.add_argument("--seed", type=int, metavar="N", default=1, help="of the placer (%(default)s)")
    group.add_argument("--time-limit", type=float, metavar="S", default=3600.0,
                       help="seconds that each tool may take (%(default)s)")
    parser.add_argument("-o", "--output", metavar="DIR", required=True,
                        help="folder for the bitstream, the netlist and the report; made if it does not exist")


def build_bitstream(args: argparse.Namespace) -> None:
    """Build a query's circuit for a board, and print the report of the build."""
    query, options = circuit_query(args)
    if not (0 <= args.matches < float("inf")):
        raise InputError(f"--matches must be a number from 0, not {args.matches}")
    parameters = CircuitParameters(**options)
    circuit = chosen_circuit(query, parameters)
    config, found = circuit.config, circuit.settings  # raises for queries that circuits cannot run
    warn_that_pairs_leave(circuit)
    flow = _flow()
    board, folder = flow.find(args.board), Path(args.output)
    if args.pll is not None:
        board = flow.clocked(board, args.pll)
    if args.ft232h is not None:
        if args.baud is not None:
            raise InputError("--baud is the rate of a UART, which --ft232h replaces; leave one of them out")
        board, link, baud = flow.with_ft232h(board, args.ft232h), "ft232h", None
    else:
        link, baud = "uart", flow.default_baud(board) if args.baud is None else args.baud
    held = config.cores * config.capacity
    stars = 1 / found["precision"] if found["precision"] else 0.0
    start = time.monotonic()
    if board.name not in BOARDS and not config.small and board.fpga.lut < _LEAST:
        print(f"splitjoin: board {board.name} has {board.fpga.lut:,} LUTs, and a circuit without --small hardly fits "
              f"fewer than {_LEAST:,}; {_SMALL}", file=sys.stderr, flush=True)

    def progress(text: str) -> None:
        print(f"{time.monotonic() - start:7.1f} s  {text}", file=sys.stderr, flush=True)

    try:
        report = flow.build_join(board, config, folder, load=Workload(held, held, args.matches), baud=baud,
                                 pack=args.pack, items=items_a_tuple(config, args.matches, stars), seed=args.seed,
                                 seconds=args.time_limit, progress=progress)
    except CapacityError as error:
        raise CapacityError(f"{error}; {_what_fits(query, config, board.name)}") from None
    Sidecar.of(parameters, config, board=board.name, clock_hz=board.clock_hz, baud=baud or _TERMINAL_BAUD,
               link=link, pack=args.pack, aggregates=query.aggregates, query=described_query(args),
               pins=flow.pins(board)).write(folder / _SIDECAR)
    if isinstance(report, list):
        print(f"{folder} has a project for Vivado: {', '.join(report)}. It was not run here; run build_top.sh there, "
              f"which needs Vivado and writes top.bit")
    else:
        print(report)
        print(f"the bitstream is in {folder}, with the report as report.html; load it with `splitjoin program "
              f"{folder}`")
    print(f"run joins on it with --device uart:{_PORTS[link]} --design {folder / _SIDECAR}")


def _what_fits(query: Query, config: Configuration, board: str) -> str:
    """The circuit that the tuner proposes instead, in words."""
    if board not in BOARDS:
        if not config.small:
            return f"{_SMALL} (`splitjoin tune` proposes circuits for ECP5 boards only)"
        return "block RAM limits the windows of a small circuit: give a smaller --capacity, and a window that fits it"
    held = config.cores * config.capacity
    try:
        proposal = tune(query, board=board, window_tuples=held)
    except SplitJoinError as error:
        return f"`splitjoin tune` finds none: {error}"
    options = " ".join(f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}")
                       for name, value in proposal.options.items())
    return (f"`splitjoin tune` proposes {options}, with {proposal.lut:,} LUT4 and {proposal.block_ram} "
            f"{plural(proposal.block_ram, 'block RAM')} beside those of the link")


def program_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``program``."""
    parser.add_argument("folder", metavar="DIR", help="the folder that `splitjoin build` wrote")
    parser.add_argument("--flash", action="store_true", help="write the memory from which the FPGA starts (only the "
                                                             "FPGA, until power is lost)")
    parser.add_argument("--cable", metavar="NAME", help="openFPGALoader's name of a JTAG adapter, instead of the "
                                                        "board's own")


def program_board(args: argparse.Namespace) -> None:
    """Load a built bitstream into its board."""
    folder = Path(args.folder)
    design = Sidecar.read(folder / _SIDECAR)
    flow = _flow()
    board = flow.find(design.board)
    flow.program(board, folder / f"top.{board.bitstream}", flash=args.flash, cable=args.cable)
    print(f"{board.title} has the bitstream; run joins on it with --device uart:{_PORTS[design.link]} --design "
          f"{folder / _SIDECAR}")


def list_boards(args: argparse.Namespace) -> None:
    """Print the boards that circuits can be built for: capacity, clock, link, and tools."""
    flow = _flow()
    for board in flow.CATALOG.values():
        fpga, baud = board.fpga, board.bridge.baud
        rate = f"{baud / 1e6:g} Mbaud" if baud else "rate unknown"
        memory = f"SDRAM: {size_text(board.sdram.size)}; " if board.sdram else ""
        print(f"{board.name:22} {board.family} {board.clock_hz / 1e6:g} MHz  {board.title}\n"
              f"{'':22} {fpga.part}: {fpga.lut:,} LUTs, {fpga.ff:,} flip-flops, {fpga.block_ram} block RAMs of "
              f"{fpga.ram_kbit} Kbit, {fpga.dsp} DSPs\n"
              f"{'':22} {memory}UART: {board.bridge.name}, {rate}\n"
              f"{'':22} tools: {flow.tools_text(board)}")


def _flow() -> ModuleType:
    """The part of `splitjoin_boards` that the commands need. Raises `ToolError` if its packages are missing."""
    with needing("bitstreams need", "boards"):
        from splitjoin_boards import join
    return join
