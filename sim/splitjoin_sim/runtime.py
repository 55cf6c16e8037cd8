"""Verilator's run-time library and its precompiled header, compiled once for all models and benches in a cache."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from splitjoin.base.cache import cached, place, publish
from splitjoin.base.errors import ToolError

from .tools import Verilator

#: Options of the compiler for everything that is linked with the run-time library.
FLAGS = ("-fPIC", "-std=c++20", "-faligned-new", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-w")
#: The sources of the run-time library that every model needs.
RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
#: Options of the compiler for models that write no waveforms.
UNTRACED = ("-DVM_TRACE=0",)


def objects(verilator: Verilator, compiler: tuple[str, ...], level: str, names: Iterable[str] = RUNTIME,
            options: tuple[str, ...] = UNTRACED) -> list[Path]:
    """The sources ``names`` of the run-time library as objects, compiled at optimization ``level``, such as ``-O2``."""
    sources = verilator.root / "include"
    return [_compiled(verilator, compiler, (level, *options), sources / name, f"{Path(name).stem}.o", ("-c",))
            for name in names]


def header(verilator: Verilator, compiler: tuple[str, ...], options: tuple[str, ...]) -> Path:
    """The header to include first, which stands for ``verilated.h``, precompiled with ``options``."""
    source = verilator.root / "include" / "verilated.h"
    # The compiler finds the precompiled header by the name of the plain one.
    return _compiled(verilator, compiler, options, source, "verilated.h.gch", ("-x", "c++-header")).with_suffix("")


def _compiled(verilator: Verilator, compiler: tuple[str, ...], options: tuple[str, ...], source: Path, name: str,
              mode: tuple[str, ...]) -> Path:
    """The file ``name`` made of ``source``, in a folder of the cache for its tools and options. Beside a precompiled
    header, the plain one is made.
    """
    key = "\0".join((verilator.version, *FLAGS, *options, compiler_version(compiler)))
    entry = f"runtime-{hashlib.sha256(key.encode()).hexdigest()[:24]}/{name}"

    def make(work: Path) -> Path:
        made, include = work / name, verilator.root / "include"
        run_tool([*compiler, *FLAGS, *options, f"-I{include}", f"-I{include / 'vltstd'}", *mode, str(source), "-o",
                  str(made)], verilator)
        if made.suffix == ".gch":
            plain = made.with_suffix("")
            plain.write_text(f'#include "{source.name}"\n')
            publish(plain, place(entry).with_suffix(""))
        return made

    return cached(entry, make)


def run_tool(command: list[str], verilator: Verilator) -> None:
    """Run Verilator or the compiler. Raises `ToolError` with the last lines of what it said if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, env=verilator.environment(), check=False)
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-12:])
        raise ToolError(f"building the simulation model failed: {Path(command[0]).name} ended with "
                        f"{done.returncode} and said:\n{tail}")


@cache
def compiler_version(compiler: tuple[str, ...]) -> str:
    """The first line of what the compiler says about its version."""
    done = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else " ".join(compiler)
