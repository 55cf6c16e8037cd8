"""The command line: ``splitjoin join``, ``sql``, ``verilog``, ``explain``, ``tune``, ``boards``, ``build``,
``program``, ``emulate``, ``waves``, ``daemon``, ``serve``, ``spark-qualify``, ``spark-jar``, ``devices``, ``doctor``,
``completion``.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from functools import partial
from typing import Any

from splitjoin.base.interrupts import INTERRUPTED, orderly_termination, quiet_interrupts

with quiet_interrupts():
    from splitjoin.base.errors import OptionError, OrderError, PredicateError, SchemaError, SplitJoinError, WindowError
    from splitjoin.base.version import __version__
    from splitjoin.circuit.cost import FAMILIES
    from splitjoin.circuit.tuner.options import tune_options
    from splitjoin.lang.sql.parser import SUPPORTED

    from .build import build_bitstream, build_options, list_boards, program_board, program_options
    from .circuits import circuit_query_options, explain_circuit, propose_circuit
    from .completion import complete, completion_options, print_completion
    from .daemon import daemon_options, run_daemon
    from .doctor import run_devices, run_doctor
    from .emulate import emulate_options, run_emulator
    from .options import (
        EXPLANATION_FORMATS,
        input_options,
        kind_options,
        output_options,
        partner_options,
        query_options,
        run_options,
        schema_options,
        sort_option,
    )
    from .pipes import shown
    from .running import run_join, run_sql
    from .serve import run_serve, serve_options
    from .spark import qualify_options, run_qualify, run_spark_jar
    from .verilog import verilog_options, write_circuit
    from .warmup import run_warmup, warmup_options
    from .waves import run_waves, waves_options

__all__ = ["command_parser", "main"]

DONE, FAILURE, USAGE = 0, 1, 2

_LANGUAGE = textwrap.wrap(
    f"SQL over r and s: {SUPPORTED}. Literals: numbers, 'text', X'00FF', TRUE, NULL, DATE '2024-01-31', TIMESTAMP "
    f"'2024-01-31 12:00:00', INTERVAL '15' MINUTE. Example: \"abs(r.x - s.a) <= 10 AND r.origin <> s.origin\"", 104)
_EPILOG = "\n".join([f"conditions  {_LANGUAGE[0]}", *(f"{'':12}{line}" for line in _LANGUAGE[1:])]) + """
windows     "ROWS 4096", "RANGE 15 MINUTES" (timestamps), "RANGE 900" (integer time), "ROWS 100 RANGE 900"
exit code   0 done; 2 wrong usage (options, condition, columns, window, order); 1 failure (files, data, tools, device)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    try:
        try:
            parser = command_parser()
            complete(parser)
            with shown(), orderly_termination():
                args = parser.parse_args(arguments)
                run: Any = args.run
                run(args)
        finally:  # also where argparse exits, after --help
            if sys.stdout is not None:  # as it is where the caller has closed it
                sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
    except (PredicateError, SchemaError, WindowError, OrderError, OptionError) as error:
        return _fail(error, USAGE)
    except SplitJoinError as error:
        return _fail(error, FAILURE)
    except KeyboardInterrupt:
        print("splitjoin: interrupted", file=sys.stderr)
        return INTERRUPTED
    return DONE


