"""The commands about circuits that only print: ``explain`` and ``tune``; and the query that others share."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from splitjoin.circuit.query_circuit import QueryCircuit
from splitjoin.circuit.tuner import tune
from splitjoin.circuit.tuner.options import tune_arguments
from splitjoin.joins.explain import explain
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.tables import read_table
from splitjoin.tables.schema_text import parse_schema

from .design import check_design_file, design_option, take_design, write_design
from .options import (
    aggregate_argument,
    circuit_arguments,
    circuit_options,
    explanation_text,
    kind_arguments,
    kind_options,
    pair,
    query_options,
    schema_options,
    window_argument,
    window_or_default,
)


def circuit_query_options(parser: argparse.ArgumentParser, *, design: bool = False, baselines: bool = False) -> None:
    """Add the options of a query and of its circuit; with ``design`` a file may have them instead."""
    if design:
        design_option(parser)
    schema_options(parser, required=not design)
    query_options(parser, window_required=False, required=not design)
    kind_options(parser)
    circuit_options(parser, baselines=baselines)


def explain_circuit(args: argparse.Namespace) -> None:
    """Print how a query's condition maps onto a circuit."""
    query, options = circuit_query(args)
    explanation = explain(query, **options, passes=args.passes, family=args.family,
                          windowed=window_argument(args) is not None)
    print(explanation_text(explanation, args.format))


def propose_circuit(args: argparse.Namespace) -> None:
    """Print which circuit suits a query and a board."""
    window = window_argument(args)
    if args.output is not None:
        check_design_file(args.output)
    sample = None if args.sample is None else [read_table(path) for path in args.sample]
    proposal = tune(_declared(args, window), **tune_arguments(args), sample=sample)
    print(proposal)
    if args.output is not None:
        write_design(args.output, args, proposal)


def warn_that_pairs_leave(circuit: QueryCircuit) -> None:
    """Print to standard error why ``circuit`` gives all pairs, if states or few pairs would suffice."""
    if circuit.refused:
        print(f"splitjoin: the circuit gives all pairs, which the host folds or decides by: {circuit.refused}",
              file=sys.stderr, flush=True)


def circuit_query(args: argparse.Namespace) -> tuple[Query, dict[str, Any]]:
    """The query of a circuit command. Without a window, as many ROWS as the circuit holds."""
    if "design" in args:
        take_design(args)
    options = circuit_arguments(args)
    return _declared(args, window_or_default(args, options)), options


def _declared(args: argparse.Namespace, window: Any) -> Query:
    """The query over streams whose schemas are options."""
    r, s = (Schema.from_arrow(side, parse_schema(getattr(args, f"schema_{side}"))) for side in ("r", "s"))
    kind = kind_arguments(args) | {"aggregate": aggregate_argument(args)} if "how" in args else {}
    return Query.make(r, s, on=args.on, window=window, time=pair(args, "time"), order=args.order, **kind)
