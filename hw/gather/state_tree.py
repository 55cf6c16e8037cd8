"""The gather tree of folded states: one state of all cores for each probe, and the items that carry it."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from splitjoin.circuit.wire import ROW_BITS, Configuration, ItemKind

from ..hls.state import merged
from ..layouts import folded_layout, result_layout
from ..parts import Submodules

__all__ = ["StateMerger", "StateTree", "state_merger_ports"]


def state_merger_ports(config: Configuration) -> dict[str, wiring.Member]:
    """The ports of a `StateMerger`."""
    signature = stream.Signature(folded_layout(config))
    return {"i": In(signature).array(2), "o": Out(signature)}


class StateMerger(wiring.Component):
    """Merges the states that two inputs have for the same probe; a state in two cycles.

    Ports: ``i``: states, of which one is taken from both inputs or from none. ``o``: merged states. No combinational
    path leads from ``o.ready`` to an input.
    """

    def __init__(self, config: Configuration):
        self._config = config
        super().__init__(state_merger_ports(config))

    def elaborate(self, platform) -> Module:
        m = Module()
        a, b = (port.payload for port in self.i)
        take = Signal()
        m.d.comb += [take.eq(self.i[0].valid & self.i[1].valid & ~self.o.valid), *(p.ready.eq(take) for p in self.i)]
        with m.If(take):
            m.d.sync += [self.o.valid.eq(1), self.o.payload.end.eq(a.end),
                         Cat(self.o.payload.state).eq(Cat(merged(m, self._config, "sum", a.state, b.state)))]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m


class StateTree(wiring.Component):
    """Merges the states of all cores, and gives for each probe its state in items of `result_layout`.

    Every core gives one state for each probe, in the order of the probes, also if it found no partner. A probe's state
    leaves in `Configuration.beats` items of kind PAIR, 64 bits each, and its star, which holds the probe's row id and
    the last 32 bits; an END as such.

    Ports: ``i``: `folded_layout` of each core. ``o``: `result_layout`.
    """

    def __init__(self, config: Configuration, parts: Submodules | None = None):
        self._config, self._parts = config, parts or Submodules()
        super().__init__({
            "i": In(stream.Signature(folded_layout(config))).array(config.cores),
            "o": Out(stream.Signature(result_layout())),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        level, depth = [wiring.flipped(port) for port in self.i], 0
        while len(level) > 1:
            made = []
            for n in range(0, len(level) - 1, 2):
                node = self._parts.add(m, f"node{depth}_{n // 2}", "state_merger", state_merger_ports(config),
                                       lambda: StateMerger(config))
                wiring.connect(m, level[n], node.i[0])
                wiring.connect(m, level[n + 1], node.i[1])
                made.append(node.o)
            level, depth = made + level[2 * len(made):], depth + 1
        found = level[0]

        # The rest of a state, the next beat lowest.
        rest = Signal(2 * ROW_BITS * config.beats + ROW_BITS, reset_less=True)
        left = Signal(range(config.beats + 1))
        end = Signal()
        probe = Signal(ROW_BITS, init=-1)
        leave = Signal()
        item = self.o.payload
        m.d.comb += [
            found.ready.eq(~self.o.valid), leave.eq(self.o.valid & self.o.ready), item.probe.eq(probe),
            item.stored.eq(rest[:ROW_BITS]), item.kind.eq(ItemKind.STAR),
        ]
        with m.If(end):
            m.d.comb += item.kind.eq(ItemKind.END)
        if config.beats:
            with m.Elif(left != 0):
                m.d.comb += [item.kind.eq(ItemKind.PAIR), item.probe.eq(rest[:ROW_BITS]),
                             item.stored.eq(rest[ROW_BITS:2 * ROW_BITS])]
        with m.If(found.valid & ~self.o.valid):
            m.d.sync += [self.o.valid.eq(1), rest.eq(Cat(found.payload.state)), end.eq(found.payload.end),
                         left.eq(config.beats), probe.eq(probe + ~found.payload.end)]
        with m.If(leave):
            m.d.sync += [self.o.valid.eq((left != 0) & ~end), left.eq(left - 1), rest.eq(rest >> 2 * ROW_BITS)]
        return m
