"""One node of a result-gathering tree: merges result streams group by group, following the stars."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for
from splitjoin.device.wire import ROW_BITS

from ..layouts import result_layout
from .lookahead import Lookahead

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

    Which of two inputs goes first is found out a cycle ahead, for whatever may leave until then, and kept in registers.
    No path leads from ``o.ready`` to an input's ``ready``, nor through more than the choice.

    Ports: ``i``: ``inputs`` result streams. ``o``. ``total``: sorted; a setting, constant while items are in flight and
    from a cycle before on. Row ids are compared in their lowest ``bits`` bits, 2 to 32: those of results that meet
    must differ by less than half of what these count. Latency 1 cycle, and one more where row ids must be compared and
    the results have only just come; 1 item a cycle.
    """

    def __init__(self, inputs: int, bits: int = ROW_BITS):
        if not (isinstance(inputs, int) and inputs >= 1):
            raise ValueError(f"Inputs must be a positive integer, not {inputs!r}")
        if not (isinstance(bits, int) and 2 <= bits <= ROW_BITS):
            raise ValueError(f"Bits to compare must be an integer from 2 to {ROW_BITS}, not {bits!r}")
        self._inputs, self._bits = inputs, bits
        super().__init__(merger_ports(inputs))

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return self._inputs

    @property
    def bits(self) -> int:
        """Bits of row ids that are compared."""
        return self._bits

    def elaborate(self, platform) -> Module:
        m = Module()
        n = self._inputs
        queues = [Lookahead(self._bits if n > 1 else 0) for _ in range(n)]
        for j, queue in enumerate(queues):
            m.submodules[f"queue{j}"] = queue
            wiring.connect(m, wiring.flipped(self.i[j]), queue.i)
        total = self.total
        pair, bar, part, clear = (Cat(getattr(q, name) for q in queues) for name in ("pair", "bar", "part", "clear"))
        chosen = Signal(n)  # the input whose pair is on offer
        barrier = Signal()  # the barriers of all are

        # Of each two inputs: which one goes first if both show pairs. With `total` the older one, modular as row ids
        # wrap, as soon as both have been compared, and until then neither; else the one that was served longer ago.
        first: dict[tuple[int, int], Value] = {}
        for j in range(n):
            for k in range(j + 1, n):
                turn = Signal(name=f"turn{j}_{k}", init=1)
                in_turn = Signal(name=f"in_turn{j}_{k}")
                # What is on offer stays so until it is taken, whatever else comes.
                m.d.comb += in_turn.eq(Mux(chosen[j], ~self.o.ready, Mux(chosen[k], self.o.ready, turn)))
                m.d.sync += turn.eq(in_turn)
                # Each of the first two of one with each of the first two of the other, as either may go now; two
                # registers, so that little comes behind the comparison. No Mux: synthesis would make it one comparator,
                # and that would wait for the choice.
                before, behind = Signal(2, name=f"first{j}_{k}"), Signal(2, name=f"first{k}_{j}")
                for a in (0, 1):
                    older: Value = ~total & in_turn & (a == 0)
                    younger: Value = ~total & ~in_turn & (a == 0)
                    for b in (0, 1):
                        meet = (total & (queues[j].goes == a) & (queues[k].goes == b)
                                & queues[j].here[a] & queues[k].here[b])
                        later = (queues[k].ages[b] - queues[j].ages[a])[self._bits - 1]
                        older, younger = older | (meet & ~later), younger | (meet & later)
                    m.d.sync += [before[a].eq(older), behind[a].eq(younger)]
                first[j, k], first[k, j] = before.any(), behind.any()

        m.d.comb += [barrier.eq(bar.all()), self.o.valid.eq(barrier | chosen.any())]
        for j, queue in enumerate(queues):
            m.d.comb += [
                queue.awaited.eq(total),
                chosen[j].eq(Cat(pair[j], *(clear[k] | first[j, k] for k in range(n) if k != j)).all()),
                queue.goes.eq(self.o.ready & (chosen[j] | (barrier & (part[j] | ~part.any())))),
            ]
        # Where what is on offer comes from; barriers are all alike. Row ids are wide, so this is to be quick and shares
        # nothing with the choice. Before two pairs have been compared it means nothing.
        place = Signal(bits_for(max(1, n - 1)))
        for j in range(1, n):
            with m.If(Cat(pair[j], *(~(pair[k] & first[k, j]) for k in range(n) if k != j)).all()):
                m.d.comb += place.eq(j)
        o, item = self.o.payload, Array(q.item for q in queues)[place]
        m.d.comb += [o.probe.eq(item.probe), o.stored.eq(item.stored),
                     # Barriers are of one kind, but for slices among stars, whose kind has all bits.
                     o.kind.eq(~pair.any().replicate(2) & reduce(or_, (Value.cast(q.kind) for q in queues)))]
        return m