def _drop_output() -> None:
    """Drop what standard output still holds, as its reader, such as ``head``, has read enough and ended."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes again when it ends


def _fail(error: Exception, code: int) -> int:
    print(f"splitjoin: {error}", file=sys.stderr)
    return code


def command_parser() -> argparse.ArgumentParser:
    """The parser of all commands and their options."""
    parser = argparse.ArgumentParser(
        prog="splitjoin", description="Join unbounded streams under any condition: band, range, theta, equality.",
        epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"splitjoin {__version__}")
    command = partial(_command, parser.add_subparsers(required=True, metavar="COMMAND"))

    join = command("join", "join two tables as streams", run_join)
    join.add_argument("r", metavar="R", help="stream R: a .parquet, .csv or .arrow file, a quoted pattern such as "
                                      "'day-*.parquet', or - for standard input: an Arrow IPC stream, or CSV")
    join.add_argument("s", metavar="S", help="stream S: the same")
    query_options(join, window_required=False, required=False, window_default="every earlier row")
    sort_option(join)
    kind_options(join)
    partner_options(join)
    join.add_argument("--select", metavar="NAMES", help="result columns to keep, with commas between them, such as "
                                                           "'r.x, s.x AS other' (all)")
    join.add_argument("--suffixes", metavar="OF_R,OF_S", help="what columns of R and of S whose names are alike get "
                                                              "appended (_r,_s)")
    input_options(join)
    run_options(join)
    output_options(join, explained=True)
    join.add_argument("--explain", action="store_true", help="run nothing, but say how the tables would be joined")
    join.add_argument("--analyze", action="store_true", help="join, but write nothing, and say how: the pairs looked "
                                                             "at beside the expected ones, and the time")

    select = command("sql", "run a SELECT over two tables as streams", run_sql)
    select.add_argument("text", metavar="TEXT", help="the statement: SELECT … FROM t JOIN q ON … WHERE …; the first "
                                                     "table is R, the second S")
    select.add_argument("named", metavar="NAME=FILE", nargs="*",
                        help="the tables by name: .parquet, .csv or .arrow files, quoted patterns, or - for standard "
                             "input; with --explain also 'ts:int64, x:int32, …'; files that the statement names "
                             "itself, as in FROM 'trades.csv' AS t, need none")
    query_options(select, window_required=False, on=False, window_default="every earlier row")
    sort_option(select)
    input_options(select)
    run_options(select)
    output_options(select)
    select.add_argument("--explain", action="store_true", help="run nothing, but say what is done before, in and "
                                                               "after the join")

    verilog = command("verilog", "write the circuit as Verilog, with a JSON sidecar", write_circuit)
    circuit_query_options(verilog, design=True, baselines=True)
    verilog_options(verilog)

    what = command("explain", "say how a condition maps onto circuits, and what is not supported", explain_circuit,
                   circuit_query_options)
    what.add_argument("--passes", action="store_true", help="show the condition after each pass of the compiler, too")
    what.add_argument("--format", choices=EXPLANATION_FORMATS, help="form of the explanation: text, JSON, or a page "
                                                                    "of HTML (text)")
    what.add_argument("--family", choices=FAMILIES, default="ecp5", help="FPGA family that costs are told for "
                                                                         "(%(default)s)")

    tuning = command("tune", "propose a circuit for a board, and say what to expect of it", propose_circuit,
                     schema_options)
    query_options(tuning, window_required=True)
    tune_options(tuning)
    tuning.add_argument("-o", "--output", metavar="FILE",
                        help="also write the design to this .json file, for --design of `splitjoin verilog` and "
                             "`splitjoin build`")

    command("boards", "list the boards that bitstreams can be built for", list_boards)
    building = command("build", "build a bitstream for a board, with open tools", build_bitstream)
    circuit_query_options(building, design=True)
    build_options(building)
    command("program", "load a built bitstream into its board", program_board, program_options)
    command("daemon", "own the devices of this machine, and lease them to other processes", run_daemon, daemon_options)
    command("serve", "run continuous joins behind Arrow Flight, with results that stay", run_serve, serve_options)
    command("emulate", "run a board's circuit behind a pseudo-terminal, for the device uart", run_emulator,
            circuit_query_options, emulate_options)
    command("waves", "show what a simulated circuit did over its cycles, from its waveforms", run_waves, waves_options)
    command("spark-qualify", "say which joins of Spark's event logs splitjoin could run", run_qualify, qualify_options)
    command("spark-jar", "print the path of the jar with splitjoin.SplitJoinExtensions, for plain spark.sql",
            run_spark_jar)
    command("devices", "list the devices on which joins run", run_devices)
    command("doctor", "say what is installed, what is missing, and how to get it", run_doctor)
    command("warmup", "compile what a query needs of the CPU engine before it is needed, for images of containers and "
                      "for executors", run_warmup, warmup_options)
    command("completion", "print what makes a shell complete this command line", print_completion, completion_options)
    return parser


def _command(commands: Any, name: str, text: str, run: Any, *options: Any) -> argparse.ArgumentParser:
    """The parser of the command ``name``, which ``run`` runs; each of ``options`` adds some to it."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(run=run)
    for add in options:
        add(parser)
    return parser
