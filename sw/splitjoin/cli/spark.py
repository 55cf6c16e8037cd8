"""The commands ``spark-qualify``, which joins of Spark's event logs splitjoin could run, and ``spark-jar``."""

from __future__ import annotations

import argparse
from pathlib import Path

from splitjoin.base.errors import InputError
from splitjoin.catalyst.jar import spark_jar
from splitjoin.qualify import RATE, as_html, as_json, as_text, qualify


def qualify_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("logs", metavar="EVENTLOG", nargs="+",
                        help="event logs: files, or folders of them, as Spark writes to spark.eventLog.dir")
    parser.add_argument("--rate", type=float, metavar="ROWS", default=RATE,
                        help="rows a second and core that splitjoin joins on your machines, for predictions "
                             "(%(default)s: a batch join of two bands within 10 seconds; bench/spark.py measures it)")
    parser.add_argument("--html", metavar="FILE", help="also write the report as a page")
    parser.add_argument("--json", metavar="FILE", help="also write the report as JSON")


def run_qualify(args: argparse.Namespace) -> None:
    """Print the report, and write it where it was asked for."""
    if not 0 < args.rate < float("inf"):
        raise InputError(f"--rate must be more than 0 rows a second, not {args.rate:g}")
    found, damaged = qualify(args.logs, rate=args.rate)
    print(as_text(found, damaged))
    for path, made in ((args.html, as_html), (args.json, as_json)):
        if path is not None:
            try:
                Path(path).write_text(made(found, damaged) + "\n", encoding="utf-8")
            except OSError as error:
                raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def run_spark_jar(args: argparse.Namespace) -> None:
    """Print the path of the jar, which is compiled first if need be."""
    print(spark_jar())
