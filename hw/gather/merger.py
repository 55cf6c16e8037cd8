"""One node of a result-gathering tree: merges result streams group by group, following the stars."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for
from splitjoin.circuit.wire import ROW_BITS

from ..layouts import result_layout
from .lookahead import OFFER, Lookahead, offered
from .verdict import Verdict

__all__ = ["Merger", "merger_ports"]


def merger_ports(inputs: int, told: bool = False) -> dict[str, wiring.Member]:
    """The ports of a `Merger`."""
    return {
        "i": In(stream.Signature(result_layout())).array(inputs),
        **({"comes": In(OFFER).array(inputs)} if told else {}),
        "o": Out(stream.Signature(result_layout())),
        "offer": Out(OFFER),
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

    Ports: ``i``: ``inputs`` result streams. ``comes``, if it is ``told``: of each input what `offered` says, from the
    ``offer`` of another merger, which knows what is on offer at its ``o`` two gates sooner than that tells. ``o``.
    ``total``: sorted; a setting, constant while items are in flight and from a cycle before on. Row ids are compared in
    their lowest ``bits`` bits, 2 to 32: those of results that meet must differ by less than half of what these count.
    Latency 1 cycle, and one more where row ids must be compared and the results have only just come; 1 item a cycle.
    """

    def __init__(self, inputs: int, bits: int = ROW_BITS, *, told: bool = False):
        if not (isinstance(inputs, int) and inputs >= 1):
            raise ValueError(f"Inputs must be a positive integer, not {inputs!r}")
        if not (isinstance(bits, int) and 2 <= bits <= ROW_BITS):
            raise ValueError(f"Bits to compare must be an integer from 2 to {ROW_BITS}, not {bits!r}")
        self._inputs, self._bits, self._told = inputs, bits, told
        super().__init__(merger_ports(inputs, told))

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return self._inputs

    @property
    def bits(self) -> int:
        """Bits of row ids that are compared."""
        return self._bits

    @property
    def told(self) -> bool:
        """Whether it is told what comes."""
        return self._told

    def elaborate(self, platform) -> Module:
        m = Module()
        n = self._inputs
        queues = [Lookahead(self._bits if n > 1 else 0) for _ in range(n)]
        for j, queue in enumerate(queues):
            m.submodules[f"queue{j}"] = queue
            wiring.connect(m, wiring.flipped(self.i[j]), queue.i)
            if self._told:
                m.d.comb += queue.comes.eq(self.comes[j])
            else:
                m.d.comb += [queue.comes[name].eq(value) for name, value in offered(queue.i).items()]
        total = self.total
        pair, bar, part, star, end, clear = (Cat(getattr(q, name) for q in queues) for name in (
            "pair", "bar", "part", "star", "end", "clear"))
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
                    later = Cat((queues[k].ages[b] - queues[j].ages[a])[self._bits - 1] for b in (0, 1))
                    asked = Cat(total & (queues[j].goes == a) & (queues[k].goes == b) for b in (0, 1))
                    for register, older in ((before, True), (behind, False)):
                        m.submodules[f"verdict{j}_{k}_{a}_{older:d}"] = verdict = Verdict(older=older)
                        turned = ~total & (in_turn == older) if a == 0 else 0
                        m.d.comb += [
                            verdict.asked.eq(asked | turned), verdict.here.eq(queues[j].here[a]),
                            verdict.others.eq(queues[k].here), verdict.later.eq(later), verdict.total.eq(total),
                        ]
                        m.d.sync += register[a].eq(verdict.o)
                first[j, k], first[k, j] = before.any(), behind.any()

        offer = self.offer
        m.d.comb += [
            barrier.eq(bar.all()), self.o.valid.eq(barrier | chosen.any()),
            # Stars and ENDs do not meet at a barrier; slices may meet either.
            offer.pair.eq(chosen.any()), offer.bar.eq(barrier), offer.part.eq(barrier & part.any()),
            offer.star.eq(star.all()), offer.end.eq(end.all()),
        ]
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
