"""Descriptions of the circuit with AXI ports for other people's tools: FuseSoC, IP-XACT and SystemRDL.

All of them are made from the definitions that the circuit and its drivers use: `splitjoin.circuit.registers` and
`splitjoin.circuit.axi`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from ..circuit.axi import ADDRESS_BITS, CONTROL_WORD
from ..circuit.registers import REGISTERS
from ..version import __version__

__all__ = ["fusesoc_core", "ip_xact", "system_rdl"]

_NAMESPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
_ACCESS = {"r": "read-only", "rw": "read-write"}


def fusesoc_core(top: str, sources: list[str], waivers: str, testbench: str | None) -> str:
    """A FuseSoC core file (CAPI2): targets ``default``, ``lint``, and ``sim`` if there is a Verilog testbench."""
    rtl = "".join(f"      - {name}\n" for name in sources)
    lines = ["CAPI=2:", f"name: splitjoin:ip:{top}:{__version__}",
             "description: Join of two streams, with AXI4-Stream records in and items out, and AXI4-Lite registers",
             "", "filesets:", "  rtl:", "    files:", rtl.rstrip("\n"), "    file_type: verilogSource-2005", "  lint:",
             "    files:", f"      - {waivers}: {{file_type: vlt}}"]
    if testbench is not None:
        lines += ["  tb:", "    files:", f"      - {testbench}", "    file_type: verilogSource-2005",
                  "  vectors:", "    files:", *(f"      - {name}: {{file_type: user, copyto: {name}}}"
                                  for name in ("records.hex", "items.hex", "writes.hex"))]
    lines += ["", "targets:", "  default: &default", "    filesets: [rtl]", f"    toplevel: {top}", "  lint:",
              "    <<: *default", "    description: Verilator's lint with the waivers", "    filesets: [lint, rtl]",
              "    default_tool: verilator", "    tools:", "      verilator:", "        mode: lint-only",
              "        verilator_options: [-Wall]"]
    if testbench is not None:
        lines += ["  sim:", "    <<: *default", "    description: The testbench against the golden model's answer",
                  "    filesets: [rtl, tb, vectors]", "    toplevel: testbench", "    default_tool: icarus",
                  "    tools:", "      icarus:", "        iverilog_options: [-g2005]", "      verilator:",
                  "        mode: binary",
                  "        verilator_options: [--timing, -CFLAGS, -std=c++20, -Wno-fatal, -Wno-lint]"]
    return "\n".join([*lines, ""])


def _words() -> list[tuple[str, int, str, str]]:
    """Name, word address, access, and description of each 32-bit word."""
    words: list[tuple[str, int, str, str]] = []
    for reg in REGISTERS:
        unit = f", in {reg.unit}" if reg.unit else ""
        for n in range(reg.bits // 32):
            half = ("" if reg.bits == 32 else "_lo" if n == 0 else "_hi")
            which = {"": "", "_lo": " (low word; reading it latches the high word)", "_hi": " (high word)"}[half]
            words.append((f"{reg.name}{half}", reg.address + n, reg.access, f"{reg.description}{unit}{which}"))
    words.append(("control", CONTROL_WORD, "rw", "writing 1 to bit 0 resets the join; it reads 0"))
    return words


def system_rdl(top: str) -> str:
    """The registers in SystemRDL 2.0: byte addresses of 32-bit words, as AXI4-Lite has them."""
    lines = [f"addrmap {top} {{", "    default regwidth = 32;", "    default accesswidth = 32;",
             "    addressing = compact;", "    littleendian;", ""]
    for name, at, access, text in _words():
        software, hardware = (access, "w") if access == "r" else ("w" if name == "control" else "rw", "r")
        field = "value[31:0]" if name != "control" else "reset[0:0]"
        reset = " = 0" if access == "rw" else ""
        lines += [f"    reg {{ desc = {_rdl(text)};",
                  f"        field {{ sw = {software}; hw = {hardware}; }} {field}{reset};",
                  f"    }} {name} @ 0x{4 * at:02X};"]
    return "\n".join([*lines, "};", ""])


def _rdl(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def ip_xact(top: str, ports: Mapping[str, Mapping[str, Any]], sources: list[str]) -> str:
    """An IP-XACT component (IEEE 1685-2014): bus interfaces, register map, ports and files."""
    def element(name: str, /, *inner: str, **attributes: str) -> str:
        text = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
        return f"<ipxact:{name}{text}>{''.join(inner)}</ipxact:{name}>"

    def empty(name: str, /, **attributes: str) -> str:
        return f"<ipxact:{name}{''.join(f' {key}={quoteattr(value)}' for key, value in attributes.items())}/>"

    def bus(name: str, library: str, kind: str, mode: str, ports_of: Mapping[str, str]) -> str:
        maps = "".join(element("portMap", element("logicalPort", element("name", logical)),
                               element("physicalPort", element("name", physical)))
                       for logical, physical in ports_of.items())
        place = {"vendor": "amba.com", "version": "r0p0_0"}
        return element("busInterface", element("name", name),
                       empty("busType", library=library, name=kind, **place),
                       element("abstractionTypes", element("abstractionType", empty(
                           "abstractionRef", library=library, name=f"{kind}_rtl", **place), element("portMaps", maps))),
                       mode)

    stream = ("tdata", "tvalid", "tready", "tlast")
    axil = [port.removeprefix("s_axil_") for port in ports if port.startswith("s_axil_")]
    buses = "".join([
        bus("s_axis", "AMBA4", "AXI4Stream", empty("slave"), {name.upper(): f"s_axis_{name}" for name in stream}),
        bus("m_axis", "AMBA4", "AXI4Stream", empty("master"), {name.upper(): f"m_axis_{name}" for name in stream}),
        bus("s_axil", "AMBA4", "AXI4Lite", element("slave", empty("memoryMapRef", memoryMapRef="registers")),
            {name.upper(): f"s_axil_{name}" for name in axil}),
    ])
    registers = "".join(
        element("register", element("name", name), element("description", escape(text)),
                element("addressOffset", f"'h{4 * at:X}"), element("size", "32"),
                element("access", "write-only" if name == "control" else _ACCESS[access]),
                element("field", element("name", "value"), element("bitOffset", "0"), element("bitWidth", "32")))
        for name, at, access, text in _words())
    block = element("addressBlock", element("name", "block"), element("baseAddress", "'h0"),
                    element("range", f"{2**ADDRESS_BITS}"), element("width", "32"), element("usage", "register"),
                    element("access", "read-write"), registers)
    wires = "".join(
        element("port", element("name", name), element("wire", element("direction", port["direction"]), *(
            [element("vectors", element("vector", element("left", f"{port['width'] - 1}"), element("right", "0")))]
            if port["width"] > 1 else []))) for name, port in ports.items())
    files = "".join(element("file", element("name", name), element("fileType", "verilogSource")) for name in sources)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + (
        f'<ipxact:component xmlns:ipxact="{_NAMESPACE}">'
        + "".join(element(name, value) for name, value in (
            ("vendor", "splitjoin"), ("library", "ip"), ("name", top), ("version", __version__)))
        + element("busInterfaces", buses)
        + element("memoryMaps", element("memoryMap", element("name", "registers"), block))
        + element("model", element("views", element("view", element("name", "rtl"), element(
            "componentInstantiationRef", "rtl"))), element("instantiations", element(
                "componentInstantiation", element("name", "rtl"), element("language", "verilog"), element(
                    "moduleName", top), element("fileSetRef", element("localName", "rtl")))), element("ports", wires))
        + element("fileSets", element("fileSet", element("name", "rtl"), files))
        + "</ipxact:component>\n").replace("><ipxact:", ">\n<ipxact:")
