"""The command line: ``splitjoin join``, ``sql``, ``verilog``, ``explain`` and ``tune``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .cost import FAMILIES
from .device.api import PAIR, Device
from .device.configure import configure, plan_for, settings
from .device.registers import REGION_COUNTERS
from .device.registry import DEVICES, device
from .device.wire import CORE_KINDS, check_parameters
from .errors import (
    DeviceError,
    InputError,
    OrderError,
    PredicateError,
    SchemaError,
    SplitJoinError,
    ToolError,
    WindowError,
)
from .explain import explain
from .files import check_output, read_table, write_table
from .join import JoinResult, execute
from .lang.order import parse_order
from .lang.query import Query
from .lang.schema import Schema
from .schema_text import parse_schema
from .statement import Select, sql
from .tuner import tune
from .tuner.options import tune_arguments, tune_options

__all__ = ["main"]

DONE, FAILURE, USAGE, INTERRUPTED = 0, 1, 2, 130

_EPILOG = """\
conditions  SQL over r and s: + - * abs() = <> < <= > >= BETWEEN AND OR NOT IS NULL, numbers, 'text', DATE '…',
            INTERVAL '15' MINUTE.  Example: "abs(r.x - s.a) <= 10 AND r.origin <> s.origin"
windows     "ROWS 4096", "RANGE 15 MINUTES" (timestamps), "RANGE 900" (integer time), "ROWS 100 RANGE 900"
exit code   0 done; 2 wrong usage (options, condition, columns, window, order); 1 failure (files, data, tools, device)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    args = _parser().parse_args(arguments)
    try:
        run: Any = args.run
        run(args)
    except (PredicateError, SchemaError, WindowError, OrderError) as error:
        return _fail(error, USAGE)
    except SplitJoinError as error:
        return _fail(error, FAILURE)
    except KeyboardInterrupt:
        print("splitjoin: interrupted", file=sys.stderr)
        return INTERRUPTED
    return DONE


