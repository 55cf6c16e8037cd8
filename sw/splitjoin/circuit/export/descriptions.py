"""Descriptions of a circuit with AXI ports for other tools: a core file for FuseSoC, IP-XACT, and the register map in
SystemRDL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from splitjoin.base.version import __version__

from ..axi import ADDRESS_BITS, CONTROL_WORD, MEMORY_ADDRESS_BITS, MEMORY_WORD, AxiShape, described_memory
from ..registers import REGISTERS, RegisterField
from ..wire import WORD_BITS, Configuration


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


#: Prefix → namespace: of IEEE 1685-2009, and of Vivado's extensions.
_NAMESPACES = {"spirit": "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009", "xilinx": "http://www.xilinx.com"}
_ACCESS = {"r": "read-only", "rw": "read-write", "w": "write-only"}
#: Name of the memory map, of its address block, and of the set of Verilog files.
_MAP, _BLOCK, _FILES = "registers", "block", "rtl"
#: Name of the address space that an AXI4 master sees.
_SPACE = "memory"
#: FPGA families that Vivado offers the component for, as Beta: it uses no cells of a family, but has run on no board.
_FAMILIES = ("artix7", "kintex7", "spartan7", "virtex7", "zynq", "artixuplus", "kintexu", "kintexuplus", "virtexu",
             "virtexuplus", "zynquplus", "versal")


def ip_xact(top: str, config: Configuration, ports: Mapping[str, Mapping[str, Any]], sources: Iterable[str]) -> str:
    """The component ``top`` of ``config``: bus, clock and reset interfaces, registers, ports and files.

    ``ports``: name → ``direction`` and ``width``, as in the JSON file. ``sources``: the names of its Verilog files.
    """
    shape = AxiShape.of(config)
    axil = [name.removeprefix("s_axil_") for name in ports if name.startswith("s_axil_")]
    streams = ("tdata", "tvalid", "tready", "tlast")
    in_memory = config.memory != "bram"
    memory = [_memory(config, [name.removeprefix("m_axi_") for name in ports if name.startswith("m_axi_")])
              ] if in_memory else []
    clocked = "s_axis:m_axis:s_axil" + (":m_axi" if in_memory else "")
    interfaces = [
        _bus("s_axis", "interface", "axis", _element("slave"), {name.upper(): f"s_axis_{name}" for name in streams},
             {"TDATA_NUM_BYTES": shape.record_bytes, "HAS_TLAST": 1}),
        _bus("m_axis", "interface", "axis", _element("master"), {name.upper(): f"m_axis_{name}" for name in streams},
             {"TDATA_NUM_BYTES": shape.item_bytes, "HAS_TLAST": 1}),
        _bus("s_axil", "interface", "aximm", _element("slave", _element("memoryMapRef", memoryMapRef=_MAP)),
             {name.upper(): f"s_axil_{name}" for name in axil}, {"PROTOCOL": "AXI4LITE", "DATA_WIDTH": 32}),
        *memory,
        _bus("aclk", "signal", "clock", _element("slave"), {"CLK": "aclk"},
             {"ASSOCIATED_BUSIF": clocked, "ASSOCIATED_RESET": "aresetn"}),
        _bus("aresetn", "signal", "reset", _element("slave"), {"RST": "aresetn"}, {"POLARITY": "ACTIVE_LOW"})]
    block = _element("addressBlock", _element("name", _BLOCK), _element("baseAddress", 0),
                     _element("range", 2**ADDRESS_BITS), _element("width", 32), _element("usage", "register"),
                     _element("access", "read-write"), *map(_register, register_words(config)))
    files = _element("fileSet", _element("name", _FILES), *(
        _element("file", _element("name", name), _element("fileType", "verilogSource")) for name in sources))
    major, minor, patch = __version__.split(".")[:3]  # Vivado's versions have two numbers, and a revision
    component = _element(
        "component", _element("vendor", "splitjoin"), _element("library", "ip"), _element("name", top),
        _element("version", f"{major}.{minor}"), _element("busInterfaces", *interfaces),
        *([_element("addressSpaces", _element(
            "addressSpace", _element("name", _SPACE), _element("range", 2**MEMORY_ADDRESS_BITS),
            _element("width", described_memory(config)["data_bits"])))] if in_memory else []),
        _element("memoryMaps", _element("memoryMap", _element("name", _MAP), block)),
        _element("model", _element("views", _view(top, "synthesis"), _view(top, "simulation")),
                 _element("ports", *(_port(name, port) for name, port in ports.items()))),
        _element("fileSets", files),
        _element("description", "Join of two streams, with AXI4-Stream records in and items out, and AXI4-Lite "
                                "registers"),
        _element("vendorExtensions", _extensions(top, patch)))
    for prefix, namespace in _NAMESPACES.items():
        ElementTree.register_namespace(prefix, namespace)
    ElementTree.indent(component)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(component, "unicode") + "\n"


def _element(name: str, /, *inner: ElementTree.Element | str | int, prefix: str = "spirit",
             **attributes: str) -> ElementTree.Element:
    """An element with elements or with a text in it; it and its attributes are in the namespace of ``prefix``."""
    space = f"{{{_NAMESPACES[prefix]}}}"
    out = ElementTree.Element(f"{space}{name}", {f"{space}{key}": value for key, value in attributes.items()})
    for part in inner:
        if isinstance(part, ElementTree.Element):
            out.append(part)
        else:
            out.text = str(part)
    return out


def _bus(name: str, library: str, kind: str, mode: ElementTree.Element, ports: Mapping[str, str],
         parameters: Mapping[str, str | int]) -> ElementTree.Element:
    """An interface of the type ``xilinx.com:LIBRARY:KIND:1.0``: ``ports`` are by their logical names."""
    kinds = [_element(element, vendor="xilinx.com", library=library, name=of, version="1.0")
             for element, of in (("busType", kind), ("abstractionType", f"{kind}_rtl"))]
    maps = (_element("portMap", _element("logicalPort", _element("name", logical)),
                     _element("physicalPort", _element("name", physical))) for logical, physical in ports.items())
    given = (_element("parameter", _element("name", key), _element(
        "value", value, id=f"BUSIFPARAM_VALUE.{name.upper()}.{key}")) for key, value in parameters.items())
    return _element("busInterface", _element("name", name), *kinds, mode, _element("portMaps", *maps),
                    _element("parameters", *given))


def _memory(config: Configuration, signals: Iterable[str]) -> ElementTree.Element:
    """The AXI4 master ``m_axi``, which reads and writes single beats with as many ids as the circuit has requests."""
    widths = described_memory(config)
    under_way = 2**widths["id_bits"]
    return _bus("m_axi", "interface", "aximm", _element("master", _element("addressSpaceRef", addressSpaceRef=_SPACE)),
                {name.upper(): f"m_axi_{name}" for name in signals},
                {"PROTOCOL": "AXI4", "DATA_WIDTH": widths["data_bits"], "ADDR_WIDTH": widths["address_bits"],
                 "ID_WIDTH": widths["id_bits"], "MAX_BURST_LENGTH": 1, "SUPPORTS_NARROW_BURST": 0,
                 "NUM_READ_OUTSTANDING": under_way, "NUM_WRITE_OUTSTANDING": under_way})


def _register(word: Word) -> ElementTree.Element:
    reset = [] if word.reset is None else [_element("reset", _element("value", f"0x{word.reset:X}"),
                                                    _element("mask", "0xFFFFFFFF"))]
    changes = "true" if word.access == "r" and not word.constant else "false"
    return _element("register", _element("name", word.name), _element("description", word.description),
                    _element("addressOffset", f"0x{word.address:X}"), _element("size", 32),
                    _element("volatile", changes), _element("access", _ACCESS[word.access]), *reset,
                    *map(_field, word.fields))


def _field(field: RegisterField) -> ElementTree.Element:
    described = [_element("description", field.description)] if field.description else []
    named = (_element("enumeratedValue", _element("name", name), _element("value", number))
             for name, number in field.values)
    values = [_element("enumeratedValues", *named)] if field.values else []
    return _element("field", _element("name", field.name), *described, _element("bitOffset", field.low),
                    _element("bitWidth", field.bits), *values)


def _port(name: str, port: Mapping[str, Any]) -> ElementTree.Element:
    bits = [] if port["width"] == 1 else [
        _element("vector", _element("left", port["width"] - 1), _element("right", 0))]
    return _element("port", _element("name", name), _element("wire", _element("direction", port["direction"]), *bits))


def _view(top: str, purpose: str) -> ElementTree.Element:
    """The view of the Verilog that Vivado looks for: by its name, and by the identifier of its tool."""
    name = {"synthesis": "xilinx_anylanguagesynthesis", "simulation": "xilinx_anylanguagebehavioralsimulation"}[purpose]
    return _element("view", _element("name", name), _element("envIdentifier", f":vivado.xilinx.com:{purpose}"),
                    _element("language", "Verilog"), _element("modelName", top),
                    _element("fileSetRef", _element("localName", _FILES)))


def _extensions(top: str, revision: str) -> ElementTree.Element:
    """The entry of Vivado's IP catalog."""
    def own(name: str, *inner: ElementTree.Element | str, **attributes: str) -> ElementTree.Element:
        return _element(name, *inner, prefix="xilinx", **attributes)

    return own("coreExtensions",
               own("supportedFamilies", *(own("family", family, lifeCycle="Beta") for family in _FAMILIES)),
               own("taxonomies", own("taxonomy", "/UserIP")), own("displayName", top), own("coreRevision", revision))


