"""Groups of options that commands share, and the arguments that their parsed values make."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

from splitjoin.base.errors import SchemaError, WindowError
from splitjoin.base.explanation import Explanation
from splitjoin.circuit.architectures import ARCHITECTURES
from splitjoin.circuit.parameters import CircuitParameters, declared, offered
from splitjoin.engines.registry import DEVICES
from splitjoin.lang.windows import closed_windows
from splitjoin.tables.schema_text import parse_schema
from splitjoin.tables.stated import Stated

from .pipes import FORMATS

#: Forms of an explanation.
EXPLANATION_FORMATS = ("text", "json", "html")

#: Digits that a frequency may have.
_DIGITS = 12


def query_options(parser: argparse.ArgumentParser, *, window_required: bool, on: bool = True,
                  required: bool = True, window_default: str = "as many ROWS as the circuit holds") -> None:
    """Add the options of the query, except the schemas; without ``on`` if a statement has the condition, and not
    ``required`` if a design may have it. ``window_default``: the window where none is given, in words.
    """
    group = parser.add_argument_group("query")
    if on:
        group.add_argument("--on", metavar="EXPR", required=required, help="the join condition over r and s")
    group.add_argument("--window", metavar="W", help="both streams' window" + (
        "" if window_required else f" ({window_default})"))
    group.add_argument("--window-r", metavar="W", help="R's window, instead of --window")
    group.add_argument("--window-s", metavar="W", help="S's window, instead of --window")
    group.add_argument("--closed", metavar="ENDS", help="of RANGE windows: which ends of the times that a tuple of R "
                                                        "meets belong to them, both, left, right or neither (both)")
    group.add_argument("--time", metavar="COL", help="the event-time column of both streams (none: tuples arrive "
                                                     "alternately)")
    group.add_argument("--time-r", metavar="COL", help="R's time column, where the names differ")
    group.add_argument("--time-s", metavar="COL", help="S's time column, where the names differ")
    group.add_argument("--order", default="total", help="none, outer(N), inner(n), total (%(default)s), or "
                                                             "of whole tables left")
    parser.set_defaults(window_required=window_required)


def sort_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that sorts the inputs."""
    parser.add_argument("--sort", action="store_true", help="sort both tables by their time columns first")


def input_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how columns of the tables are read."""
    parser.add_argument("--types", metavar="SCHEMA", help="types of columns of CSV files, such as "
                                                          "'zip:string, price:decimal(9, 2)'")
    parser.add_argument("--null-values", metavar="COL=VALUE", action="append",
                        help="a value that stands for NULL, such as ts=18446744073709551615; may be given several "
                             "times")


def stated_columns(args: argparse.Namespace, names: Sequence[str]) -> Stated:
    """The options of `input_options` for the tables ``names``."""
    nulls = dict[str, list[str]]()
    for text in args.null_values or ():
        column, equals, value = text.partition("=")
        if not equals or not column:
            raise SchemaError(f"a value that stands for NULL must be given as COL=VALUE, such as price=-1, not "
                              f"{text!r}")
        nulls.setdefault(column, []).append(value)
    types = {} if args.types is None else {field.name: field.type for field in parse_schema(args.types)}
    return Stated(types, nulls, names)


def partner_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of as-of joins of whole tables."""
    parser.add_argument("--k", type=int, metavar="K", help="of as-of joins: the most partners of a row, the nearest "
                                                           "first (1); more need --order left or none")
    parser.add_argument("--ties", metavar="RULE", help="of --direction nearest: which of equally near partners comes "
                                                       "first, backward or last (backward); last needs --order left "
                                                       "or none")
    parser.add_argument("--tolerance", metavar="SPAN", help="of as-of joins: how far a partner may be, such as 5, 0.5 "
                                                            "or '15 MINUTES'")


