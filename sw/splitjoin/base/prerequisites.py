"""Check of the programs that an installation needs. Runs on any Python 3 and imports nothing of splitjoin."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator


def missing() -> Iterator[str]:
    """Yield a line for each missing prerequisite."""
    if sys.version_info < (3, 11):  # noqa: UP036  # run by whatever Python there is, before anything is installed
        yield (f"Python 3.11 or later (this is {sys.version.split()[0]}); set PYTHON, as in make PYTHON=python3.12, if "
               f"there is another")
    own = os.environ.get("CXX", "").split()
    if own and not shutil.which(own[0]):
        yield f"the C++ compiler that the variable CXX names, {own[0]!r}, or CXX unset"
    elif not own and not any(shutil.which(name) for name in ("g++", "clang++", "c++")):
        yield "a C++ compiler, for the simulated circuit (Debian: apt-get install g++)"
    for tool, why in (("make", "cocotb's builds"), ("perl", "Verilator's wrapper")):
        if shutil.which(tool) is None:
            yield f"{tool}, for {why} (Debian: apt-get install {tool})"
    java = java_version()
    if java is None:
        yield "Java 17 or later, for Spark (Debian: apt-get install openjdk-17-jre-headless), or JAVA_HOME set to one"
    elif java < 17:
        yield f"Java 17 or later, for Spark (found {java}); set JAVA_HOME to a later one"


def java_version() -> int | None:
    """The major version of the Java that Spark would use, or None."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not program or not os.path.exists(program):
        return None
    said = subprocess.run([program, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False).stdout
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found.group(1)) if found else None


def main() -> int:
    """Print the missing prerequisites; the exit code is nonzero if there are any."""
    lines = list(missing())
    for line in lines:
        print("splitjoin needs " + line, file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
