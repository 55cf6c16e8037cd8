"""Repeated parts of a circuit: each a submodule of its own, or all of a kind instances of one module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Submodules:
    """Adds every part as a submodule, which simulators and formal tools see through."""

    def add(self, m: Module, name: str, kind: str, make: Callable[[], wiring.Component]) -> Any:
        """Add a part to ``m`` as its submodule ``name``; returns an object with its ports.

        Parts of one ``kind`` are the same circuit: ``make()`` makes one.
        """
        part = make()
        m.submodules[name] = part
        return part


class Instances(Submodules):
    """Adds every part as an instance of the module of its kind, which the Verilog holds once.

    Amaranth emits a module for each submodule, so each part would otherwise add its whole text to the Verilog, and to
    the work of all later tools, instead of a few lines. Each part has a register of the reset, which would otherwise
    be one net across the whole device: a reset must last two cycles at least.
    """

    def __init__(self, prefix: str):
        self._prefix = prefix
        self._made: dict[str, wiring.Component] = {}

    @property
    def modules(self) -> dict[str, wiring.Component]:
        """Module name → the part to emit under it."""
        return self._made

    def add(self, m: Module, name: str, kind: str, make: Callable[[], wiring.Component]) -> Any:
        part = self._one(kind, make).signature.create(path=(name,))
        reset = Signal(name=f"{name}_rst")
        wires: dict[str, Value] = {"i_rst": reset}
        for path, member, value in part.signature.flatten(part):
            wires[f"{'i' if member.flow == In else 'o'}_{'__'.join(map(str, path))}"] = Value.cast(value)
        self._one("reset", Reset)
        m.submodules[f"{name}_reset"] = self._instance("reset", {"i_rst": ResetSignal(), "o_held": reset})
        m.submodules[name] = self._instance(kind, wires)
        return part

    def _one(self, kind: str, make: Callable[[], wiring.Component]) -> wiring.Component:
        """The part that all of ``kind`` are instances of."""
        module = f"{self._prefix}_{kind}"
        if module not in self._made:
            self._made[module] = make()
        return self._made[module]

    def _instance(self, kind: str, wires: dict[str, Value]) -> Instance:
        return Instance(f"{self._prefix}_{kind}", i_clk=ClockSignal(), **wires)


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
