"""Spark Connect: the same calls through a remote session, against a real server."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ...support.connect_session import PARTS

ROOT = Path(__file__).parents[3]


@pytest.fixture
def server(spark: SparkSession) -> Iterator[str]:
    """The address of a Connect server in the JVM of all tests here."""
    pytest.importorskip("grpc")
    assert spark._jvm is not None
    service = getattr(getattr(spark._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$"), "MODULE$")
    service.start(spark._jsc.sc())
    yield f"sc://127.0.0.1:{service.localPort()}"
    none = spark._jvm.scala.Option.empty()
    service.stop(none, none)


@pytest.mark.long  # takes a minute; and Spark gives Python workers ten seconds to start, by no setting
def test_remote_session(tmp_path: Path, server: str) -> None:
    """In a process of its own: one process cannot have both kinds of session."""
    done = subprocess.run([sys.executable, "-m", "tests.support.connect_session", str(tmp_path), server], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert done.stdout.split() == list(PARTS), done.stderr[-6000:]
    assert done.returncode == 0
