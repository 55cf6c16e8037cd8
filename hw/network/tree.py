"""The distribution tree: every core gets every item, in order (SplitJoin, section 4)."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..parts import Submodules
from .distributor import Distributor, distributor_ports

__all__ = ["DistributionTree", "levels", "split"]


class DistributionTree(wiring.Component):
    """A tree of `Distributor` nodes with ``leaves`` outputs and at most ``fanout`` children a node.

    ``latency`` = ⌈log_fanout leaves⌉ cycles; 1 item a cycle. One leaf needs no node.
    """

    def __init__(self, shape, *, leaves: int, fanout: int, parts: Submodules | None = None):
        if not (isinstance(leaves, int) and leaves >= 1):
            raise ValueError(f"Leaves must be a positive integer, not {leaves!r}")
        if not (isinstance(fanout, int) and fanout >= 2):
            raise ValueError(f"Fan-out must be an integer of at least 2, not {fanout!r}")
        self._shape, self._leaves, self._fanout = shape, leaves, fanout
        self._parts = parts or Submodules()
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)).array(leaves),
        })

    @property
    def leaves(self) -> int:
        """Number of outputs."""
        return self._leaves

    @property
    def fanout(self) -> int:
        """Largest number of children of a node."""
        return self._fanout

    @property
    def latency(self) -> int:
        """Cycles from input to the farthest leaf."""
        return levels(self._leaves, self._fanout)

    def elaborate(self, platform) -> Module:
        m = Module()

        def grow(source, first: int, count: int, name: str) -> None:
            if count == 1:
                wiring.connect(m, source, wiring.flipped(self.o[first]))
                return
            groups = split(count, self._fanout)
            shape, children = self._shape, len(groups)
            node = self._parts.add(m, name, f"distributor{children}", distributor_ports(shape, children),
                                   lambda: Distributor(shape, children))
            wiring.connect(m, source, node.i)
            for n, size in enumerate(groups):
                grow(node.o[n], first + sum(groups[:n]), size, f"{name}_{n}")

        grow(wiring.flipped(self.i), 0, self._leaves, "node")
        return m


def levels(leaves: int, fanout: int) -> int:
    """⌈log_fanout leaves⌉."""
    depth = 0
    while fanout**depth < leaves:
        depth += 1
    return depth


def split(count: int, fanout: int) -> list[int]:
    """Sizes of the groups into which a node of a balanced tree splits ``count`` leaves: as equal as can be.

    No group is so large that the tree would become deeper than ⌈log_fanout count⌉.
    """
    groups = min(fanout, count)
    return [count // groups + (n < count % groups) for n in range(groups)]
