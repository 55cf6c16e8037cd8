"""Joins on a standalone cluster: a master and two workers on this machine, of which one is killed during a join.

``make spark-cluster`` (``python -m tests.spark_versions.standalone``). Each answer is compared with the golden model's,
or with Spark's own.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from splitjoin.catalyst.jar import spark_jar
from splitjoin.spark import local_session

from ..support.spark_settings import SETTINGS
from .joins import Joins

_HOME = Path(pyspark.__file__).parent
_WORKERS = 2
#: Seconds after which a process of the cluster must be there.
_PATIENCE = 300


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The URL of a master, and its workers; all end with the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url, log = f"spark://127.0.0.1:{port}", folder / "cluster.log"
    environment = {**os.environ, "SPARK_HOME": str(_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    started = list[subprocess.Popen[bytes]]()

    def start(name: str, *arguments: str) -> None:
        with log.open("ab") as out:
            started.append(subprocess.Popen(
                [_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1",
                 "--webui-port", "0", *arguments], env=environment, stdout=out, stderr=out))

    try:
        start("master.Master", "--port", str(port))
        for number in range(_WORKERS):
            start("worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(folder / str(number)), url)
        deadline = time.monotonic() + _PATIENCE
        while log.read_text().count("Registering worker") < _WORKERS:
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.5)
        yield url, started[1:]
    finally:
        for process in started:
            process.kill()
            process.wait()


def main() -> None:
    """Run the joins. Raises `AssertionError` for a wrong answer."""
    folder = Path(tempfile.mkdtemp())
    with cluster(folder) as (url, workers):
        spark = local_session("splitjoin on a cluster", log=folder / "log", config=SETTINGS | {
            "spark.master": url, "spark.cores.max": str(_WORKERS), "spark.executor.cores": "1",
            "spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "2", "spark.locality.wait": "0s",
            "spark.jars": str(spark_jar()), "spark.sql.extensions": "splitjoin.SplitJoinExtensions",
            "spark.splitjoin.sql.minComparisons": "0",
            "spark.splitjoin.sql.rowsPerTask": "1", "spark.python.daemon.module": "splitjoin.spark.daemon"})
        joins = Joins(spark, folder)
        for name, step in (("plain streams", joins.plain_streams), ("plain SQL", joins.plain_sql),
                           ("batch", joins.batch), ("streaming left", lambda: joins.streaming("left"))):
            step()
            print(f"passed  {name}", flush=True)
        killed = threading.Timer(0.5, lambda: workers[0].send_signal(signal.SIGKILL))
        killed.start()
        joins.batch(partitions=7)
        killed.join()
        joins.plain_sql()
        joins.streaming("inner")
        print("passed  batch, plain SQL and streaming inner with a worker less", flush=True)
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