def _fail(error: Exception, code: int) -> int:
    print(f"splitjoin: {error}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="splitjoin", description="Join unbounded streams under any condition: band, range, theta, equality.",
        epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    join = _command(commands, "join", "join two tables as streams", _join)
    join.add_argument("r", metavar="R", help="stream R: a .parquet or .csv file")
    join.add_argument("s", metavar="S", help="stream S: a .parquet or .csv file")
    _query_options(join, window_required=True)
    join.add_argument("--select", metavar="NAMES", help="result columns to keep, with commas between them (all)")
    _run_options(join)
    join.add_argument("-o", "--output", metavar="OUT", required=True, help="the result: a .parquet or .csv file")

    select = _command(commands, "sql", "run a SELECT over two tables as streams", _sql)
    select.add_argument("text", metavar="TEXT", help="the statement: SELECT … FROM t JOIN q ON … WHERE …; the first "
                                                     "table is R, the second S")
    select.add_argument("tables", metavar="NAME=FILE", nargs="+",
                     help="the tables by name: .parquet or .csv files; with --explain also 'ts:int64, x:int32, …'")
    _query_options(select, window_required=False, on=False)
    _run_options(select)
    select.add_argument("-o", "--output", metavar="OUT", help="the result: a .parquet or .csv file")
    select.add_argument("--explain", action="store_true", help="run nothing, but say what is done before, in and "
                                                               "after the join")

    verilog = _command(commands, "verilog", "write the circuit as Verilog, with a JSON sidecar", _verilog)
    _schema_options(verilog)
    _query_options(verilog, window_required=False)
    _circuit_options(verilog)
    verilog.add_argument("-o", "--output", metavar="DIR", required=True,
                         help="folder for splitjoin.v and splitjoin.json; made if it does not exist")

    what = _command(commands, "explain", "say how a condition maps onto circuits, and what is not supported", _explain)
    _schema_options(what)
    _query_options(what, window_required=False)
    _circuit_options(what)
    what.add_argument("--passes", action="store_true", help="show the condition after each pass of the compiler, too")
    what.add_argument("--family", choices=FAMILIES, default="ecp5", help="FPGA family that costs are told for "
                                                                         "(%(default)s)")

    tuning = _command(commands, "tune", "propose a circuit for a board, and say what to expect of it", _tune)
    _schema_options(tuning)
    _query_options(tuning, window_required=True)
    tune_options(tuning)
    return parser


def _command(commands: Any, name: str, text: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text.capitalize() + ".", epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(run=run)
    return parser


def _query_options(parser: argparse.ArgumentParser, *, window_required: bool, on: bool = True) -> None:
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


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=list(DEVICES), default="cpu",
                        help="cpu: compiled nested loops and indexes; golden: the plain reference model; sim: the "
                             "circuit, cycle-accurate, by Verilator; pysim: the same on Amaranth's simulator, slow "
                             "(%(default)s)")
    engine = parser.add_argument_group("CPU engine")
    engine.add_argument("--engine", choices=("auto", "index", "nested"),
                        help="how matches are found: by an index, by nested loops, or by what is cheaper (auto)")
    engine.add_argument("--threads", type=int, metavar="T", help="workers that share the windows (all processors)")
    _circuit_options(parser)
    parser.add_argument("--region-counters", action="store_true",
                        help="build the circuit with counters in every region, and show them")
    parser.add_argument("--mask", metavar="CORES", help="numbers of cores, with commas between them, that take no "
                                                        "part: the pairs stored in them are lost (none)")


def _schema_options(parser: argparse.ArgumentParser) -> None:
    for side in ("r", "s"):
        parser.add_argument(f"--schema-{side}", metavar="SCHEMA", required=True,
                            help=f"{side.upper()}'s columns: a .parquet or .csv file, or 'ts:int64, x:int32, "
                                 f"y:float32?' (? = may hold NULL)")


def _circuit_options(parser: argparse.ArgumentParser) -> None:
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


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """The circuit options that were given."""
    names = ("cores", "capacity", "fanout", "fanin", "lanes", "probes", "core", "clock")
    return {name: getattr(args, name) for name in names if getattr(args, name) is not None}


def _pair(args: argparse.Namespace, name: str) -> Any:
    """``--name``, or ``--name-r`` with ``--name-s``; None if none was given."""
    both, r, s = getattr(args, name), getattr(args, f"{name}_r"), getattr(args, f"{name}_s")
    if both is not None and (r is not None or s is not None):
        raise WindowError(f"give either --{name}, or --{name}-r and --{name}-s, not both")
    if (r is None) != (s is None):
        raise WindowError(f"--{name}-r and --{name}-s go together")
    return both if r is None else (r, s)


def _window(args: argparse.Namespace) -> Any:
    window = _pair(args, "window")
    if window is None and args.window_required:
        raise WindowError("a window is needed, such as --window 'ROWS 4096'")
    return window


def _join(args: argparse.Namespace) -> None:
    window, time = _window(args), _pair(args, "time")
    output = check_output(args.output)
    options: dict[str, Any] = _given(args)
    mine = {name: getattr(args, name) for name in ("engine", "threads") if getattr(args, name) is not None}
    if mine and args.device != "cpu":
        raise DeviceError(f"the device {args.device!r} has no {', '.join(f'--{name}' for name in mine)}; leave it out, "
                          f"or choose --device cpu")
    # The golden model takes a number of cores, which order inner(n) and masks depend on.
    if (args.device == "golden" and "cores" in options and parse_order(args.order).kind != "inner"
            and args.mask is None):
        raise DeviceError("the device 'golden' uses --cores for the order inner(n) and --mask only; leave it out, or "
                          "choose --device sim or pysim")
    extra = [f"--{name}" for name in options if args.device == "cpu" or (args.device == "golden" and name != "cores")]
    if extra:
        raise DeviceError(f"the device {args.device!r} is no circuit and has no {', '.join(extra)}; choose --device "
                          f"sim or pysim")
    options |= mine
    if args.mask is not None:
        if args.device == "cpu":
            raise DeviceError("the device 'cpu' has no cores to mask; choose --device sim or pysim")
        options["masked"] = _numbers(args.mask)
    if args.region_counters:
        if args.device in ("cpu", "golden"):
            raise DeviceError(f"the device {args.device!r} has no regions that count; choose --device sim or pysim")
        options["region_counters"] = True
    if args.device == "sim":
        options["progress"] = True
    result = _result(args, window, time, device(args.device, **options))
    write_table(result.table, output)
    print(f"pairs                  {int((result.items['kind'] == PAIR).sum()):,}")
    counters = result.counters
    if counters.get("cycles"):
        print(f"cycles                 {counters['cycles']:,}")
    print(f"comparisons            {counters['comparisons']:,}")
    if result.plan:
        print(f"engine                 {result.plan}")
    if "candidates" in counters and args.device == "cpu":
        print(f"pairs looked at        {counters['candidates']:,}")
    if counters.get("cycles"):
        print(f"comparisons per cycle  {counters['comparisons'] / counters['cycles']:.3f}")
        print(f"cycles input waited    {counters['input_stalls']:,}")
        print(f"cycles output waited   {counters['output_stalls']:,}")
    if result.region_counters is not None:
        print("\n".join(_region_table(result.region_counters)))


def _result(args: argparse.Namespace, window: Any, time: Any, chosen: Device) -> JoinResult:
    """What ``join`` or ``sql`` gives."""
    if args.run is _sql:
        made: JoinResult = sql(args.text, tables=_tables(args.tables), window=window, time=time, order=args.order,
                               device=chosen)
        return made
    select = None if args.select is None else [name.strip() for name in args.select.split(",")]
    return execute(read_table(args.r), read_table(args.s), on=args.on, window=window, time=time, order=args.order,
                   select=select, device=chosen)


def _tables(given: Sequence[str]) -> dict[str, str]:
    """``NAME=FILE`` arguments as a mapping."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not name or not path:
            raise SchemaError(f"a table must be given as NAME=FILE, such as trades=trades.parquet, not {text!r}")
        if name in found:
            raise SchemaError(f"the table {name!r} is given twice; give it once")
        found[name] = path
    return found


def _sql(args: argparse.Namespace) -> None:
    args.window_required = not args.explain
    if not args.explain:
        if args.output is None:
            raise SchemaError("the result needs a file, -o OUT; or write --explain to see what would be done")
        _join(args)
        return
    wrong = [f"--{name}" for name in ("output", "engine", "threads", "mask") if getattr(args, name) is not None]
    wrong += ["--device"] if args.device != "cpu" else []
    wrong += ["--region-counters"] if args.region_counters else []
    if wrong:
        raise DeviceError(f"--explain runs nothing, on no device, and has no {', '.join(wrong)}; leave it out")
    options = _given(args)
    window = _default_window(args, options)
    tables = {name: parse_schema(text) for name, text in _tables(args.tables).items()}
    made: Select = sql(args.text, tables=tables, window=window, time=_pair(args, "time"), order=args.order)
    print(made.explain(**options))


def _region_table(counted: dict[str, Any]) -> Iterator[str]:
    """A line a counter: all regions together (the largest, of high-water marks), and the region that has most."""
    yield f"{'per region':22} {'all':>14} {'most':>14}  in"
    for counter in REGION_COUNTERS:
        values = counted[counter.name]
        core, side = divmod(int(values.argmax()), 2)
        whole = values.max() if counter.high else values.sum()
        yield (f"{counter.name:22} {whole:>14,} {values.max():>14,}  core {core}, {'RS'[side]}'s; {counter.unit}: "
               f"{counter.description}")


def _numbers(text: str) -> tuple[int, ...]:
    """``"0,3"`` as numbers."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise DeviceError(f"--mask must be numbers of cores with commas between them, such as 0,3, not "
                          f"{text!r}") from None


