"""The combiner: one output stream from the results of both sides."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.device.wire import ItemKind, item_record

from ..layouts import STREAM_R, STREAM_S, result_layout, struct
from ..network.buffer import Buffer

__all__ = ["Combiner"]


class Combiner(wiring.Component):
    """Joins the R-probe (left) and S-probe (right) results.

    The paper's Combiner (section 5) marks each result with its side and gives no order between the sides: so does this
    one, in turns, unless ``total`` is set. Then ``sequence`` tells the stream of each tuple in arrival order, and the
    side whose turn it is passes until its star. One END leaves when both sides have come to theirs.

    Ports: ``left``, ``right``: results. ``sequence``: stream bits, with ``total`` only. ``o``: `item_record`.
    Registered: latency 1 cycle, 1 item a cycle.
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
        m.submodules.buffer = buffer = Buffer(struct(item_record()))
        wiring.connect(m, buffer.o, wiring.flipped(self.o))

        sides = {STREAM_R: self.left, STREAM_S: self.right}
        ready = {n: Signal(name=f"ready{n}") for n in sides}  # an item other than END
        ended = {n: Signal(name=f"ended{n}") for n in sides}
        for n, side in sides.items():
            end = side.payload.kind == ItemKind.END
            m.d.comb += [ready[n].eq(side.valid & ~end), ended[n].eq(side.valid & end)]

        served = Signal()  # the side that was served last
        right = Signal()  # take from the right side
        take, end = Signal(), Signal()
        m.d.comb += [
            right.eq(Mux(self.total, self.sequence.payload, ready[STREAM_S] & (~ready[STREAM_R] | ~served))),
            take.eq(Mux(right, ready[STREAM_S], ready[STREAM_R]) & (~self.total | self.sequence.valid)),
            end.eq(ended[STREAM_R] & ended[STREAM_S] & ~(self.total & self.sequence.valid)),
            buffer.i.valid.eq(take | end),
            self.left.ready.eq(buffer.i.ready & (end | (take & ~right))),
            self.right.ready.eq(buffer.i.ready & (end | (take & right))),
        ]
        kind = Signal(ItemKind)
        item, left, right_item = buffer.i.payload, self.left.payload, self.right.payload
        m.d.comb += [
            kind.eq(Mux(right, right_item.kind, left.kind)),
            item.kind.eq(Mux(kind == ItemKind.SLICE, ItemKind.STAR, kind)),
            item.side.eq(right),
            item.r.eq(Mux(right, right_item.stored, left.probe)),
            item.s.eq(Mux(right, right_item.probe, left.stored)),
            self.sequence.ready.eq(self.total & take & buffer.i.ready & (kind == ItemKind.STAR)),
        ]
        with m.If(take & buffer.i.ready):
            m.d.sync += served.eq(right)
        return m
