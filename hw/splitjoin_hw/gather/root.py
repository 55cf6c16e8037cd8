"""The root of a circuit that gives two or four results in a cycle: rows of both sides become one stream of rows."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.geometry import root_ways
from splitjoin.circuit.wire import NO_ITEM, ItemKind, item_record

from ..layouts import STREAM_R, STREAM_S, result_layout, struct
from ..parts import Submodules
from .rows import RowQueue, row_layout


def record_layout(width: int) -> data.ArrayLayout:
    """The items that leave the circuit in one cycle, the first one lowest: `item_record` for each."""
    return data.ArrayLayout(struct(item_record()), width)


class RowCombiner(wiring.Component):
    """Joins the rows of R-probe (left) and S-probe (right) results, a row a cycle, in the orders of `Combiner`.

    Each side has one way or two. The ways of a side take turns, and a row with a star ends a turn; with ``spread`` all
    ways of a side pass rows until each has come to its star, and one star leaves, with the last of them. No row has
    results of two probes, but where probes share a star. One END leaves when every way has reached its own.

    Ports: ``i``: `row_layout` of each way, those of the left side first. ``sequence``, ``total``: as of `Combiner`.
    ``spread``: a setting, constant as ``total``, and 0 with it. ``o``: `record_layout`. Latency 1 cycle.
    """

    def __init__(self, width: int, ways: int):
        if ways not in (1, 2):
            raise ValueError(f"Ways must be 1 or 2, not {ways!r}")
        self.width, self.ways = width, ways
        super().__init__({
            "i": In(stream.Signature(row_layout(width))).array(2 * ways),
            "sequence": In(stream.Signature(1)),
            "total": In(1),
            "spread": In(1),
            "o": Out(stream.Signature(record_layout(width))),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        ways = range(self.ways)
        load, send_end, turn_over, was_total = (Signal(name=name) for name in (
            "load", "send_end", "turn_over", "was_total"))
        turn = Signal()  # the right side has priority if both offer a row
        allowed = Signal(2)  # sides that may send; with `total` only the one that `sequence` named, if any
        able, grant = Signal(2), Signal(2)
        at_end = Signal(2 * self.ways)  # ways whose END has been taken
        m.d.comb += [load.eq(~self.o.valid | self.o.ready), send_end.eq(at_end.all())]
        picked: list[Value] = []  # of each side, the way whose row it offers
        blank = Signal(2)  # of each side, the star of its row is not to leave: the other way has not come to its own
        for side in (STREAM_R, STREAM_S):
            mine = [self.i[side * self.ways + way] for way in ways]
            ended = at_end[side * self.ways:(side + 1) * self.ways]
            # Nothing but an END: taken as soon as it comes.
            absorb = Cat(port.valid & port.payload.end & port.payload.lone for port in mine) & ~ended
            offers = Cat(port.valid & ~(port.payload.end & port.payload.lone) for port in mine) & ~ended
            star = Cat(port.payload.star for port in mine)
            if self.ways == 1:
                pick: Value = Signal(name=f"pick{side}")  # always 0
            else:
                way, pick = Signal(name=f"way{side}"), Signal(name=f"pick{side}")
                at_star = Signal(self.ways, name=f"at_star{side}")
                offers &= Mux(self.spread, ~at_star, Cat(~way, way))
                m.d.comb += [pick.eq(offers[1] & (~offers[0] | way)),
                             blank[side].eq(self.spread & ~at_star.any())]
                with m.If(load & grant[side] & (self.spread | star.bit_select(pick, 1))):
                    m.d.sync += way.eq(~pick)
                with m.If(load & grant[side] & star.bit_select(pick, 1) & self.spread):
                    m.d.sync += at_star.eq(Mux(at_star.any(), 0, Cat(~pick, pick)))
            picked.append(pick)
            m.d.comb += able[side].eq(allowed[side] & offers.any())
            for n, port in enumerate(mine):
                pop = load & grant[side] & (pick == n)
                m.d.comb += port.ready.eq(pop | absorb[n])
                with m.If(absorb[n] | (pop & port.payload.end)):
                    m.d.sync += ended[n].eq(1)
        with m.If(load & send_end):
            m.d.sync += at_end.eq(0)
        m.d.comb += [grant[STREAM_R].eq(able[STREAM_R] & ~(able[STREAM_S] & turn)),
                     grant[STREAM_S].eq(able[STREAM_S] & ~(able[STREAM_R] & ~turn))]

        side = grant[STREAM_S]
        rows = Array(port.payload for port in self.i)
        row = Signal(row_layout(self.width), name="row")
        source = side if self.ways == 1 else Cat(Mux(side, picked[STREAM_S], picked[STREAM_R]), side)
        hidden = Mux(side, blank[STREAM_S], blank[STREAM_R])
        due = self.sequence
        m.d.comb += [row.eq(rows[source]), turn_over.eq(load & grant.any() & row.star),
                     due.ready.eq(was_total & (~allowed.any() | turn_over))]
        next_side = due.valid.replicate(2) & Cat(~due.payload, due.payload)
        m.d.sync += [was_total.eq(self.total),
                     allowed.eq(Mux(was_total, Mux(due.ready, next_side, allowed), (~self.total).replicate(2)))]
        with m.If(load & grant.any()):
            m.d.sync += turn.eq(grant[STREAM_R])
        with m.If(load):
            m.d.sync += self.o.valid.eq(send_end | (grant.any() & ~(row.lone & hidden)))
            for n, (item, result) in enumerate(zip(self.o.payload, row["items"], strict=True)):
                kind = result.kind | Cat(0, hidden & (result.kind == ItemKind.STAR))
                m.d.sync += [
                    item.kind.eq(Mux(send_end, NO_ITEM if n else ItemKind.END, kind)), item.side.eq(side),
                    item.r.eq(Mux(side, result.stored, result.probe)),
                    item.s.eq(Mux(side, result.probe, result.stored)),
                ]
        return m


class Root(wiring.Component):
    """A `RowCombiner` of ``width``, 2 or 4, with a `RowQueue` ahead of each input; ``parts``: as of `SplitJoin`.

    In total order one side waits while the other one's results leave. Its own wait in the queues meanwhile, and leave
    afterwards as fast as records can.
    """

    def __init__(self, width: int, parts: Submodules | None = None):
        if width not in (2, 4):
            raise ValueError(f"Width must be 2 or 4, not {width!r}")
        self.width, self._parts = width, parts or Submodules()
        side = In(stream.Signature(result_layout())).array(root_ways(width))
        super().__init__({"left": side, "right": side, "sequence": In(stream.Signature(1)), "total": In(1),
                          "spread": In(1), "o": Out(stream.Signature(record_layout(width)))})

    def elaborate(self, platform) -> Module:
        m = Module()
        ways = root_ways(self.width)
        m.submodules.combiner = combiner = RowCombiner(self.width, ways)
        for name, side, first in (("left", self.left, 0), ("right", self.right, ways)):
            for n in range(ways):
                queue = self._parts.add(m, f"{name}{n}", "row_queue", lambda: RowQueue(self.width))
                wiring.connect(m, wiring.flipped(side[n]), queue.i)
                wiring.connect(m, queue.o, combiner.i[first + n])
        m.d.comb += [combiner.total.eq(self.total), combiner.spread.eq(self.spread)]
        wiring.connect(m, wiring.flipped(self.sequence), combiner.sequence)
        wiring.connect(m, combiner.o, wiring.flipped(self.o))
        return m
