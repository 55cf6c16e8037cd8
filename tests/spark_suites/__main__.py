"""`make spark-suites`: all cases, the number of which is equal, and of how many joins splitjoin ran."""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from pathlib import Path

from splitjoin.catalyst.jar import spark_jar
from splitjoin.spark import local_session

from ..support.spark_settings import SETTINGS
from . import batch, streams

#: The cases by the kind of suite.
CASES: dict[str, tuple[batch.Case | streams.Case, ...]] = {"batch": batch.CASES, "streams": streams.CASES}


def main() -> int:
    """Returns 1 if a case differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark_suites", description="Runs Spark's cases of joins.")
    parser.add_argument("names", nargs="*", metavar="TEXT", help="only cases whose name has one of these texts")
    parser.add_argument("--list", action="store_true", help="print the names, and end")
    arguments = parser.parse_args()
    chosen = [(kind, case) for kind, cases in CASES.items() for case in cases
              if not arguments.names or any(text in f"{kind}: {case.name}" for text in arguments.names)]
    if arguments.list:
        print("\n".join(f"{kind}: {case.name}" for kind, case in chosen))
        return 0
    spark = local_session("Spark's suites", cores=2, config={
        **SETTINGS, "spark.jars": str(spark_jar()), "spark.sql.extensions": "splitjoin.SplitJoinExtensions",
        "spark.splitjoin.sql.minComparisons": "0", "spark.network.timeout": "1h",
        "spark.executor.heartbeatInterval": "1min"})
    failed, here = list[str](), 0
    for kind, case in chosen:
        try:
            with tempfile.TemporaryDirectory() as folder:
                ran = case.check(spark, Path(folder))
            here += ran
            print(f"equal, {'splitjoin ran' if ran else 'left to Spark'}: {kind}: {case.name}", flush=True)
        except Exception:  # the next ones may find more
            traceback.print_exc()
            failed.append(case.name)
            print(f"FAILED: {kind}: {case.name}", flush=True)
    spark.stop()
    print(f"{len(chosen) - len(failed)} of {len(chosen)} equal, of which splitjoin ran {here}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
