"""The commands that run a join: ``join`` and ``sql``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa

from splitjoin.base.errors import DeviceError, OptionError
from splitjoin.base.explanation import Explanation
from splitjoin.circuit.registers import REGION_COUNTERS
from splitjoin.engines.device import Device
from splitjoin.engines.effectiveness import effectiveness_text
from splitjoin.engines.registry import device
from splitjoin.joins.explained import explain
from splitjoin.joins.join import join
from splitjoin.joins.sql import explain_sql, sql, statement_files
from splitjoin.lang.kind import Kind
from splitjoin.lang.order import parse_order
from splitjoin.lang.schema import SIDES
from splitjoin.rows.output import ResultNames, output_columns, output_schema
from splitjoin.rows.result import JoinResult
from splitjoin.tables.schema_text import parse_schema

from .options import (
    EXPLANATION_FORMATS,
    aggregate_argument,
    by_name,
    circuit_arguments,
    explanation_text,
    kind_arguments,
    pair,
    stated_columns,
    window_argument,
    window_or_default,
)
from .pipes import FORMATS, STANDARD, check_schema, check_target, once, read_source, reporting, write_target

#: Devices that are no circuit.
_HOST = ("cpu", "golden", "gpu")
#: Rows that are printed of a result that goes nowhere else.
_ROWS = 20
#: A table of a statement, and how it is given.
_TABLE = "a table", "NAME=FILE, such as trades=trades.parquet"


def run_join(args: argparse.Namespace) -> None:
    """Write the result of a join, or of ``sql``'s statement, over tables, or print its first rows, and print the
    counters of the run. With ``--explain`` or ``--analyze``, only print how the tables are joined.
    """
    if args.run is run_join and (args.explain or args.analyze):
        if args.output is not None or args.format in FORMATS:
            raise OptionError("--explain and --analyze write no rows; leave -o out, and --format, or write one of "
                              f"{', '.join(EXPLANATION_FORMATS)}")
        if args.explain and args.analyze:
            raise OptionError("--explain runs nothing, and --analyze runs the join; leave one of them out")
        print(explanation_text(_explained(args), args.format))
        return
    if args.format in EXPLANATION_FORMATS:
        raise OptionError(f"--format {args.format} is for --explain and --analyze; a result has the formats "
                          f"{' and '.join(FORMATS)}")
    if args.output is None and args.format is not None:
        args.output = STANDARD
    with reporting(args.output) as out:
        _run(args, out)


def _run(args: argparse.Namespace, out: IO[str]) -> None:
    """`run_join` with the result, if it is for standard output, to ``out``."""
    if args.output is not None:
        check_target(args.output, args.format, out)
    result = _result(args, window_argument(args), pair(args, "time"), _device(args))
    if args.output == STANDARD:
        write_target(result.table, args.format, out)
    elif args.output is None:
        print(f"{result.text(_ROWS)}\n")
    name = "pairs" if args.run is run_sql or (args.how == "inner" and not args.aggregate) else "rows"
    print(f"{name:22} {result.num_rows:,}")
    for label, value in _counted(result):
        print(f"{label:22} {value}")
    if result.region_counters is not None and result.counters.get("cycles"):
        print("\n".join(_region_table(result.region_counters)))


def _counted(result: JoinResult) -> Iterator[tuple[str, str]]:
    """The engine, and what was counted: a small circuit, or a statement that joins nothing, counts less than others."""
    counters = result.counters
    cycles = counters.get("cycles")
    if cycles:
        yield "cycles", f"{cycles:,}"
    if "comparisons" in counters:
        yield "comparisons", f"{counters['comparisons']:,}"
    if result.plan:
        yield "engine", result.plan
    if "candidates" in counters:
        yield "pairs looked at", f"{counters['candidates']:,}"
    if (share := result.effectiveness) is not None:
        yield "results per comparison", effectiveness_text(share)
    if cycles and "comparisons" in counters:
        yield "comparisons per cycle", f"{counters['comparisons'] / cycles:.3f}"
    for name, label in (("input_stalls", "cycles input waited"), ("output_stalls", "cycles output waited")):
        if cycles and name in counters:
            yield label, f"{counters[name]:,}"


def _device(args: argparse.Namespace) -> Device:
    """The device that the options choose, with those of them that are its own."""
    options: dict[str, Any] = circuit_arguments(args)
    mine = {name: getattr(args, name) for name in ("engine", "threads") if getattr(args, name) is not None}
    kind = args.device.partition(":")[0]
    wrong = [f"--{name}" for name in mine if kind != "cpu" and (kind, name) != ("gpu", "threads")]
    if wrong:
        raise DeviceError(f"the device {args.device!r} has no {', '.join(wrong)}; leave it out, or choose --device cpu")
    # The golden model takes a number of cores, which order inner(n) and masks depend on.
    if (args.device == "golden" and "cores" in options and parse_order(args.order).kind != "inner"
            and args.mask is None):
        raise DeviceError("the device 'golden' uses --cores for the order inner(n) and --mask only; leave it out, or "
                          "choose --device sim or pysim")
    if "region_counters" in options and kind in _HOST:
        raise DeviceError(f"the device {args.device!r} has no regions that count; choose --device sim or pysim")
    extra = [f"--{name.replace('_', '-')}" for name in options if kind in _HOST and (kind, name) != ("golden", "cores")]
    if extra:
        raise DeviceError(f"the device {args.device!r} is no circuit and has no {', '.join(extra)}; choose --device "
                          f"sim or pysim")
    options |= mine
    if args.mask is not None:
        if kind in _HOST and kind != "golden":
            raise DeviceError(f"the device {args.device!r} has no cores to mask; choose --device sim or pysim")
        options["masked"] = _numbers(args.mask)
    if args.trace is not None:
        if args.device not in ("sim", "pysim"):
            raise DeviceError(f"the device {args.device!r} has no waveforms to write; choose --device sim or pysim, or "
                              f"leave out --trace")
        options["trace"] = args.trace
    if args.device == "sim":
        options["progress"] = True
    if args.design is not None:
        if not args.device.startswith("uart:"):
            raise DeviceError(f"--design tells the circuit of a board, and the device {args.device!r} is none; leave "
                              f"it out, or choose --device uart:PORT")
        if options:
            raise DeviceError(f"the design has the parameters of the circuit; leave out "
                              f"{', '.join(f'--{name}' for name in options)}, or --design")
        options["design"] = args.design
    return device(args.device, **options)


def run_sql(args: argparse.Namespace) -> None:
    """Run a statement like `run_join`; with ``--explain``, only print its stages."""
    if not args.explain:
        run_join(args)
        return
    unused = ("output", "format", "engine", "threads", "mask", "trace", "design")
    wrong = [f"--{name}" for name in unused if getattr(args, name) is not None]
    wrong += ["--device"] if args.device != "cpu" else []
    wrong += ["--region-counters"] if args.region_counters else []
    if wrong:
        raise DeviceError(f"--explain runs nothing, on no device, and has no {', '.join(wrong)}; leave it out")
    options = circuit_arguments(args)
    window = window_or_default(args, options)
    names = _named(args)
    stated = stated_columns(args, list(names))
    tables = dict[str, pa.Schema]()
    for name, text in names.items():
        mine = stated.of(name)
        found = parse_schema(text, mine.types)
        mine.check_types(found, csv=text.lower().endswith(".csv"))
        tables[name] = mine.schema(found)
    stated.check()
    print(explain_sql(args.text, tables, window=window, time=pair(args, "time"), order=args.order,
                      windowed=window_argument(args) is not None, **options))


def _named(args: argparse.Namespace) -> dict[str, str]:
    """The tables of a statement by name: the files that it names itself, and those given."""
    return statement_files(args.text) | by_name(args.named, *_TABLE)


def _result(args: argparse.Namespace, window: Any, time: Any, chosen: Device) -> JoinResult:
    """The result of ``join`` or ``sql``; its rows are in the output, if that is a file."""
    to = None if args.output == STANDARD else args.output
    if args.run is run_sql:
        names = _named(args)
        once(list(names.values()))
        stated = stated_columns(args, list(names))
        tables = {name: read_source(path, stated.of(name)) if path == STANDARD or stated else path
                  for name, path in names.items()}
        stated.check()
        return sql(args.text, tables=tables, window=window, time=time, order=args.order, device=chosen,
                   sort=args.sort, to=to)
    r, s, naming = _sources(args)
    kind = Kind.make(**kind_arguments(args), k=args.k, ties=args.ties, order=parse_order(args.order),
                     timed=time is not None)
    aggregates = aggregate_argument(args)
    chosen_s = pa.schema([]) if aggregates else s.schema
    columns = output_columns(r.schema, chosen_s, ResultNames.of(**naming), kind)
    if args.output is not None:
        check_schema(output_schema(columns), args.output, args.format)
    return join(r, s, window=window, time=time, **naming, device=chosen, to=to, aggregate=aggregates,
                **_arguments(args))


def _explained(args: argparse.Namespace) -> Explanation:
    """The explanation by `splitjoin.explain` of the tables and options of ``join``."""
    r, s, names = _sources(args)
    return explain(r, s, analyze=args.analyze, window=window_argument(args), time=pair(args, "time"), **names,
                   device=_device(args), aggregate=aggregate_argument(args), **_arguments(args))


def _sources(args: argparse.Namespace) -> tuple[Any, Any, dict[str, Any]]:
    """The tables of ``join``, and the arguments that name the columns of its result."""
    once([args.r, args.s])
    select: Any = None if args.select is None else [re.split(r"\s+as\s+", name.strip(), flags=re.IGNORECASE)
                                                    for name in args.select.split(",")]
    if select is not None and any(len(parts) > 1 for parts in select):
        if any(len(parts) > 2 for parts in select) or len({parts[0] for parts in select}) < len(select):
            raise OptionError(f"--select must hold different names, or NAME AS NEW, with commas between them, not "
                              f"{args.select!r}")
        select = {parts[0]: parts[1] if len(parts) > 1 else None for parts in select}
    elif select is not None:
        select = [parts[0] for parts in select]
    suffixes = None if args.suffixes is None else args.suffixes.split(",")
    stated = stated_columns(args, SIDES)
    tables = [read_source(name, stated.of(side)) for side, name in zip(SIDES, (args.r, args.s), strict=True)]
    stated.check()
    return tables[0], tables[1], {"select": select, "suffixes": suffixes}


def _arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The options of ``join`` that are its arguments, as they are."""
    return {"on": args.on, "order": args.order, "sort": args.sort, **kind_arguments(args), "k": args.k,
            "ties": args.ties, "tolerance": args.tolerance}


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise DeviceError(f"--mask must be numbers of cores with commas between them, such as 0,3, not "
                          f"{text!r}") from None


def _region_table(counted: dict[str, Any]) -> Iterator[str]:
    """A line for each region counter: the sum (or maximum) over all regions, and the greatest region."""
    yield f"{'per region':22} {'all':>14} {'most':>14}  in"
    for counter in REGION_COUNTERS:
        values = counted[counter.name]
        core, side = divmod(int(values.argmax()), 2)
        whole = values.max() if counter.high else values.sum()
        yield (f"{counter.name:22} {whole:>14,} {values.max():>14,}  core {core}, {'RS'[side]}'s; {counter.unit}: "
               f"{counter.description}")
