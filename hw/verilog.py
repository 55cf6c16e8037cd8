"""Verilog for a configuration: one module for each kind of part, and a sidecar that describes it to tools."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from amaranth.back import rtlil, verilog
from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from splitjoin.circuit.axi import CONTROL_WORD, IDLE_CYCLES, PACKET_BEATS, AxiShape
from splitjoin.circuit.registers import MAGIC, REGISTERS
from splitjoin.circuit.wire import Configuration, ItemKind, Op, OrderMode, item_record

from .link.axi import AxiJoin, axi_ports
from .parts import Instances
from .top import SplitJoin, top_ports

__all__ = ["AXI_TOP", "TOP", "sidecar", "to_axi_verilog", "to_verilog"]

#: Name of the top module; the core's module is this with ``_core``.
TOP = "splitjoin"
#: Name of the top module with AXI ports, which has an instance of `TOP`.
AXI_TOP = f"{TOP}_axi"
#: Yosys's commands between reading and writing: those of `amaranth.back.verilog.convert`, which also remove attributes.
_ATTRIBUTES = " ".join(f"-remove {name}" for name in ("generator", "top", "src", "amaranth.hierarchy",
                                                      "amaranth.decoding"))
_PASSES = ("proc -nomux -norom", "memory_collect", f"attrmap {_ATTRIBUTES}", f"attrmap -modattr {_ATTRIBUTES}")


@lru_cache(maxsize=16)  # takes seconds, and every session needs it again
def to_verilog(config: Configuration) -> str:
    """The circuit as Verilog-2001 with the top module ``splitjoin``; a pure function of ``config``."""
    # Amaranth's own Yosys writes the same text everywhere, whatever is installed on the system.
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    parts = Instances(TOP)
    top = rtlil.convert(SplitJoin(config, parts), name=TOP, emit_src=False)
    # The modules that the top has instances of are known only now.
    return _converted({name: rtlil.convert(part, name=name, emit_src=False)
                       for name, part in sorted(parts.modules.items())} | {TOP: top})


@lru_cache(maxsize=16)
def to_axi_verilog(config: Configuration) -> str:
    """The module ``splitjoin_axi``: AXI ports around an instance of the circuit that `to_verilog` writes."""
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    return _converted({AXI_TOP: rtlil.convert(AxiJoin(config, join=TOP), name=AXI_TOP, emit_src=False)})


def _converted(texts: Mapping[str, str]) -> str:
    """The Verilog of RTLIL ``texts`` by their top modules, as if each were converted alone.

    Yosys runs once for all, as starting it takes longer than converting a part.
    """
    script = [*(f"read_rtlil <<rtlil\n{text}\nrtlil" for text in texts.values()), *_PASSES, "write_verilog -norename"]
    # Amaranth needs no newer Yosys either. It ignores the same warning, of processes that are not translated.
    yosys = verilog.find_yosys(lambda version: version >= (0, 40))
    written: str = yosys.run(["-q", "-"], "\n".join(script), ignore_warnings=True)
    heading, *modules = re.split(r"^(?=(?:\(\*.*\*\)\n)*module )", written, flags=re.MULTILINE)
    made: dict[str, list[str]] = {name: [] for name in texts}
    for module in modules:
        found = re.match(r"(?:\(\*.*\*\)\n)*module \\?([^.\s(]+)", module)
        assert found is not None
        made[found[1]].append(module)
    return "\n".join(heading + _renumbered("".join(made[name])).rstrip() + "\n" for name in texts)


def _renumbered(text: str) -> str:
    """Verilog ``text`` with the numbers of Yosys's own names from 1 on."""
    names = re.compile(r"(?<=\\\$auto\$)([^ $]+\$)(\d+)(?= )")
    first = min((int(found[2]) for found in names.finditer(text)), default=1)
    return names.sub(lambda found: f"{found[1]}{int(found[2]) - first + 1}", text)


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
        "record_bytes": shape.record_bytes, "item_bytes": shape.item_bytes, "packet_beats": PACKET_BEATS,
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
        "output_record": list(item_record().fields),
        "registers": [asdict(reg) for reg in REGISTERS],
        **(axi if top_module == AXI_TOP else {}),
    }
