"""Devices of a daemon in a cluster: each worker has its own, and Spark gives them to tasks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import splitjoin
from splitjoin.base.errors import DeviceError, UnsupportedError
from splitjoin.link.daemon.client import daemon_status, stop_daemon
from splitjoin.spark import stream_join

from ...support.spark_files import wait_until
from .cluster_job import JOIN, tables

ROOT = Path(__file__).parents[3]


def test_two_workers_have_a_simulated_circuit_each(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(0o700)
    socket = folder / "daemon.sock"
    command = [sys.executable, "-m", "splitjoin", "daemon", "--device", "sim", "--count", "2", "--option", "cores=2",
               "--option", "capacity=32", "--socket", str(socket)]
    with subprocess.Popen(command) as daemon:
        try:
            wait_until(lambda: is_up(socket))
            job = subprocess.run([sys.executable, "-m", "tests.sw.spark.cluster_job", str(folder), str(socket)],
                                 cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
            assert job.returncode == 0, job.stderr[-3000:] + (folder / "spark.log").read_text()[-3000:]
            status = daemon_status(socket)
        finally:
            stop_daemon(socket)
            daemon.wait(60)
    found = json.loads(job.stdout.splitlines()[-1])
    r, s = tables()
    expected = sorted(map(list, zip(*splitjoin.join(r, s, **JOIN).to_pydict().values(), strict=True)))
    assert found["addresses"] == ["sim:0", "sim:1"]
    assert found["batch"] == expected
    assert found["daemon"] == found["sim"] == expected
    assert found["retried"]  # in a micro-batch, after a task had handed over its first rows
    assert len(expected) > 50
    assert all(device["counters"]["leases"] > 2 for device in status["devices"])


def is_up(socket: Path) -> bool:
    """True if a daemon answers."""
    try:
        daemon_status(socket)
    except DeviceError:
        return False
    return True


def test_resources_of_tasks_in_local_mode_are_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2)], "ts int, x int")
    spark.conf.set("spark.task.resource.fpga.amount", "1")
    try:
        with pytest.raises(UnsupportedError, match=r"tasks would wait for ever; leave the setting out"):
            stream_join(frame, frame, on="r.x = s.x", window="ROWS 5", time="ts")
    finally:
        spark.conf.unset("spark.task.resource.fpga.amount")
