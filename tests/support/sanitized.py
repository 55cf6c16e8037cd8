"""Runs tests with the compiled loops under the sanitizers for addresses and undefined behaviour.

By `make sanitize`. The library is built by g++ (or what $CXX names), whose runtime is loaded ahead of Python, so that
arrays of NumPy have guards around them, too. As a plug-in of pytest (``-p tests.support.sanitized``) this module has
that library loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from splitjoin.engines.cpu.loops import build

_ROOT = Path(__file__).parent.parent.parent
_LIBRARY = _ROOT / "build" / "sanitized" / "loops.so"
_OPTIONS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_TESTS = ("loops", "test_key_ranges.py", "test_as_of_join.py", "test_table_choice.py", "test_pair_count.py",
          "test_range_folds.py")


def pytest_configure() -> None:
    """Have the sanitized library in the place of the other one."""
    build.built = lambda: _LIBRARY  # type: ignore[assignment]
    sys.modules["splitjoin.engines.cpu.loops"].built = build.built  # type: ignore[attr-defined]


def main() -> None:
    """Build the library, and run the tests in this process's place."""
    _LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    compiler = os.environ.setdefault("CXX", "g++")
    build.build(_LIBRARY, options=_OPTIONS)
    runtime = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    settings = {"LD_PRELOAD": runtime.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0", "SPLITJOIN_TEST_EXAMPLES": "5"}
    tests = [str(_ROOT / "tests" / "sw" / "engines" / "cpu" / name) for name in _TESTS]
    os.execve(sys.executable, [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.sanitized", "-k",
                               "not built_anew and not missing_library and not zip_file", *tests],
              {**os.environ, **settings})


if __name__ == "__main__":
    main()
