"""Repeated parts of a circuit: each a submodule of its own, or all of a kind instances of one module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Instances", "Ports", "Reset", "Submodules"]

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
    grow with the number of parts by their size instead of by a line. Each has a register of the reset, which would
    otherwise be one net all over the device: a reset takes two cycles at least.
    """

    def __init__(self, prefix: str):
        self._prefix = prefix
        self._made: dict[str, wiring.Component] = {}

    @property
    def modules(self) -> dict[str, wiring.Component]:
        """Module name → the part to emit under it."""
        return self._made

    def add(self, m: Module, name: str, kind: str, ports: Ports, make: Callable[[], wiring.Component]) -> Any:
        part = wiring.Signature(ports).create(path=(name,))
        reset = Signal(name=f"{name}_rst")
        wires: dict[str, Value] = {"i_rst": reset}
        for path, member, value in part.signature.flatten(part):
            wires[f"{'i' if member.flow == In else 'o'}_{'__'.join(map(str, path))}"] = Value.cast(value)
        m.submodules[f"{name}_reset"] = self._instance("reset", Reset, {"i_rst": ResetSignal(), "o_held": reset})
        m.submodules[name] = self._instance(kind, make, wires)
        return part

    def _instance(self, kind: str, make: Callable[[], wiring.Component], wires: dict[str, Value]) -> Instance:
        module = f"{self._prefix}_{kind}"
        if module not in self._made:
            self._made[module] = make()
        return Instance(module, i_clk=ClockSignal(), **wires)


class Reset(wiring.Component):
    """A register of the reset. A module of its own, as synthesis would make one register of equal ones."""

    def __init__(self) -> None:
        super().__init__({"held": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        held = Signal(reset_less=True)
        m.d.sync += held.eq(ResetSignal())
        m.d.comb += self.held.eq(held)
        return m
