"""Each Python that this machine has, with the newest of everything that splitjoin asks for: does its suite pass?

``python -m bench.pythons [PYTHON …]`` takes ``python3.11`` and later on the PATH and below ``$PYENV_ROOT``; each gets
an environment in ``build/pythons``. Warnings are no errors here, as those of the newest packages are not known yet.
What failed is printed and not recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.record import Recorder

_ROOT = Path(__file__).parents[1]
_EXTRAS = "sql,sim,spark,compiled"
_TESTS = ("pytest", "pytest-xdist", "pytest-timeout", "hypothesis", "polars", "psutil")
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default")
#: Suite → what the environment's Python runs; PYSPARK stands for the version of PySpark.
SUITES: dict[str, Sequence[str]] = {
    "tables": (*_PYTEST, "tests/sw/tables", "tests/sw/rows"),
    "sql": (*_PYTEST, "tests/sw/joins"),
    "conditions": (*_PYTEST, "tests/sw/lang", "tests/sw/plan"),
    "sessions": (*_PYTEST, "tests/sw/sessions"),
    "circuits": (*_PYTEST, "tests/hw/core", "tests/sw/circuit"),
    "spark": ("-m", "tests.spark_versions.joins", "PYSPARK"),
}
_TOLD = ("numpy", "pyarrow", "pandas", "polars", "duckdb", "sqlglot", "amaranth", "numba", "pyspark")


def interpreters() -> list[str]:
    """The Pythons from 3.11 on that are found, the lowest version first, one of each minor version."""
    names = [f"python3.{minor}" for minor in range(11, 20)]
    found = {name: path for name in names if (path := shutil.which(name))}
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for one in sorted(versions.glob("3.*/bin/python")):
        found.setdefault("python" + ".".join(one.parts[-3].split(".")[:2]), str(one))
    return [found[name] for name in names if name in found]


def environment(python: str, folder: Path) -> str:
    """The Python of an environment in ``folder`` with splitjoin, made anew."""
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    made = str(folder / "bin" / "python")
    subprocess.run([made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{_ROOT}[{_EXTRAS}]",
                    *_TESTS], check=True)
    return made


def packages(python: str) -> dict[str, str]:
    """Package → version in the environment of ``python``, for those that are told, and Python's own."""
    code = ("import json, platform; from importlib.metadata import version; "
            f"print(json.dumps({{'python': platform.python_version()}} | {{n: version(n) for n in {_TOLD!r}}}))")
    told: dict[str, str] = json.loads(_output([python, "-c", code]))
    return told


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    """Install and run all suites on all Pythons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--suite", action="append", choices=SUITES, help="only this one; may be given several times")
    parser.add_argument("--quick", action="store_true", help="write to build/bench")
    arguments = parser.parse_args()
    recorder, failed = Recorder("pythons", quick=arguments.quick), list[str]()
    for python in arguments.pythons or interpreters():
        said = _output([python, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"])
        print(f"== Python {said}: {python}", flush=True)
        made = environment(python, _ROOT / "build" / "pythons" / said)
        have = packages(made)
        for suite in arguments.suite or SUITES:
            command = [made, *(have["pyspark"] if word == "PYSPARK" else word for word in SUITES[suite])]
            ran = subprocess.run(command, cwd=_ROOT, check=False, capture_output=True, text=True)
            if ran.returncode:
                failed.append(f"{suite} on {said}")
                print(f"{failed[-1]} failed:", ran.stdout[-4000:], ran.stderr[-4000:], sep="\n", flush=True)
                continue
            counted = re.search(r"(\d+) passed", ran.stdout)
            recorder.add(f"pythons_{suite}", int(counted[1]) if counted else 1, "tests that passed", have,
                         f"python {' '.join(SUITES[suite])}")
    recorder.write()
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
