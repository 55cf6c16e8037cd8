"""Verilog for a configuration: one module for each kind of part, and a sidecar that describes it to tools."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from amaranth.back import verilog
from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from splitjoin.circuit.registers import MAGIC, REGISTERS
from splitjoin.circuit.wire import Configuration, ItemKind, Op, OrderMode, item_record

from .parts import Instances
from .top import SplitJoin, top_ports

__all__ = ["TOP", "sidecar", "to_verilog"]

#: Name of the top module; the core's module is this with ``_core``.
TOP = "splitjoin"


@lru_cache(maxsize=16)  # takes seconds, and every session needs it again
def to_verilog(config: Configuration) -> str:
    """The circuit as Verilog-2001 with the top module ``splitjoin``; a pure function of ``config``."""
    # Amaranth's own Yosys writes the same text everywhere, whatever is installed on the system.
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    options: dict[str, Any] = {"emit_src": False, "strip_internal_attrs": True}
    parts = Instances(TOP)
    top: str = verilog.convert(SplitJoin(config, parts), name=TOP, **options)
    # The modules that the top has instances of are known only now.
    made = [verilog.convert(part, name=name, **options) for name, part in sorted(parts.modules.items())]
    return "\n".join([*made, top])



def sidecar(config: Configuration) -> dict[str, Any]:
    """Description of the Verilog as plain data: ports, records, registers, parameters, ABI hash."""
    ports = {"clk": {"direction": "in", "width": 1}, "rst": {"direction": "in", "width": 1}}
    top = wiring.Signature(top_ports(config)).create()
    for path, member, value in top.signature.flatten(top):
        ports["__".join(map(str, path))] = {
            "direction": "in" if member.flow == In else "out", "width": len(Value.cast(value))}
    return {
        "top": TOP,
        "abi_hash": f"{config.abi_hash:016x}",
        "id": f"{MAGIC:08x}",
        "ports": ports,
        **config.describe(),
        "opcodes": {op.name: op.value for op in Op},
        "item_kinds": {kind.name: kind.value for kind in ItemKind},
        "orders": {mode.name: mode.value for mode in OrderMode},
        "output_record": list(item_record().fields),
        "registers": [asdict(reg) for reg in REGISTERS],
    }
