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
from .lookahead import OFFER, fed_queues


class ComparisonSelect(wiring.Component):
    """Selects one of two comparisons with two gates, in a module of their own whose boundary `boards.flow` keeps.

    Synthesis allows every path of a module as many gates as its longest path has; here they would follow a carry chain.

    Ports: ``other_older``: the outcome of each comparison, 1 if the other input's result is older. ``present``,
    ``other_present``: the compared results are valid. ``enable``: selects a comparison, or none. ``total``: results are
    compared; without it a selected outcome is 1. ``o``: the selected outcome: with ``older`` 1 if the own result is
    older, else 1 if the other one is.
    """

    def __init__(self, *, older: bool):
        self.older = older
        super().__init__({"other_older": In(2), "present": In(1), "other_present": In(2), "enable": In(2),
                          "total": In(1), "o": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        other_older: Value = ~self.other_older if self.older else self.other_older
        outcome = (~self.total).replicate(2) | (self.present.replicate(2) & self.other_present & other_older)
        m.d.comb += self.o.eq((self.enable & outcome).any())
        return m


def merger_ports(inputs: int, has_offer_input: bool = False, isolates: bool = False) -> dict[str, wiring.Member]:
    """The ports of a `Merger`."""
    return {
        "i": In(stream.Signature(result_layout())).array(inputs),
        **({"i_offer": In(OFFER).array(inputs)} if has_offer_input else {}),
        "o": Out(stream.Signature(result_layout())),
        "o_offer": Out(OFFER),
        "total": In(1),
        **({"i_dead": In(inputs), "o_dead": Out(1)} if isolates else {}),
    }


class Merger(wiring.Component):
    """Passes on the results of each group, then one star when every input has delivered its own.

    SplitJoin's Merger (section 5, Algorithm 5) visits its inputs in a fixed order. This one is a least-recently-served
    arbiter over the inputs that offer a result, so that an empty or slow core does not hold up the others. With
    ``total`` it waits until every input offers a result or a star and takes the result with the oldest stored tuple, so
    that each probe's results leave sorted. Stars and ENDs are barriers: no result passes a barrier until all inputs
    have reached it. Inputs with fewer slices lack some of the stars between two slices of a probe; such a star passes
    when each of the other inputs has reached it or the probe's last star.

    The arbiter compares one cycle ahead all results that may be offered then, and keeps the outcomes in registers. No
    combinational path leads from ``o.ready`` to an input's ``ready``, and none passes more than the grant.

    Ports: ``i``: ``inputs`` result streams. ``i_offer``, with ``has_offer_input``: the kind of result offered at each
    input, from another merger's ``o_offer``, which settles two gates before its ``o``. ``o``, ``o_offer``: the merged
    stream, and the kind of result that it offers.
    ``i_dead``, ``o_dead``, with ``isolates``: the inputs at which nothing arrives any more, for good; and that nothing
    leaves any more. What such an input has brought leaves as ever, and behind it the input counts as one that has
    reached every barrier: a permanent star.
    ``total``: sorted; a setting, constant while items are in flight and from a cycle before on. Row ids are compared in
    their lowest ``bits`` bits, 2 to 32: the row ids of results that are compared must differ by less than
    2^(``bits`` − 1). Latency 1 cycle, and one more where row ids must be compared and a result has just arrived; 1 item
    per cycle.
    """

    def __init__(self, inputs: int, bits: int = ROW_BITS, *, has_offer_input: bool = False, isolates: bool = False):
        if not (isinstance(inputs, int) and inputs >= 1):
            raise ValueError(f"Inputs must be a positive integer, not {inputs!r}")
        if not (isinstance(bits, int) and 2 <= bits <= ROW_BITS):
            raise ValueError(f"Bits to compare must be an integer from 2 to {ROW_BITS}, not {bits!r}")
        self.inputs, self.bits, self.has_offer_input, self.isolates = inputs, bits, has_offer_input, isolates
        super().__init__(merger_ports(inputs, has_offer_input, isolates))

    def elaborate(self, platform) -> Module:
        m = Module()
        n = self.inputs
        queues = fed_queues(m, self, n, self.bits if n > 1 else 0, has_offer_input=self.has_offer_input)
        total = self.total
        pair, barrier, slices, star, end, lets_pass = (Cat(getattr(q, name) for q in queues) for name in (
            "pair", "barrier", "slice", "star", "end", "lets_pass"))
        all_barriers, all_stars, all_ends = barrier.all(), star.all(), end.all()
        # The kinds of an input's first result: of an empty queue it may be any, while its flags are 0.
        kinds = [Value.cast(q.kind) for q in queues]
        # The inputs that are dead and empty, for good.
        gone: Signal | None = Signal(n) if self.isolates else None
        if gone is not None:
            m.d.sync += gone.eq(gone | (self.i_dead & ~Cat(q.valid for q in queues)))
            m.d.comb += self.o_dead.eq(gone.all())
            all_barriers, all_stars, all_ends = ((flags | gone).all() & ~gone.all() for flags in (barrier, star, end))
            lets_pass = lets_pass | gone
            kinds = [kind & ~dead.replicate(2) for kind, dead in zip(kinds, gone, strict=True)]
        grant = Signal(n)  # the input whose pair is offered
        barrier_offer = Signal()  # all inputs offer a barrier, and so does the output

        # For each two inputs: the one that precedes if both offer pairs. With `total` that is the older one, modular as
        # row ids wrap, as soon as both have been compared, and until then neither; else the one served longer ago.
        precedes: dict[tuple[int, int], Value] = {}
        for j in range(n):
            for k in range(j + 1, n):
                turn = Signal(name=f"turn{j}_{k}", init=1)
                turn_next = Signal(name=f"turn_next{j}_{k}")
                # An offer stays until it is taken, whatever else arrives.
                m.d.comb += turn_next.eq(Mux(grant[j], ~self.o.ready, Mux(grant[k], self.o.ready, turn)))
                m.d.sync += turn.eq(turn_next)
                # Each of the first two results of one input is compared with each of the first two of the other, as
                # either may be popped now. Two registers leave few gates behind the comparison. No Mux: synthesis would
                # make it one comparator, and that would wait for the grant.
                before, behind = Signal(2, name=f"precedes{j}_{k}"), Signal(2, name=f"precedes{k}_{j}")
                for a in (0, 1):
                    other_older = Cat((queues[k].row_ids[b] - queues[j].row_ids[a])[self.bits - 1] for b in (0, 1))
                    enable = Cat(total & (queues[j].pop == a) & (queues[k].pop == b) for b in (0, 1))
                    for register, older in ((before, True), (behind, False)):
                        select = ComparisonSelect(older=older)
                        m.submodules[f"compare_select{j}_{k}_{a}_{older:d}"] = select
                        by_turn = ~total & (turn_next == older) if a == 0 else 0
                        m.d.comb += [
                            select.enable.eq(enable | by_turn), select.present.eq(queues[j].present[a]),
                            select.other_present.eq(queues[k].present), select.other_older.eq(other_older),
                            select.total.eq(total),
                        ]
                        m.d.sync += register[a].eq(select.o)
                precedes[j, k], precedes[k, j] = before.any(), behind.any()

        offer = self.o_offer
        m.d.comb += [
            barrier_offer.eq(all_barriers), self.o.valid.eq(barrier_offer | grant.any()),
            # All inputs that reach a barrier have stars, or all have ENDs; slices may meet either.
            offer.pair.eq(grant.any()), offer.barrier.eq(barrier_offer), offer.slice.eq(barrier_offer & slices.any()),
            offer.star.eq(all_stars), offer.end.eq(all_ends),
        ]
        for j, queue in enumerate(queues):
            barrier_pops: Value = barrier_offer if gone is None else barrier_offer & ~gone[j]
            m.d.comb += [
                queue.wait_if_empty.eq(total),
                grant[j].eq(Cat(pair[j], *(lets_pass[k] | precedes[j, k] for k in range(n) if k != j)).all()),
                queue.pop.eq(self.o.ready & (grant[j] | (barrier_pops & (slices[j] | ~slices.any())))),
            ]
        # The input whose payload is selected; for a barrier, any will do. Row ids are wide, so the select must settle
        # early and shares no logic with the grant. It is meaningless until two pairs have been compared.
        source = Signal(bits_for(max(1, n - 1)))
        if gone is not None:  # a barrier is that of the first input that is left
            for j in range(1, n):
                with m.If(gone[:j].all()):
                    m.d.comb += source.eq(j)
        for j in range(0 if gone is not None else 1, n):
            with m.If(Cat(pair[j], *(~(pair[k] & precedes[k, j]) for k in range(n) if k != j)).all()):
                m.d.comb += source.eq(j)
        o, item = self.o.payload, Array(q.item for q in queues)[source]
        m.d.comb += [o.probe.eq(item.probe), o.stored.eq(item.stored),
                     # All barriers are of one kind, or slices and stars; the kind of a star has all bits.
                     o.kind.eq(~pair.any().replicate(2) & reduce(or_, kinds))]
        return m