def _query(args: argparse.Namespace) -> tuple[Query, dict[str, Any]]:
    """The query of a circuit command. Without a window, as many ROWS as the circuit holds."""
    options = _given(args)
    return _declared(args, _default_window(args, options)), options


def _declared(args: argparse.Namespace, window: Any) -> Query:
    """The query over streams whose schemas are options."""
    r, s = (Schema.from_arrow(side, parse_schema(getattr(args, f"schema_{side}"))) for side in ("r", "s"))
    return Query.make(r, s, on=args.on, window=window, time=_pair(args, "time"), order=args.order)


def _default_window(args: argparse.Namespace, options: dict[str, Any]) -> Any:
    """The window that was given, or as many ROWS as the circuit of ``options`` holds."""
    given = {name: value for name, value in options.items() if name != "clock"}
    check_parameters(**{"cores": 4, "capacity": 1024, "fanout": 2, "fanin": 2} | given)
    window = _window(args)
    if window is None:
        options.setdefault("capacity", 1024)
        window = f"ROWS {options.get('cores', 4) * options['capacity']}"
    return window


def _verilog(args: argparse.Namespace) -> None:
    query, options = _query(args)
    try:
        from splitjoin.hw.verilog import TOP, sidecar, to_verilog
    except ModuleNotFoundError as error:
        raise ToolError(f"Verilog needs the Python package {error.name!r}, which is not installed; pip install "
                        f"'splitjoin[hw]'") from error
    plan = plan_for(query, **options)
    config = configure(query, plan, **options)
    words = settings(query, config, verified=plan.residual is not None)  # refuses what it cannot run
    described = {**sidecar(config), "settings": words,
                 "query": {"on": args.on, "explain": explain(query, **options).splitlines()}}
    folder = Path(args.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        contents = {f"{TOP}.v": to_verilog(config), f"{TOP}.json": json.dumps(described, indent=2) + "\n"}
        for name, content in contents.items():
            part = folder / f".{name}.part"
            part.write_text(content)
            part.replace(folder / name)
            print(folder / name)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from None


def _explain(args: argparse.Namespace) -> None:
    query, options = _query(args)
    print(explain(query, **options, passes=args.passes, family=args.family))


def _tune(args: argparse.Namespace) -> None:
    window = _window(args)
    print(tune(_declared(args, window), **tune_arguments(args)))


if __name__ == "__main__":
    sys.exit(main())
