"""The combiner: one output stream from the results of both sides."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.circuit.wire import ItemKind, item_record

from ..layouts import STREAM_R, STREAM_S, result_layout, struct
from .lookahead import Lookahead, offered

__all__ = ["Combiner"]


class Combiner(wiring.Component):
    """Joins the R-probe (left) and S-probe (right) results.

    The paper's Combiner (section 5) marks each result with its side and gives no order between the sides: so does this
    one, in turns, unless ``total`` is set. Then ``sequence`` tells the stream of each tuple in arrival order, and the
    side whose turn it is passes until its star. One END leaves when both sides have come to theirs.

    Ports: ``left``, ``right``: results. ``sequence``: stream bits, with ``total`` only. ``total``: a setting, constant
    while items are in flight and from two cycles before on. ``o``: `item_record`. Latency 1 cycle, 1 item a cycle;
    registered at its inputs.
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
        queues = {STREAM_R: Lookahead(0), STREAM_S: Lookahead(0)}
        for (name, port), queue in zip((("left", self.left), ("right", self.right)), queues.values(), strict=True):
            m.submodules[name] = queue
            wiring.connect(m, wiring.flipped(port), queue.i)
            m.d.comb += [queue.comes[field].eq(value) for field, value in offered(queue.i).items()]
        left, right = queues.values()

        ready = Cat(queue.ready for queue in queues.values())  # something other than END
        star = Cat(queue.star for queue in queues.values())
        turn = Signal()  # with both sides ready it is the right one's
        may = Signal(2)  # whose turn it may be; with `total` one side's, or none's before `sequence` tells
        chosen = Signal(2)
        passed = Signal()  # the star that ends its turn passes
        end = Signal()
        in_order = Signal()  # `total` a cycle ago: ``may`` starts with nothing
        item, due = self.o.payload, self.sequence
        can = may & ready
        m.d.comb += [
            chosen[STREAM_R].eq(can[STREAM_R] & ~(can[STREAM_S] & turn)),
            chosen[STREAM_S].eq(can[STREAM_S] & ~(can[STREAM_R] & ~turn)),
            # Stars of all that came before it have left, and what has its turn then comes behind it.
            end.eq(left.end & right.end),
            left.goes.eq(self.o.ready & (end | chosen[STREAM_R])),
            right.goes.eq(self.o.ready & (end | chosen[STREAM_S])),
            self.o.valid.eq(can.any() | end),
            passed.eq(self.o.ready & (may & star).any()),
            due.ready.eq(in_order & (~may.any() | passed)),
        ]
        told = due.valid.replicate(2) & Cat(~due.payload, due.payload)
        m.d.sync += [in_order.eq(self.total),
                     may.eq(Mux(in_order, Mux(due.ready, told, may), (~self.total).replicate(2)))]
        with m.If(can.any()):
            # Until it is taken it stays on offer, whatever comes on the other side.
            m.d.sync += turn.eq(chosen[STREAM_S] ^ self.o.ready)
        kind, side = Signal(ItemKind), chosen[STREAM_S]
        m.d.comb += [
            kind.eq(Mux(side, right.kind, left.kind)),
            item.kind.eq(Mux(kind == ItemKind.SLICE, ItemKind.STAR, kind)), item.side.eq(side),
            item.r.eq(Mux(side, right.item.stored, left.item.probe)),
            item.s.eq(Mux(side, right.item.probe, left.item.stored)),
        ]
        return m
