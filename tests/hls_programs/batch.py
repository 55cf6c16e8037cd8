"""A batch of random programs: one Verilator model has all of them, and some as one run of Yosys maps them.

A build for each program takes seconds, most of them for what all builds have in common. What takes most of the rest,
numba's compiler, Amaranth's simulator and mapping, is left to the programs that are `Program.whole`; of all others the
text that numba would compile is interpreted.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from amaranth.hdl import Value

from splitjoin import UnsupportedError, hls
from splitjoin.hls.kernels import compiled
from splitjoin_boards.flow.tools import YOSYS
from splitjoin_hw.hls.component import kernel_verilog
from splitjoin_sim.runtime import FLAGS, UNTRACED, header, objects, run_tool
from splitjoin_sim.tools import cxx, find_verilator
from tests.testbench.kernels import check_kernel
from tests.testbench.netlists import CELLS
from tests.testbench.on_amaranth import simulate
from tests.testbench.pauses import MATRIX

from ..support.kernel_cases import kernel_case
from ..support.random_kernels import operands, random_kernel, results

#: Operands of each program.
ROWS = 20
#: Bits of operands and words of 32 bits of results that the driver takes.
_OPERANDS, _WORDS = 64, 8
_LEVEL = "-O0"
_DRIVER = Path(__file__).with_name("drive.cpp")


@dataclass
class Program:
    """A random program. ``whole``: it is compared everywhere; ``case``: as of `kernel_case`."""

    seed: int
    whole: bool
    fn: Any
    rows: list[dict[str, Any]]
    part: Any
    case: dict[str, Any]

    @classmethod
    def of(cls, seed: int, every: int) -> Program:
        """The program of ``seed``, at the first clock and interval that it allows; one of ``every`` is whole."""
        fn = random_kernel(seed)
        rows = operands(fn, ROWS, seed)
        tries: list[dict[str, Any]] = [
            {"clock": [None, 60, 100][seed % 3], "interval": None if seed % 2 else 1 + seed % 4}, {"clock": 30}, {}]
        for how in tries:
            try:
                return cls(seed, seed % every == 0, fn, rows, *kernel_case(fn, rows, **how))
            except UnsupportedError as error:
                assert "interval must be at least" in str(error) or "so the clock must be at most" in str(error)
        raise AssertionError("refused without a clock")

    @property
    def name(self) -> str:
        """The name of its module."""
        return f"program{self.seed}"

    def check(self) -> None:
        """Machine code, or its text, must give what Python gives; and so must Amaranth's simulator, of a whole one."""
        numba.config.DISABLE_JIT = not self.whole
        made = hls.jit(self.fn)(*(np.array([row[p] for row in self.rows]) for p in self.rows[0]))
        values = list(zip(*(a.tolist() for a in made), strict=True)) if isinstance(made, tuple) else made.tolist()
        wanted = results(self.fn, self.rows)
        assert values == wanted, f"machine code gives {values}, but Python {wanted}"
        if not self.whole:
            return
        stalls = MATRIX["both" if self.seed % 3 else "flowing"]
        simulate(self.part, lambda tb: check_kernel(tb, stalls=stalls, **self.case))


def check_batch(seeds: Sequence[int], folder: Path, every: int) -> dict[int, str]:
    """The seeds whose programs are not the same everywhere, with what was found; one of ``every`` is whole."""
    wrong, programs = dict[int, str](), list[Program]()
    for seed in seeds:
        try:
            program = Program.of(seed, every)
            program.check()
            programs.append(program)
        except Exception as error:  # the next ones may find more
            wrong[seed] = f"{type(error).__name__}: {error}"
    (folder / "programs.v").write_text("\n".join(kernel_verilog(p.part._design, p.name) for p in programs))
    mapped = [p for p in programs if p.whole]
    if mapped:
        _map(mapped, folder)
    for n, said in _simulated(programs, mapped, folder).items():
        where = "Verilator" if n < len(programs) else "the netlist"
        wrong.setdefault([*programs, *mapped][n].seed, f"{where}: {said}")
    return wrong


def _map(programs: Sequence[Program], folder: Path) -> None:
    """Map the programs for ECP5, each by itself, and write ``mapped.v``: each as ``…_mapped``, of its cells' models."""
    names = [p.name for p in programs]
    (folder / "roof.v").write_text(_roof(programs, names))
    (folder / "mapped_roof.v").write_text(_roof(programs, [f"{n}_mapped" for n in names]))
    (folder / "cells.v").write_text(CELLS["ecp5"].read_text())
    renamed = "\n".join(f"rename {n} {n}_mapped" for n in names)
    (folder / "map.ys").write_text(f"""
        read_verilog programs.v roof.v
        setattr -mod -set keep_hierarchy 1 {' '.join(names)}
        synth_lattice -family ecp5 -noiopad -top roof
        delete roof
        {renamed}
        setundef -zero
        write_verilog -noattr netlist.v
        design -reset
        read_verilog netlist.v mapped_roof.v
        setattr -mod -set keep_hierarchy 1 {' '.join(f'{n}_mapped' for n in names)}
        read_verilog -D NO_INCLUDES +/lattice/cells_sim_ecp5.v
        read_verilog -overwrite cells.v
        hierarchy -check -top roof
        proc
        flatten
        opt_clean -purge
        delete roof
        write_verilog -noattr mapped.v
    """)
    YOSYS.run(["-q", "map.ys"], folder)


