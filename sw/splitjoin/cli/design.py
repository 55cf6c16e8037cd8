"""Designs in files: ``tune -o design.json`` writes what it proposes, ``verilog`` and ``build`` take it by --design."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from splitjoin.base.disk import replacing
from splitjoin.base.errors import InputError, SchemaError
from splitjoin.base.json_text import parsed_json
from splitjoin.base.version import __version__
from splitjoin.circuit.architectures import ARCHITECTURES
from splitjoin.circuit.parameters import CircuitParameters, offered
from splitjoin.circuit.tuner import Proposal
from splitjoin.tables import target_of
from splitjoin.tables.schema_text import parse_schema, schema_text

#: The value of the field ``format``.
FORMAT = "splitjoin proposal 1"
#: Options of the query that a design holds, and those of them that it must hold.
_QUERY = ("schema_r", "schema_s", "on", "window", "window_r", "window_s", "closed", "time", "time_r", "time_s", "order")
_NEEDED = ("schema_r", "schema_s", "on", "order")
_PARAMETERS = tuple(found.name for found, _ in offered(CircuitParameters))


def design_option(parser: argparse.ArgumentParser) -> None:
    """Add --design, which takes the place of the options that ``parser`` would else require."""
    parser.add_argument("--design", metavar="FILE", help="design.json that `splitjoin tune -o` wrote: it has the "
                                                         "schemas, the query and the circuit's parameters")


def check_design_file(path: str) -> None:
    """Raise `InputError` if no design could be written to ``path``."""
    if Path(path).suffix != ".json":
        raise InputError(f"a design is written as a .json file, not {path!r}")
    if not Path(path).parent.is_dir():
        raise InputError(f"the folder of the design must exist, but {Path(path).parent} does not; create it first")


def described_query(args: argparse.Namespace) -> dict[str, str]:
    """The query in ``args``: its options that were given, with the schemas as texts."""
    query = {name: getattr(args, name) for name in _QUERY if getattr(args, name) is not None}
    if vars(args).get("how", "inner") != "inner":
        query |= {"how": args.how} | ({} if args.direction is None else {"direction": args.direction})
        query |= {} if args.allow_exact is None else {"allow_exact": str(args.allow_exact)}
    return query | {name: schema_text(parse_schema(query[name])) for name in ("schema_r", "schema_s")}


def write_design(path: str, args: argparse.Namespace, proposal: Proposal) -> None:
    """Write what ``proposal`` proposes for the query in ``args``. Raises `InputError`."""
    described = {"format": FORMAT, "splitjoin": __version__, "board": proposal.board, "query": described_query(args),
                 "parameters": proposal.options}
    try:
        with replacing(target_of(Path(path))) as file:
            file.write(json.dumps(described, indent=2).encode() + b"\n")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None


def take_design(args: argparse.Namespace) -> None:
    """Put the query and the parameters of the design in ``args.design`` into ``args``.

    Raises `InputError` for a file that is no design; `SchemaError` if options are given beside it that it has, or,
    without a design, if a required option is missing.
    """
    if args.design is None:
        missing = [name for name in _NEEDED if getattr(args, name) is None]
        if missing:
            raise SchemaError(f"a circuit needs {', '.join(map(_flag, missing))}, or --design FILE with a design that "
                              f"`splitjoin tune -o` wrote")
        return
    given = [name for name in (*_QUERY, *_PARAMETERS) if getattr(args, name) is not None
             and not (name == "order" and args.order == "total")]
    if given:
        raise SchemaError(f"the design has the query and the circuit's parameters; leave out "
                          f"{', '.join(map(_flag, given))}, or --design")
    found = _read(args.design)
    chosen = found["parameters"].get("architecture")
    if isinstance(chosen, str) and chosen in ARCHITECTURES:
        ARCHITECTURES[chosen].check_used("the circuit of a design")
    for name, value in {**found["query"], **found["parameters"]}.items():
        setattr(args, name, value)


def _read(path: str) -> dict[str, Any]:
    try:
        found = parsed_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"a design must be a readable JSON file that `splitjoin tune -o` wrote, but {path} is not: "
                         f"{error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"the design {path} must have the format {FORMAT!r}; write it with `splitjoin tune -o`")
    query, parameters = found.get("query"), found.get("parameters")
    good = (isinstance(query, dict) and set(_NEEDED) <= set(query) <= set(_QUERY)
            and all(isinstance(value, str) for value in query.values())
            and isinstance(parameters, dict) and set(parameters) <= set(_PARAMETERS))
    if not good:
        raise InputError(f"the design {path} must have a query with {', '.join(_NEEDED)}, and parameters of circuits "
                         f"({', '.join(_PARAMETERS)}); write it again with `splitjoin tune -o`")
    return found


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
