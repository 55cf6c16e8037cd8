"""The circuit in LiteX: the example SoC is generated, simulated, and joins as the golden model does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from splitjoin.circuit.axi import AxiShape
from splitjoin.circuit.export.litex import litex_files
from splitjoin.circuit.wire import Configuration
from splitjoin.cli import main

from .test_ip import ARGUMENTS


def soc(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and text of ``litex_soc.py``. Bytecode of the script's modules would change the folder."""
    done = subprocess.run([sys.executable, "-B", str(folder / "litex_soc.py"), "--output-dir", str(folder / "build"),
                           *arguments], cwd=folder, capture_output=True, text=True, check=False,
                          env={name: value for name, value in os.environ.items() if name != "MAKEFLAGS"})
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long  # others simulate these AXI ports, and build the SoC
@pytest.mark.parametrize(("bus", "options"), [
    ("axi-lite", ()), ("wishbone", ("--order", "none")),
    ("wishbone", ("--name", "near", "--how", "left", "--aggregate", "n=count(*)", "--aggregate", "m=avg(s.a)"))])
def test_the_example_soc_joins(bus: str, options: tuple[str, ...], tmp_path: Path) -> None:
    assert main([*ARGUMENTS, *options, "-o", str(tmp_path)]) == 0
    code, text = soc(tmp_path, "--bus-standard", bus, "--simulate", "verilator")
    assert code == 0 and "PASS: 121 records, " in text, text
    # The check checks: an answer with one other item is refused.
    items = (tmp_path / "items.hex").read_text().split()
    items[-2] = f"{int(items[-2], 16) ^ 1 << 3:x}"  # the row of R in the last item but END
    (tmp_path / "items.hex").write_text("\n".join(items))
    code, text = soc(tmp_path, "--bus-standard", bus, "--simulate", "verilator")
    assert code == 1 and "FAIL: 121 records, " in text, text


def test_without_a_testbench_the_soc_is_only_written(tmp_path: Path) -> None:
    arguments = [*ARGUMENTS[:ARGUMENTS.index("--testbench")], "-o", str(tmp_path)]
    assert main(arguments) == 0
    before = {path.name for path in tmp_path.iterdir()}
    assert {"splitjoin_litex.py", "litex_soc.py"} <= before and "litex_tb.v" not in before
    code, text = soc(tmp_path)
    assert code == 0, text
    assert {path.name for path in tmp_path.iterdir()} == before | {"build"}
    addresses = json.loads((tmp_path / "build" / "csr.json").read_text())
    assert addresses["memories"]["splitjoin"] == {"base": 0x90000000, "size": 4096, "type": "io"}
    assert {"splitjoin_reader_base", "splitjoin_writer_offset"} <= set(addresses["csr_registers"])
    verilog = (tmp_path / "build" / "soc.v").read_text()
    assert "splitjoin_axi splitjoin_axi(" in " ".join(verilog.split())
    listed = (tmp_path / "build" / "sources.f").read_text().split()
    assert listed == [str(tmp_path / "splitjoin.v"), str(tmp_path / "splitjoin_axi.v")]
    assert soc(tmp_path, "--simulate", "verilator")[0] == 2


def test_the_wrapper_has_the_widths_of_the_circuit() -> None:
    config = Configuration(cores=2, capacity=64, keys_r=(64, 64, 32), keys_s=(64, 64, 32), tests=((0, 0), (1, 1)),
                           tree=6)
    written = litex_files(config, ["a.v", "b.v"], "top", "top_axi", None)
    assert set(written) == {"top_litex.py", "litex_soc.py"}
    shape = AxiShape.of(config)
    assert f"RECORD_BITS, ITEM_BITS = {8 * shape.record_bytes}, {8 * shape.item_bytes}" in written["top_litex.py"]
    assert 'SOURCES = ("a.v", "b.v",)' in written["top_litex.py"]
    assert 'Instance("top_axi",' in written["top_litex.py"]
