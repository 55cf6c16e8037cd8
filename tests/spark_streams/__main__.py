"""Run random streams by Spark's own stream-stream join and by splitjoin's, and compare their rows.

``python -m tests.spark_streams [--first N] [--count N]``; each seed is a pair of streams and a query. Two run side by
side, in sessions of one JVM.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

from splitjoin.catalyst.jar import spark_jar
from splitjoin.spark import local_session
from splitjoin.spark.versions import VERSION

from ..support.spark_settings import SETTINGS
from .streams import RandomStreams

_SESSIONS = 2
#: Options of a JVM that runs long enough for its compiler's best code.
_JAVA = "-XX:+UseSerialGC -Djdk.lang.Process.launchMechanism=VFORK"


def _failed(spark: SparkSession, seeds: Sequence[int]) -> list[int]:
    """Those of the seeds whose rows differ, one after the other."""
    failed = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                RandomStreams(spark, seed, Path(folder, "sql")).check()
                if seed % 5 == 0:
                    RandomStreams(spark, seed, Path(folder, "call")).check_call()
            except Exception:  # the next ones may find more
                traceback.print_exc()
                failed.append(seed)
        print(f"{seed}: {'FAILED' if seed in failed else 'equal'}", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark_streams", description="Compares random streams.")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--count", type=int, default=500, help="the number of seeds (default: 500)")
    arguments = parser.parse_args()
    # The package of the one class that the settings name is new in Spark 4.1.
    settings = {name: value.replace(".checkpointing.", ".") if VERSION < (4, 1) else value
                for name, value in SETTINGS.items()}
    spark = local_session("random streams", cores=2, config={
        **settings, "spark.jars": str(spark_jar()), "spark.sql.extensions": "splitjoin.SplitJoinExtensions",
        "spark.splitjoin.sql.enabled": "false", "spark.driver.extraJavaOptions": _JAVA,
        # On a busy machine Spark would take a driver that does not get to run for one that is lost.
        "spark.network.timeout": "1h", "spark.executor.heartbeatInterval": "1min"})
    # Spark packs all thousand of these whenever it copies a plan with a streaming join: a fifth of the time.
    spark.sparkContext._jsc.hadoopConfiguration().clear()
    seeds = range(arguments.first, arguments.first + arguments.count)
    with ThreadPoolExecutor(_SESSIONS) as pool:
        parts = [pool.submit(_failed, spark.newSession(), seeds[n::_SESSIONS]) for n in range(_SESSIONS)]
    failed = sorted(seed for part in parts for seed in part.result())
    spark.stop()
    print(f"{arguments.count - len(failed)} of {arguments.count} equal{f'; not {failed}' if failed else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
