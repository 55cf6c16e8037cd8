"""The command ``verilog``: a query's circuit as Verilog, and the files beside it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..circuit.parameters import CircuitParameters
from ..circuit.query_circuit import chosen_circuit
from ..errors import InputError, ToolError
from ..explain import explain, window_text
from ..export.ip import fusesoc_core, ip_xact, system_rdl
from ..export.litex import litex_files
from ..export.testbench import testbench_files
from ..export.vectors import random_arrivals, vectors
from ..export.wire import wire_helpers
from ..files import replacing
from .circuits import circuit_query, warn_that_pairs_leave
from .options import aggregate_argument

__all__ = ["verilog_options", "write_circuit"]

_TOPS = ("streams", "axi")
_TESTBENCHES = ("cocotb", "verilog")
#: What a user must know of a circuit that does not decide the whole condition.
_VERIFIED = "This circuit finds candidates; on each of them the host must check:"
#: The random tuples of a testbench are a function of this.
_SEED = 1


def verilog_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``verilog`` that say what to write."""
    group = parser.add_argument_group("files")
    group.add_argument("--top", choices=_TOPS, default="streams",
                       help="ports of the top module: valid/ready streams and a register bus, or AXI4-Stream and "
                            "AXI4-Lite (%(default)s)")
    group.add_argument("--testbench", choices=_TESTBENCHES,
                       help="also write a testbench that checks itself against the golden model on random tuples, a "
                            "Makefile that runs it with Verilator or Icarus Verilog, and splitjoin_wire.py, which "
                            "packs and unpacks records")
    group.add_argument("--testbench-tuples", type=int, metavar="N", default=200,
                       help="tuples of each stream in the testbench (%(default)s)")
    group.add_argument("-o", "--output", metavar="DIR", required=True,
                       help="folder for splitjoin.v, splitjoin.json, splitjoin.vlt (lint waivers for Verilator), and "
                            "with --top axi splitjoin_axi.v; made if it does not exist")


def write_circuit(args: argparse.Namespace) -> None:
    """Write a query's circuit as Verilog, and the configuration that it was generated from beside it."""
    query, options = circuit_query(args)
    if args.testbench_tuples < 1:
        raise InputError(f"--testbench-tuples must be 1 or more, not {args.testbench_tuples}")
    try:
        from splitjoin.hw.verilog import AXI_TOP, TOP, WAIVERS, header, sidecar, to_axi_verilog, to_verilog
    except ModuleNotFoundError as error:
        raise ToolError(f"Verilog needs the Python package {error.name!r}, which is not installed; pip install "
                        f"'splitjoin[hw]'") from error
    parameters = CircuitParameters(**options)
    circuit = chosen_circuit(query, parameters)
    plan, config, words = circuit.plan, circuit.config, circuit.settings  # raises for queries that circuits cannot run
    warn_that_pairs_leave(circuit)
    given = None  # the testbench's vectors, before the circuit, which takes longer
    if args.testbench is not None:
        given = vectors(circuit.query, plan, config, random_arrivals(query, args.testbench_tuples, _SEED))
    top = AXI_TOP if args.top == "axi" else TOP
    described = {**sidecar(config, top), "settings": words,
                 "query": {"on": args.on, "how": args.how, "aggregates": aggregate_argument(args) or {},
                           "verified": None if plan.residual is None else str(plan.residual),
                           "explain": explain(query, **options).splitlines()}}
    texts = {f"{TOP}.v": to_verilog(config)} | ({f"{AXI_TOP}.v": to_axi_verilog(config)} if args.top == "axi" else {})
    said = [f"Query: windows of R {window_text(query, 'r')}, of S {window_text(query, 's')}; order {query.order}; "
            f"condition {args.on}"]
    if plan.residual is not None:
        said.append(f"{_VERIFIED} {plan.residual}")
    if config.folds:
        said.append(f"It folds {_folded(args)}: items of kind PAIR on side 0 carry parts of states, no pairs")
    queried = header(config, said)
    contents = {name: text.replace(header(config), queried, 1) for name, text in texts.items()}
    contents[f"{TOP}.vlt"] = WAIVERS.read_text(encoding="utf-8")
    if given is not None:
        contents |= testbench_files(args.testbench, config, given, list(texts), top)
        contents[f"{TOP}_wire.py"] = wire_helpers(config)
    if args.top == "axi":
        contents |= {f"{top}.core": fusesoc_core(top, list(texts), f"{TOP}.vlt", "testbench.v" if args.testbench ==
                                                 "verilog" else None),
                     "component.xml": ip_xact(top, described["ports"], list(texts)), f"{top}.rdl": system_rdl(top),
                     **litex_files(config, list(texts), top, circuit.query.order.kind, args.testbench == "verilog")}
    contents[f"{TOP}.json"] = json.dumps(described, indent=2) + "\n"
    _write(Path(args.output), contents)
    if plan.residual is not None:
        print(f"{_VERIFIED} {plan.residual}; `splitjoin explain` says why", file=sys.stderr)


def _folded(args: argparse.Namespace) -> str:
    """The text of the aggregates that the circuit folds, or of the kind of join whose deciding pairs it gives."""
    aggregates = aggregate_argument(args)
    if aggregates is None:
        return f"what decides a join of kind {args.how}"
    return ", ".join(f"{name} = {text}" for name, text in aggregates.items())


def _write(folder: Path, contents: dict[str, str]) -> None:
    try:
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as part:
                part.write_text(content, encoding="utf-8")
            print(path)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from None
