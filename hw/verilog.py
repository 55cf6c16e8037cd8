"""Verilog for a configuration: one core module instantiated k times, and a sidecar that tells tools what is in it."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from amaranth.back import verilog
from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from splitjoin.device.registers import MAGIC, REGISTERS
from splitjoin.device.wire import Configuration, ItemKind, Op, OrderMode, item_record

from .core.core import Core, core_ports
from .top import SplitJoin, top_ports

__all__ = ["TOP", "sidecar", "to_verilog"]

#: Name of the top module; the core's module is this with ``_core``.
TOP = "splitjoin"


class _CoreInstance(wiring.Component):
    """A core as an instance of the module that stands in the Verilog once."""

    def __init__(self, config: Configuration):
        super().__init__(core_ports(config))

    def elaborate(self, platform) -> Module:
        m = Module()
        ports: dict[str, Value] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for path, member, value in self.signature.flatten(self):
            direction = "i" if member.flow == In else "o"
            ports[f"{direction}_{'__'.join(map(str, path))}"] = Value.cast(value)
        m.submodules.core = Instance(f"{TOP}_core", **ports)
        return m


@lru_cache(maxsize=16)  # seconds to make, and asked for again by every session
def to_verilog(config: Configuration) -> str:
    """The circuit as Verilog-2001 with the top module ``splitjoin``; a pure function of ``config``."""
    # Amaranth's own Yosys: the same text everywhere, whatever is installed on the system.
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    options: dict[str, Any] = {"emit_src": False, "strip_internal_attrs": True}
    core: str = verilog.convert(Core(config), name=f"{TOP}_core", **options)
    top: str = verilog.convert(SplitJoin(config, core=_CoreInstance), name=TOP, **options)
    return core + "\n" + top


def sidecar(config: Configuration) -> dict[str, Any]:
    """What is in the Verilog, as plain data: ports, records, registers, parameters, ABI hash."""
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
