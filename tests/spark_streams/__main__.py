"""Run random streams by Spark's own stream-stream join and by splitjoin's, and compare their rows.

``python -m tests.spark_streams [--first N] [--count N]``; each seed is a pair of streams and a query.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from pathlib import Path

from splitjoin.catalyst.jar import spark_jar
from splitjoin.spark import local_session

from ..support.spark_settings import SETTINGS
from .streams import RandomStreams


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark_streams", description="Compares random streams.")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--count", type=int, default=500, help="the number of seeds (default: 500)")
    arguments = parser.parse_args()
    spark = local_session("random streams", cores=2, config={
        **SETTINGS, "spark.jars": str(spark_jar()), "spark.sql.extensions": "splitjoin.SplitJoinExtensions",
        "spark.splitjoin.sql.enabled": "false",
        # On a busy machine Spark would take a driver that does not get to run for one that is lost.
        "spark.network.timeout": "1h", "spark.executor.heartbeatInterval": "1min"})
    failed = []
    for seed in range(arguments.first, arguments.first + arguments.count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                RandomStreams(spark, seed, Path(folder, "sql")).check()
                if seed % 5 == 0:
                    RandomStreams(spark, seed, Path(folder, "call")).check_call()
            except Exception:  # the next ones may find more
                traceback.print_exc()
                failed.append(seed)
        print(f"{seed}: {'FAILED' if seed in failed else 'equal'}", flush=True)
    spark.stop()
    print(f"{arguments.count - len(failed)} of {arguments.count} equal{f'; not {failed}' if failed else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
