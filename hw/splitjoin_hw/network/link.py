"""Links with credit-based flow control: streams through pipeline registers without back-pressure on the way.

The receiver grants credit while its FIFO has space for all items that may still be under way.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Shape, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import credit_fifo_depth, in_flight

from .queue import Queue


class LinkSignature(wiring.Signature):
    """A link. ``valid``: ``payload`` is an item of ``shape``, which must be accepted. ``credit``: items may be sent.

    Both directions pass the same number of registers, so some more items arrive after ``credit`` has fallen.
    """

    def __init__(self, shape: Any):
        super().__init__({"payload": Out(shape), "valid": Out(1), "credit": In(1)})


class BroadcastRegister(wiring.Component):
    """Pipeline register of a link with ``children`` outputs: one node of the distribution tree.

    It delivers each item to all children a cycle later and, in the other direction, the AND of their credit to its
    parent (SplitJoin, section 4, Algorithm 1; there a node waits for its children instead).
    """

    def __init__(self, shape: Any, children: int):
        if not (isinstance(children, int) and children >= 1):
            raise ValueError(f"Children must be a positive integer, not {children!r}")
        self.shape, self.children = shape, children
        super().__init__({"i": In(LinkSignature(shape)), "o": Out(LinkSignature(shape)).array(children)})

    def elaborate(self, platform) -> Module:
        m = Module()
        valid = Signal()
        credit = Signal(init=1)
        item = Signal(Shape.cast(self.shape).width, reset_less=True)
        m.d.sync += [valid.eq(self.i.valid), Cat(item).eq(Cat(self.i.payload)),
                     credit.eq(Cat(child.credit for child in self.o).all())]
        m.d.comb += self.i.credit.eq(credit)
        for child in self.o:
            m.d.comb += [child.valid.eq(valid), Cat(child.payload).eq(item)]
        return m


class CreditFifo(wiring.Component):
    """The FIFO at the end of a link through ``stages`` registers, with a register for ``credit``.

    An item is offered in the cycle after it arrived, 1 item per cycle. ``credit`` falls while there is still space for
    the 2·``stages`` + 2 items that may arrive before the sender stops.
    """

    def __init__(self, shape: Any, stages: int):
        if not (isinstance(stages, int) and stages >= 0):
            raise ValueError(f"Stages must be an integer of at least 0, not {stages!r}")
        self.shape, self.stages = shape, stages
        super().__init__({"i": In(LinkSignature(shape)), "o": Out(stream.Signature(shape))})

    @property
    def depth(self) -> int:
        """Items that the FIFO holds."""
        return credit_fifo_depth(self.stages)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.queue = queue = Queue(self.shape, self.depth)
        credit = Signal(init=1)
        m.d.sync += credit.eq(queue.level < self.depth - in_flight(self.stages))
        m.d.comb += [queue.i.valid.eq(self.i.valid), queue.i.payload.eq(self.i.payload), self.i.credit.eq(credit)]
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m
