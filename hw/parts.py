"""How a circuit gets its repeated parts: as submodules of their own, or as instances of one module each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

__all__ = ["Instances", "Ports", "Submodules"]

Ports = dict[str, wiring.Member]


class Submodules:
    """Every part is a submodule: what simulators and formal tools see through."""

    def add(self, m: Module, name: str, kind: str, ports: Ports, make: Callable[[], wiring.Component]) -> Any:
        """Add a part to ``m`` as its submodule ``name``; returns an object with ``ports``.

        Parts of one ``kind`` are alike: ``make()`` makes the same circuit for all of them.
        """
        part = make()
        m.submodules[name] = part
        return part


class Instances(Submodules):
    """Every part is an instance of the module of its kind, which stands in the Verilog once.

    Amaranth emits a module for each submodule, so that the text, and all that later tools do with it, would otherwise
    grow with the number of parts by their size instead of by a line.
    """

    def __init__(self, prefix: str):
        self._prefix = prefix
        self._made: dict[str, wiring.Component] = {}

    @property
    def modules(self) -> dict[str, wiring.Component]:
        """Module name → the part to emit under it."""
        return self._made

    def add(self, m: Module, name: str, kind: str, ports: Ports, make: Callable[[], wiring.Component]) -> Any:
        module = f"{self._prefix}_{kind}"
        if module not in self._made:
            self._made[module] = make()
        part = wiring.Signature(ports).create(path=(name,))
        wires: dict[str, Value] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for path, member, value in part.signature.flatten(part):
            wires[f"{'i' if member.flow == In else 'o'}_{'__'.join(map(str, path))}"] = Value.cast(value)
        m.submodules[name] = Instance(module, **wires)
        return part