def kind_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the kind of join."""
    group = parser.add_argument_group("kind of join")
    group.add_argument("--how", default="inner", metavar="KIND",
                       help="inner, left, right, full, semi, anti, asof or asof_left (%(default)s)")
    group.add_argument("--direction", metavar="D", help="of as-of joins: backward, forward or nearest (backward)")
    group.add_argument("--no-exact", action="store_false", dest="allow_exact", default=None,
                       help="of as-of joins: no partners at equal times")
    group.add_argument("--aggregate", metavar="NAME=AGG", action="append",
                       help="instead of pairs, a row for each tuple of r with aggregates of its partners, such as "
                            "'n=count(*)' or 'high=max(s.price)'; may be repeated")


def run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a device, and those of the devices."""
    parser.add_argument("--device", type=device_spec, metavar="DEVICE", default="cpu",
                        help="cpu: compiled nested loops and indexes; gpu: nested loops on an NVIDIA GPU, gpu:1 on "
                             "another one; golden: the plain reference model; sim: the circuit, cycle-accurate, by "
                             "Verilator; pysim: the same on Amaranth's simulator, slow; daemon: a device that the "
                             "daemon leases; uart:PORT: a board, or `splitjoin emulate`, at a serial port; xdma:NODE: "
                             "a circuit with AXI ports behind DMA, such as xdma:/dev/xdma0; zynq:BUFFER: the same "
                             "behind a Zynq's AXI DMA (%(default)s)")
    parser.add_argument("--design", metavar="FILE", help="design.json of the board's circuit, as `splitjoin build` "
                                                         "wrote it, instead of the circuit's parameters; for uart")
    engine = parser.add_argument_group("CPU engine")
    engine.add_argument("--engine", choices=("auto", "index", "sorted", "nested", "sliding", "key-oij", "scale-oij"),
                        help="how matches are found: by an index, by sorted runs, by nested loops, or by what is "
                             "cheapest (auto); of aggregates by equal keys, how they are folded without pairs: "
                             "sliding (auto), key-oij, scale-oij")
    engine.add_argument("--threads", type=_threads, metavar="T", help="threads that share a batch, at most (auto: as "
                                                                      "many as pay); of gpu too")
    circuit_options(parser)
    parser.add_argument("--mask", metavar="CORES", help="numbers of cores, with commas between them, that take no "
                                                        "part: the pairs stored in them are lost (none)")
    parser.add_argument("--trace", metavar="FILE", help="the waveforms of the run, a .fst or .vcd file; of the device "
                                                        "sim, and .vcd of pysim")


def _threads(text: str) -> int | Literal["auto"]:
    return "auto" if text == "auto" else int(text)


_threads.__name__ = "number or 'auto'"  # in argparse's message


def hertz(text: str) -> int:
    """A frequency in whole Hz, such as 13000000, 13_000_000 or 13e6."""
    try:
        value = Decimal(text)
        if value > 0 and value.adjusted() < _DIGITS and value == int(value):
            return int(value)
    except (ArithmeticError, ValueError):  # no number, and NaN
        pass
    raise argparse.ArgumentTypeError(f"must be a whole number of Hz above 0, such as 13000000 or 13e6, not {text!r}")


def output_options(parser: argparse.ArgumentParser, *, explained: bool = False) -> None:
    """Add the options of where the result goes. ``explained``: ``--format`` is that of an explanation, too."""
    parser.add_argument("-o", "--output", metavar="OUT",
                        help="the result: a .parquet, .csv or .arrow file, or - for standard output")
    parser.add_argument("--format", choices=FORMATS + (EXPLANATION_FORMATS if explained else ()),
                        help="of standard output: an Arrow IPC stream, or CSV (arrow)" + (
                            "; of --explain and --analyze: text, JSON, or a page of HTML (text)" if explained else ""))


def explanation_text(explanation: Explanation, form: str | None) -> str:
    """``explanation`` in a form of `EXPLANATION_FORMATS`, or as text."""
    return (explanation.to_json(indent=2) if form == "json" else explanation.html() if form == "html" else
            str(explanation))


