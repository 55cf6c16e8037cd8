"""The combiner: one output stream from the results of both sides."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import ItemKind, item_record

from ..layouts import STREAM_R, STREAM_S, result_layout, struct
from .lookahead import LookaheadFifo, offer_of


class Combiner(wiring.Component):
    """Joins the R-probe (left) and S-probe (right) results.

    The paper's Combiner (section 5) marks each result with its side and gives no order between the sides. This one does
    the same with a round-robin arbiter, unless ``total`` is set. Then ``sequence`` gives the stream of each tuple in
    arrival order, and the named side passes its results up to its next star. One END leaves when both sides have
    reached theirs.

    Ports: ``left``, ``right``: results. ``sequence``: stream bits, with ``total`` only. ``total``: a setting, constant
    while items are in flight and from two cycles before on. ``o``: `item_record`. Latency 1 cycle, 1 item per cycle;
    the inputs are registered.
    """

    def __init__(self) -> None:
        super().__init__({
            "left": In(stream.Signature(result_layout())),
            "right": In(stream.Signature(result_layout())),
            "sequence": In(stream.Signature(1)),
            "total": In(1),
            "o": Out(stream.Signature(struct(item_record()))),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        queues = {STREAM_R: LookaheadFifo(0), STREAM_S: LookaheadFifo(0)}
        for (name, port), queue in zip((("left", self.left), ("right", self.right)), queues.values(), strict=True):
            m.submodules[name] = queue
            wiring.connect(m, wiring.flipped(port), queue.i)
            m.d.comb += [queue.i_offer[field].eq(value) for field, value in offer_of(queue.i).items()]
        left, right = queues.values()

        not_end = Cat(queue.not_end for queue in queues.values())
        star = Cat(queue.star for queue in queues.values())
        turn = Signal()  # the right side has priority if both offer something other than END
        allowed = Signal(2)  # sides that may send; with `total` only the one that `sequence` named, if any
        grant = Signal(2)
        turn_over = Signal()  # the star that ends a side's turn leaves
        end = Signal()
        was_total = Signal()  # `total` a cycle ago, so that ``allowed`` starts with no side
        item, due = self.o.payload, self.sequence
        able = allowed & not_end
        m.d.comb += [
            grant[STREAM_R].eq(able[STREAM_R] & ~(able[STREAM_S] & turn)),
            grant[STREAM_S].eq(able[STREAM_S] & ~(able[STREAM_R] & ~turn)),
            # Both sides offer END, so the stars of all probes before it have left.
            end.eq(left.end & right.end),
            left.pop.eq(self.o.ready & (end | grant[STREAM_R])),
            right.pop.eq(self.o.ready & (end | grant[STREAM_S])),
            self.o.valid.eq(able.any() | end),
            turn_over.eq(self.o.ready & (allowed & star).any()),
            due.ready.eq(was_total & (~allowed.any() | turn_over)),
        ]
        next_side = due.valid.replicate(2) & Cat(~due.payload, due.payload)
        m.d.sync += [was_total.eq(self.total),
                     allowed.eq(Mux(was_total, Mux(due.ready, next_side, allowed), (~self.total).replicate(2)))]
        with m.If(able.any()):
            # An offer stays until it is taken, whatever arrives on the other side.
            m.d.sync += turn.eq(grant[STREAM_S] ^ self.o.ready)
        kind = Signal(ItemKind)
        side = grant[STREAM_S]
        m.d.comb += [
            kind.eq(Mux(side, right.kind, left.kind)),
            item.kind.eq(Mux(kind == ItemKind.SLICE, ItemKind.STAR, kind)), item.side.eq(side),
            item.r.eq(Mux(side, right.item.stored, left.item.probe)),
            item.s.eq(Mux(side, right.item.probe, left.item.stored)),
        ]
        return m
