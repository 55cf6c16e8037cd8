"""Every sort of design that ``splitjoin verilog`` writes: what is documented of one holds for all."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from splitjoin.circuit.wire import Configuration
from splitjoin.hw.verilog import AXI_TOP, TOP, WAIVERS, to_verilog
from splitjoin.sim.tools import find_verilator

from ...support.designs import DESIGNS, written
from ...support.sampling import at_length


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("designs")


def lint(top: str, waivers: Path, *sources: Path) -> tuple[int, str]:
    """Exit code and text of the lint that FuseSoC's target ``lint`` runs."""
    verilator = find_verilator()
    command = [str(verilator.program), "--lint-only", "-Wall", "--quiet", "--top-module", top, str(waivers),
               *map(str, sources)]
    done = subprocess.run(command, env=verilator.environment(), capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("sort", DESIGNS)
def test_lints_clean(sort: str, folder: Path) -> None:
    """Verilator's lint warns of nothing but what the waiver file explains."""
    design = written(sort, folder)
    sources = [design / f"{TOP}.v", design / f"{AXI_TOP}.v"]
    assert lint(AXI_TOP, design / f"{TOP}.vlt", *sources) == (0, "")


@pytest.mark.parametrize(("cores", "lanes", "probes"), [at_length(2, 4, 8), at_length(2, 1, 1), at_length(8, 4, 8)])
def test_larger_circuits_lint_clean(cores: int, lanes: int, probes: int, tmp_path: Path) -> None:
    config = Configuration(keys_r=(16, 8), keys_s=(16,), tests=((0, 0), (1, 0)), tree=("and", 0, 1), capacity=16,
                           time_bits=32)
    source = tmp_path / f"{TOP}.v"
    source.write_text(to_verilog(replace(config, cores=cores, lanes=lanes, probes=probes)))
    assert lint(TOP, WAIVERS, source) == (0, "")
