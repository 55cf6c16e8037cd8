"""Pipeline registers for signals that change seldom, so that no wire crosses the whole chip in a cycle."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import REGISTER_FANOUT, split

from ..parts import Submodules


class PipelineRegister(wiring.Component):
    """Pipeline register of ``bits`` bits without reset: ``o`` is ``i`` a cycle ago.

    It is a component of its own because synthesis would merge equal registers, and drive all loads by one wire again.
    """

    def __init__(self, bits: int):
        self.bits = bits
        super().__init__({"i": In(bits), "o": Out(bits)})

    def elaborate(self, platform) -> Module:
        m = Module()
        register = Signal(self.bits, reset_less=True)
        m.d.sync += register.eq(self.i)
        m.d.comb += self.o.eq(register)
        return m


def pipelined(m: Module, parts: Submodules, name: str, source: Any) -> Value:
    """``source`` a cycle ago, in its shape, by a `PipelineRegister` that is part ``name`` of ``m``."""
    value = Value.cast(source)
    bits = len(value)
    part = parts.add(m, name, f"pipeline_register{bits}", lambda: PipelineRegister(bits))
    m.d.comb += part.i.eq(value)
    shape = source.shape()
    return part.o if isinstance(shape, Shape) else shape(part.o)


def register_tree(m: Module, parts: Submodules, name: str, source: Any, loads: int) -> list[Any]:
    """A tree of pipeline registers: ``source`` for each of ``loads`` loads, delayed by at most
    `splitjoin.circuit.geometry.register_tree_depth` cycles. No register drives more than four loads or registers.
    """
    if loads <= REGISTER_FANOUT:
        return [source] * loads
    found = []
    for n, size in enumerate(split(loads, REGISTER_FANOUT)):
        here = f"{name}_{n}"
        found += register_tree(m, parts, here, pipelined(m, parts, here, source), size)
    return found