def device_spec(text: str) -> str:
    """A device's name, or ``name:target``."""
    if text.partition(":")[0] not in DEVICES:
        raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(DEVICES)})")
    return text


def schema_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the options of the streams' schemas, for commands that read no tables."""
    for side in ("r", "s"):
        parser.add_argument(f"--schema-{side}", metavar="SCHEMA", required=required,
                            help=f"{side.upper()}'s columns: a .parquet, .csv or .arrow file, or 'ts:int64, x:int32, "
                                 f"y:float32?' (? = may hold NULL)")


def circuit_options(parser: argparse.ArgumentParser, *, baselines: bool = False) -> None:
    """Add the parameters of circuits; with ``baselines``, also those of circuits to be compared with."""
    group = parser.add_argument_group("circuit")
    for found, parameter in declared(CircuitParameters) if baselines else offered(CircuitParameters):
        flag, said, choices = f"--{found.name.replace('_', '-')}", parameter.help, parameter.choices
        if found.name == "architecture" and baselines:
            choices = tuple(ARCHITECTURES)
            said += "; or a baseline, to be compared with: " + ", ".join(
                name for name, one in ARCHITECTURES.items() if one.baseline)
        if parameter.metavar is None:
            group.add_argument(flag, action="store_true", default=None, help=said)
        else:
            group.add_argument(flag, type=parameter.parse, metavar=parameter.metavar, choices=choices,
                               help=f"{said} ({parameter.default})")


def circuit_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The parameters of circuits that were given."""
    given = {found.name: getattr(args, found.name, None) for found, _ in declared(CircuitParameters)}
    return {name: value for name, value in given.items() if value is not None}


def pair(args: argparse.Namespace, name: str) -> Any:
    """``--name``, or ``--name-r`` with ``--name-s``; None if none was given."""
    both, r, s = getattr(args, name), getattr(args, f"{name}_r"), getattr(args, f"{name}_s")
    if both is not None and (r is not None or s is not None):
        raise WindowError(f"give either --{name}, or --{name}-r and --{name}-s, not both")
    if (r is None) != (s is None):
        raise WindowError(f"--{name}-r and --{name}-s go together")
    return both if r is None else (r, s)


def kind_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The options of the kind of join, as `splitjoin.join` takes them."""
    return {"how": args.how, "direction": args.direction, "allow_exact": args.allow_exact}


def aggregate_argument(args: argparse.Namespace) -> dict[str, str] | None:
    """The aggregates by name; None if there are none."""
    return by_name(args.aggregate or (), "an aggregate", "NAME=AGG, such as 'n=count(*)'") or None


def by_name(given: Sequence[str], one: str, form: str) -> dict[str, str]:
    """The texts ``NAME=VALUE`` that were ``given`` as a mapping; ``one`` and the ``form`` it must have are for errors.
    Raises `SchemaError` for another text, and for a name that is given twice.
    """
    found: dict[str, str] = {}
    for text in given:
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or not value:
            raise SchemaError(f"{one} must be given as {form}, not {text!r}")
        if name in found:
            raise SchemaError(f"the {one.partition(' ')[2]} {name!r} is given twice; give it once")
        found[name] = value
    return found


def window_argument(args: argparse.Namespace) -> Any:
    """The window that was given; None if none was, and none is needed."""
    window = pair(args, "window")
    if window is None and args.window_required:
        raise WindowError("a window is needed, such as --window 'ROWS 4096'")
    return closed_windows(window, args.closed)


def window_or_default(args: argparse.Namespace, options: dict[str, Any]) -> Any:
    """The window that was given, or as many ROWS as the circuit of ``options`` holds."""
    parameters = CircuitParameters(**{"capacity": 1024} | options)  # raises for parameters that no circuit can have
    window = window_argument(args)
    if window is None:
        options.setdefault("capacity", 1024)
        window = f"ROWS {parameters.cores * options['capacity']}"
    return window
