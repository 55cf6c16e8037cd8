"""The result-gathering tree of one side: mergers that join the streams of all cores into one."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import levels, split
from splitjoin.circuit.wire import ROW_BITS

from ..layouts import result_layout
from ..network.pipeline import pipelined
from ..parts import Submodules
from .fixed import FixedMerger
from .merger import Merger


def add_merger(m: Module, parts: Submodules, name: str, inputs: int, bits: int, has_offer_input: bool, *,
               fixed: bool = False, isolates: bool = False) -> Any:
    """Add a `Merger`, or a `FixedMerger` if ``fixed``, as submodule ``name`` of ``m``; returns its ports."""
    kind = f"{'fixed_' if fixed else ''}merger{inputs}{'_offer_input' if has_offer_input else ''}"
    return parts.add(m, name, kind, lambda: FixedMerger(inputs, has_offer_input=has_offer_input) if fixed else
                     Merger(inputs, bits, has_offer_input=has_offer_input, isolates=isolates))


class GatherTree(wiring.Component):
    """A tree of `Merger` nodes with ``leaves`` inputs and at most ``fanin`` inputs per node.

    ``latency`` = ⌈log_fanin leaves⌉ cycles. One leaf needs no node. ``total``, ``bits``: as of `Merger`; each level
    registers ``total``, so it must be stable from ``latency`` + 1 cycles before the first result on. ``dead``, with
    ``isolates``: the leaves at which nothing arrives any more, for good, as of `Merger`.
    """

    def __init__(self, *, leaves: int, fanin: int, bits: int = ROW_BITS, fixed: bool = False, isolates: bool = False,
                 parts: Submodules | None = None):
        """``fixed``: mergers are `FixedMerger`, which do not isolate."""
        if not (isinstance(leaves, int) and leaves >= 1):
            raise ValueError(f"Leaves must be a positive integer, not {leaves!r}")
        if not (isinstance(fanin, int) and fanin >= 2):
            raise ValueError(f"Fan-in must be an integer of at least 2, not {fanin!r}")
        self.leaves, self._fanin, self._bits, self._fixed, self._isolates = leaves, fanin, bits, fixed, isolates
        self._parts = parts or Submodules()
        super().__init__({
            "i": In(stream.Signature(result_layout())).array(leaves),
            "o": Out(stream.Signature(result_layout())),
            "total": In(1),
            **({"dead": In(leaves)} if isolates else {}),
        })

    @property
    def latency(self) -> int:
        """Cycles from the farthest input to the output, when nothing waits."""
        return levels(self.leaves, self._fanin)

    def elaborate(self, platform) -> Module:
        m = Module()

        def grow(sink, offer, total, first: int, count: int, name: str) -> Value | None:
            """The subtree that drives ``sink``; ``offer``, unless None, is driven with the kind of result offered.

            Returns whether nothing comes from it any more, if it ``isolates``.
            """
            if count == 1:
                wiring.connect(m, wiring.flipped(self.i[first]), sink)
                return self.dead[first] if self._isolates else None
            groups = split(count, self._fanin)
            inputs, has_offer_input = len(groups), min(groups) > 1
            node = add_merger(m, self._parts, name, inputs, self._bits, has_offer_input, fixed=self._fixed,
                              isolates=self._isolates)
            here = pipelined(m, self._parts, f"{name}_total", total)
            m.d.comb += node.total.eq(here)
            wiring.connect(m, node.o, sink)
            if offer is not None:
                m.d.comb += offer.eq(node.o_offer)
            dead = [grow(node.i[n], node.i_offer[n] if has_offer_input else None, here, first + sum(groups[:n]), size,
                         f"{name}_{n}") for n, size in enumerate(groups)]
            if not self._isolates:
                return None
            m.d.comb += node.i_dead.eq(Cat(dead))
            return node.o_dead

        grow(wiring.flipped(self.o), None, self.total, 0, self.leaves, "node")
        return m
