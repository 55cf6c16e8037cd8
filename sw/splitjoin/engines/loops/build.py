"""Builds the library of compiled loops from the C++ beside this file, by the compiler that PyPI's ``ziglang`` brings,
or the system's.

Imports nothing of splitjoin: the hook that makes wheels (``.ci/wheel_files.py``) runs it before that is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_FOLDER = Path(__file__).parent
#: The tag of a wheel's platform → what zig builds for. glibc is that of manylinux2014; the x86-64 has SSE 4.2 and
#: POPCNT, as NumPy's wheels ask for.
PLATFORMS = {
    "manylinux2014_x86_64": ("x86_64-linux-gnu.2.17", "x86_64_v2"),
    "manylinux2014_aarch64": ("aarch64-linux-gnu.2.17", "baseline"),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", "apple_m1"),
    "macosx_11_0_x86_64": ("x86_64-macos.11.0", "x86_64_v2"),
    "win_amd64": ("x86_64-windows-gnu", "x86_64_v2"),
}
#: The system and processor of Python's `platform` → the platform of a wheel.
_HERE = {("Linux", "x86_64"): "manylinux2014_x86_64", ("Linux", "aarch64"): "manylinux2014_aarch64",
         ("Darwin", "arm64"): "macosx_11_0_arm64", ("Darwin", "x86_64"): "macosx_11_0_x86_64",
         ("Windows", "AMD64"): "win_amd64"}
_OPTIONS = ("-std=c++20", "-O3", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-ffp-contract=off",
            "-Wno-psabi")
#: Of our objects alone: linking with them, zig would compile Windows' threads without the tables that these need.
_NO_TABLES = ("-fno-unwind-tables", "-fno-asynchronous-unwind-tables")
#: Levels of x86-64 that the library has versions for beside that of all processors; it takes the highest one at hand.
_LEVELS = (3, 4)


class BuildError(Exception):
    """The library cannot be built."""


def library_name(folder: Path = _FOLDER) -> str:
    """The library's file name, which has a digest of the sources in ``folder`` and beside this file."""
    beside = [] if folder.resolve() == _FOLDER.resolve() else sorted(_FOLDER.glob("*.hpp"))
    sources = b"".join(path.read_bytes() for path in [*sorted(folder.glob("*.?pp")), *beside, Path(__file__)])
    return f"loops-{hashlib.sha256(sources).hexdigest()[:12]}.so"


def build(target: Path, wheel: str | None = None, options: Sequence[str] = (), folder: Path = _FOLDER) -> None:
    """Write the library of the sources in ``folder`` to ``target``, for a platform of `PLATFORMS`, or else for this
    machine. ``options``: further ones of the compiler.

    Raises `BuildError` if there is no compiler, or it fails.
    """
    compiler, here = _compiler(), _HERE.get((platform.system(), platform.machine()))
    is_zig = "ziglang" in compiler
    if not is_zig and wheel not in (None, here):
        raise BuildError(f"the compiled loops for {wheel} need the Python package 'ziglang', which is not installed; "
                         f"pip install ziglang, and leave the variable CXX unset")
    system, processor = PLATFORMS.get(wheel or here or "", ("native", "baseline"))
    ways = [*_OPTIONS, *options, *(("-target", system) if is_zig else ())]
    levels = (2, *_LEVELS) if processor == "x86_64_v2" else (0,)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".loops-") as beside:
        objects, compiling = list[str](), list[tuple[list[str], subprocess.Popen[str]]]()
        for level in levels:
            of = f"-mcpu={processor[:-1]}{level}" if is_zig and level else f"-mcpu={processor}" if is_zig else (
                f"-march=x86-64-v{level}" if level else "-O3")
            names = [f"-DSPLITJOIN_LEVEL={level}", f"-Dsplitjoin=splitjoin_v{level}"]  # of another namespace
            objects.append(str(Path(beside, f"{level}.o").absolute()))
            command = [*compiler, *ways, *_NO_TABLES, of, *names, "-c", str(folder / "loops.cpp"), "-o", objects[-1]]
            compiling.append((command, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)))
        outcomes = [(command, process.communicate()[1], process.returncode) for command, process in compiling]
        made = Path(beside, "library")  # moved to its place as a whole, as other processes may load it
        # Named from within its folder: libraries of macOS have the name that the linker is given in them.
        command = [*compiler, *ways, "-shared", *(("-nostdlib++", "-s") if is_zig else ()), *objects, "-o", made.name]
        if not any(code for *_, code in outcomes):
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=beside)
            outcomes.append((command, done.stderr, done.returncode))
        for command, errors, code in outcomes:
            if code:
                raise BuildError(f"the compiler of the compiled loops failed: {' '.join(command)}\n{errors}")
        made.replace(target)


def built(folder: Path = _FOLDER) -> Path:
    """The library for this machine, beside its sources in ``folder``; builds it if there is none of these sources.

    Raises `BuildError`, and `OSError` for a folder that cannot be written to.
    """
    target = folder / library_name(folder)
    if not target.exists():
        build(target, folder=folder)
        for other in folder.glob("loops-*.so"):
            if other != target:
                with suppress(OSError):  # another process removes it, or has it loaded
                    other.unlink()
    return target


def _compiler() -> list[str]:
    """The command of a C++ compiler: the one that $CXX names, zig's, or the system's."""
    if own := os.environ.get("CXX", "").split():
        return own
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-P", "-m", "ziglang", "c++"]
    for name in ("c++", "g++", "clang++"):
        if (found := shutil.which(name)) is not None:
            return [found]
    raise BuildError("the compiled loops need a C++ compiler; pip install ziglang, or set the variable CXX to one")
