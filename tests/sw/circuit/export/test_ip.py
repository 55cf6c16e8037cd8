"""FuseSoC, IP-XACT and SystemRDL descriptions, read by their own tools and compared with the circuit's definitions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from bench.wire_page import wire_page
from ipyxact.ipyxact import Component
from systemrdl import RDLCompiler

from splitjoin.circuit.axi import CONTROL_WORD
from splitjoin.circuit.registers import REGISTERS
from splitjoin.cli import main
from splitjoin_sim.tools import find_verilator

from ....support.icarus import needs_icarus
from ....support.sampling import at_length

ARGUMENTS = ("verilog", "--on", "abs(r.x - s.a) <= 3", "--schema-r", "ts: int64, x: int32", "--schema-s",
             "ts: int64, a: int32", "--time", "ts", "--window", "RANGE 40", "--cores", "1", "--capacity", "64", "--top",
             "axi", "--testbench", "verilog", "--testbench-tuples", "60")
#: The namespace of IEEE 1685-2009, which Vivado reads.
NAMESPACE = "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009"
#: Word address → access, of all words.
WORDS = {reg.address + n: reg.access for reg in REGISTERS for n in range(reg.bits // 32)} | {CONTROL_WORD: "w"}
#: The name of each register at its first word.
NAMES = {reg.address: reg.name for reg in REGISTERS} | {CONTROL_WORD: "control"}


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ip")
    assert main([*ARGUMENTS, "-o", str(folder)]) == 0
    return folder


def test_system_rdl_has_the_addresses_of_the_circuit(core: Path) -> None:
    compiler = RDLCompiler()
    compiler.compile_file(str(core / "splitjoin_axi.rdl"))
    registers = list(compiler.elaborate().top.registers())
    assert {reg.absolute_address // 4: "".join(
        way for way, held in (("r", reg.has_sw_readable), ("w", reg.has_sw_writable)) if held)
        for reg in registers} == WORDS
    for at, name in NAMES.items():
        found, = (reg for reg in registers if reg.absolute_address == 4 * at)
        assert found.inst_name.removesuffix("_lo") == name


def test_ip_xact_has_ports_buses_and_addresses_of_the_circuit(core: Path) -> None:
    component = Component()
    component.load(str(core / "component.xml"))
    registers = component.memoryMaps.memoryMap[0].addressBlock[0].register
    access = {"read-only": "r", "read-write": "rw", "write-only": "w"}
    assert {reg.addressOffset // 4: access[reg.access] for reg in registers} == WORDS
    declared = (core / "splitjoin_axi.v").read_text()
    ports = {port.name for port in component.model.ports.port}
    assert all(f" {name}" in declared for name in ports)
    pins = ElementTree.parse(core / "component.xml").iterfind(".//{*}portMap/{*}physicalPort/{*}name")
    assert {pin.text for pin in pins} == ports
    files = [file.name for file in component.fileSets.fileSet[0].file]
    assert files == ["splitjoin.v", "splitjoin_axi.v"]


def test_ip_xact_has_the_interfaces_and_views_that_vivado_looks_for(core: Path) -> None:
    """Clock and reset with their association and polarity; the kinds of interfaces of block designs."""
    tree = ElementTree.parse(core / "component.xml")
    spirit = f"{{{NAMESPACE}}}"
    found = {}
    for bus in tree.iterfind(f".//{spirit}busInterface"):
        kind = bus.find(f"{spirit}busType")
        assert kind is not None
        parameters = {item.findtext(f"{spirit}name"): item.findtext(f"{spirit}value")
                      for item in bus.iterfind(f"{spirit}parameters/{spirit}parameter")}
        assert kind.get(f"{spirit}vendor") == "xilinx.com" and kind.get(f"{spirit}version") == "1.0"
        found[bus.findtext(f"{spirit}name")] = (
            f"{kind.get(f'{spirit}library')}:{kind.get(f'{spirit}name')}",
            "master" if bus.find(f"{spirit}master") is not None else "slave", parameters)
    assert found == {
        "s_axis": ("interface:axis", "slave", {"TDATA_NUM_BYTES": "16", "HAS_TLAST": "1"}),
        "m_axis": ("interface:axis", "master", {"TDATA_NUM_BYTES": "16", "HAS_TLAST": "1"}),
        "s_axil": ("interface:aximm", "slave", {"PROTOCOL": "AXI4LITE", "DATA_WIDTH": "32"}),
        "aclk": ("signal:clock", "slave", {"ASSOCIATED_BUSIF": "s_axis:m_axis:s_axil", "ASSOCIATED_RESET": "aresetn"}),
        "aresetn": ("signal:reset", "slave", {"POLARITY": "ACTIVE_LOW"})}
    views = {view.findtext(f"{spirit}envIdentifier"): view.findtext(f"{spirit}modelName")
             for view in tree.iterfind(f".//{spirit}view")}
    assert views == {":vivado.xilinx.com:synthesis": "splitjoin_axi", ":vivado.xilinx.com:simulation": "splitjoin_axi"}


def test_memory_is_an_axi4_master_with_a_base_register(tmp_path: Path) -> None:
    asked = [*ARGUMENTS[:ARGUMENTS.index("--testbench")], "--memory", "axi", "--contexts", "4", "--core", "bucket"]
    assert main([*asked, "-o", str(tmp_path)]) == 0
    memory = json.loads((tmp_path / "splitjoin.json").read_text())["axi"]["memory"]
    compiler = RDLCompiler()
    compiler.compile_file(str(tmp_path / "splitjoin_axi.rdl"))
    base = [reg for reg in compiler.elaborate().top.registers() if reg.inst_name.startswith("memory_base")]
    assert [reg.absolute_address for reg in base] == [memory["base_byte_address"], memory["base_byte_address"] + 4]
    tree, names = ElementTree.parse(tmp_path / "component.xml"), {"s": NAMESPACE}
    master, = (bus for bus in tree.iterfind(".//s:busInterface", names) if bus.findtext("s:name", "", names) == "m_axi")
    given = {item.findtext("s:name", "", names): item.findtext("s:value", "", names)
             for item in master.iterfind("s:parameters/s:parameter", names)}
    assert given == {"PROTOCOL": "AXI4", "DATA_WIDTH": "128", "ADDR_WIDTH": "64", "ID_WIDTH": "4",
                     "MAX_BURST_LENGTH": "1", "SUPPORTS_NARROW_BURST": "0", "NUM_READ_OUTSTANDING": "16",
                     "NUM_WRITE_OUTSTANDING": "16"}
    space = master.find("s:master/s:addressSpaceRef", names)
    assert space is not None
    assert [found.text for found in tree.iterfind(".//s:addressSpace/s:name", names)] == [
        space.get(f"{{{NAMESPACE}}}addressSpaceRef")]
    pins = {pin.text for pin in master.iterfind(".//s:physicalPort/s:name", names)}
    ports = {port.findtext("s:name", "", names) for port in tree.iterfind(".//s:ports/s:port", names)}
    assert pins == {name for name in ports if name.startswith("m_axi_")} and len(pins) == 37


def fusesoc(core: Path, folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and text of FuseSoC in ``folder``, with ``core`` as its library."""
    (folder / "fusesoc.conf").write_text(f"[library.splitjoin]\nlocation = {core}\nsync-type = local\n")
    done = subprocess.run([sys.executable, "-c", "import sys; from fusesoc.main import main; sys.exit(main())",
                           *arguments], cwd=folder, capture_output=True, text=True, check=False,
                          env=find_verilator().environment() | {"PYTHONWARNINGS": "ignore"})
    return done.returncode, done.stdout + done.stderr


