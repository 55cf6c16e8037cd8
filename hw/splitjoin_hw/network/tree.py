"""The distribution tree: delivers every item to every core, in order (SplitJoin, section 4)."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import levels, split

from ..parts import Submodules
from .link import BroadcastRegister, CreditFifo, LinkSignature


class DistributionTree(wiring.Component):
    """A tree of `BroadcastRegister` nodes with at most ``fanout`` children each, and a `CreditFifo` at each of
    ``leaves`` outputs.

    ``latency`` = ⌈log_fanout leaves⌉ cycles; 1 item per cycle while all leaves grant credit. One leaf needs no node.
    """

    def __init__(self, shape, *, leaves: int, fanout: int, parts: Submodules | None = None):
        if not (isinstance(leaves, int) and leaves >= 1):
            raise ValueError(f"Leaves must be a positive integer, not {leaves!r}")
        if not (isinstance(fanout, int) and fanout >= 2):
            raise ValueError(f"Fan-out must be an integer of at least 2, not {fanout!r}")
        self._shape, self.leaves, self.fanout = shape, leaves, fanout
        self._parts = parts or Submodules()
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)).array(leaves),
        })

    @property
    def latency(self) -> int:
        """Cycles from input to the farthest leaf."""
        return levels(self.leaves, self.fanout)

    def elaborate(self, platform) -> Module:
        m = Module()
        shape = self._shape

        def grow(source, first: int, count: int, stages: int, name: str) -> None:
            """The subtree from ``source``, behind ``stages`` registers, to ``count`` leaves."""
            if count == 1:
                fifo = self._parts.add(m, name, f"credit_fifo{stages}", lambda: CreditFifo(shape, stages))
                wiring.connect(m, source, fifo.i)
                wiring.connect(m, fifo.o, wiring.flipped(self.o[first]))
                return
            groups = split(count, self.fanout)
            children = len(groups)
            node = self._parts.add(m, name, f"broadcast{children}", lambda: BroadcastRegister(shape, children))
            wiring.connect(m, source, node.i)
            for n, size in enumerate(groups):
                grow(node.o[n], first + sum(groups[:n]), size, stages + 1, f"{name}_{n}")

        if self.leaves == 1:
            wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o[0]))
            return m
        groups = split(self.leaves, self.fanout)
        links = [LinkSignature(shape).create(path=(f"link{n}",)) for n in range(len(groups))]
        credit = Signal(init=1)  # all leaves grant credit
        m.d.sync += credit.eq(Cat(link.credit for link in links).all())
        m.d.comb += self.i.ready.eq(credit)
        for n, (link, size) in enumerate(zip(links, groups, strict=True)):
            m.d.comb += [link.payload.eq(self.i.payload), link.valid.eq(self.i.valid & credit)]
            grow(link, sum(groups[:n]), size, 0, f"node_{n}")
        return m
