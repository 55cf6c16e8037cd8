"""Runs tests with the compiled loops under the sanitizers for addresses and undefined behaviour.

By `make sanitize`. The library is built by g++ (or what $CXX names), whose runtime is loaded ahead of Python, so that
arrays of NumPy have guards around them, too. What they find is in build/sanitized/report.*. As a plug-in of pytest
(``-p tests.support.sanitized``) this module has that library loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from splitjoin.engines.loops import build

_ROOT = Path(__file__).parent.parent.parent
_LIBRARY = _ROOT / "build" / "sanitized" / "loops.so"
_OPTIONS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_TESTS = ("rows/kinds/test_operator.py", "engines/loops", "engines/test_merging.py", "engines/test_range_terms.py", *(
    f"engines/cpu/test_{name}.py" for name in (
        "key_ranges", "as_of_join", "table_choice", "pair_count", "range_folds", "codes", "levels", "one_call",
        "one_call_phases", "tasks", "sorted", "nested_choices")))


def pytest_configure() -> None:
    """Have the sanitized library in the place of the other one."""
    build.built = lambda *_: _LIBRARY  # type: ignore[assignment]
    sys.modules["splitjoin.engines.loops"].built = build.built  # type: ignore[attr-defined]


def main() -> None:
    """Build the library, and run the tests in this process's place."""
    _LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    compiler = os.environ.setdefault("CXX", "g++")
    build.build(_LIBRARY, options=_OPTIONS)
    # With libstdc++, as the runtime looks for what throws exceptions when it is loaded.
    runtimes = [subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True,
                               check=True).stdout.strip() for name in ("libasan.so", "libstdc++.so")]
    # pytest captures what is written to the standard error, and loses it when the process ends.
    options = f"detect_leaks=0:log_path={_LIBRARY.parent / 'report'}"
    settings = {"LD_PRELOAD": ":".join(runtimes), "ASAN_OPTIONS": options, "UBSAN_OPTIONS": options,
                "SPLITJOIN_TEST_EXAMPLES": "5"}
    tests = [str(_ROOT / "tests" / "sw" / name) for name in _TESTS]
    os.execve(sys.executable, [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.sanitized", "-k",
                               "not built_anew and not missing_library and not zip_file", *tests],
              {**os.environ, **settings})


if __name__ == "__main__":
    main()
