"""Spark Connect: the same calls through a remote session, against a real server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ...support.connect_session import PARTS

ROOT = Path(__file__).parents[3]


def test_remote_session(tmp_path: Path) -> None:
    """In a process of its own, which starts the second JVM: one process cannot have both kinds of session."""
    pytest.importorskip("grpc")
    # SPARK_TESTING: the server takes any free port.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_TESTING": "1"}
    done = subprocess.run([sys.executable, "-m", "tests.support.connect_session", str(tmp_path)], cwd=ROOT,
                          env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == list(PARTS), done.stderr[-6000:]
    assert done.returncode == 0
