"""``--name``: the modules and files of two circuits in one design do not collide."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from systemrdl import RDLCompiler

from splitjoin.circuit.wire import Configuration
from splitjoin.cli import main
from splitjoin_hw.verilog import check_name, to_axi_verilog, to_verilog

from ....support.sampling import at_length

ARGUMENTS = ("verilog", "--schema-r", "x: int16", "--schema-s", "a: int16", "--on", "r.x = s.a", "--window", "ROWS 8",
             "--cores", "1", "--capacity", "16", "--small")
#: Files that every circuit with AXI ports and a testbench has under one name.
COMMON = {"component.xml", "Makefile", "testbench.v", "records.hex", "items.hex", "writes.hex"}


def modules(text: str) -> list[str]:
    """The names of the modules in a Verilog text."""
    return re.findall(r"^module (\w+)", text, re.MULTILINE)


def test_modules_and_files_begin_with_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "trades"
    assert main([*ARGUMENTS, "--top", "axi", "--testbench", "verilog", "--testbench-tuples", "10", "--name", "trades",
                 "-o", str(folder)]) == 0
    files = {path.name for path in folder.iterdir()}
    own = {f"trades{end}" for end in (".v", "_axi.v", ".vlt", ".json", "_wire.py", "_wire.h", "_axi.core", "_axi.rdl")}
    assert files == own | COMMON
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in files}
    for name in ("trades.v", "trades_axi.v"):
        assert all(module.startswith("trades") for module in modules(texts[name])), name
    assert re.search(r"^  trades circuit \(", texts["trades_axi.v"], re.MULTILINE)
    assert "name: splitjoin:ip:trades_axi:" in texts["trades_axi.core"] and "- trades.v" in texts["trades_axi.core"]
    assert "<spirit:name>trades_axi</spirit:name>" in texts["component.xml"]
    compiler = RDLCompiler()
    compiler.compile_file(str(folder / "trades_axi.rdl"))
    assert compiler.elaborate().top.inst_name == "trades_axi"
    assert json.loads(texts["trades.json"])["top"] == "trades_axi"
    assert "trades_axi dut (" in texts["testbench.v"] and "trades.v trades_axi.v testbench.v" in texts["Makefile"]
    for name in own:  # nothing else is called by the name of an unnamed circuit
        assert not re.search(r"splitjoin[._]\w*(v|json|vlt|py|axi)\b", texts[name]), name


def test_two_circuits_have_no_module_in_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("near", "far"):
        assert main([*ARGUMENTS, "--name", name, "-o", str(tmp_path)]) == 0
    near, far = (modules((tmp_path / f"{name}.v").read_text()) for name in ("near", "far"))
    assert len(near) == len(far) > 3 and not set(near) & set(far)
    # What both would have under the same name is not overwritten.
    assert main([*ARGUMENTS, "--name", "near", "--testbench", "verilog", "-o", str(tmp_path)]) == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    capsys.readouterr()
    assert main([*ARGUMENTS, "--name", "far", "--testbench", "verilog", "-o", str(tmp_path)]) == 1
    assert "needs a folder of its own" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def code(text: str) -> list[str]:
    """The words of a Verilog text without its comments, whose lines may break elsewhere."""
    return re.sub(r"//.*", "", text).split()


@pytest.mark.parametrize("cores", [1, at_length(2)])
def test_a_name_changes_nothing_else(cores: int) -> None:
    config = Configuration(keys_r=(8,), keys_s=(8,), tests=((0, 0),), tree=0, cores=cores, capacity=16)
    for write in (to_verilog, to_axi_verilog):
        assert write(config, "splitjoin") == write(config)
        assert code(re.sub(r"\bx7(?=\b|_)", "splitjoin", write(config, "x7"))) == code(write(config))


@pytest.mark.parametrize("name", ["", "7up", "a-b", "a b", "a__b", "a_", "_a", "modul\u00e9", "module", "logic", "long",
                                  "testbench", "x" * 65, "a.b", "../a"])
def test_names_that_no_module_can_have(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ARGUMENTS, "--name", name, "-o", str(tmp_path / "v")]) == 1
    assert f"but it is {name!r}; give another --name" in capsys.readouterr().err
    assert not (tmp_path / "v").exists()


def test_names_of_modules() -> None:
    for name in ("a", "Trades2", "near_join", "x" * 64):
        assert check_name(name) == name
