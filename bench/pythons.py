"""Each Python that this machine has: is splitjoin installed there, and does it pass the part of its tests that a new
Python or a new package breaks first?

``python -m bench.pythons [PYTHON …]`` takes ``python3.11`` and later on the PATH and below ``$PYENV_ROOT``; each gets
an environment in ``build/pythons`` with one wheel and the newest packages that the pins allow, the lowest Python with
the oldest pandas. Warnings are no errors here, as those of the newest packages are not known yet. What failed is
printed and not recorded.
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
_MADE = _ROOT / "build" / "pythons"
_EXTRAS = "sql,sim,spark,compiled"
_TESTS = ("pytest", "pytest-xdist", "pytest-timeout", "hypothesis", "polars", "psutil")
#: What the lowest Python gets, where the newest of all others is known to behave otherwise.
_OLDEST = ("pandas==2.2.*",)
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default")
#: Suite → what the environment's Python runs; PYSPARK stands for the version of PySpark.
SUITES: dict[str, Sequence[str]] = {
    "conformance": (*_PYTEST, "tests/test_conformance.py", "tests/sw/engines/test_golden.py",
                    "tests/sw/engines/cpu/test_engine.py", "-k", "not many_batches"),
    "tables": (*_PYTEST, "tests/sw/frames", "tests/sw/tables/test_round_trips.py"),
    "conditions": (*_PYTEST, "tests/sw/lang/test_times.py", "tests/sw/lang/test_operations.py"),
    "sql": (*_PYTEST, "tests/sw/joins/sql/test_select.py", "tests/sw/joins/sql/test_with_duckdb.py"),
    "sessions": (*_PYTEST, "tests/sw/sessions/test_windows.py", "tests/sw/sessions/test_snapshot.py"),
    "circuits": (*_PYTEST, "tests/sim/test_conformance.py", "-k", "test_scenarios_on_pysim"),
    "spark": ("-m", "tests.spark_versions.joins", "PYSPARK", "plain SQL", "batch"),
}
#: Suite → its heading on the page.
TITLES = {suite: {"sql": "SQL", "spark": "Spark"}.get(suite, suite) for suite in SUITES}
_TOLD = ("numpy", "pyarrow", "pandas", "polars", "duckdb", "sqlglot", "amaranth", "numba", "pyspark")


def interpreters() -> list[str]:
    """The Pythons from 3.11 on that are found, the lowest version first, one of each minor version."""
    names = [f"python3.{minor}" for minor in range(11, 20)]
    found = {name: path for name in names if (path := shutil.which(name))}
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for one in sorted(versions.glob("3.*/bin/python")):
        found.setdefault("python" + ".".join(one.parts[-3].split(".")[:2]), str(one))
    return [found[name] for name in names if name in found]


def wheel() -> Path:
    """The wheel of this tree, built anew."""
    folder = _MADE / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    _pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(_ROOT))
    return next(folder.glob("*.whl"))


def environment(python: str, folder: Path, built: Path, *others: str) -> str:
    """The Python of an environment in ``folder`` with the wheel ``built`` and ``others``, made anew."""
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    made = str(folder / "bin" / "python")
    _pip(made, "install", f"{built}[{_EXTRAS}]", *_TESTS, *others)
    return made


def _pip(python: str, *arguments: str) -> None:
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


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
    parser.add_argument("--keep", action="store_true", help="run in the environments that are there, as they are")
    parser.add_argument("--quick", action="store_true", help="write to build/bench")
    arguments = parser.parse_args()
    found = interpreters()
    recorder, failed = Recorder("pythons", quick=arguments.quick), list[str]()
    built = None if arguments.keep else wheel()
    for python in arguments.pythons or found:
        said = _output([python, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"])
        print(f"== Python {said}: {python}", flush=True)
        made = str(_MADE / said / "bin" / "python")
        if built is not None:
            environment(python, _MADE / said, built, *(_OLDEST if len(found) > 1 and python == found[0] else ()))
        have = packages(made)
        for suite in arguments.suite or SUITES:
            command = [made, *(have["pyspark"] if word == "PYSPARK" else word for word in SUITES[suite])]
            ran = subprocess.run(command, cwd=_ROOT, check=False, capture_output=True, text=True)
            if ran.returncode:
                failed.append(f"{suite} on {said}")
                print(f"{failed[-1]} failed:", ran.stdout[-4000:], ran.stderr[-4000:], sep="\n", flush=True)
                continue
            counted = re.search(r"(\d+) passed", ran.stdout)
            passed = int(counted[1]) if counted else ran.stdout.count("  passed  ")
            recorder.add(f"pythons_{suite}", passed, "tests that passed", have, f"python {' '.join(SUITES[suite])}")
    known = {(row["metric"], row["config"]["python"]) for row in recorder.rows}
    recorder.keep(lambda row: (row["metric"], row["config"]["python"]) not in known)
    recorder.sort(lambda row: [int(part) for part in row["config"]["python"].split(".")])
    recorder.write()
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
