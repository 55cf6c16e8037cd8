"""One node of a result-gathering tree: merges result streams group by group, following the stars."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for
from splitjoin.device.wire import ItemKind

from ..layouts import result_layout
from ..network.buffer import Buffer

__all__ = ["Merger", "merger_ports"]


def merger_ports(inputs: int) -> dict[str, wiring.Member]:
    """The ports of a `Merger`."""
    return {
        "i": In(stream.Signature(result_layout())).array(inputs),
        "o": Out(stream.Signature(result_layout())),
        "total": In(1),
    }


class Merger(wiring.Component):
    """Passes on the results of each group, then one star when every input has delivered its own.

    SplitJoin's Merger (section 5, Algorithm 5) visits its inputs in a fixed order. This one takes whichever input has a
    result, in turns, so that an empty or slow core does not hold up the others; with ``total`` it waits until every
    input shows a result or a star and takes the one with the oldest stored tuple, so that each probe's results leave
    sorted. A star and an END are barriers alike: nothing passes it until all inputs have come to it. The star between
    two slices of a probe is one that inputs with fewer slices do without: it passes when the others have come to it or
    to the probe's last star.

    Ports: ``i``: ``inputs`` result streams. ``o``. ``total``: setting, constant while items are in flight: sorted.
    Registered: latency 1 cycle, 1 item a cycle.
    """

    def __init__(self, inputs: int):
        if not (isinstance(inputs, int) and inputs >= 1):
            raise ValueError(f"Inputs must be a positive integer, not {inputs!r}")
        self._inputs = inputs
        super().__init__(merger_ports(inputs))

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return self._inputs

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.buffer = buffer = Buffer(result_layout())
        wiring.connect(m, buffer.o, wiring.flipped(self.o))
        n = self._inputs
        valid = Cat(i.valid for i in self.i)
        pair = Cat(i.valid & (i.payload.kind == ItemKind.PAIR) for i in self.i)
        part = Cat(i.valid & (i.payload.kind == ItemKind.SLICE) for i in self.i)
        index_bits = bits_for(max(1, n - 1))

        # The oldest stored tuple among the pairs: a tournament on row ids, modular as these wrap.
        entries = [(pair[j], i.payload.stored, Const(j, index_bits)) for j, i in enumerate(self.i)]
        while len(entries) > 1:
            winners = []
            for k in range(0, len(entries) - 1, 2):
                (va, ra, ja), (vb, rb, jb) = entries[k], entries[k + 1]
                first = va & (~vb | ~(rb - ra)[31])
                winners.append((va | vb, Mux(first, ra, rb), Mux(first, ja, jb)))
            if len(entries) % 2:
                winners.append(entries[-1])
            entries = winners
        oldest = entries[0][2]

        # In turns: the first input with a pair after the one that was served last.
        served = Signal(index_bits)
        in_turn = Signal(index_bits)
        for rank in (1, 0):  # the later assignment wins: inputs behind `served` before those up to it
            for j in reversed(range(1 - rank, n)):
                with m.If(pair[j] & ((Const(j, index_bits) > served) if rank == 0 else Const(1))):
                    m.d.comb += in_turn.eq(j)

        chosen = Signal(index_bits)
        barrier = Signal()
        take = Signal()
        slice_ = Signal()  # the barrier is one between slices
        payloads = Array(i.payload for i in self.i)
        m.d.comb += [
            chosen.eq(Mux(self.total, oldest, in_turn)),
            barrier.eq(valid.all() & ~pair.any()),
            take.eq(pair.any() & (~self.total | valid.all())),
            buffer.i.valid.eq(barrier | take),
            slice_.eq(part.any()),
            buffer.i.payload.eq(Mux(barrier, self.i[0].payload.as_value(), payloads[chosen].as_value())),
        ]
        with m.If(barrier & slice_):
            m.d.comb += buffer.i.payload.kind.eq(ItemKind.SLICE)
        for j, i in enumerate(self.i):
            m.d.comb += i.ready.eq(buffer.i.ready & (barrier & (part[j] | ~slice_) | (take & (chosen == j))))
        with m.If(take & buffer.i.ready):
            m.d.sync += served.eq(chosen)
        return m
