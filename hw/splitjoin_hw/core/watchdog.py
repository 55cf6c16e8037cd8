"""The watchdog of a core: it leaves the core out when it stands still, so that the others can go on."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.circuit.wire import ROW_BITS, Configuration, ItemKind

from ..layouts import input_layout, result_layout


class Watchdog(wiring.Component):
    """Stands between a core and the trees, and passes on what both sides send, until the core stands still.

    It does so while one of its regions has work to do, does none, and gives no result, although no merger makes it
    wait; a region whose own result waits may well stand still because of the other one. Or while a record waits for a
    core whose regions have nothing to do. When that has been so for a whole period between two ticks, the core is dead,
    for good: its records are dropped, so that the distribution tree does not wait for it, and nothing of it passes any
    more, should it wake up. A core that stopped as a tuple did not fit is not dead.

    Ports:
        ``i``, ``core_i``: records, from the tree to the core. ``core_left``, ``core_right``, ``left``, ``right``: the
        results of both regions, from the core to the trees.
        ``busy``, ``works``: for the left and the right region, as of `splitjoin_hw.core.core.Core`. ``overflow``: the
        core has stopped, as a tuple did not fit.
        ``tick``: high for one cycle, in each period.
        ``dead``: the core is left out. Nothing leaves from the first cycle on in which it is high.
        ``last``: for the left and the right region, the probe of the last result, and in the highest bit whether a star
        ended it; at first the probe before row 0, and 1.
    """

    def __init__(self, config: Configuration):
        self.config = config
        records, results = stream.Signature(input_layout(config)), stream.Signature(result_layout())
        super().__init__({
            "i": In(records), "core_i": Out(records),
            "core_left": In(results), "core_right": In(results),
            "left": Out(results), "right": Out(results),
            "busy": In(2), "works": In(2), "overflow": In(1), "tick": In(1),
            "dead": Out(1),
            "last": Out(ROW_BITS + 1).array(2),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        alive = ~self.dead
        m.d.comb += [
            self.core_i.payload.eq(self.i.payload), self.core_i.valid.eq(self.i.valid & alive),
            self.i.ready.eq(self.core_i.ready | self.dead),
        ]
        gives = Signal(2)  # a region offers a result, whether or not it is taken
        for n, (of_core, out) in enumerate(((self.core_left, self.left), (self.core_right, self.right))):
            m.d.comb += [
                out.payload.eq(of_core.payload), out.valid.eq(of_core.valid & alive),
                of_core.ready.eq(out.ready | self.dead),
                gives[n].eq(out.valid),
            ]
            probe = Signal(ROW_BITS, name=f"probe{n}", init=2**ROW_BITS - 1)
            complete = Signal(name=f"complete{n}", init=1)
            kind = out.payload.kind
            with m.If(out.valid & out.ready & (kind != ItemKind.END)):
                m.d.sync += [probe.eq(out.payload.probe), complete.eq(kind == ItemKind.STAR)]
            m.d.comb += self.last[n].eq(Cat(probe, complete))
        # Each region stands still, or the core's input does, and has done so since the last tick.
        stands, still = Signal(3), Signal(3)
        untaken = self.i.valid & ~self.core_i.ready & ~self.busy.any()
        m.d.comb += stands.eq(Cat(self.busy & ~self.works & ~gives, untaken) & ~self.overflow.replicate(3))
        m.d.sync += still.eq(stands & (still | self.tick.replicate(3)))
        with m.If(self.tick & (stands & still).any()):
            m.d.sync += self.dead.eq(1)
        return m
