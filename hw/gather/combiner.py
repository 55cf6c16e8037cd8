"""The combiner: one output stream from the results of both sides."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.device.wire import ItemKind, item_record

from ..layouts import STREAM_R, STREAM_S, result_layout, struct
from .lookahead import Lookahead

__all__ = ["Combiner"]


class Combiner(wiring.Component):
    """Joins the R-probe (left) and S-probe (right) results.

    The paper's Combiner (section 5) marks each result with its side and gives no order between the sides: so does this
    one, in turns, unless ``total`` is set. Then ``sequence`` tells the stream of each tuple in arrival order, and the
    side whose turn it is passes until its star. One END leaves when both sides have come to theirs.

    Ports: ``left``, ``right``: results. ``sequence``: stream bits, with ``total`` only. ``o``: `item_record`.
    Latency 1 cycle, 1 item a cycle; registered at its inputs.
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
        left, right = queues.values()

        ready = Cat(queue.ready for queue in queues.values())  # something other than END
        turn = Signal()  # with both sides ready it is the right one's
        side = Signal()  # the right side's is on offer, if one is
        take, end, kind = Signal(), Signal(), Signal(ItemKind)
        item, due = self.o.payload, self.sequence
        m.d.comb += [
            side.eq(ready[STREAM_S] & Mux(self.total, due.payload, ~ready[STREAM_R] | turn)),
            take.eq(Mux(self.total, due.valid & Mux(due.payload, ready[STREAM_S], ready[STREAM_R]), ready.any())),
            # Stars of all that came before it have left, and what has its turn then comes behind it.
            end.eq(left.end & right.end),
            left.goes.eq(self.o.ready & (end | (take & ~side))),
            right.goes.eq(self.o.ready & (end | (take & side))),
            kind.eq(Mux(side, right.kind, left.kind)),
            self.o.valid.eq(take | end),
            item.kind.eq(Mux(kind == ItemKind.SLICE, ItemKind.STAR, kind)), item.side.eq(side),
            item.r.eq(Mux(side, right.item.stored, left.item.probe)),
            item.s.eq(Mux(side, right.item.probe, left.item.stored)),
            due.ready.eq(self.total & self.o.ready & take & (kind == ItemKind.STAR)),
        ]
        with m.If(take):
            # Until it is taken it stays on offer, whatever comes on the other side.
            m.d.sync += turn.eq(side ^ self.o.ready)
        return m
