"""Registers on the way of signals that change seldom, so that no wire has to go all over a chip in a cycle."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..parts import Submodules
from .tree import levels, split

__all__ = ["Hop", "hop", "hops", "spread"]

#: Places that one register serves.
_REACH = 4


class Hop(wiring.Component):
    """``o`` is ``i``, ``bits`` wide, a cycle ago. No reset.

    A component of its own, as synthesis would make one register of equal ones, and so one wire to all places again.
    """

    def __init__(self, bits: int):
        self._bits = bits
        super().__init__(_ports(bits))

    @property
    def bits(self) -> int:
        """Width of both."""
        return self._bits

    def elaborate(self, platform) -> Module:
        m = Module()
        held = Signal(self._bits, reset_less=True)
        m.d.sync += held.eq(self.i)
        m.d.comb += self.o.eq(held)
        return m


def hop(m: Module, parts: Submodules, name: str, source: Any) -> Value:
    """``source`` a cycle ago, in its shape, by a `Hop` that is part ``name`` of ``m``."""
    value = Value.cast(source)
    bits = len(value)
    part = parts.add(m, name, f"hop{bits}", _ports(bits), lambda: Hop(bits))
    m.d.comb += part.i.eq(value)
    shape = source.shape()
    return part.o if isinstance(shape, Shape) else shape(part.o)


def spread(m: Module, parts: Submodules, name: str, source: Any, places: int) -> list[Any]:
    """``source`` for each of ``places``, up to `hops` cycles ago: no register serves more than four, places or
    registers.
    """
    if places <= _REACH:
        return [source] * places
    found = []
    for n, size in enumerate(split(places, _REACH)):
        here = f"{name}_{n}"
        found += spread(m, parts, here, hop(m, parts, here, source), size)
    return found


def hops(places: int) -> int:
    """Registers in a row between the source of `spread` and the farthest of ``places``."""
    return max(0, levels(places, _REACH) - 1)


def _ports(bits: int) -> dict[str, wiring.Member]:
    return {"i": In(bits), "o": Out(bits)}
