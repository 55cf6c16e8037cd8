"""Devices of a daemon in a cluster: each worker has its own, and Spark gives them to tasks."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.resource import ResourceInformation
from pyspark.sql import SparkSession

import splitjoin
from splitjoin.base.errors import DeviceError, UnsupportedError
from splitjoin.engines.device import Device
from splitjoin.engines.gpu import GpuDevice
from splitjoin.link.daemon.client import daemon_status, stop_daemon
from splitjoin.spark import stream_join
from splitjoin.spark.placement import choose_device
from splitjoin.spark.resources import leased

from ...support.patience import until
from .cluster_job import JOIN, tables

ROOT = Path(__file__).parents[3]


@pytest.mark.long  # starts four JVMs; `tests.spark_versions.standalone` joins on such a cluster
def test_two_workers_have_a_simulated_circuit_each(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(0o700)
    socket = folder / "daemon.sock"
    command = [sys.executable, "-m", "splitjoin", "daemon", "--device", "sim", "--count", "2", "--option", "cores=2",
               "--option", "capacity=32", "--socket", str(socket)]
    with subprocess.Popen(command) as daemon:
        try:
            until(lambda: is_up(socket))
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
    assert found["imported"] == [True] * 4  # before the first join, by the workers' daemon
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


@pytest.mark.parametrize("resource", ["fpga", "gpu"])
def test_resources_of_tasks_in_local_mode_are_refused(spark: SparkSession, resource: str) -> None:
    frame = spark.createDataFrame([(1, 2)], "ts int, x int")
    spark.conf.set(f"spark.task.resource.{resource}.amount", "1")
    try:
        with pytest.raises(UnsupportedError, match=f"{resource}.amount is 1, .* tasks would wait for ever; leave the"):
            stream_join(frame, frame, on="r.x = s.x", window="ROWS 5", time="ts")
    finally:
        spark.conf.unset(f"spark.task.resource.{resource}.amount")


@pytest.mark.parametrize(("device", "given", "options", "expected"), [
    ("gpu", {"gpu": ["3", "1"]}, {}, {"target": "3"}), ("gpu", {"gpu": ["3"]}, {"target": "0"}, {"target": "0"}),
    ("gpu", {"fpga": ["sim:0"]}, {}, {}), ("daemon", {"fpga": ["sim:1"], "gpu": ["0"]}, {}, {"address": "sim:1"}),
    ("cpu", {"gpu": ["0"]}, {"threads": 2}, {"threads": 2}), (GpuDevice(target="2"), {"gpu": ["0"]}, {}, {})])
def test_tasks_get_the_address_that_spark_gave_them(monkeypatch: pytest.MonkeyPatch, device: str | Device,
                                                    given: dict[str, list[str]], options: dict[str, Any],
                                                    expected: dict[str, Any]) -> None:
    context = SimpleNamespace(resources=lambda: {name: ResourceInformation(name, at) for name, at in given.items()})
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    assert leased(device, options) == expected


def test_the_driver_needs_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GpuDevice, "open", None)
    frame = pa.table({"ts": [1], "x": [1]})

    def chosen(on: str, **more: Any) -> tuple[str | Device, dict[str, Any], str]:
        query = splitjoin.query(frame.schema, frame.schema, on=on, window="ROWS 5", time="ts")
        return choose_device(query, "gpu", more, True, 4)

    assert chosen("r.x = s.x") == ("gpu", {"threads": 4}, "")
    assert chosen("r.x = s.x", threads=2) == ("gpu", {"threads": 2}, "")
    with pytest.raises(UnsupportedError, match="the device 'gpu' has no code for "):
        chosen("cast(r.x AS double) * cast(s.x AS double) > 2.0")