def test_fusesoc_finds_the_core_and_lints_it(core: Path, tmp_path: Path) -> None:
    code, text = fusesoc(core, tmp_path, "core", "list")
    assert code == 0 and "splitjoin:ip:splitjoin_axi:" in text, text
    code, text = fusesoc(core, tmp_path, "run", "--target=lint", "splitjoin:ip:splitjoin_axi")
    assert code == 0, text


@pytest.mark.parametrize("simulator", [pytest.param("icarus", marks=needs_icarus), at_length("verilator")])
def test_fusesoc_runs_the_testbench_and_fails_with_it(simulator: str, tmp_path: Path) -> None:
    folder = tmp_path / "core"
    assert main([*ARGUMENTS, "-o", str(folder)]) == 0
    command = ("run", "--target=sim", f"--tool={simulator}", "--clean", "splitjoin:ip:splitjoin_axi")
    code, text = fusesoc(folder, tmp_path, *command)
    assert code == 0 and "PASS: 121 records, " in text, text
    # The check checks: an answer with one other item is refused, and FuseSoC's exit code says so.
    items = (folder / "items.hex").read_text()
    at = items.rindex("000000")
    (folder / "items.hex").write_text(items[:at] + "100000" + items[at + 6:])
    code, text = fusesoc(folder, tmp_path, *command)
    assert code != 0 and "FAIL: an item is not in the answer" in text and "PASS" not in text, text


def test_the_helpers_pack_and_unpack_what_the_driver_sends(core: Path) -> None:
    """The module beside the circuit agrees with the vectors, field by field, and refuses what does not fit."""
    wire: dict[str, Any] = {}
    exec((core / "splitjoin_wire.py").read_text(), wire)
    records = [int(line, 16) for line in (core / "records.hex").read_text().split()]
    assert len(records) == 121
    for number in records[:-1]:
        found = wire["unpack"](wire["FIELDS"]["input"], number)
        side = "rs"[found["stream"]]
        body = wire["unpack"](wire["FIELDS"][f"body_{side}"], found["body"])
        data = wire["tuple_record"](side, body, found["ts"])
        assert int.from_bytes(data, "little") == number
        assert len(data) == wire["RECORD_BYTES"]
    assert int.from_bytes(wire["flush_record"](), "little") == records[-1]
    item = (core / "items.hex").read_text().split()[-1]
    assert wire["unpack_item"](int(item, 16).to_bytes(16, "little"))["kind"] == wire["KINDS"]["END"]
    assert wire["REGISTERS"] == {reg.name: reg.address for reg in REGISTERS}
    with pytest.raises(ValueError, match="key0 must be from 0"):
        wire["tuple_record"]("r", {"key0": -1})
    with pytest.raises(ValueError, match="fields must be among"):
        wire["tuple_record"]("r", {"key9": 1})


def test_the_page_of_the_wire_format_is_current() -> None:
    page = Path(__file__).parents[4] / "docs" / "wire.md"
    assert page.read_text(encoding="utf-8") == wire_page(), "python -m bench.wire_page writes it"


def test_a_testbench_says_what_it_cannot_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A window that overflows stops the circuit."""
    small = [*ARGUMENTS]
    small[small.index("64")] = "16"
    assert main([*small, "-o", str(tmp_path / "v")]) == 1
    assert "--capacity" in capsys.readouterr().err
    assert main([*ARGUMENTS[:-1], "0", "-o", str(tmp_path / "v")]) == 1
    assert not (tmp_path / "v").exists()
