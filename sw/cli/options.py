"""Groups of options that commands share, and what they say once they are parsed."""

from __future__ import annotations

import argparse
from typing import Any

from ..circuit.wire import CORE_KINDS, check_parameters
from ..device.registry import DEVICES
from ..errors import WindowError

__all__ = ["circuit_arguments", "circuit_options", "pair", "query_options", "run_options", "schema_options",
           "window_argument", "window_or_default"]


def query_options(parser: argparse.ArgumentParser, *, window_required: bool, on: bool = True) -> None:
    """Add what asks the query, but for schemas; without ``on``, where a statement has the condition."""
    group = parser.add_argument_group("query")
    if on:
        group.add_argument("--on", metavar="EXPR", required=True, help="the join condition over r and s")
    group.add_argument("--window", metavar="W", help="both streams' window" + (
        "" if window_required else " (as many ROWS as the circuit holds)"))
    group.add_argument("--window-r", metavar="W", help="R's window, instead of --window")
    group.add_argument("--window-s", metavar="W", help="S's window, instead of --window")
    group.add_argument("--time", metavar="COL", help="the event-time column of both streams (none: tuples arrive "
                                                     "alternately)")
    group.add_argument("--time-r", metavar="COL", help="R's time column, where the names differ")
    group.add_argument("--time-s", metavar="COL", help="S's time column, where the names differ")
    group.add_argument("--order", default="total", help="none, outer(N), inner(n) or total (%(default)s)")
    parser.set_defaults(window_required=window_required)


def run_options(parser: argparse.ArgumentParser) -> None:
    """Add what chooses a device, and what devices take."""
    parser.add_argument("--device", choices=list(DEVICES), default="cpu",
                        help="cpu: compiled nested loops and indexes; golden: the plain reference model; sim: the "
                             "circuit, cycle-accurate, by Verilator; pysim: the same on Amaranth's simulator, slow "
                             "(%(default)s)")
    engine = parser.add_argument_group("CPU engine")
    engine.add_argument("--engine", choices=("auto", "index", "nested"),
                        help="how matches are found: by an index, by nested loops, or by what is cheaper (auto)")
    engine.add_argument("--threads", type=int, metavar="T", help="workers that share the windows (all processors)")
    circuit_options(parser)
    parser.add_argument("--region-counters", action="store_true",
                        help="build the circuit with counters in every region, and show them")
    parser.add_argument("--mask", metavar="CORES", help="numbers of cores, with commas between them, that take no "
                                                        "part: the pairs stored in them are lost (none)")


def schema_options(parser: argparse.ArgumentParser) -> None:
    """Add the streams' schemas, for commands that read no tables."""
    for side in ("r", "s"):
        parser.add_argument(f"--schema-{side}", metavar="SCHEMA", required=True,
                            help=f"{side.upper()}'s columns: a .parquet or .csv file, or 'ts:int64, x:int32, "
                                 f"y:float32?' (? = may hold NULL)")


def circuit_options(parser: argparse.ArgumentParser) -> None:
    """Add what a circuit is made of."""
    group = parser.add_argument_group("circuit")
    group.add_argument("--cores", type=int, metavar="K", help="join cores (4)")
    group.add_argument("--capacity", type=int, metavar="N",
                       help="tuples of one stream that a core holds, a power of two (what the windows need)")
    group.add_argument("--fanout", type=int, metavar="B", help="children of a distribution-tree node (2)")
    group.add_argument("--fanin", type=int, metavar="C", help="inputs of a merger (2)")
    group.add_argument("--lanes", type=int, metavar="L", help="stored tuples that a core reads in a cycle, of each "
                                                              "stream: 1, 2, 4 or 8 (1)")
    group.add_argument("--probes", type=int, metavar="P", help="tuples that a core compares each of them with (1)")
    group.add_argument("--core", metavar="KIND", choices=CORE_KINDS,
                       help="how cores find what a tuple matches: scan, hash, bucket, or auto: what suits (auto)")
    group.add_argument("--clock", type=float, metavar="MHZ",
                       help="clock that comparing gets registers for, on ECP5 (as few registers as there can be)")
    group.add_argument("--tables", action="store_true", default=None,
                       help="look up equalities and bands of constant width instead of computing them: fewer LUTs with "
                            "many lanes and probes")


def circuit_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The circuit options that were given."""
    names = ("cores", "capacity", "fanout", "fanin", "lanes", "probes", "core", "clock", "tables")
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def pair(args: argparse.Namespace, name: str) -> Any:
    """``--name``, or ``--name-r`` with ``--name-s``; None if none was given."""
    both, r, s = getattr(args, name), getattr(args, f"{name}_r"), getattr(args, f"{name}_s")
    if both is not None and (r is not None or s is not None):
        raise WindowError(f"give either --{name}, or --{name}-r and --{name}-s, not both")
    if (r is None) != (s is None):
        raise WindowError(f"--{name}-r and --{name}-s go together")
    return both if r is None else (r, s)


def window_argument(args: argparse.Namespace) -> Any:
    """The window that was given; None if none was, and none is needed."""
    window = pair(args, "window")
    if window is None and args.window_required:
        raise WindowError("a window is needed, such as --window 'ROWS 4096'")
    return window


def window_or_default(args: argparse.Namespace, options: dict[str, Any]) -> Any:
    """The window that was given, or as many ROWS as the circuit of ``options`` holds."""
    given = {name: value for name, value in options.items() if name not in ("clock", "tables")}
    check_parameters(**{"cores": 4, "capacity": 1024, "fanout": 2, "fanin": 2} | given)
    window = window_argument(args)
    if window is None:
        options.setdefault("capacity", 1024)
        window = f"ROWS {options.get('cores', 4) * options['capacity']}"
    return window
