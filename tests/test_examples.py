"""The scripts and notebooks of examples/ run: here on cheap devices with little data, in the long tests as users do."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(path.stem for path in (EXAMPLES / "notebooks").glob("*.ipynb"))


def run(name: str, *arguments: str, folder: Path) -> str:
    """The output of the script in a process of its own."""
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *arguments], cwd=folder, capture_output=True,
                          text=True, check=False, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def in_process(name: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the script in this process, which has everything imported already."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_trades_and_quotes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    in_process("trades_and_quotes.py", ("--rows", "300", "--device", "golden"), monkeypatch)
    assert capsys.readouterr().out.startswith("3,055 pairs of 300 trades\n")


def test_trades_and_quotes_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_process("trades_and_quotes.py", ("--rows", "50", "--device", "golden", "--output", f"{tmp_path}/found.parquet"),
               monkeypatch)
    assert (tmp_path / "found.parquet").exists()


def test_nearest_readings(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    in_process("nearest_readings.py", ("--rows", "500", "--device", "golden"), monkeypatch)
    assert capsys.readouterr().out.startswith("50 alarms, 22 of them without")


def test_feature_store(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    in_process("feature_store.py", ("--rows", "300", "--device", "golden"), monkeypatch)
    assert capsys.readouterr().out.startswith("300 rows of features; offline and online ones are equal\n")


def test_serve(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    in_process("serve.py", ("--rows", "1000"), monkeypatch)
    assert capsys.readouterr().out == "23,078 rows followed\n[{'price': 49}]\n"


def test_own_kernel(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    in_process("own_kernel.py", ("--values", "60"), monkeypatch)
    assert "alarms, as in Python" in capsys.readouterr().out


def test_own_condition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    in_process("own_condition.py", ("--rows", "8", "--device", "pysim", "--output", str(tmp_path),
                                     "--testbench", "verilog"), monkeypatch)
    assert "in the same order from the circuit" in capsys.readouterr().out
    assert "\nmodule splitjoin " in (tmp_path / "splitjoin.v").read_text(encoding="utf-8")
    assert "splitjoin.v" in (tmp_path / "Makefile").read_text(encoding="utf-8")


def test_own_topology(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from splitjoin.circuit.architectures import ARCHITECTURES

    monkeypatch.setattr(sys, "argv", ["own_topology.py", "--rows", "8", "--device", "pysim", "--cores", "2"])
    monkeypatch.syspath_prepend(str(EXAMPLES))
    try:
        runpy.run_module("own_topology", run_name="own_topology")["main"]()
    finally:
        ARCHITECTURES.pop("half-chain", None)
    assert "half-chain: " in capsys.readouterr().out


@pytest.mark.long
def test_the_notebook_of_architectures_in_small(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    names: dict[str, Any] = {"quick": True}
    for code in cells("architectures"):
        exec(compile(code, "architectures.ipynb", "exec"), names)
    for found in (names["rates"], names["latencies"], names["by_rows"]):
        assert [values[0] > 0 for values in found.values()] == [True, True]
    assert len(names["precision"]) == len(names["between"]) == 1


def test_two_joins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    in_process("two_joins.py", ("--samples", "20", "--output", str(tmp_path / "two_joins.v")), monkeypatch)
    assert [line.partition(" ")[0] for line in capsys.readouterr().out.splitlines()[:2]] == ["near:", "far:"]
    written = (tmp_path / "two_joins.v").read_text(encoding="utf-8")
    assert all(f"\nmodule \\two_joins.{name} (" in written for name in ("near", "far"))


@pytest.mark.parametrize(("name", "found", "least"), [("analyst", "pairs", 100), ("features", "served", 4000)])
def test_a_notebook_s_cells_run_one_after_the_other(name: str, found: str, least: int) -> None:
    """Those on the CPU; a kernel of Jupyter's runs all of them in the long tests."""
    import pandas as pd

    names: dict[str, Any] = {}
    shown = []
    for cell in code_cells(name):
        tree = ast.parse("".join(cell["source"]))
        value = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{name}.ipynb", "exec"), names)
        if isinstance(value, ast.Expr):
            result = eval(compile(ast.Expression(value.value), f"{name}.ipynb", "eval"), names)
            if result is not None:
                with pd.option_context("display.max_columns", 20):
                    text = repr(result)
                shown.append((text, "".join(cell["outputs"][0]["data"]["text/plain"])))
    assert len(names[found]) >= least
    assert len(shown) >= 3
    threads = re.compile(r"; [^;\n]*\bthreads?\b[^;\n]*")  # as many as the machine has
    assert [threads.sub("", now) for now, _ in shown] == [threads.sub("", committed) for _, committed in shown]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_committed_with_the_outputs_of_one_run(name: str) -> None:
    """By `python -m tests.support.notebooks`: in order, without warnings, errors and folders of a machine."""
    code = code_cells(name)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert outputs[-1]["output_type"] != "display_data" or outputs[-1]["data"]["image/png"]
    for output in outputs:
        assert output["output_type"] in ("stream", "execute_result", "display_data")
        assert output.get("name") != "stderr"
        assert not re.search(r"/(home|root|tmp|work)/", json.dumps(output))


