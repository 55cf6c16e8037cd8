"""SplitJoin's merger as printed: the inputs in a fixed order."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.utils import bits_for

from .lookahead import fed_queues
from .merger import merger_ports


class FixedMerger(wiring.Component):
    """Passes on the results of input 0 up to its star, then those of input 1, and so on, and then one star (SplitJoin,
    section 5, Algorithm 5).

    So each input waits for those before it, also for a slow or an empty one. Results of one probe are in the order of
    their stored tuples' age only where the tuples of input n are older than those of input n + 1, as in CellJoin; by
    round robin they are not. Ports, stars and latency as of `splitjoin_hw.gather.merger.Merger`; ``total`` has no
    effect.
    """

    def __init__(self, inputs: int, *, has_offer_input: bool = False):
        if not (isinstance(inputs, int) and inputs >= 1):
            raise ValueError(f"Inputs must be a positive integer, not {inputs!r}")
        self.inputs, self._has_offer_input = inputs, has_offer_input
        super().__init__(merger_ports(inputs, has_offer_input))

    def elaborate(self, platform) -> Module:
        m = Module()
        queues = fed_queues(m, self, self.inputs, 0, has_offer_input=self._has_offer_input)
        pair, barrier, slices, star, end = (Cat(getattr(q, name) for q in queues) for name in (
            "pair", "barrier", "slice", "star", "end"))
        grant = Signal(self.inputs)
        source = Signal(bits_for(max(1, self.inputs - 1)))
        for j, queue in enumerate(queues):
            # An input at its star waits there, so the inputs before this one need no state.
            m.d.comb += [grant[j].eq(pair[j] & barrier[:j].all()),
                         queue.pop.eq(self.o.ready & (grant[j] | (barrier.all() & (slices[j] | ~slices.any()))))]
            with m.If(grant[j]):
                m.d.comb += source.eq(j)
        o, item, offer = self.o.payload, Array(q.item for q in queues)[source], self.o_offer
        m.d.comb += [
            self.o.valid.eq(barrier.all() | grant.any()),
            offer.pair.eq(grant.any()), offer.barrier.eq(barrier.all()), offer.slice.eq(barrier.all() & slices.any()),
            offer.star.eq(star.all()), offer.end.eq(end.all()),
            o.probe.eq(item.probe), o.stored.eq(item.stored),
            # All barriers are of one kind, or slices and stars; the kind of a star has all bits.
            o.kind.eq((~grant.any()).replicate(2) & reduce(or_, (Value.cast(q.kind) for q in queues))),
        ]
        return m
