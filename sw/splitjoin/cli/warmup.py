"""The command ``warmup``: compiles what a query needs of the CPU engine beyond its library, before it is needed."""

from __future__ import annotations

import argparse
import time

import pyarrow as pa

from splitjoin.base.cache import cache_folder
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.registry import host
from splitjoin.joins.arranged import arranged, whole_window
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

from .options import pair, query_options, sort_option, window_argument
from .pipes import read_source

#: Rows of each table that are looked at.
_ROWS = 1 << 15


def warmup_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("r", metavar="R", help="stream R: a file as for `splitjoin join`, whose first rows are joined")
    parser.add_argument("s", metavar="S", help="stream S: the same")
    query_options(parser, window_required=False, window_default="every earlier row")
    sort_option(parser)


def run_warmup(args: argparse.Namespace) -> None:
    """Compile what a query needs, and say where that is."""
    folder = cache_folder()  # first, as without one nothing would be kept
    query, r, s = _query(args)
    began = time.monotonic()
    if host().compile(query, arrivals(query, r, s)):
        print(f"compiled  {args.on}\n{time.monotonic() - began:.1f} s; the cache is {folder}")
    else:
        print(f"nothing to compile for  {args.on}")


def _query(args: argparse.Namespace) -> tuple[Query, pa.Table, pa.Table]:
    time_columns, window = pair(args, "time"), window_argument(args)
    r, s = read_source(args.r), read_source(args.s)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=args.on,
                       window=whole_window(r, s) if window is None else window, time=time_columns, order=args.order)
    if args.sort:
        incoming = arranged(query, r, s, sort=True).incoming
        r, s = incoming.r, incoming.s
    return query, r.slice(0, _ROWS), s.slice(0, _ROWS)
