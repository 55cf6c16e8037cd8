"""The command ``warmup``: compiles loops for the CPU engine before they are needed."""

from __future__ import annotations

import argparse
import time

import pyarrow as pa

from splitjoin.base.cache import cache_folder
from splitjoin.base.errors import SchemaError
from splitjoin.base.progress import progress_bar
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.cpu.common_queries import common_queries
from splitjoin.joins.arranged import arranged, whole_window
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

from .options import pair, query_options, sort_option, window_argument
from .pipes import read_source

__all__ = ["run_warmup", "warmup_options"]

#: Rows of each table that are looked at.
_ROWS = 1 << 15


def warmup_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("r", metavar="R", nargs="?", help="stream R of a query of your own: a file as for `splitjoin "
                                                          "join`, of which the first rows are joined")
    parser.add_argument("s", metavar="S", nargs="?", help="stream S: the same")
    query_options(parser, window_required=False, required=False, window_default="every earlier row")
    sort_option(parser)


def run_warmup(args: argparse.Namespace) -> None:
    """Compile the loops of one query, or those that many queries share, and say where they are."""
    given = [args.r, args.s, args.on]
    if any(given) and not all(given):
        raise SchemaError("warmup compiles the loops of a query, R S --on EXPR, or without these, what many queries "
                          "share; give all three, or none")
    folder = cache_folder()  # first, as without one nothing would be kept
    queries = [_own(args)] if all(given) else list(common_queries())
    began = time.monotonic()
    with progress_bar(len(queries), "compile", "queries") as bar:
        for _, query, r, s in queries:
            CpuDevice().compile(query, arrivals(query, r, s))
            bar.update()
    for on, *_ in queries:
        print(f"compiled  {on}")
    print(f"{time.monotonic() - began:.1f} s; the cache is {folder}")


def _own(args: argparse.Namespace) -> tuple[str, Query, pa.Table, pa.Table]:
    time_columns, window = pair(args, "time"), window_argument(args)
    r, s = read_source(args.r), read_source(args.s)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=args.on,
                       window=whole_window(r, s) if window is None else window, time=time_columns, order=args.order)
    if args.sort:
        incoming = arranged(query, r, s, sort=True).incoming
        r, s = incoming.r, incoming.s
    return args.on, query, r.slice(0, _ROWS), s.slice(0, _ROWS)
