"""The commands about circuits, which run nothing: ``verilog``, ``explain`` and ``tune``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..circuit.lowering import configure, plan_for, settings
from ..circuit.parameters import CircuitParameters
from ..errors import InputError, ToolError
from ..explain import explain
from ..files import replacing
from ..lang.query import Query
from ..lang.schema import Schema
from ..schema_text import parse_schema
from ..tuner import tune
from ..tuner.options import tune_arguments
from .options import circuit_arguments, pair, window_argument, window_or_default

__all__ = ["circuit_query", "explain_circuit", "propose_circuit", "write_circuit"]


def write_circuit(args: argparse.Namespace) -> None:
    """Write a query's circuit as Verilog, and the configuration that it was generated from beside it."""
    query, options = circuit_query(args)
    try:
        from splitjoin.hw.verilog import TOP, sidecar, to_verilog
    except ModuleNotFoundError as error:
        raise ToolError(f"Verilog needs the Python package {error.name!r}, which is not installed; pip install "
                        f"'splitjoin[hw]'") from error
    parameters = CircuitParameters(**options)
    plan = plan_for(query, parameters)
    config = configure(query, plan, parameters)
    words = settings(query, config, verified=plan.residual is not None)  # raises for queries that circuits cannot run
    described = {**sidecar(config), "settings": words,
                 "query": {"on": args.on, "explain": explain(query, **options).splitlines()}}
    folder = Path(args.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        contents = {f"{TOP}.v": to_verilog(config), f"{TOP}.json": json.dumps(described, indent=2) + "\n"}
        for name, content in contents.items():
            with replacing(folder / name) as part:
                part.write_text(content)
            print(folder / name)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from None


def explain_circuit(args: argparse.Namespace) -> None:
    """Print how a query's condition maps onto a circuit."""
    query, options = circuit_query(args)
    print(explain(query, **options, passes=args.passes, family=args.family))


def propose_circuit(args: argparse.Namespace) -> None:
    """Print which circuit suits a query and a board."""
    window = window_argument(args)
    print(tune(_declared(args, window), **tune_arguments(args)))


def circuit_query(args: argparse.Namespace) -> tuple[Query, dict[str, Any]]:
    """The query of a circuit command. Without a window, as many ROWS as the circuit holds."""
    options = circuit_arguments(args)
    return _declared(args, window_or_default(args, options)), options


def _declared(args: argparse.Namespace, window: Any) -> Query:
    """The query over streams whose schemas are options."""
    r, s = (Schema.from_arrow(side, parse_schema(getattr(args, f"schema_{side}"))) for side in ("r", "s"))
    return Query.make(r, s, on=args.on, window=window, time=pair(args, "time"), order=args.order)