def code_cells(name: str) -> list[dict[str, Any]]:
    """The cells of a notebook that are code."""
    book = json.loads((EXAMPLES / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def cells(name: str) -> list[str]:
    """The code of a notebook's cells."""
    return ["".join(cell["source"]) for cell in code_cells(name)]


@pytest.mark.long
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run_in_a_kernel(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    done = subprocess.run([sys.executable, "-c", "from nbclient.cli import main; main()", "--output",
                           str(tmp_path / "run.ipynb"), str(EXAMPLES / "notebooks" / f"{name}.ipynb")], cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert '"outputs": [\n' in (tmp_path / "run.ipynb").read_text(encoding="utf-8")


@pytest.mark.long
def test_own_condition_on_verilator(tmp_path: Path) -> None:
    assert "in the same order from the circuit" in run(
        "own_condition.py", "--output", "circuit", "--testbench", "verilog", folder=tmp_path)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    made = subprocess.run(["make", "-C", str(tmp_path / "circuit")], capture_output=True, text=True, check=False,
                          env=environment)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "PASS" in made.stdout


@pytest.mark.long
def test_a_cocotb_bench_of_one_s_own(tmp_path: Path) -> None:
    assert run("cocotb_bench/run.py", folder=tmp_path).endswith("2 of 2 tests passed\n")


@pytest.mark.long
def test_a_job_for_spark_submit(tmp_path: Path) -> None:
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    done = subprocess.run([str(submit), "--master", "local[2]", str(EXAMPLES / "spark_job.py"), "orders", "offers",
                           "pairs", "--demo", "2000"], cwd=tmp_path, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"})
    assert done.returncode == 0, done.stderr[-3000:]
    assert "pairs\n" in done.stdout
    assert list((tmp_path / "pairs").glob("*.parquet"))


def soc(circuit: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The run of the example SoC for LiteX, beside the folder ``circuit``."""
    return subprocess.run([sys.executable, "-B", str(EXAMPLES / "litex" / "soc.py"), circuit.name, *arguments],
                          cwd=circuit.parent, capture_output=True, text=True, check=False,
                          env={name: value for name, value in os.environ.items() if name != "MAKEFLAGS"})


def circuit_with_axi(folder: Path, *options: str) -> Path:
    """The folder ``circuit`` in ``folder``, with a circuit for the SoC."""
    from splitjoin.cli import main

    written = folder / "circuit"
    assert main(["verilog", "--on", "abs(r.x - s.a) <= 3", "--schema-r", "ts: int64, x: int32", "--schema-s",
                 "ts: int64, a: int32", "--time", "ts", "--window", "RANGE 40", "--cores", "1", "--capacity", "64",
                 *options, "-o", str(written)]) == 0
    return written


def test_a_soc_of_litex(tmp_path: Path) -> None:
    circuit = circuit_with_axi(tmp_path, "--top", "axi", "--name", "near")
    done = soc(circuit, "--name", "near")
    assert done.returncode == 0, done.stderr
    addresses = json.loads((tmp_path / "build" / "csr.json").read_text())
    assert addresses["memories"]["near"] == {"base": 0x90000000, "size": 4096, "type": "io"}
    assert {"near_reader_base", "near_writer_offset"} <= set(addresses["csr_registers"])
    assert "near_axi near_axi(" in " ".join((tmp_path / "build" / "soc.v").read_text().split())
    listed = (tmp_path / "build" / "sources.f").read_text().split()
    assert listed == [str(circuit / "near.v"), str(circuit / "near_axi.v")]
    assert "write it by --testbench verilog" in soc(circuit, "--name", "near", "--simulate", "verilator").stderr


@pytest.mark.long  # others simulate these AXI ports, and build the SoC
@pytest.mark.parametrize(("bus", "options"), [
    ("axi-lite", ()), ("wishbone", ("--order", "none")),
    ("wishbone", ("--how", "left", "--aggregate", "n=count(*)", "--aggregate", "m=avg(s.a)"))])
def test_a_soc_of_litex_joins_as_the_golden_model_does(bus: str, options: tuple[str, ...], tmp_path: Path) -> None:
    circuit = circuit_with_axi(tmp_path, "--top", "axi", "--testbench", "verilog", "--testbench-tuples", "60", *options)
    arguments = "--bus-standard", bus, "--simulate", "verilator"
    done = soc(circuit, *arguments)
    assert done.returncode == 0, done.stderr
    assert "PASS: 121 records, " in done.stdout
    # The check checks: an answer with one other item is refused.
    items = (circuit / "items.hex").read_text().split()
    items[-2] = f"{int(items[-2], 16) ^ 1 << 3:x}"  # the row of R in the last item but END
    (circuit / "items.hex").write_text("\n".join(items))
    done = soc(circuit, *arguments)
    assert (done.returncode, "FAIL: 121 records, " in done.stdout) == (1, True), done.stderr
