"""The circuit with AXI ports as an IP-XACT component, which Vivado's IP catalog takes.

The component follows IEEE 1685-2009, the edition that Vivado reads. Its interfaces are those that Vivado has for the
AXI protocols, clocks and resets (vendor ``xilinx.com``), so that they connect in block designs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree

from splitjoin.base.version import __version__

from ..axi import ADDRESS_BITS, AxiShape
from ..registers import Field
from ..wire import Configuration
from .register_map import Word, register_words

__all__ = ["ip_xact"]

#: Prefix → namespace: of IEEE 1685-2009, and of Vivado's extensions.
_NAMESPACES = {"spirit": "http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009", "xilinx": "http://www.xilinx.com"}
_ACCESS = {"r": "read-only", "rw": "read-write", "w": "write-only"}
#: Name of the memory map, of its address block, and of the set of Verilog files.
_MAP, _BLOCK, _FILES = "registers", "block", "rtl"
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
    interfaces = [
        _bus("s_axis", "interface", "axis", _element("slave"), {name.upper(): f"s_axis_{name}" for name in streams},
             {"TDATA_NUM_BYTES": shape.record_bytes, "HAS_TLAST": 1}),
        _bus("m_axis", "interface", "axis", _element("master"), {name.upper(): f"m_axis_{name}" for name in streams},
             {"TDATA_NUM_BYTES": shape.item_bytes, "HAS_TLAST": 1}),
        _bus("s_axil", "interface", "aximm", _element("slave", _element("memoryMapRef", memoryMapRef=_MAP)),
             {name.upper(): f"s_axil_{name}" for name in axil}, {"PROTOCOL": "AXI4LITE", "DATA_WIDTH": 32}),
        _bus("aclk", "signal", "clock", _element("slave"), {"CLK": "aclk"},
             {"ASSOCIATED_BUSIF": "s_axis:m_axis:s_axil", "ASSOCIATED_RESET": "aresetn"}),
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


def _register(word: Word) -> ElementTree.Element:
    reset = [] if word.reset is None else [_element("reset", _element("value", f"0x{word.reset:X}"),
                                                    _element("mask", "0xFFFFFFFF"))]
    changes = "true" if word.access == "r" and not word.constant else "false"
    return _element("register", _element("name", word.name), _element("description", word.description),
                    _element("addressOffset", f"0x{word.address:X}"), _element("size", 32),
                    _element("volatile", changes), _element("access", _ACCESS[word.access]), *reset,
                    *map(_field, word.fields))


def _field(field: Field) -> ElementTree.Element:
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