@dataclass(frozen=True)
class Word:
    """A word of 32 bits.

    Attributes:
        name: That of the register; of a register of 64 bits with ``_lo`` or ``_hi``.
        address: The byte address.
        access: "r", "rw", or "w" for a word that reads 0.
        constant: True if it reads its reset value for ever.
        reset: Its value after a reset and after power-up; None if it counts on at once.
        fields: At least one, from bit 0 on; the bits of no field read 0.
    """

    name: str
    address: int
    access: str
    description: str
    constant: bool
    reset: int | None
    fields: tuple[RegisterField, ...]


def register_words(config: Configuration) -> list[Word]:
    """The words of the circuit of ``config``, by ascending addresses."""
    words: list[Word] = []
    for reg in REGISTERS:
        reset = config.reset_value(reg)
        text = f"{reg.description} (unit: {reg.unit})" if reg.unit else reg.description
        zero = config.always_zero(reg)
        if zero:
            text += "; this circuit is built without, so it reads 0"
        for n in range(reg.bits // WORD_BITS):
            half, which = "", ""
            if reg.bits > WORD_BITS:
                half, which = (("_lo", " (low word; reading it latches the high word)"), ("_hi", " (high word)"))[n]
            words.append(Word(
                f"{reg.name}{half}", 4 * (reg.address + n), reg.access, f"{text}{which}",
                zero or reg.name in ("id", "abi"), None if reset is None else reset >> WORD_BITS * n & 2**WORD_BITS - 1,
                reg.fields or (RegisterField("value", 0, WORD_BITS, ""),)))
    if config.memory != "bram":
        size = described_memory(config)["alignment"]
        text = f"where the windows lie in memory, a multiple of {size}; no request precedes its low word"
        words += [Word(f"memory_base_{half}", 4 * (MEMORY_WORD + n), "rw", f"{text} ({half} word)", False, 0,
                       (RegisterField("value", 0, WORD_BITS, ""),)) for n, half in enumerate(("lo", "hi"))]
    # A field called "reset" would hide a method of UVM's registers.
    words.append(Word("control", 4 * CONTROL_WORD, "w", "writing 1 to bit 0 resets the join; it reads 0", False, 0,
                      (RegisterField("restart", 0, 1, "writing 1 resets the join"),)))
    return words


def system_rdl(top: str, config: Configuration) -> str:
    """The registers of the circuit of ``config``, whose top module is ``top``, in SystemRDL 2.0."""
    words = register_words(config)
    lines = [f"addrmap {top} {{", "    default regwidth = 32;", "    default accesswidth = 32;",
             "    addressing = compact;", "    littleendian;", ""]
    for word in words:
        for field in word.fields:
            if field.values:
                lines += [f"    enum {word.name}_{field.name}_e {{",
                          *(f"        {name} = {number};" for name, number in field.values), "    };"]
    for word in words:
        hardware = "na" if word.constant else "w" if word.access == "r" else "r"
        lines.append(f"    reg {{ desc = {_rdl(word.description)};")
        for field in word.fields:
            says = [f"sw = {word.access}", f"hw = {hardware}"]
            says += ["singlepulse"] if word.access == "w" else []
            says += [f"encode = {word.name}_{field.name}_e"] if field.values else []
            says += [f"desc = {_rdl(field.description)}"] if len(word.fields) > 1 else []
            lines.append(f"        field {{ {'; '.join(says)}; }} {field.name}[{field.low + field.bits - 1}:"
                         f"{field.low}]{_reset(word, field)};")
        lines.append(f"    }} {word.name} @ 0x{word.address:02X};")
    return "\n".join([*lines, "};", ""])


def _reset(word: Word, field: RegisterField) -> str:
    return "" if word.reset is None else f" = 0x{word.reset >> field.low & (1 << field.bits) - 1:X}"


def _rdl(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
