"""One node of the distribution tree: a register on the way to several places."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .link import LinkSignature

__all__ = ["Relay", "relay_ports"]


def relay_ports(shape: Any, children: int) -> dict[str, wiring.Member]:
    """The ports of a `Relay`."""
    return {"i": In(LinkSignature(shape)), "o": Out(LinkSignature(shape)).array(children)}


class Relay(wiring.Component):
    """Hands what comes to all of ``children`` a cycle later, and, the other way, that all have room (SplitJoin,
    section 4, Algorithm 1; there a node waits for its children instead).

    From register to register there is a wire on the way down, and the AND of the children on the way up.
    """

    def __init__(self, shape: Any, children: int):
        if not (isinstance(children, int) and children >= 1):
            raise ValueError(f"Children must be a positive integer, not {children!r}")
        self._shape, self._children = shape, children
        super().__init__(relay_ports(shape, children))

    @property
    def shape(self) -> Any:
        """Shape of the payload."""
        return self._shape

    @property
    def children(self) -> int:
        """Number of outputs."""
        return self._children

    def elaborate(self, platform) -> Module:
        m = Module()
        comes = Signal()
        room = Signal(init=1)
        item = Signal(Shape.cast(self._shape).width, reset_less=True)
        m.d.sync += [comes.eq(self.i.comes), Cat(item).eq(Cat(self.i.payload)),
                     room.eq(Cat(child.room for child in self.o).all())]
        m.d.comb += self.i.room.eq(room)
        for child in self.o:
            m.d.comb += [child.comes.eq(comes), Cat(child.payload).eq(item)]
        return m
