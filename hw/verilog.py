"""Verilog for a configuration: one module for each kind of part, and a sidecar that describes it to tools."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from splitjoin.circuit.axi import CONTROL_WORD, IDLE_CYCLES, AxiShape
from splitjoin.circuit.registers import MAGIC, REGISTERS
from splitjoin.circuit.wire import Configuration, ItemKind, Op, OrderMode
from splitjoin.version import __version__

from .backend.library import Converted, Library
from .link.axi import AxiJoin, axi_ports
from .parts import Instances
from .top import SplitJoin, top_ports

__all__ = ["AXI_TOP", "TOP", "WAIVERS", "header", "part_modules", "sidecar", "to_axi_verilog", "to_verilog"]

#: Name of the top module; the core's module is this with ``_core``.
TOP = "splitjoin"
#: Name of the top module with AXI ports, which has an instance of `TOP`.
AXI_TOP = f"{TOP}_axi"
#: Verilator's rules that the Verilog breaks on purpose, each with its reason.
WAIVERS = Path(__file__).with_name("waivers.vlt")
#: Columns of the header.
_WIDTH = 113


@lru_cache(maxsize=16)  # takes seconds, and every session needs it again
def to_verilog(config: Configuration) -> str:
    """The circuit as Verilog-2001 with the top module ``splitjoin``; a pure function of ``config``."""
    return _written(config)[0]


@lru_cache(maxsize=16)
def part_modules(config: Configuration) -> tuple[str, ...]:
    """The modules of `to_verilog` that the circuit repeats with its cores: the cores, and nodes of the trees."""
    return _written(config)[1]


@lru_cache(maxsize=16)
def _written(config: Configuration) -> tuple[str, tuple[str, ...]]:
    parts = Instances(TOP)
    top = Converted.of(SplitJoin(config, parts), TOP)
    library = Library(TOP)
    # The modules that the top has instances of are known only now.
    for name, part in sorted(parts.modules.items()):
        library.add(Converted.of(part, name))
    library.add(top)
    return f"{header(config)}\n{library.text()}", tuple(sorted(parts.modules))


@lru_cache(maxsize=16)
def to_axi_verilog(config: Configuration) -> str:
    """The module ``splitjoin_axi``: AXI ports around an instance of the circuit that `to_verilog` writes."""
    library = Library(AXI_TOP)
    library.declare(TOP, wiring.Signature(top_ports(config)))
    library.add(Converted.of(AxiJoin(config, join=TOP), AXI_TOP))
    return f"{header(config)}\n{library.text()}"


def header(config: Configuration, query: Sequence[str] = ()) -> str:
    """Comment lines: version and licence, ``query`` line by line, and the parameters of ``config``.

    Characters that could end a comment are escaped.
    """
    settings = ", ".join(f"{name} {value}" for name, value in asdict(config).items()
                         if (name, value) != ("root_width", 1))
    lines = [f"splitjoin {__version__}: a join of two streams as a circuit, Verilog-2001. "
             "SPDX-License-Identifier: Apache-2.0", *query,
             *textwrap.wrap(f"Parameters: {settings}.", _WIDTH), f"ABI hash: {config.abi_hash:016x}."]
    return "".join(f"// {_printable(line)}".rstrip() + "\n" for line in lines)


def _printable(text: str) -> str:
    """``text`` in one line of ASCII, without comments within comments and without a backslash at its end."""
    plain = "".join(c if c.isascii() and c.isprintable() else ascii(c)[1:-1] for c in text)
    return plain.replace("*/", "* /").replace("/*", "/ *") + ("." if plain.endswith("\\") else "")


def sidecar(config: Configuration, top_module: str = TOP) -> dict[str, Any]:
    """Description of the Verilog as plain data: ports of ``top_module``, records, registers, parameters, ABI hash."""
    ports: dict[str, dict[str, Any]] = {}
    if top_module == AXI_TOP:
        top = wiring.Signature(axi_ports(config)).create()
    else:
        ports |= {"clk": {"direction": "in", "width": 1}, "rst": {"direction": "in", "width": 1}}
        top = wiring.Signature(top_ports(config)).create()
    for path, member, value in top.signature.flatten(top):
        ports["__".join(map(str, path))] = {
            "direction": "in" if member.flow == In else "out", "width": len(Value.cast(value))}
    shape = AxiShape.of(config)
    axi = {"axi": {
        "record_bytes": shape.record_bytes, "item_bytes": shape.item_bytes, "packet_beats": shape.packet_beats,
        "idle_cycles": IDLE_CYCLES, "control": {"byte_address": 4 * CONTROL_WORD, "bit 0": "write 1: reset the join"},
        "byte_addresses": {reg.name: 4 * reg.address for reg in REGISTERS}}}
    return {
        "top": top_module,
        "abi_hash": f"{config.abi_hash:016x}",
        "id": f"{MAGIC:08x}",
        "ports": ports,
        **config.describe(),
        "opcodes": {op.name: op.value for op in Op},
        "item_kinds": {kind.name: kind.value for kind in ItemKind},
        "orders": {mode.name: mode.value for mode in OrderMode},
        "output_record": list(config.output_record.fields),
        "registers": [asdict(reg) for reg in REGISTERS],
        **(axi if top_module == AXI_TOP else {}),
    }
