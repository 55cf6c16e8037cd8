"""The written Verilog on more than one simulator: the same bench, and the testbenches that are written beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from splitjoin.circuit.export.vectors import vectors
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.query_circuit import pairs_circuit
from splitjoin.cli import main
from splitjoin.engines.arrival import arrivals
from splitjoin_hw.verilog import AXI_TOP, to_axi_verilog, to_verilog
from tests.testbench.runner import run_bench

from ..support.designs import BASELINES
from ..support.icarus import needs_icarus
from ..support.scenarios import SCENARIOS
from .test_axi import WARNINGS, ran_for


@pytest.mark.long
def test_a_bench_runs_on_cxxrtl_as_on_verilator(tmp_path: Path) -> None:
    """A small one, as CXXRTL's C++ of a whole circuit takes a minute to compile."""
    assert run_bench("combiner", tmp_path, simulator="cxxrtl") >= 24


@pytest.mark.long
@pytest.mark.parametrize("simulator", ["cxxrtl", pytest.param("icarus", marks=needs_icarus)])
def test_the_bench_of_the_axi_ports_passes_from_time_0(tmp_path: Path,
                                                       simulator: Literal["cxxrtl", "icarus"]) -> None:
    parameters = CircuitParameters(cores=2, capacity=64, lanes=2, probes=2)
    scenario, = (case for case in SCENARIOS if case.name == "band-range")
    query = scenario.query("total")
    circuit = pairs_circuit(query, parameters)
    config = circuit.config
    job = vectors(query, circuit, arrivals(query, scenario.r, scenario.s))
    (tmp_path / "vectors.json").write_text(f"[{job.json()}]")
    ran = run_bench("axi", tmp_path / "bench", built=(to_verilog(config) + to_axi_verilog(config), AXI_TOP),
                    simulator=simulator, environment={"SPLITJOIN_VECTORS": str(tmp_path / "vectors.json"),
                                                     "PYTHONWARNINGS": WARNINGS})
    assert ran == ran_for(1, 1)


@pytest.mark.long
@pytest.mark.parametrize("simulator", ["verilator", pytest.param("icarus", marks=needs_icarus)])
@pytest.mark.parametrize("kind", ["cocotb", "verilog"])
@pytest.mark.parametrize(("top", "options"), [
    ("streams", ()), ("streams", ("--order", "none")), ("axi", ()), ("axi", ("--name", "near", "--root-width", "4")),
    ("streams", ("--root-width", "2", "--order", "none")), ("streams", ("--sources", "3")),
    ("axi", ("--sources", "2", "--order", "none")), ("streams", ("--aggregate", "n=count(*)", "--how", "left")),
    ("axi", ("--aggregate", "n=count(*)", "--aggregate", "m=avg(s.a)", "--how", "left")),
    ("streams", ("--how", "semi")), ("axi", ("--how", "asof")),
    ("axi", ("--memory", "axi", "--cores", "1", "--core", "bucket", "--contexts", "4")),
    *(("streams", options) for _, options in BASELINES.values())], ids=str)
def test_written_testbenches_run_by_their_makefile(tmp_path: Path, kind: str, top: str, options: tuple[str, ...],
                                                   simulator: str) -> None:
    assert main(["verilog", "--on", "abs(r.x - s.a) <= 3", "--schema-r", "ts: int64, x: int32", "--schema-s",
                 "ts: int64, a: int32", "--time", "ts", "--window", "RANGE 40", "--cores", "2", "--capacity", "64",
                 "--top", top, "--testbench", kind, "--testbench-tuples", "60", *options, "-o", str(tmp_path)]) == 0

    def make() -> tuple[int, str]:
        done = subprocess.run(["make", "-s", f"SIM={simulator}", f"PYTHON={sys.executable}"], cwd=tmp_path, text=True,
                              capture_output=True, check=False,
                              env={name: value for name, value in os.environ.items() if name != "MAKEFLAGS"})
        return done.returncode, done.stdout + done.stderr

    code, text = make()
    assert code == 0 and "PASS" in text, text
    # The check checks: an answer with one other item is refused.
    wrong = tmp_path / ("vectors.json" if kind == "cocotb" else "items.hex")
    given = json.loads(wrong.read_text()) if kind == "cocotb" else {"items": wrong.read_text().split()}
    given["items"][-2] = f"{int(given['items'][-2], 16) ^ 1 << 3:x}"  # the row of R in the last item but END
    wrong.write_text(json.dumps(given) if kind == "cocotb" else "\n".join(given["items"]))
    code, text = make()
    assert code != 0 and "FAIL" in text, text
