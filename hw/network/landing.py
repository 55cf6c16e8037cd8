"""Where a link ends: a queue with room for all that is under way."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .link import LinkSignature
from .queue import Queue

__all__ = ["Landing", "landing_places", "landing_ports"]

#: Places of LUT RAM.
_ROW = 16


def landing_ports(shape: Any) -> dict[str, wiring.Member]:
    """The ports of a `Landing`."""
    return {"i": In(LinkSignature(shape)), "o": Out(stream.Signature(shape))}


def landing_places(hops: int) -> int:
    """Items that the queue of a `Landing` holds, a power of two.

    From where room is offered again to the next item, 2·``hops`` + 3 cycles pass. It does not run dry meanwhile: a core
    takes an item in two cycles.
    """
    least = _late(hops) + hops + 2
    return max(_ROW, 1 << (least - 1).bit_length())


def _late(hops: int) -> int:
    # What is sent before it is known where the link begins, what is on its way then, and what the level, a register
    # behind, does not count yet.
    return 2 * hops + 2


class Landing(wiring.Component):
    """The end of a link through ``hops`` registers, and one that holds ``room`` where it begins.

    An item is offered in the cycle after it came, 1 item a cycle. ``room`` falls while there still is some for the
    2·``hops`` + 2 items that may come until then.
    """

    def __init__(self, shape: Any, hops: int):
        if not (isinstance(hops, int) and hops >= 0):
            raise ValueError(f"Hops must be an integer of at least 0, not {hops!r}")
        self._shape, self._hops = shape, hops
        super().__init__(landing_ports(shape))

    @property
    def shape(self) -> Any:
        """Shape of the payload."""
        return self._shape

    @property
    def hops(self) -> int:
        """Registers on the way."""
        return self._hops

    @property
    def places(self) -> int:
        """Items that the queue holds."""
        return landing_places(self._hops)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.queue = queue = Queue(self._shape, self.places)
        room = Signal(init=1)
        m.d.sync += room.eq(queue.level < self.places - _late(self._hops))
        m.d.comb += [queue.i.valid.eq(self.i.comes), queue.i.payload.eq(self.i.payload), self.i.room.eq(room)]
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m
