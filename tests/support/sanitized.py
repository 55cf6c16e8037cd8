"""Runs tests with the compiled loops under the sanitizers for addresses, undefined behaviour and threads.

By `make sanitize`. The libraries are built by g++ (or what $CXX names), whose runtime is loaded ahead of Python, so
that arrays of NumPy have guards around them, too. What they find is in build/sanitized/report.*. As a plug-in of pytest
(``-p tests.support.sanitized``) this module has those libraries loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from splitjoin.engines.loops import build

_ROOT = Path(__file__).parent.parent.parent
_FOLDER = _ROOT / "build" / "sanitized"
_LOOPS, _THREADS = build._FOLDER, build._FOLDER.parent / "threads"
_TESTS = ("rows/kinds/test_operator.py", "engines/loops", "engines/test_merging.py", "engines/test_range_terms.py", *(
    f"engines/cpu/test_{name}.py" for name in (
        "key_ranges", "as_of_join", "table_choice", "pair_count", "range_folds", "codes", "quantizer", "fused_batch",
        "tasks", "sorted", "nested_choices")))
_OF_THREADS = ("engines/threads/test_session.py",)
#: Per kind the options of the compiler, its runtime, the folders of libraries, and the tests.
_KINDS = {
    "address": (("-fsanitize=address,undefined", "-fno-sanitize-recover=all"), "libasan.so", (_LOOPS, _THREADS),
                (*_TESTS, *_OF_THREADS)),
    "thread": (("-fsanitize=thread",), "libtsan.so", (_THREADS,), _OF_THREADS)}


def pytest_configure() -> None:
    """Have the sanitized libraries in the place of the other ones."""
    kind, others = os.environ["SPLITJOIN_SANITIZER"], build.built

    def built(folder: Path = _LOOPS) -> Path:
        return _library(kind, folder) if folder in _KINDS[kind][2] else others(folder)

    build.built = built
    sys.modules["splitjoin.engines.loops"].built = built  # type: ignore[attr-defined]


def _library(kind: str, folder: Path) -> Path:
    return _FOLDER / f"{folder.name}-{kind}.so"


def main() -> None:
    """Build the libraries, and run the tests. The exit status is 1 if one fails, or a sanitizer says something."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    for old in _FOLDER.glob("report.*"):
        old.unlink()
    compiler, failed = os.environ.setdefault("CXX", "g++"), False
    for kind, (options, runtime, folders, tests) in _KINDS.items():
        for folder in folders:
            build.build(_library(kind, folder), options=("-O1", "-g", *options), folder=folder)
        # With libstdc++, as the runtime looks for what throws exceptions when it is loaded.
        runtimes = [subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True,
                                   check=True).stdout.strip() for name in (runtime, "libstdc++.so")]
        # pytest captures what is written to the standard error, and loses it when the process ends.
        said = f"detect_leaks=0:log_path={_FOLDER / 'report'}"
        settings = {"LD_PRELOAD": ":".join(runtimes), "ASAN_OPTIONS": said, "UBSAN_OPTIONS": said, "TSAN_OPTIONS": said,
                    "SPLITJOIN_TEST_EXAMPLES": "5", "SPLITJOIN_SANITIZER": kind}
        of = [str(_ROOT / "tests" / "sw" / name) for name in tests]
        failed |= subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "tests.support.sanitized", "-k",
                                  "not built_anew and not missing_library and not zip_file", *of],
                                 env={**os.environ, **settings}, check=False).returncode != 0
    reports = [path for path in _FOLDER.glob("report.*") if not _is_harmless(path.read_text())]
    print(*(f"reported: {path}" for path in reports), sep="\n")
    sys.exit(failed or bool(reports))


def _is_harmless(report: str) -> bool:
    """True where the sanitizer says only that it may err on fibers, by which tests choose the order of threads."""
    return all("doesn't fully support makecontext" in line for line in report.splitlines() if line.strip())


if __name__ == "__main__":
    main()