def _roof(programs: Sequence[Program], names: Sequence[str], *, arrays: bool = False) -> str:
    """A module with all circuits ``names`` of ``programs``, each with its part of the ports, which are ``arrays`` for
    Verilator, and vectors for Yosys, which has no arrays as ports.
    """
    count = len(names)
    words = {"input i_payload": _OPERANDS, "input i_valid": 1, "output i_ready": 1, "output o_payload": 32 * _WORDS,
             "output o_valid": 1, "input o_ready": 1}
    ports = ["input clk", "input rst", *(
        (f"{way} [{w - 1}:0] {name} [0:{count - 1}]" if arrays else f"{way} [{w * count - 1}:0] {name}")
        for (way, name), w in ((port.split(), w) for port, w in words.items()))]

    def at(name: str, n: int, bits: int, of: int) -> str:
        return f"{name}[{n}][{bits - 1}:0]" if arrays else f"{name}[{n * of} +: {bits}]"

    lines = []
    for n, name in enumerate(names):
        program = programs[n]
        operand, result = len(Value.cast(program.part.i.payload)), program.case["bits"]
        assert operand <= _OPERANDS and result <= 32 * _WORDS
        wide = 32 * _WORDS
        lines.append(f"wire [{result - 1}:0] result{n};\n"
                     f"assign {at('o_payload', n, wide, wide)} = result{n};\n"
                     f"{name} at{n}(.clk(clk), .rst(rst), .i__payload({at('i_payload', n, operand, _OPERANDS)}), "
                     f".o__payload(result{n}), " + ", ".join(
                         f".{port.replace('_', '__')}({at(port, n, 1, 1)})"
                         for port in ("i_valid", "i_ready", "o_valid", "o_ready")) + ");")
    return f"module roof({', '.join(ports)});\n" + "\n".join(lines) + "\nendmodule\n"


def _simulated(programs: Sequence[Program], mapped: Sequence[Program], folder: Path) -> dict[int, str]:
    """Circuits that do not give what Python gives, with what Verilator found: ``programs``, and ``mapped`` ones."""
    names = [*(p.name for p in programs), *(f"{p.name}_mapped" for p in mapped)]
    (folder / "both.v").write_text(_roof([*programs, *mapped], names, arrays=True))
    verilator, compiler = find_verilator(), cxx()
    run_tool([str(verilator.program), "--cc", "--prefix", "Vtop", "--top-module", "roof", "--Mdir", str(folder),
              "--no-timing", "--x-assign", "fast", "--x-initial", "fast", "-Wno-fatal", "-Wno-lint",
              *(str(folder / f"{n}.v") for n in ("both", "programs", *["mapped"][:len(mapped)]))], verilator)
    everything = folder / "everything.cpp"
    everything.write_text("".join(f'#include "{path}"\n' for path in (*sorted(folder.glob("Vtop*.cpp")), _DRIVER)))
    limit = 8 + max(60 * (p.case["interval"] + 8) * (ROWS + p.case["latency"]) for p in programs) // 8
    # All rows of memories are written first.
    limit += max((1 << m.address_bits for p in programs for m in compiled(p.fn).memories if m.written), default=0)
    options = (_LEVEL, *UNTRACED)
    run_tool([*compiler, *FLAGS, *options, f"-I{folder}", f"-I{verilator.root / 'include'}", "-include",
              str(header(verilator, compiler, options)), f"-DCIRCUITS={len(names)}", f"-DWORDS={_WORDS}",
              f"-DLIMIT={limit}", str(everything), *map(str, objects(verilator, compiler, _LEVEL)), "-o",
              str(folder / "run"), "-lpthread"], verilator)
    cases = [f"{p.seed + half} {len(p.case['operands'])} {len(p.case['results'])} "
             + " ".join(f"{v:x}" for v in p.case["operands"]) + " "
             + " ".join(f"{v:0{8 * _WORDS}x}" for v in p.case["results"])
             for half, some in enumerate((programs, mapped)) for p in some]
    done = subprocess.run([str(folder / "run")], input="\n".join(cases), capture_output=True, text=True, check=True)
    *lines, end = done.stdout.splitlines()
    assert end == "end", done.stdout
    return {int(n): said for n, said in (line.split(" ", 1) for line in lines)}
