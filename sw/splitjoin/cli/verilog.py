"""The command ``verilog``: a query's circuit as Verilog, and the files beside it."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Collection
from pathlib import Path

from splitjoin.base.disk import replacing
from splitjoin.base.errors import InputError, OptionError, UnsupportedError, check, needing
from splitjoin.base.progress import tell
from splitjoin.base.svg import themed
from splitjoin.circuit.export.descriptions import fusesoc_core, ip_xact, system_rdl
from splitjoin.circuit.export.diagram import diagram
from splitjoin.circuit.export.header import wire_header
from splitjoin.circuit.export.helpers import wire_helpers
from splitjoin.circuit.export.rows import described_rows
from splitjoin.circuit.export.testbench import testbench_files
from splitjoin.circuit.export.vectors import random_arrivals, vectors
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import chosen_circuit
from splitjoin.joins.circuit_component import query_description
from splitjoin.joins.explain import window_text
from splitjoin.tables import target_of

from .circuits import circuit_query, warn_that_pairs_leave
from .options import aggregate_argument

#: Units of `timescale, each a thousand times the next.
_SECONDS = ("s", "ms", "us", "ns", "ps", "fs")
_TOPS = ("streams", "axi")
_TESTBENCHES = ("cocotb", "verilog")
#: What a user must know of a circuit that does not decide the whole condition.
_VERIFIED = "This circuit finds candidates; on each of them the host must check:"
#: The texts that ``--hide-condition`` leaves out.
_HIDDEN = "(not shown)"
#: The most tuples of each stream in a testbench: a thousand times the default is still written within minutes.
_MOST_TUPLES = 100_000
#: The random tuples of a testbench are a function of this.
_SEED = 1
#: The number of cores from which on writing a circuit takes seconds, so that a terminal is told how long; and how many
#: cores are written in a second.
_MANY_CORES, _CORES_A_SECOND = 64, 15


def verilog_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``verilog`` that say what to write."""
    group = parser.add_argument_group("files")
    group.add_argument("--top", choices=_TOPS, default="streams",
                       help="ports of the top module: valid/ready streams and a register bus, or AXI4-Stream and "
                            "AXI4-Lite (%(default)s)")
    group.add_argument("--testbench", choices=_TESTBENCHES,
                       help="also write a testbench that checks itself against the golden model on random tuples, a "
                            "Makefile that runs it with Verilator or Icarus Verilog, and NAME_wire.py and NAME_wire.h, "
                            "which pack rows into records and unpack items")
    group.add_argument("--testbench-tuples", type=int, metavar="N", default=200,
                       help="tuples of each stream in the testbench (%(default)s)")
    group.add_argument("--hide-condition", action="store_true",
                       help="leave the texts of condition and aggregates out of the files, for Verilog that goes to "
                            "others; the numbers of the comparisons stay, as settings in splitjoin.json")
    group.add_argument("--timescale", type=_timescale, metavar="UNIT/PRECISION", default="1ns/1ps",
                       help="time unit and precision of the modules, such as 1ns/1ps, with which a bench's clock of "
                            "10 ns can run; none for no directive (%(default)s)")
    group.add_argument("--diagram", metavar="FILE.svg",
                       help="also write the block diagram of the circuit, with kinds, widths and cells on ECP5")
    group.add_argument("-o", "--output", metavar="DIR", required=True,
                       help="folder for NAME.v, NAME.json, NAME.vlt (lint waivers for Verilator), and with --top axi "
                            "NAME_axi.v; made if it does not exist")
    group.add_argument("--name", metavar="NAME", default="splitjoin",
                       help="name of the top module, with which the names of all modules and files of this circuit "
                            "begin, so that a design can have several circuits (%(default)s)")


