"""Rows of results: as many as leave a circuit with a wide root in one cycle."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import RESULT_QUEUE
from splitjoin.circuit.wire import NO_ITEM, ItemKind

from ..layouts import result_layout
from ..network.block_fifo import BlockFifo


def row_layout(width: int) -> data.StructLayout:
    """A row of up to ``width`` results of one stream, the first ones at the lowest places.

    ``items``: as `result_layout`, with kinds as on the wire: STAR for a star between slices too, and `NO_ITEM` at
    places without a result, and at that of an END. ``star``: the last result is a star, but not between slices.
    ``end``: an END follows the results. ``lone``: the row has nothing but that star or END.
    """
    return data.StructLayout({"items": data.ArrayLayout(result_layout(), width), "star": 1, "end": 1, "lone": 1})


class RowQueue(wiring.Component):
    """Collects results in rows of ``width``, 2 or more, and holds `RESULT_QUEUE` rows in block RAM.

    A row is complete when it has ``width`` results, or a star or an END. An incomplete one moves on when no other row
    is in the queue, so no result waits for the next one.

    Ports: ``i``: results of one stream. ``o``: `row_layout`. 1 result and 1 row per cycle; ``i.ready`` depends on
    registers alone.
    """

    def __init__(self, width: int):
        if not (isinstance(width, int) and width >= 2):
            raise ValueError(f"Width must be an integer of at least 2, not {width!r}")
        self.width = width
        super().__init__({"i": In(stream.Signature(result_layout())), "o": Out(stream.Signature(row_layout(width)))})

    def elaborate(self, platform) -> Module:
        m = Module()
        width = self.width
        m.submodules.rows = rows = BlockFifo(row_layout(width), RESULT_QUEUE)
        row = Signal(row_layout(width), name="row", init={"items": [{"kind": NO_ITEM}] * width})
        count = Signal(range(width + 1), name="count")
        place = Signal(range(width), name="place")  # of the result that arrives
        complete, take, push, idle = (Signal(name=name) for name in ("complete", "take", "push", "idle"))
        inside = Signal(range(RESULT_QUEUE + 32), name="inside")  # rows in the queue, and under way in it
        arriving, kind = self.i.payload, self.i.payload.kind
        ends = (kind == ItemKind.STAR) | (kind == ItemKind.END)
        m.d.comb += [
            push.eq(rows.i.ready & (complete | ((count != 0) & idle))),
            self.i.ready.eq(~complete | rows.i.ready), take.eq(self.i.valid & self.i.ready),
            place.eq(Mux(push, 0, count)),
            rows.i.valid.eq(complete | ((count != 0) & idle)), rows.i.payload.eq(row),
        ]
        m.d.sync += [inside.eq(inside + push - (rows.o.valid & rows.o.ready)), idle.eq((inside == 0) & ~push)]
        for n, item in enumerate(row["items"]):
            with m.If(take & (place == n)):
                m.d.sync += [item.probe.eq(arriving.probe), item.stored.eq(arriving.stored),
                             item.kind.eq(Mux(kind == ItemKind.SLICE, ItemKind.STAR, Mux(
                                 kind == ItemKind.END, NO_ITEM, kind)))]
            with m.Elif(push):
                m.d.sync += item.kind.eq(NO_ITEM)
        with m.If(take):
            m.d.sync += [count.eq(place + 1), complete.eq(ends | (place == width - 1)),
                         row.star.eq(kind == ItemKind.STAR), row.end.eq(kind == ItemKind.END),
                         row.lone.eq(ends & (place == 0))]
        with m.Elif(push):
            m.d.sync += [count.eq(0), complete.eq(0)]
        wiring.connect(m, rows.o, wiring.flipped(self.o))
        return m
