"""CellJoin as a circuit: for each probe, the window is partitioned anew into equal parts of consecutive tuples."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring

from ..layouts import window_layout
from ..link.registers import RegisterBlock
from ..splitjoin import SplitJoin
from .ends import CoreMessage, Ends
from .segment import SegmentRegion


class CellJoin(SplitJoin):
    """k regions of each stream, each with a segment of the window: core 0 has the oldest tuples (Gedik, Bordawekar and
    Yu, "CellJoin", 2009, section 4).

    A tuple is stored with the youngest, and the oldest leaves at core 0. A core that has more than the one before hands
    its oldest on to it, all cores at once, in three cycles. A tuple waits until no core has, and then all cores compare
    it at once. So each has as many as the next, or one more.

    The results of core 0 are older than those of core 1, and so on. So mergers in a fixed order keep the order
    ``total`` without comparing row ids.
    """

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self.config
        m.submodules.registers = registers = RegisterBlock(config)
        m.submodules.ends = ends = Ends(config, drains=False)
        m.submodules.left, m.submodules.right = left, right = self._gathering(), self._gathering()
        m.d.comb += [tree.total.eq(registers.settings.sorted) for tree in (left, right)]
        record, room = self._record, Signal()
        gathered = self._combine(m, registers, left, right, record, room)
        wiring.connect(m, self._buffered(m, room), ends.i)
        m.d.comb += [
            ends.settings.eq(registers.settings),
            self.o.payload.eq(Cat(gathered.payload[name] for name, _ in config.item_record.fields)),
            self.o.valid.eq(gathered.valid), gathered.ready.eq(self.o.ready), *self._bus(registers),
            registers.overflow.eq(ends.overflow), registers.overflow_row_r.eq(ends.overflow_row[0]),
            registers.overflow_row_s.eq(ends.overflow_row[1]),
        ]

        one = replace(config, cores=1, merger="ready")
        regions = {side: [self._parts.add(m, f"segment_{side}{n}", f"segment_{side}",
                                          partial(SegmentRegion, one, side, probes=False))
                          for n in range(config.cores)] for side in "rs"}
        rest, acts = Signal(2), []
        settled = {side: Signal(name=f"settled_{side}") for side in "rs"}
        for side, parts in regions.items():
            window = Signal(window_layout(config), name=f"window_{side}")
            m.d.sync += window.eq(registers.settings[side])
            tree = left if side == "s" else right  # R's probes are compared with S
            for n, part in enumerate(parts):
                m.d.comb += [part.window.eq(window), part.until.eq(part.end)]
                wiring.connect(m, part.o, tree.i[n])
            longer = [Signal(name=f"longer_{side}{n}") for n in range(1, config.cores)]
            m.d.comb += settled[side].eq(~Cat(longer).any())
            for n, (older, younger) in enumerate(pairwise(parts)):
                moves = Signal(name=f"moves_{side}{n}")
                m.d.comb += [
                    longer[n].eq(younger.length > older.length),
                    moves.eq(longer[n] & younger.oldest_valid & older.free & (rest == 0)),
                    older.append.eq(moves), Value.cast(older.body).eq(Value.cast(younger.oldest)),
                    younger.send.eq(moves), younger.drop.eq(moves),
                ]
                acts.append(moves)
        for side, other, own_port in (("r", "s", ends.r), ("s", "r", ends.s)):
            own, probed = regions[side], regions[other]
            ready = Cat(part.probe.ready for part in probed).all()
            kind, takes = own_port.payload.kind, {}
            for name, able in (
                    ("tuple", (kind == CoreMessage.TUPLE) & settled["r"] & settled["s"] & ready & own[-1].free),
                    ("end", (kind == CoreMessage.END) & ready),
                    ("expire", (kind == CoreMessage.EXPIRE) & (probed[0].length != 0))):
                takes[name] = Signal(name=f"{name}_{side}")
                m.d.comb += takes[name].eq(own_port.valid & able & (rest == 0))
            m.d.comb += [
                own_port.ready.eq(Cat(takes.values()).any()),
                own[-1].append.eq(takes["tuple"]),
                Cat(own[-1].body).eq(Cat(own_port.payload.body[name] for name, _ in config.keys(side).fields)),
                # The oldest tuple of all is in core 0, or on its way there.
                probed[0].drop.eq(takes["expire"]), probed[0].send.eq(takes["expire"]),
            ]
            for part in probed:
                m.d.comb += [part.probe.valid.eq(takes["tuple"] | takes["end"]),
                             part.probe.payload.flush.eq(takes["end"]),
                             *(part.probe.payload.bounds[name].eq(own_port.payload.body[name])
                               for name, _ in config.bounds(side).fields)]
            acts += takes.values()
        with m.If(rest != 0):
            m.d.sync += rest.eq(rest - 1)
        with m.Elif(Cat(acts).any()):
            m.d.sync += rest.eq(2)
        parts = [*regions["s"], *regions["r"]]
        self._count(m, registers, record, [part.compared for part in parts], [part.matched for part in parts])
        return m