def write_circuit(args: argparse.Namespace) -> None:
    """Write a query's circuit as Verilog, and the configuration that it was generated from beside it."""
    query, options = circuit_query(args)
    if not 1 <= args.testbench_tuples <= _MOST_TUPLES:
        raise InputError(f"--testbench-tuples must be 1 to {_MOST_TUPLES}, not {args.testbench_tuples}; the golden "
                         f"model answers each of them before the testbench is written")
    with needing("Verilog needs", "hw"):
        from splitjoin_hw.verilog import WAIVERS, axi_top, check_name, header, sidecar, to_axi_verilog, to_verilog
    if args.diagram is not None and not args.diagram.lower().endswith(".svg"):
        raise OptionError(f"--diagram writes SVG, to a file whose name ends in .svg, not {args.diagram!r}; give "
                          f"another name")
    name, axi, folder = check_name(args.name), args.top == "axi", Path(args.output)
    parameters = CircuitParameters(**options)
    check("memory of Verilog", parameters.memory, parameters.memory != "sdram",
          "bram or axi; `splitjoin build` makes bitstreams with sdram")
    check("memory with --testbench and --top streams", parameters.memory,
          parameters.memory == "bram" or args.testbench is None or axi,
          "bram, as this testbench has no memory; --top axi has one, in the testbench too")
    if axi and parameters.routed:
        raise UnsupportedError(f"--top axi has one port to memory, but {parameters.cores} cores have one each; give "
                               f"--top streams, whose ports they are (m__0 and so on), or --cores 1")
    circuit = chosen_circuit(query, parameters)
    plan, config = circuit.plan, circuit.config
    warn_that_pairs_leave(circuit)
    top = axi_top(name) if axi else name
    # Raises for queries that circuits cannot run.
    described = sidecar(config, top, axi=axi) | query_description(query, circuit, options, args.on)
    if args.hide_condition:
        del described["query"]
        for row in (row for rows in ("values", "results") for row in described.get("state", {}).get(rows, [])):
            row["of"] = _HIDDEN
    given = None  # the testbench's vectors, before the circuit, which takes longer
    if args.testbench is not None:
        sample = random_arrivals(query, args.testbench_tuples, _SEED)
        given = vectors(query, circuit, sample)
    if config.cores >= _MANY_CORES:
        tell(f"the circuit of {config.cores} cores takes about {config.cores // _CORES_A_SECOND} s")
    texts = {f"{name}.v": to_verilog(config, name)} | ({f"{top}.v": to_axi_verilog(config, name)} if axi else {})
    said = [f"Query: windows of R {window_text(query, 'r')}, of S {window_text(query, 's')}; order {query.order}; "
            f"condition {_HIDDEN if args.hide_condition else args.on}"]
    if plan.residual is not None:
        said.append(f"{_VERIFIED} {_HIDDEN if args.hide_condition else plan.residual}")
    if config.folds:
        folded = _HIDDEN if args.hide_condition else _folded(args)
        said.append(f"It folds {folded}: items of kind PAIR on side 0 carry parts of states, no pairs")
    queried = header(config, said) + ("" if args.timescale == "none" else f"\n`timescale {args.timescale}\n")
    contents = {file: text.replace(header(config), queried, 1) for file, text in texts.items()}
    contents[f"{name}.vlt"] = WAIVERS.read_text(encoding="utf-8")
    if given is not None:
        contents |= testbench_files(args.testbench, config, given, list(texts), top, axi=axi)
        rows = "the condition is not shown" if args.hide_condition else described_rows(query, circuit, sample)
        contents |= {f"{name}_wire.py": wire_helpers(config, rows), f"{name}_wire.h": wire_header(config, rows, name)}
    if axi:
        bench = "testbench.v" if args.testbench == "verilog" else None
        contents[f"{top}.core"] = fusesoc_core(top, list(texts), f"{name}.vlt", bench)
        if config.sources == 1:
            contents["component.xml"] = ip_xact(top, config, described["ports"], list(texts))
        contents[f"{top}.rdl"] = system_rdl(top, config)
    contents[f"{name}.json"] = json.dumps(described, indent=2) + "\n"
    _check_alone(folder, name, contents)
    _write(folder, contents)
    if args.diagram is not None:
        drawing = Path(args.diagram)
        _write(drawing.parent, {drawing.name: f"{themed(diagram(config, clock=plan.clock))}\n"})
    if plan.residual is not None:
        print(f"{_VERIFIED} {plan.residual}; `splitjoin explain` says why", file=sys.stderr)


def _timescale(text: str) -> str:
    """A time unit and a precision that is no longer, as the directive `timescale takes them; or "none"."""
    found = re.fullmatch(r"(1|10|100)\s*([munpf]?s)\s*/\s*(1|10|100)\s*([munpf]?s)", text)
    if text == "none":
        return text
    if found is not None:
        unit, precision = (len(found[n]) - 3 * _SECONDS.index(found[n + 1]) for n in (1, 3))
        if precision <= unit:
            return "{}{}/{}{}".format(*found.groups())
    raise argparse.ArgumentTypeError(f"must be a unit of time and a precision that is no longer, each 1, 10 or 100 of "
                                     f"s, ms, us, ns, ps or fs, such as 1ns/1ps, or none, not {text!r}")


def _folded(args: argparse.Namespace) -> str:
    """The text of the aggregates that the circuit folds, or of the kind of join whose deciding pairs it gives."""
    aggregates = aggregate_argument(args)
    if aggregates is None:
        return f"what decides a join of kind {args.how}"
    return ", ".join(f"{name} = {text}" for name, text in aggregates.items())


def _check_alone(folder: Path, name: str, contents: Collection[str]) -> None:
    """Raise `InputError` if ``folder`` has another circuit's files of the same names, such as its testbench."""
    shared = [file for file in contents if not file.startswith((f"{name}.", f"{name}_")) and (folder / file).exists()]
    others = sorted(path.stem for path in folder.glob("*.vlt") if path.stem != name) if shared else []
    if others:
        raise InputError(f"a circuit with AXI ports or a testbench needs a folder of its own, but {folder} has "
                         f"{', '.join(shared)} of the circuit {others[0]!r}; give another folder by -o")


def _write(folder: Path, contents: dict[str, str]) -> None:
    try:
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target_of(path)) as file:
                file.write(content.encode())
            print(path)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from None
